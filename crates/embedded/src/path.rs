//! The path of a field in an object, as messages name it: `spec.subnets.a`, `items[3]`.
//!
//! It grows and shrinks with a walk through the object, and is copied only for a message: a request
//! of three megabytes can have names of many kilobytes around a hundred thousand values, and their product
//! is more than there is memory.

use crate::status::cut;
use std::fmt::{Display, Write};

/// The path of the current field.
#[derive(Debug, Default)]
pub(crate) struct Path(String);

impl Path {
    /// Walks into a member: `spec.name`, or `name` at the top.
    pub(crate) fn member<T>(&mut self, name: &str, walk: impl FnOnce(&mut Self) -> T) -> T {
        let dot = if self.0.is_empty() { "" } else { "." };
        self.step(format_args!("{dot}{name}"), walk)
    }

    /// Walks into an item of a list, or an entry of a map: `items[3]`, `subnets[a]`.
    pub(crate) fn item<T>(&mut self, item: impl Display, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.step(format_args!("[{item}]"), walk)
    }

    /// Walks on by a step that is spelled as it is given.
    pub(crate) fn step<T>(&mut self, step: impl Display, walk: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.0.len();
        // A text takes whatever is written to it.
        let _ = write!(self.0, "{step}");
        let result = walk(self);
        self.0.truncate(length);
        result
    }

    /// The whole of it; mind how long it may be.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// The path, cut to a length that fits a message.
    pub(crate) fn shortened(&self) -> String {
        cut(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn it_is_where_the_walk_is() {
        let mut path = Path::default();
        path.member("spec", |path| {
            path.member("routes", |path| {
                path.item(3, |path| assert_eq!(path.text(), "spec.routes[3]"));
            });
            path.member("x".repeat(1 << 20).as_str(), |path| {
                assert!(path.shortened().len() < 10_000);
            });
            assert_eq!(path.shortened(), "spec");
        });
        assert_eq!(path.text(), "");
    }
}
