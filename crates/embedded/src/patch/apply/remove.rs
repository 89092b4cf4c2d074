//! An object without some of its fields.

use super::fields::Fields;
use super::step::Step;
use crate::patch::shape::{Form, Shape};
use serde_json::{Map, Value};

/// What replaces a map or list that has become empty but must stay.
#[derive(Clone, Copy)]
pub(super) enum EmptyContainer {
    /// Null: a leaf, so that it counts as a field.
    Null,
    /// It is empty, or null if it is a map that may be null.
    Empty,
}

/// `value` without the members of `gone`.
pub(super) fn without(
    shape: &Shape,
    value: &Value,
    gone: &Fields,
    nothing: EmptyContainer,
) -> Value {
    let rest = match (shape.form(value), value) {
        (Form::Map(shape), Value::Object(members)) => {
            let left = members.iter().filter_map(|(name, member)| {
                let step = Step::Field(name.clone());
                let (inside, _) = shape.member(name).unwrap_or((&Shape::Open, false));
                Some((name.clone(), left(inside, member, &step, gone, nothing)?))
            });
            Value::Object(left.collect::<Map<_, _>>())
        }
        (Form::List(items), Value::Array(list)) => {
            let left = list
                .iter()
                .filter_map(|item| match Step::of_item(items, item) {
                    Ok(step) => left(&items.item, item, &step, gone, nothing),
                    Err(_) => Some(item.clone()),
                });
            Value::Array(left.collect())
        }
        // A whole that has something to lose is lost.
        (Form::Leaf, Value::Object(_) | Value::Array(_)) => Value::Null,
        _ => value.clone(),
    };
    match (nothing, &rest) {
        (EmptyContainer::Null, Value::Object(members)) if members.is_empty() => Value::Null,
        (EmptyContainer::Null, Value::Array(items)) if items.is_empty() => Value::Null,
        (EmptyContainer::Empty, Value::Object(members))
            if members.is_empty() && shape.is_nullable_map() =>
        {
            Value::Null
        }
        _ => rest,
    }
}

/// A member or an item, if it stays.
fn left(
    shape: &Shape,
    value: &Value,
    step: &Step,
    gone: &Fields,
    nothing: EmptyContainer,
) -> Option<Value> {
    if gone.has(step) {
        return None;
    }
    Some(match gone.below(step) {
        Some(below) => without(shape, value, below, nothing),
        None => value.clone(),
    })
}
