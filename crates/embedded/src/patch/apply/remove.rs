//! An object without some of its fields.

use super::fields::Fields;
use super::step::Step;
use crate::patch::shape::{Form, Shape};
use serde_json::{Map, Value};

/// `value` without the members of `gone`. A container in which nothing is left becomes null, unless it is
/// itself a member.
pub(super) fn without(shape: &Shape, value: &Value, gone: &Fields) -> Value {
    match (shape.form(value), value) {
        (Form::Map(shape), Value::Object(members)) => {
            let left: Map<String, Value> = members
                .iter()
                .filter_map(|(name, member)| {
                    let step = Step::Field(name.clone());
                    let (inside, _) = shape.member(name).unwrap_or((&Shape::Open, false));
                    Some((name.clone(), left(inside, member, &step, gone)?))
                })
                .collect();
            if left.is_empty() {
                Value::Null
            } else {
                Value::Object(left)
            }
        }
        (Form::List(items), Value::Array(list)) => {
            let left: Vec<Value> = list
                .iter()
                .filter_map(|item| match Step::of_item(items, item) {
                    Ok(step) => left(&items.item, item, &step, gone),
                    Err(_) => Some(item.clone()),
                })
                .collect();
            if left.is_empty() {
                Value::Null
            } else {
                Value::Array(left)
            }
        }
        // A whole that has something to lose is lost.
        (Form::Leaf, Value::Object(_) | Value::Array(_)) => Value::Null,
        _ => value.clone(),
    }
}

/// A member or an item, if it stays.
fn left(shape: &Shape, value: &Value, step: &Step, gone: &Fields) -> Option<Value> {
    if gone.has(step) {
        return None;
    }
    Some(match gone.below(step) {
        Some(below) => without(shape, value, below),
        None => value.clone(),
    })
}
