//! Server-side apply, and who owns which field. Takes the object as it is and what is applied, gives the
//! object as it will be, with `metadata.managedFields` in the form that the real server writes. Pure: the
//! time is an argument.
//!
//! ```text
//!   live, applied ──► merged ──► without what this manager said before and nobody says now ──► changes
//!        changes ∩ what others own ──► conflicts, or, by force, theirs no longer
//!   before, after (any other write) ──► changes ──► whoever wrote owns them, nobody else does
//! ```
//!
//! A field is a leaf, an item of a list that has an identity, or an entry of a map. A list without list type
//! is one leaf. Who applies owns what they say; what defaults add belongs to nobody; an empty list of items
//! owns nothing, an empty map owns itself.
//!
//! The version of an entry is kept but not converted: a kind here has one version, and the two views of
//! Events have no field of different meaning under one name.

mod compare;
mod field_set;
mod fields;
mod last_applied;
mod managers;
mod merged;
mod object;
mod owning;
mod remove;
mod step;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use compare::same;
pub use writer::Writer;

use super::Shape;
use crate::status::{Cause, MAX_PROBLEMS, cut};
use managers::Managers;
use object::{blank, empty, known_managers, set_managers, unmanaged};
use owning::{Conflicts, applying, took_over};
use serde_json::Value;
use thiserror::Error;

/// Who owns what was there before anybody applied.
const BEFORE: &str = "before-first-apply";

/// Why an apply was not done.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ApplyError {
    /// Others own what it would change: 409, `Conflict`, with the message of [`conflict_message`]. A
    /// cause has the message `conflict with "other"`, and the field `.spec.size`.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Cause>),
    /// 400, `BadRequest`.
    #[error("{0}")]
    Malformed(String),
    /// What is applied is not of the kind's type: 500, as the real server says it.
    #[error("{0}")]
    Untyped(String),
}

/// What becomes of `live` (`None`: it is to be created) when `applied` is applied, with
/// `metadata.managedFields`.
///
/// Order for the caller: decode, check name and version, `apply`, defaults, validation, [`keep_times`],
/// and no write at all if nothing changed. `applied` must not be pruned before: an unknown field is an
/// error here. Fields that the subresource does not have are taken from `live`, whatever `applied` says.
/// A `resourceVersion` in `applied` comes out as said, to be compared with that of `live`.
pub fn apply(
    shape: &Shape,
    live: Option<&Value>,
    applied: &Value,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    check(shape, applied)?;
    let mut managers = live.map(Managers::of).unwrap_or_default();
    let live = live.map(unmanaged).unwrap_or_else(empty);
    if managers.owned.is_empty() {
        let before = Writer {
            manager: BEFORE,
            ..*writer
        };
        let nothing = blank(shape, &live);
        took_over(shape, &nothing, &live, &before, &mut managers);
    }
    let (mut object, managers) = match applying(shape, &live, applied, writer, force, &managers) {
        Ok(done) => done,
        Err(conflicts) => {
            let left = conflicts_left(shape, &live, writer, conflicts);
            if !left.is_empty() {
                return Err(ApplyError::Conflicts(causes(&left)));
            }
            applying(shape, &live, applied, writer, true, &managers)
                .map_err(|conflicts| ApplyError::Conflicts(causes(&conflicts)))?
        }
    };
    if writer.manager == last_applied::KUBECTL {
        last_applied::renew(&mut object, applied);
    }
    set_managers(&mut object, &managers);
    Ok(object)
}

/// A write that is no apply (create: `before` is `None`; PUT, or any other patch) has made `after`:
/// moves the ownership of what it changed to the writer, in `after`'s `metadata.managedFields`.
///
/// Call it when `after` has its defaults and what the subresource may not change is as before.
/// `managedFields` that `after` brings are taken as they are (`kubectl` writes them when it moves an
/// object to server-side apply), an empty list or `[{}]` forgets all owners, and none at all keeps those
/// of `before`.
pub fn update(shape: &Shape, before: Option<&Value>, after: &mut Value, writer: &Writer<'_>) {
    let mut managers = known_managers(before, after, writer);
    let object = unmanaged(after);
    // An object that has no owners stays without until somebody applies.
    if !managers.owned.is_empty() || before.is_none() {
        let old = before.map_or_else(|| blank(shape, &object), unmanaged);
        took_over(shape, &old, &object, writer, &mut managers);
        managers.cap();
    }
    *after = object;
    set_managers(after, &managers);
}

/// If nothing but times in `managedFields` differs, `after` becomes `before`: a write that changes
/// nothing is none. The last step before a write.
pub fn keep_times(before: &Value, after: &mut Value) {
    let timeless = |object: &Value| {
        let mut managers = Managers::of(object);
        for owned in managers.owned.values_mut() {
            owned.time = None;
        }
        managers
    };
    if timeless(before) == timeless(after) && unmanaged(before) == unmanaged(after) {
        after.clone_from(before);
    }
}

/// The sentence for a person.
pub fn conflict_message(causes: &[Cause]) -> String {
    if let [one] = causes {
        return format!(
            "Apply failed with 1 conflict: {}: {}",
            one.message, one.field
        );
    }
    let mut message = format!("Apply failed with {} conflicts: ", causes.len());
    let mut lines = Vec::new();
    let mut last = "";
    for cause in causes {
        if cause.message != last {
            last = &cause.message;
            lines.push(format!(
                "{}:",
                last.replacen("conflict with", "conflicts with", 1)
            ));
        }
        lines.push(format!("- {}", cause.field));
    }
    message.push_str(&lines.join("\n"));
    message
}

fn check(shape: &Shape, applied: &Value) -> Result<(), ApplyError> {
    let metadata = applied.get("metadata");
    let text = |value: Option<&Value>| cut(value.and_then(Value::as_str).unwrap_or_default());
    if metadata.is_some_and(|metadata| metadata.get("managedFields").is_some_and(|m| !m.is_null()))
    {
        let why = "metadata.managedFields must be nil";
        return Err(ApplyError::Malformed(why.to_owned()));
    }
    let problems = field_set::problems(shape, applied);
    if problems.is_empty() {
        return Ok(());
    }
    let field_set = match problems.as_slice() {
        [one] => one.clone(),
        many if many.len() > MAX_PROBLEMS => {
            format!(
                "errors:\n  {}\n  and more",
                many[..MAX_PROBLEMS].join("\n  ")
            )
        }
        many => format!("errors:\n  {}", many.join("\n  ")),
    };
    Err(ApplyError::Untyped(format!(
        "failed to create typed patch object ({}/{}; {}, Kind={}): {field_set}",
        text(metadata.and_then(|metadata| metadata.get("namespace"))),
        text(metadata.and_then(|metadata| metadata.get("name"))),
        text(applied.get("apiVersion")),
        text(applied.get("kind")),
    )))
}

/// Conflicts of kubectl with what it had applied before there was server-side apply are none, if they
/// are all.
fn conflicts_left(
    shape: &Shape,
    live: &Value,
    writer: &Writer<'_>,
    mut conflicts: Conflicts,
) -> Conflicts {
    if writer.manager == last_applied::KUBECTL
        && let Some(allowed) = last_applied::allowed(shape, live, writer.api_version)
    {
        for (_, fields) in &mut conflicts {
            *fields = fields.difference(&allowed);
        }
        conflicts.retain(|(_, fields)| !fields.is_empty());
    }
    conflicts
}

/// A cause for each field; at most one more than a message lists.
fn causes(conflicts: &Conflicts) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (manager, fields) in conflicts {
        let left = (MAX_PROBLEMS + 1).saturating_sub(causes.len());
        causes.extend(fields.paths(left).into_iter().map(|field| Cause {
            reason: "FieldManagerConflict",
            message: format!("conflict with {manager}"),
            field,
        }));
    }
    causes
}
