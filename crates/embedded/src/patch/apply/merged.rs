//! An object with another one laid over it.

use super::step::Step;
use crate::patch::shape::{Form, Items, Shape};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What `live` becomes when `applied` is laid over it: maps by member, lists by item if items have an
/// identity, everything else as `applied` says. An explicit null takes nothing away from a map or
/// such a list that has something in it.
pub(super) fn merged(shape: &Shape, live: &Value, applied: &Value) -> Value {
    let form = match applied {
        Value::Null => shape.form(live),
        _ => shape.form(applied),
    };
    match form {
        Form::Leaf => applied.clone(),
        Form::Map(shape) => merged_maps(shape, live.as_object(), applied),
        Form::List(items) => merged_lists(items, live.as_array(), applied),
    }
}

fn merged_maps(shape: &Shape, live: Option<&Map<String, Value>>, applied: &Value) -> Value {
    let over = applied.as_object();
    if live.is_none_or(Map::is_empty) && over.is_none_or(Map::is_empty) {
        return applied.clone();
    }
    let mut result = live.cloned().unwrap_or_default();
    for (name, value) in over.into_iter().flatten() {
        let (inside, _) = shape.member(name).unwrap_or((&Shape::Open, false));
        let value = match result.get(name) {
            Some(below) => merged(inside, below, value),
            None => value.clone(),
        };
        let _ = result.insert(name.clone(), value);
    }
    Value::Object(result)
}

fn merged_lists(items: &Items, live: Option<&Vec<Value>>, applied: &Value) -> Value {
    let live = live.map_or(&[][..], Vec::as_slice);
    let over = applied.as_array().map_or(&[][..], Vec::as_slice);
    if live.is_empty() && over.is_empty() {
        return applied.clone();
    }
    let (left, right) = (Side::new(items, live), Side::new(items, over));
    let order = interleaved(&left, &right);
    let result = order.into_iter().map(|pick| match pick {
        Pick::Live(index) => left.values[index].clone(),
        Pick::Applied(index) => {
            let value = right.values[index];
            match left.once.get(&right.steps[index]) {
                Some(Some(below)) => merged(&items.item, below, value),
                _ => value.clone(),
            }
        }
    });
    Value::Array(result.collect())
}

/// One of two lists that are merged.
struct Side<'a> {
    steps: Vec<Step>,
    values: Vec<&'a Value>,
    /// By identity; none for what is there more than once.
    once: BTreeMap<Step, Option<&'a Value>>,
}

impl<'a> Side<'a> {
    fn new(items: &Items, list: &'a [Value]) -> Self {
        let mut side = Self {
            steps: Vec::new(),
            values: Vec::new(),
            once: BTreeMap::new(),
        };
        for value in list {
            if let Ok(step) = Step::of_item(items, value) {
                let _ = side
                    .once
                    .entry(step.clone())
                    .and_modify(|again| *again = None)
                    .or_insert(Some(value));
                side.steps.push(step);
                side.values.push(value);
            }
        }
        side
    }

    fn has(&self, step: &Step) -> bool {
        self.once.contains_key(step)
    }
}

/// Where the next item of a merged list comes from.
enum Pick {
    Live(usize),
    Applied(usize),
}

/// The order of the merged list: items that both have come in the order of the applied one; an item
/// that only one of them has stays behind its neighbour.
fn interleaved(live: &Side<'_>, applied: &Side<'_>) -> Vec<Pick> {
    let mut order = Vec::new();
    let mut taken: BTreeSet<&Step> = BTreeSet::new();
    let mut shared = applied
        .steps
        .iter()
        .filter(|step| live.has(step))
        .peekable();
    let (mut left, mut right) = (0, 0);
    loop {
        match (live.steps.get(left), applied.steps.get(right)) {
            (None, None) => return order,
            (Some(old), Some(new)) if old == new => {
                order.push(Pick::Applied(right));
                let _ = (taken.insert(new), shared.next());
                (left, right) = (left + 1, right + 1);
            }
            // Its turn comes with its place in the applied list.
            (Some(old), Some(_))
                if applied.has(old) && shared.peek().is_some_and(|next| *next != old) =>
            {
                left += 1;
            }
            (Some(old), _) if !applied.has(old) => {
                order.push(Pick::Live(left));
                left += 1;
            }
            (old, new) => {
                if old.is_some_and(|old| taken.contains(old)) {
                    left += 1;
                }
                if let Some(new) = new {
                    order.push(Pick::Applied(right));
                    let _ = taken.insert(new);
                    let _ = shared.next_if(|next| *next == new);
                    right += 1;
                }
            }
        }
    }
}
