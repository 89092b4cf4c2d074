//! Threads that leave the namespaces of this process. Owns their start and their end: the namespaces that one has of its
//! own go with it, unless somebody has pinned them.

use std::io;
use std::thread::{Builder, scope};

/// Does `work` on a thread of that name.
pub(crate) fn on_thread<T: Send>(
    name: &str,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let failed = |_| Err(io::Error::other(format!("the thread {name} failed")));
    scope(|scope| {
        let thread = Builder::new().name(name.to_owned());
        let thread = thread.spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(failed)
    })
}
