//! Strategic merge patches, for the core kinds: a merge patch whose lists are merged by key where the kind
//! says so, with directives for what a merge alone cannot say.
//!
//! | directive | where | means |
//! |---|---|---|
//! | `$patch: delete` | an item | the item with this key goes |
//! | `$patch: replace` | an item, a map | the patch replaces the list, the map |
//! | `$patch: delete` | a map | it becomes empty |
//! | `$setElementOrder/x` | beside list x | the order of its items |
//! | `$deleteFromPrimitiveList/x` | beside list x | these scalars go |
//! | `$retainKeys` | a map | all other members go |

use super::PatchError;
use super::apply::same;
use super::order::{indexes, name, ordered};
use super::shape::{Items, Shape, Strategy};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// A strategic merge patch of an object of a core kind: all of it or none.
pub fn strategic(shape: &Shape, target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed("invalid JSON document".to_owned()));
    };
    let original = target.as_object().cloned().unwrap_or_default();
    *target = Value::Object(merged(shape, original, patch)?);
    Ok(())
}

fn merged(
    shape: &Shape,
    mut original: Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, PatchError> {
    match patch.get(PATCH).map(|directive| directive.as_str()) {
        None => {}
        Some(Some("replace")) => {
            let mut all = patch.clone();
            let _ = all.remove(PATCH);
            return Ok(all);
        }
        Some(Some("delete")) => return Ok(Map::new()),
        Some(_) => return Err(unknown_directive(&patch[PATCH])),
    }
    retain_keys(&mut original, patch)?;
    for (key, value) in patch {
        if key == RETAIN {
            continue;
        }
        if let Some(name) = key.strip_prefix(ORDER) {
            set_order(shape, &mut original, patch, name, value)?;
        } else if let Some(name) = key.strip_prefix(DELETE) {
            delete_scalars(&mut original, name, value)?;
        } else if !patch.contains_key(&format!("{ORDER}{key}")) {
            let before = original.remove(key);
            let (inside, _) = shape.member(key).unwrap_or((&Shape::Open, false));
            if let Some(after) = member(inside, before, value)? {
                let _ = original.insert(key.clone(), after);
            }
        }
    }
    Ok(original)
}

/// One member; `None`: it goes.
fn member(
    shape: &Shape,
    before: Option<Value>,
    patch: &Value,
) -> Result<Option<Value>, PatchError> {
    Ok(match (before, patch) {
        (_, Value::Null) => None,
        (Some(Value::Object(before)), Value::Object(patch)) => {
            Some(Value::Object(merged(shape, before, patch)?))
        }
        (Some(Value::Array(before)), Value::Array(patch)) => {
            Some(Value::Array(merged_list(shape, before, patch)?))
        }
        (_, patch) => plain(patch),
    })
}

/// `$retainKeys`: what the list does not name goes, and the patch may not set it.
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    let Some(keys) = patch.get(RETAIN) else {
        return Ok(());
    };
    let wrong = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let keys = keys.as_array().ok_or_else(wrong)?;
    let keys: BTreeSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let named = |name: &str| keys.contains(name);
    let sets =
        |(key, value): (&String, &Value)| !key.starts_with('$') && !value.is_null() && !named(key);
    if patch.iter().any(sets) {
        return Err(wrong());
    }
    original.retain(|key, _| named(key));
    Ok(())
}

fn delete_scalars(
    original: &mut Map<String, Value>,
    name: &str,
    gone: &Value,
) -> Result<(), PatchError> {
    let Value::Array(gone) = gone else {
        let why = "invalid patch format of primitive list";
        return Err(PatchError::Malformed(why.to_owned()));
    };
    if let Some(Value::Array(list)) = original.get_mut(name) {
        let gone: BTreeSet<String> = gone.iter().map(Value::to_string).collect();
        list.retain(|item| !gone.contains(&item.to_string()));
    }
    Ok(())
}

/// `$setElementOrder/<name>`, together with the list itself if the patch has it.
fn set_order(
    shape: &Shape,
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    name: &str,
    order: &Value,
) -> Result<(), PatchError> {
    let wrong = || PatchError::Malformed("invalid patch format of setElementOrder list".to_owned());
    let order = order.as_array().ok_or_else(wrong)?;
    let (inside, _) = shape.member(name).unwrap_or((&Shape::Open, false));
    let by = merge_key(inside);
    let live = match original.remove(name) {
        None => None,
        Some(Value::Array(live)) => Some(live),
        Some(_) => return Err(wrong()),
    };
    let change = match patch.get(name) {
        None => None,
        Some(Value::Array(change)) => Some(change),
        Some(_) => return Err(wrong()),
    };
    if let Some(change) = change {
        fits_order(change, order, by)?;
    }
    let list = match (&live, change) {
        (None, None) => return Ok(()),
        (Some(live), None) => live.clone(),
        (None, Some(change)) => change.iter().filter_map(plain).collect(),
        (Some(live), Some(change)) => merged_list(inside, live.clone(), change)?,
    };
    let live = live.unwrap_or_default();
    let _ = original.insert(
        name.to_owned(),
        Value::Array(ordered(list, order, &live, by)),
    );
    Ok(())
}

/// The items of a patch must be in the order, and in that order.
fn fits_order(change: &[Value], order: &[Value], by: Option<&str>) -> Result<(), PatchError> {
    if order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for item in change.iter().filter(|item| item.get(PATCH).is_none()) {
        if !rest.any(|other| equal(other, item, by)) {
            return Err(PatchError::DoesNotApply(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                Value::Array(change.to_vec()),
                Value::Array(order.to_vec())
            )));
        }
    }
    Ok(())
}

fn merged_list(shape: &Shape, live: Vec<Value>, patch: &[Value]) -> Result<Vec<Value>, PatchError> {
    match shape.items().map(|items| (items, &items.strategy)) {
        Some((items, Strategy::Merge(by))) => merged_by(items, live, patch, by),
        Some((_, Strategy::Union)) => {
            let mut all = live.clone();
            let mut known: BTreeSet<String> = all.iter().map(Value::to_string).collect();
            for item in patch {
                if known.insert(item.to_string()) {
                    all.push(item.clone());
                }
            }
            Ok(ordered(all, patch, &live, None))
        }
        _ => Ok(patch.iter().filter_map(plain).collect()),
    }
}

fn merged_by(
    items: &Items,
    live: Vec<Value>,
    patch: &[Value],
    by: &str,
) -> Result<Vec<Value>, PatchError> {
    let mut list = live;
    let mut changes = Vec::new();
    let mut gone = BTreeSet::new();
    let mut replace = false;
    for item in patch {
        match item.get(PATCH).map(|directive| directive.as_str()) {
            None => changes.push(item),
            Some(Some("replace")) => replace = true,
            Some(Some("delete")) => {
                let _ = gone.insert(key_of(item, by)?.to_string());
            }
            Some(_) => return Err(unknown_directive(&item[PATCH])),
        }
    }
    if replace {
        return Ok(changes.into_iter().filter_map(plain).collect());
    }
    list.retain(|item| name(item, Some(by)).is_none_or(|name| !gone.contains(&name)));
    let live = list.clone();
    let mut known = indexes(&list, Some(by));
    for change in &changes {
        let key = key_of(change, by)?.to_string();
        let found = known.get(&key).and_then(|index| list.get_mut(*index));
        match found {
            Some(item) => {
                let before = Some(std::mem::take(item));
                *item = member(&items.item, before, change)?.unwrap_or_default();
            }
            None => {
                let _ = known.insert(key, list.len());
                list.extend(plain(change));
            }
        }
    }
    let order: Vec<Value> = changes.into_iter().cloned().collect();
    Ok(ordered(list, &order, &live, Some(by)))
}

fn key_of<'a>(item: &'a Value, by: &str) -> Result<&'a Value, PatchError> {
    item.get(by).ok_or_else(|| {
        PatchError::DoesNotApply(format!(
            "map: {item} does not contain declared merge key: {by}"
        ))
    })
}

fn equal(one: &Value, other: &Value, by: Option<&str>) -> bool {
    match by {
        Some(by) => one.get(by).is_some() && one.get(by) == other.get(by),
        None => same(one, other),
    }
}

fn merge_key(shape: &Shape) -> Option<&str> {
    match &shape.items()?.strategy {
        Strategy::Merge(by) => Some(by),
        Strategy::Union | Strategy::Replace => None,
    }
}

/// A value that is new: without directives and nulls. `None` if all of it is a directive.
fn plain(value: &Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => {
            let remaining = members
                .iter()
                .filter(|(key, value)| !key.starts_with('$') && !value.is_null())
                .filter_map(|(key, value)| Some((key.clone(), plain(value)?)));
            Some(Value::Object(remaining.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(plain).collect())),
        other => Some(other.clone()),
    }
}

fn unknown_directive(directive: &Value) -> PatchError {
    PatchError::DoesNotApply(format!("unknown patch type: {directive}"))
}
