//! Where a record's namespace is. A namespace is known by its cookie: its path may be another's by
//! now, or one of several. "Cannot be seen" is not "is gone".

use crate::agent::Agent;
use crate::failure;
use crate::host::mounts;
use crate::journal::Record;
use plexus_kernel::scan::{self, Scan};
use plexus_kernel::{Netns, observe};
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
                Ok(netns)
                    if self
                        .node
                        .cookie_of(&netns)
                        .is_ok_and(|c| c == record.cookie) =>
                {
                    return Sandbox::Here(netns);
                }
                Ok(_) => {}
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
        match self.living_end(record) {
            Some(name) => Sandbox::Unknown(format!("its link {name} on the node is still there")),
            None => Sandbox::Gone,
        }
    }

    /// A veth's end on the node lives exactly as long as the end in the pod.
    fn living_end(&self, record: &Record) -> Option<String> {
        record.links().find_map(|link| {
            let end = link.kind.host_end()?;
            let name = end.name.as_str();
            let seen = match &end.router {
                None => self
                    .node
                    .with_socket(|socket| observe::link_by_name(socket, name))
                    .ok(),
                Some(router) => self
                    .node
                    .router(router)
                    .ok()
                    .and_then(|netns| self.node.socket_in(&netns).ok())
                    .and_then(|mut socket| observe::link_by_name(&mut socket, name).ok()),
            };
            seen.flatten().map(|link| link.name)
        })
    }
}
