//! A change of an object that is there, in its turn, whoever made it: PUT, a patch, or an apply.

use super::identity;
use super::intent::{Owners, Write};
use super::make::{fill, problems};
use super::metadata;
use super::subject::{Part, Subject};
use crate::clock;
use crate::patch::{Shape, apply};
use crate::status::Refused;
use crate::store::Stored;
use serde_json::Value;
use std::sync::Arc;

/// Writes a change. `before` is the value of `live`; `after` is in its stored form too, pruned, has the name
/// of `before`, and the conditions that it carries hold.
///
/// # Errors
/// The object is invalid, too deep or too large, or a condition of the writer does not hold.
pub(super) fn change(
    write: Write<'_>,
    live: &Arc<Stored>,
    before: &Value,
    mut after: Value,
    owners: Owners,
) -> Result<Arc<Stored>, Refused> {
    let Write {
        api,
        changes,
        subject,
        intent,
    } = write;
    let kind = &subject.stored;
    take_back(subject, before, &mut after);
    identity::keep_ours(before, &mut after);
    identity::without_empties(&mut after);
    Shape::of(kind).drop_empties(&mut after);
    fill(subject, &mut after);
    let now = clock::rfc3339(changes.now());
    if owners == Owners::ToBeMoved {
        let version = kind.api_version();
        let writer = apply::Writer {
            manager: &intent.manager,
            api_version: &version,
            subresource: match subject.part {
                Part::Main => "",
                Part::Status => "status",
                Part::Finalize => "finalize",
            },
            status_apart: kind.has_status,
            now: &now,
        };
        apply::update(Shape::of(kind), Some(before), &mut after, &writer);
    }
    if kind.has_generation && identity::differs(kind, before, &after) {
        let generation = before["metadata"]["generation"].as_i64().unwrap_or(0);
        after["metadata"]["generation"] = (generation + 1).into();
    }
    let mut found = problems(api, subject, Some(before), &after);
    found.extend(metadata::new_finalizers(before, &after));
    if !found.is_empty() {
        return Err(Refused::invalid(&subject.kind, &subject.name, &found));
    }
    apply::keep_times(before, &mut after);
    if after == *before {
        return Ok(Arc::clone(live));
    }
    if live.dying && !waits(&after) {
        return changes.remove_as(subject.table, &live.key, after);
    }
    changes.put(subject.table, &live.key, after)
}

/// Whether somebody has still to do something before a dying object can go.
pub(crate) fn waits(object: &Value) -> bool {
    let is_some = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    let grace = object["metadata"]["deletionGracePeriodSeconds"].as_i64();
    is_some(&object["metadata"]["finalizers"])
        || (object["kind"] == "Namespace" && is_some(&object["spec"]["finalizers"]))
        || grace.is_some_and(|grace| grace > 0)
}

/// What this part of the object may not change is as before.
fn take_back(subject: &Subject, before: &Value, after: &mut Value) {
    let part = match subject.part {
        Part::Main if subject.stored.has_status => {
            restore(before, after, "status");
            // Only where it says so can one say what a namespace waits for.
            if subject.stored.kind == "Namespace" && subject.stored.core {
                let old = before["spec"].clone();
                after["spec"] = old;
            }
            return;
        }
        Part::Main => return,
        Part::Status => "status",
        Part::Finalize => "spec",
    };
    let managers = after["metadata"].get("managedFields").cloned();
    let new = after.get(part).cloned();
    *after = before.clone();
    if let (Some(managers), Some(metadata)) = (managers, after["metadata"].as_object_mut()) {
        let _ = metadata.insert("managedFields".to_owned(), managers);
    }
    if let Some(object) = after.as_object_mut() {
        match new {
            Some(new) => drop(object.insert(part.to_owned(), new)),
            None => drop(object.remove(part)),
        }
    }
}

fn restore(before: &Value, after: &mut Value, field: &str) {
    if let Some(object) = after.as_object_mut() {
        match before.get(field) {
            Some(old) => drop(object.insert(field.to_owned(), old.clone())),
            None => drop(object.remove(field)),
        }
    }
}
