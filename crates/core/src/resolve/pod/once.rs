//! What is read of an object once and kept beside it. An object that changes is another one, with nothing read yet.

use std::sync::OnceLock;

/// Something that is read of the object around it when it is first needed.
///
/// It follows from the object: two objects are not told apart by it, and a copy, which may be changed, has it read
/// again. Objects that nobody uses have no more than a pointer of it.
#[derive(Debug)]
pub struct ReadOnce<T>(OnceLock<Box<T>>);

impl<T> ReadOnce<T> {
    pub(super) fn get(&self, read: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| Box::new(read()))
    }
}

impl<T> Default for ReadOnce<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> Clone for ReadOnce<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T> PartialEq for ReadOnce<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for ReadOnce<T> {}
