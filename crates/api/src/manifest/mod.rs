//! Manifests: files of Kubernetes objects as people write them. Owns how they are read (whatever
//! YAML or JSON `kubectl` reads), where in the text a field is, and what is wrong with each object.
//!
//! Text goes in; objects with their place in the text, and [`Finding`]s with field path and line,
//! come out. Opens no file and asks no server: what only a cluster knows is not judged here.

mod check;
mod documents;
mod finding;
mod kinds;
#[cfg(test)]
mod kubectl_tests;
mod locate;
mod scalars;
#[cfg(test)]
mod tests;
mod value;

pub use check::{check, check_all};
pub use documents::{Fault, Manifest, Written, read};
pub use finding::{Finding, Level};
pub use kinds::{Scope, describe_kind, scope_of};
