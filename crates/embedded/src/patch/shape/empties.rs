//! Empty maps and lists of core kinds: their types do not tell them from absent ones.

use super::{Rest, Shape};
use serde_json::Value;

impl Shape {
    /// Drops maps of entries and lists of items that are empty, if this is the shape of a core kind. What
    /// may be anything, and what is whole, is left alone.
    pub(crate) fn drop_empties(&self, object: &mut Value) {
        if self.is_typed() {
            drop_below(self, object);
        }
    }
}

fn drop_below(shape: &Shape, value: &mut Value) {
    match (shape, value) {
        (Shape::Map(_), Value::Object(members)) => members.retain(|name, member| {
            let (inside, _) = shape.member(name).unwrap_or((&Shape::Open, false));
            drop_below(inside, member);
            !is_nothing(inside, member)
        }),
        (Shape::List(items), Value::Array(list)) => {
            for item in list {
                drop_below(&items.item, item);
            }
        }
        _ => {}
    }
}

fn is_nothing(shape: &Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::Map(map), Value::Object(members)) => {
            members.is_empty() && matches!(map.rest, Rest::Entries(_))
        }
        (Shape::List(_), Value::Array(items)) => items.is_empty(),
        _ => false,
    }
}
