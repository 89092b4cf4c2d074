//! Where a record's namespace is. A namespace is known by its cookie: its path may be another's by
//! now, or one of several. "Cannot be seen" is not "is gone".

use crate::agent::Agent;
use crate::failure;
use crate::host::mounts;
use crate::journal::Record;
use plexus_kernel::scan::{self, Scan};
use plexus_kernel::{Netns, pod};
use std::cell::LazyCell;
use std::path::Path;

/// What became of a namespace.
#[derive(Debug)]
pub(crate) enum Sandbox {
    /// It is there.
    Here(Netns),
    /// Nothing that can be seen has it, and everything can be seen.
    Gone,
    /// It may be there: why that is not known.
    Unknown(String),
}

/// A search through all namespaces, made when it is needed and then kept.
pub(crate) type Search = LazyCell<Scan>;

/// A search that has not begun.
pub(crate) fn search() -> Search {
    LazyCell::new(scan::namespaces)
}

impl Agent {
    /// Looks at the record's own path, then at the one given, then everywhere.
    pub(crate) fn sandbox_of(
        &self,
        record: &Record,
        hint: Option<&Path>,
        search: &Search,
    ) -> Sandbox {
        if record.boot != self.boot {
            return Sandbox::Gone;
        }
        let mut unclear = None;
        for path in [Some(Path::new(&record.netns)), hint].into_iter().flatten() {
            match Netns::open(path) {
                Ok(netns) => match self.node.cookie_of(&netns) {
                    Ok(cookie) if cookie == record.cookie => return Sandbox::Here(netns),
                    Ok(_) => {}
                    Err(error) => unclear = Some(failure::chain(&error)),
                },
                Err(error) if error.is_gone() => {}
                Err(error) => unclear = Some(failure::chain(&error)),
            }
        }
        if let Some(found) = search.find(record.cookie) {
            return Sandbox::Here(found.netns.clone());
        }
        if let Some(why) = unclear {
            return Sandbox::Unknown(why);
        }
        // In a container not every process can be seen; but the runtime's pin can, and it goes last.
        if !search.complete && !mounts::pin_gone(Path::new(&record.netns)) {
            return Sandbox::Unknown("not every namespace of this machine can be seen".to_owned());
        }
        match pod::living(&record.plan(), &self.node) {
            Ok(Some(name)) => Sandbox::Unknown(format!("its link {name} is still there")),
            Ok(None) => Sandbox::Gone,
            Err(error) => {
                let error = failure::chain(&error);
                Sandbox::Unknown(format!(
                    "whether its links are still there cannot be seen: {error}"
                ))
            }
        }
    }
}
