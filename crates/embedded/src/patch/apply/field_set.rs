//! The set of fields that an object has, and whether their values have the types of its kind.

use super::fields::Fields;
use super::step::Step;
use crate::patch::shape::{Form, Identity, Items, Scalar, Shape};
use crate::path::Path;
use crate::status::{MAX_PROBLEMS, cut};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

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

/// The fields of an applied object that its kind cannot have; bounded, as all problems of one request are.
pub(super) fn problems(shape: &Shape, value: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    check(shape, value, &mut Path::default(), &mut problems);
    problems
}

fn check(shape: &Shape, value: &Value, path: &mut Path, problems: &mut Vec<String>) {
    if problems.len() > MAX_PROBLEMS {
        return;
    }
    let mut wrong = |wanted: &str| {
        let colon = if path.text().is_empty() { "" } else { ": " };
        let (path, found) = (path.shortened(), cut(&go(value)));
        problems.push(format!("{path}{colon}expected {wanted}, got {found}"));
    };
    match (shape, value) {
        (_, Value::Null)
        | (Shape::Open | Shape::Typed | Shape::Atomic, _)
        | (Shape::Map(_), Value::Object(_))
        | (Shape::List(_), Value::Array(_)) => check_inside(shape, value, path, problems),
        (Shape::Map(_), _) => wrong("map"),
        (Shape::List(_), _) => wrong("list"),
        (Shape::Scalar(scalar), value) => match (scalar, value) {
            (Scalar::Text | Scalar::Any, Value::String(_))
            | (Scalar::Number | Scalar::Any, Value::Number(_))
            | (Scalar::Boolean | Scalar::Any, Value::Bool(_)) => {}
            (Scalar::Text, _) => wrong("string"),
            (Scalar::Number, _) => wrong("numeric (int or float)"),
            (Scalar::Boolean, _) => wrong("boolean"),
            (Scalar::Any, _) => wrong("any scalar"),
        },
    }
}

fn check_inside(shape: &Shape, value: &Value, path: &mut Path, problems: &mut Vec<String>) {
    match (shape.form(value), value) {
        (Form::Map(shape), Value::Object(members)) => {
            for (name, member) in members {
                path.step(format_args!(".{name}"), |path| match shape.member(name) {
                    Some((inside, _)) => check(inside, member, path, problems),
                    None => {
                        let path = path.shortened();
                        problems.push(format!("{path}: field not declared in schema"));
                    }
                });
                if problems.len() > MAX_PROBLEMS {
                    return;
                }
            }
        }
        (Form::List(items), Value::Array(list)) if items.identity != Identity::None => {
            let mut seen = BTreeSet::new();
            for (index, item) in list.iter().enumerate() {
                let step = match Step::of_item(items, item) {
                    Ok(step) => step,
                    Err(why) => {
                        let path = path.shortened();
                        problems.push(format!("{path}: element {index}: {why}"));
                        return;
                    }
                };
                path.step(&step, |path| check(&items.item, item, path, problems));
                let step = step.to_string();
                if seen.contains(&step) {
                    let (path, step) = (path.shortened(), cut(&step));
                    problems.push(format!("{path}: duplicate entries for key {step}"));
                }
                seen.insert(step);
                if problems.len() > MAX_PROBLEMS {
                    return;
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
