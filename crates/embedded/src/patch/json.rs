//! JSON patches (RFC 6902), as the real server reads them: what is absent is null to a `test`, `replace`
//! makes a member that is not there, and an index may count from the end.
//!
//! Operations are few words that can mean much work: to move a large value, or all items of a long list by
//! one. So what they touch is counted, and a patch that touches too much is refused.

use super::PatchError;
use super::apply::same;
use crate::bounds::{MAX_DEPTH, MAX_NAME_BYTES, count, is_deeper};
use crate::status::cut;
use serde_json::Value;

/// More operations than this are refused.
const MAX_OPERATIONS: usize = 10_000;

/// Copies must not make an object larger than any request could: a patch could double it at every step.
const MAX_RESULT_BYTES: usize = 4 * 1024 * 1024;

/// Values that all operations of a patch may move, copy and push aside; more than an object has.
const TOUCHED: usize = 4 << 20;
/// Items of a list that are pushed aside in the time in which one value is looked at.
const ASIDE: usize = 8;

/// A JSON patch: all operations or none.
pub fn json(target: &mut Value, operations: &Value) -> Result<(), PatchError> {
    let Value::Array(operations) = operations else {
        return Err(malformed("a JSON patch must be an array of operations"));
    };
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let mut result = target.clone();
    let mut work = Work::default();
    for operation in operations {
        apply(&mut result, operation, &mut work)?;
    }
    *target = result;
    Ok(())
}

/// What was done so far.
#[derive(Default)]
struct Work {
    /// Bytes.
    copied: usize,
    /// Values.
    touched: usize,
}

impl Work {
    fn touch(&mut self, values: usize) -> Result<(), PatchError> {
        self.touched = self.touched.saturating_add(values);
        if self.touched <= TOUCHED {
            return Ok(());
        }
        Err(PatchError::TooLarge(format!(
            "The operations of this JSON patch move more than {TOUCHED} values: send fewer at a time"
        )))
    }
}

fn apply(target: &mut Value, operation: &Value, work: &mut Work) -> Result<(), PatchError> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let Some(op) = text("op") else {
        return Err(malformed("an operation of a JSON patch must have an op"));
    };
    let Some(path) = text("path") else {
        return Err(fails(op, "", "it has no path"));
    };
    let from = || text("from").ok_or_else(|| fails(op, path, "it has no from"));
    // A value that is not given is null.
    let value = || operation.get("value").cloned().unwrap_or_default();
    match op {
        "add" => add(target, op, path, value(), work),
        "replace" => replace(target, op, path, value()),
        "remove" => remove(target, op, path, work).map(drop),
        "move" => {
            let moved = remove(target, op, from()?, work)?;
            work.touch(count(&moved))?;
            add(target, op, path, moved, work)
        }
        "copy" => {
            let value = get(target, op, from()?)?;
            work.touch(count(value))?;
            work.copied += value.to_string().len();
            if work.copied > MAX_RESULT_BYTES {
                return Err(fails(op, path, "copies are too large"));
            }
            let copy = value.clone();
            add(target, op, path, copy, work)
        }
        "test" => {
            // Looks at no more than the patch itself has.
            let wanted = operation.get("value").unwrap_or(&Value::Null);
            if same(get(target, op, path)?, wanted) {
                return Ok(());
            }
            Err(PatchError::DoesNotApply(format!(
                "testing value {} failed: test failed",
                cut(path)
            )))
        }
        other => Err(PatchError::DoesNotApply(format!(
            "unexpected kind of operation: {}",
            cut(other)
        ))),
    }
}

/// The value at a path; null if it is not there, but its parent is.
fn get<'t>(target: &'t mut Value, op: &str, path: &str) -> Result<&'t Value, PatchError> {
    if path.is_empty() {
        return Ok(target);
    }
    let (parent, key) = parent(target, op, path)?;
    match parent {
        Value::Object(members) => Ok(members.get(&key).unwrap_or(&Value::Null)),
        Value::Array(items) => {
            let index = index(&key, items.len(), op, path)?;
            Ok(items.get(index).unwrap_or(&Value::Null))
        }
        _ => Err(missing(op, path)),
    }
}

fn add(
    target: &mut Value,
    op: &str,
    path: &str,
    value: Value,
    work: &mut Work,
) -> Result<(), PatchError> {
    shallow(op, path, &value)?;
    let (parent, key) = parent(target, op, path)?;
    match parent {
        Value::Object(members) => {
            let _ = members.insert(key, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let index = index(&key, items.len() + 1, op, path)?;
            work.touch((items.len() - index) / ASIDE)?;
            items.insert(index, value);
        }
        _ => return Err(missing(op, path)),
    }
    Ok(())
}

fn replace(target: &mut Value, op: &str, path: &str, value: Value) -> Result<(), PatchError> {
    shallow(op, path, &value)?;
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    let (parent, key) = parent(target, op, path)?;
    match parent {
        Value::Object(members) => {
            let _ = members.insert(key, value);
        }
        Value::Array(items) => {
            let index = index(&key, items.len(), op, path)?;
            items[index] = value;
        }
        _ => return Err(missing(op, path)),
    }
    Ok(())
}

/// What is put somewhere has a name there, and is not deeper than anything may be: an object of any depth
/// would end us, as it is cloned, written and dropped by recursion. So none is ever made.
fn shallow(op: &str, path: &str, value: &Value) -> Result<(), PatchError> {
    if path.split('/').any(|name| name.len() > MAX_NAME_BYTES) {
        return Err(fails(op, path, "a field's name is too long"));
    }
    let above = path.split('/').count() - 1;
    match MAX_DEPTH.checked_sub(above) {
        Some(left) if !is_deeper(value, left) => Ok(()),
        _ => {
            let why = format!("it would be nested more than {MAX_DEPTH} deep");
            Err(fails(op, path, &why))
        }
    }
}

fn remove(target: &mut Value, op: &str, path: &str, work: &mut Work) -> Result<Value, PatchError> {
    let (parent, key) = parent(target, op, path)?;
    match parent {
        Value::Object(members) => members.remove(&key).ok_or_else(|| missing(op, path)),
        Value::Array(items) => {
            let index = index(&key, items.len(), op, path)?;
            work.touch((items.len() - index) / ASIDE)?;
            Ok(items.remove(index))
        }
        _ => Err(missing(op, path)),
    }
}

/// What holds the last part of a path, and that part.
fn parent<'a>(
    target: &'a mut Value,
    op: &str,
    path: &str,
) -> Result<(&'a mut Value, String), PatchError> {
    let mut parts: Vec<String> = path
        .split('/')
        .skip(1)
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect();
    let Some(last) = parts.pop() else {
        return Err(missing(op, path));
    };
    let mut here = target;
    for part in parts {
        here = match here {
            Value::Object(members) => members.get_mut(&part),
            Value::Array(items) => {
                let index = index(&part, items.len(), op, path)?;
                items.get_mut(index)
            }
            _ => None,
        }
        .ok_or_else(|| missing(op, path))?;
    }
    Ok((here, last))
}

/// A place in a list of that many; negative ones count from its end.
fn index(key: &str, count: usize, op: &str, path: &str) -> Result<usize, PatchError> {
    let Ok(number) = key.parse::<i64>() else {
        return Err(fails(op, path, &format!("{key:?} is no index of a list")));
    };
    let index = match usize::try_from(number) {
        Ok(index) => Some(index),
        Err(_) => usize::try_from(number.unsigned_abs())
            .ok()
            .and_then(|back| count.checked_sub(back)),
    };
    index
        .filter(|index| *index < count)
        .ok_or_else(|| fails(op, path, &format!("there is no index {key}")))
}

fn missing(op: &str, path: &str) -> PatchError {
    fails(op, path, "doc is missing path: missing value")
}

fn fails(op: &str, path: &str, why: &str) -> PatchError {
    const MAX_PATH_CHARS: usize = 500;
    let path: String = path.chars().take(MAX_PATH_CHARS).collect();
    PatchError::DoesNotApply(format!("{op} operation does not apply: {path}: {why}"))
}

fn malformed(why: &str) -> PatchError {
    PatchError::Malformed(why.to_owned())
}
