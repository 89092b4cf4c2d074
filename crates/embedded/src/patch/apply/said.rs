//! What an object says: the set of its fields, and whether it says it in the types that its kind has.

use super::fields::Fields;
use super::step::Step;
use crate::patch::shape::{Form, Identity, Items, Scalar, Shape};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The fields that a value has: leaves, items, entries of maps, and maps that are empty.
pub(super) fn fields(shape: &Shape, value: &Value) -> Fields {
    let mut fields = Fields::default();
    match (shape.form(value), value) {
        (Form::Map(shape), Value::Object(members)) => {
            for (name, member) in members {
                let (inside, named) = shape.member(name).unwrap_or((&Shape::Open, false));
                let whole = match inside.form(member) {
                    Form::Leaf => true,
                    Form::Map(_) => member.as_object().is_some_and(Map::is_empty),
                    Form::List(_) => false,
                };
                let below = self::fields(inside, member);
                fields.add(Step::Field(name.clone()), whole || !named, below);
            }
        }
        (Form::List(items), Value::Array(list)) => {
            for (step, same) in by_step(items, list) {
                let below = match same.as_slice() {
                    [one] => self::fields(&items.item, one),
                    _ => Fields::default(),
                };
                fields.add(step, true, below);
            }
        }
        _ => {}
    }
    fields
}

/// The items of a list by what identifies them. More than one: the list has the same item again.
pub(super) fn by_step<'a>(items: &Items, list: &'a [Value]) -> BTreeMap<Step, Vec<&'a Value>> {
    let mut found: BTreeMap<Step, Vec<&Value>> = BTreeMap::new();
    for item in list {
        if let Ok(step) = Step::of_item(items, item) {
            found.entry(step).or_default().push(item);
        }
    }
    found
}

/// What an applied object says that its kind cannot have.
pub(super) fn problems(shape: &Shape, value: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    check(shape, value, "", &mut problems);
    problems
}

fn check(shape: &Shape, value: &Value, path: &str, problems: &mut Vec<String>) {
    let mut wrong = |what: String| {
        let colon = if path.is_empty() { "" } else { ": " };
        problems.push(format!("{path}{colon}{what}"));
    };
    match (shape, value) {
        (_, Value::Null) | (Shape::Open | Shape::Typed | Shape::Whole, _) => {
            check_inside(shape, value, path, problems);
        }
        (Shape::Map(_), Value::Object(_)) => check_inside(shape, value, path, problems),
        (Shape::List(_), Value::Array(_)) => check_inside(shape, value, path, problems),
        (Shape::Map(_), other) => wrong(format!("expected map, got {}", go(other))),
        (Shape::List(_), other) => wrong(format!("expected list, got {}", go(other))),
        (Shape::Scalar(scalar), value) => {
            let wanted = match (scalar, value) {
                (Scalar::Text | Scalar::Any, Value::String(_))
                | (Scalar::Number | Scalar::Any, Value::Number(_))
                | (Scalar::Boolean | Scalar::Any, Value::Bool(_)) => return,
                (Scalar::Text, _) => "string",
                (Scalar::Number, _) => "numeric (int or float)",
                (Scalar::Boolean, _) => "boolean",
                (Scalar::Any, _) => "any scalar",
            };
            wrong(format!("expected {wanted}, got {}", go(value)));
        }
    }
}

fn check_inside(shape: &Shape, value: &Value, path: &str, problems: &mut Vec<String>) {
    match (shape.form(value), value) {
        (Form::Map(shape), Value::Object(members)) => {
            for (name, member) in members {
                let path = format!("{path}.{name}");
                match shape.member(name) {
                    Some((inside, _)) => check(inside, member, &path, problems),
                    None => problems.push(format!("{path}: field not declared in schema")),
                }
            }
        }
        (Form::List(items), Value::Array(list)) if items.identity != Identity::None => {
            let mut seen = BTreeMap::new();
            for (index, item) in list.iter().enumerate() {
                match Step::of_item(items, item) {
                    Err(why) => {
                        problems.push(format!("{path}: element {index}: {why}"));
                        return;
                    }
                    Ok(step) => {
                        check(&items.item, item, &format!("{path}{step}"), problems);
                        if seen.insert(step.to_string(), ()).is_some() {
                            problems.push(format!("{path}: duplicate entries for key {step}"));
                        }
                    }
                }
            }
        }
        _ => {}
    }
}

/// As the server prints a value in such messages.
fn go(value: &Value) -> String {
    match value {
        Value::String(text) => format!("&{{{text}}}"),
        other => format!("&{{{other}}}"),
    }
}
