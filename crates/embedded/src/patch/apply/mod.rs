//! Server-side apply, and who owns which field.

use super::Shape;
use crate::status::Cause;
use serde_json::Value;
use thiserror::Error;

/// Who writes, as what, when.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// `fieldManager`; for plain writes without one: the user agent up to its first `/`.
    pub manager: &'a str,
    /// `v1`, `plexus.dev/v1alpha1`.
    pub api_version: &'a str,
    /// Empty, or `status`.
    pub subresource: &'a str,
    /// Whether the kind has its status apart ([`crate::kinds::Kind::has_status`]).
    pub status_apart: bool,
    /// RFC 3339 with seconds: `2025-11-16T03:49:30Z`.
    pub now: &'a str,
}

/// Why an apply was not done.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ApplyError {
    /// Others own what it would change: 409, see [`crate::status::Refused::apply_conflict`]. A cause has
    /// the message `conflict with "other"`, and the field `.spec.size`.
    #[error("{} conflicts", .0.len())]
    Conflicts(Vec<Cause>),
    /// 400, `BadRequest`.
    #[error("{0}")]
    Malformed(String),
    /// What is applied is not of the kind's type: 500, as the real server says it.
    #[error("{0}")]
    Untyped(String),
}

/// What becomes of `live` (`None`: it is to be created) when `applied` is applied, with
/// `metadata.managedFields`. Order for the caller: decode, check name and version, prune `applied`,
/// [`apply()`], defaults, validation, [`keep_times`], and no write at all if nothing changed. Fields
/// that the subresource does not have are taken from `live`, whatever `applied` says.
pub fn apply(
    shape: &Shape,
    live: Option<&Value>,
    applied: &Value,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    let _ = (shape, writer, force);
    let mut new = live.cloned().unwrap_or(Value::Null);
    super::merge(&mut new, applied);
    Ok(new)
}

/// A write that is no apply (create: `before` is `None`; PUT, or any other patch) has made `after`:
/// moves the ownership of what it changed to the writer, in `after`'s `metadata.managedFields`. Call it when
/// `after` has its defaults and what the subresource may not change is as before.
pub fn update(shape: &Shape, before: Option<&Value>, after: &mut Value, writer: &Writer<'_>) {
    let _ = (shape, before, after, writer);
}

/// If nothing but times in `managedFields` differs, `after` becomes `before`: a write that changes
/// nothing is none. The last step before a write.
pub fn keep_times(before: &Value, after: &mut Value) {
    let _ = (before, after);
}
