//! Where an object is: its table, and its namespace and name in one text.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// Which kind's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Table(usize);

impl Table {
    pub(super) fn new(index: usize) -> Self {
        Self(index)
    }

    pub(super) fn index(self) -> usize {
        self.0
    }
}

/// `namespace/name`, or `/name` for what is in no namespace. Neither has a `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(Arc<str>);

impl Key {
    /// Of an object; no namespace is the empty one.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self(format!("{namespace}/{name}").into())
    }

    pub(super) fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    pub(crate) fn namespace(&self) -> &str {
        self.0
            .split_once('/')
            .map_or("", |(namespace, _)| namespace)
    }

    pub(crate) fn name(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(_, name)| name)
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, out)
    }
}
