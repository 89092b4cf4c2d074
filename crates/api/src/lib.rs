//! What users and runtimes write, and what we answer. Owns every configuration, annotation and
//! result shape, its parsing and its validation, which reports *all* problems with field paths.
//!
//! Opens no socket, touches no file, never panics on input. Text goes in; validated values, or a
//! list of [`Problem`]s, come out.

#![forbid(unsafe_code)]

pub mod cni;
mod document;
mod fields;
#[cfg(test)]
mod fuzz;
pub mod later;
mod literal;
#[cfg(feature = "manifest")]
pub mod manifest;
pub mod nad;
pub mod objects;
pub mod pod;
mod problem;
mod text;
mod translate;

pub use fields::Fields;
pub use problem::{Problem, Problems};
pub use text::FromText;
pub use translate::translate;
