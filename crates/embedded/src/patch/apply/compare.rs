//! What differs between two objects, as sets of fields.

use super::field_set::by_step;
use super::fields::Fields;
use super::step::Step;
use crate::patch::shape::{Form, Items, Shape};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Fields that one object has and the other has not, or has otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) added: Fields,
    pub(super) modified: Fields,
    pub(super) removed: Fields,
}

/// What becomes of a single field; members of the set above it.
#[derive(Clone, Copy, Default)]
struct Mark {
    added: bool,
    modified: bool,
    removed: bool,
}

impl Changes {
    pub(super) fn between(shape: &Shape, before: &Value, after: &Value) -> Self {
        let mut changes = Self::default();
        let _ = compare(shape, Some(before), Some(after), &mut changes);
        changes
    }

    pub(super) fn only(&self, allowed: impl Fn(&str) -> bool) -> Self {
        Self {
            added: self.added.only(&allowed),
            modified: self.modified.only(&allowed),
            removed: self.removed.only(&allowed),
        }
    }

    fn add(&mut self, step: Step, mark: Mark, below: Self) {
        self.added.add(step.clone(), mark.added, below.added);
        self.modified
            .add(step.clone(), mark.modified, below.modified);
        self.removed.add(step, mark.removed, below.removed);
    }

    /// One field, with what is below it.
    fn field(&mut self, step: Step, shape: &Shape, before: Option<&Value>, after: Option<&Value>) {
        let mut below = Self::default();
        let mark = compare(shape, before, after, &mut below);
        self.add(step, mark, below);
    }
}

/// Two values in the same place, at least one of which is there; `changes` is of what is below.
fn compare(
    shape: &Shape,
    before: Option<&Value>,
    after: Option<&Value>,
    changes: &mut Changes,
) -> Mark {
    let mut mark = Mark::default();
    // Where a value is of another form than before, it is seen as both.
    for form in forms(shape, before, after) {
        match form {
            Form::Leaf => mark = leaf(before, after),
            Form::Map(shape) => {
                let (old, new) = (members(before), members(after));
                if empty(old) && empty(new) {
                    mark = leaf(before, after);
                } else {
                    compare_members(shape, old, new, changes);
                }
            }
            Form::List(items) => {
                let (old, new) = (list(before), list(after));
                if old.is_empty() && new.is_empty() {
                    mark = leaf(before, after);
                } else {
                    compare_items(items, old, new, changes);
                }
            }
        }
    }
    mark.added |= before.is_none();
    mark.removed |= after.is_none();
    mark
}

fn forms<'a>(shape: &'a Shape, before: Option<&Value>, after: Option<&Value>) -> Vec<Form<'a>> {
    let form = |value: Option<&Value>| value.filter(|v| !v.is_null()).map(|v| shape.form(v));
    match (form(before), form(after)) {
        (None, None) => vec![Form::Leaf],
        (Some(one), None) | (None, Some(one)) => vec![one],
        (Some(Form::Leaf), Some(Form::Leaf)) => vec![Form::Leaf],
        (Some(Form::Map(_)), Some(form @ Form::Map(_)))
        | (Some(Form::List(_)), Some(form @ Form::List(_))) => vec![form],
        (Some(old), Some(new)) => vec![new, old],
    }
}

fn leaf(before: Option<&Value>, after: Option<&Value>) -> Mark {
    Mark {
        modified: matches!((before, after), (Some(old), Some(new)) if !same(old, new)),
        ..Mark::default()
    }
}

fn compare_members(
    shape: &Shape,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
    changes: &mut Changes,
) {
    let names: BTreeSet<&String> = [old, new]
        .into_iter()
        .flatten()
        .flat_map(Map::keys)
        .collect();
    for name in names {
        let (inside, _) = shape.member(name).unwrap_or((&Shape::Open, false));
        let (old, new) = (
            old.and_then(|old| old.get(name)),
            new.and_then(|new| new.get(name)),
        );
        changes.field(Step::Field(name.clone()), inside, old, new);
    }
}

fn compare_items(items: &Items, old: &[Value], new: &[Value], changes: &mut Changes) {
    let (old, new) = (by_step(items, old), by_step(items, new));
    let steps: BTreeSet<&Step> = old.keys().chain(new.keys()).collect();
    for step in steps {
        let (before, after) = (at(&old, step), at(&new, step));
        match (before, after) {
            ([] | [_], [] | [_]) => {
                let (before, after) = (before.first(), after.first());
                changes.field(step.clone(), &items.item, before.copied(), after.copied());
            }
            // The same item again and again is one value.
            ([_, _, ..], [_, _, ..]) => {
                let equal = before.len() == after.len()
                    && before.iter().zip(after).all(|(old, new)| same(old, new));
                let mark = Mark {
                    modified: !equal,
                    ..Mark::default()
                };
                changes.add(step.clone(), mark, Changes::default());
            }
            ([_, _, ..], _) => {
                if let Some(after) = after.first() {
                    changes.field(step.clone(), &items.item, None, Some(after));
                }
                let mark = Mark {
                    removed: true,
                    ..Mark::default()
                };
                changes.add(step.clone(), mark, Changes::default());
            }
            (_, [_, _, ..]) => {
                if let Some(before) = before.first() {
                    changes.field(step.clone(), &items.item, Some(before), None);
                }
                let mark = Mark {
                    added: true,
                    ..Mark::default()
                };
                changes.add(step.clone(), mark, Changes::default());
            }
        }
    }
}

fn at<'a, 'v>(
    found: &'a std::collections::BTreeMap<Step, Vec<&'v Value>>,
    step: &Step,
) -> &'a [&'v Value] {
    found.get(step).map_or(&[], Vec::as_slice)
}

fn members(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn empty(members: Option<&Map<String, Value>>) -> bool {
    members.is_none_or(Map::is_empty)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Equal, where a number may be written with or without a fraction.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|((name, one), (again, other))| name == again && same(one, other))
        }
        (one, other) => one == other,
    }
}
