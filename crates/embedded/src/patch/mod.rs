//! The four kinds of patches. Take an object and a patch as JSON, give the object as it will be, or why not.
//! Pure; what a patch may change, and what the result must be, is for others to say.
//!
//! | content type | function | for |
//! |---|---|---|
//! | `application/merge-patch+json` | [`merge`] | everything |
//! | `application/json-patch+json` | [`json`] | everything |
//! | `application/strategic-merge-patch+json` | [`strategic`] | core kinds |
//! | `application/apply-patch+yaml` | [`apply::apply`] | everything |
//!
//! Which lists are merged by key, and by which, is a kind's [`Shape`].

pub mod apply;
mod json;
mod merge;
mod order;
mod shape;
mod strategic;

#[cfg(test)]
mod json_tests;
#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod shape_tests;
#[cfg(test)]
mod strategic_tests;

pub use json::json;
pub use merge::merge;
pub use shape::{Identity, Items, Key, Members, Rest, Scalar, Shape, Strategy};
pub use strategic::strategic;

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
