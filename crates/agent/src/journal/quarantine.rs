//! Rows that cannot be read: a newer agent wrote them, or something has damaged them. Owns the memory of which they
//! are. Nobody acts on what they might have said: their addresses stay taken, their links stay, and a DEL works from
//! the request and removes them. A network's row is written anew by the next ADD that needs something of it on the node.

use super::{Journal, JournalError, Record, Rows, Stored};
use crate::sync::lock;
use plexus_types::{ContainerId, IfName};
use rusqlite::params;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// What each unreadable row is of, and what is wrong with it.
#[derive(Debug, Default)]
pub(super) struct Quarantine(Mutex<BTreeMap<String, String>>);

impl Quarantine {
    pub(super) fn add(&self, key: String, problem: String, path: &Path) {
        let mut rows = self.rows();
        if rows.get(&key) != Some(&problem) {
            let path = path.display();
            tracing::error!(key, problem, %path, "a row of the journal cannot be read: it is left alone");
            rows.insert(key, problem);
        }
    }

    /// The row is gone or written anew.
    pub(super) fn release(&self, key: &str) {
        self.rows().remove(key);
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        lock(&self.0)
    }
}

impl Journal {
    /// The rows of requests and addresses that could not be read so far: whose they are, and what is wrong with them.
    pub(crate) fn quarantined(&self) -> BTreeMap<String, String> {
        self.unreadable.rows().clone()
    }

    /// The networks whose rows could not be read so far, and what is wrong with them.
    pub(crate) fn quarantined_networks(&self) -> BTreeMap<String, String> {
        self.unreadable_networks.rows().clone()
    }

    /// The addresses that a request has in pools, also one whose row cannot be read.
    pub(crate) fn addresses_of(
        &self,
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<Vec<(String, IpAddr, String)>, JournalError> {
        let rows: Vec<(String, String, String)> = self.select(
            "addresses",
            "SELECT pool, address, owner FROM address WHERE container = ?1 AND ifname = ?2",
            params![container.as_str(), ifname.as_str()],
        )?;
        let parsed = rows
            .into_iter()
            .filter_map(|(pool, address, owner)| Some((pool, address.parse().ok()?, owner)));
        Ok(parsed.collect())
    }

    /// What can be read of a record: the attachments whose rows can, and whether these are all. None if the request's
    /// own row cannot be read.
    pub(crate) fn readable_part(
        &self,
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<Option<(Record, bool)>, JournalError> {
        let key = params![container.as_str(), ifname.as_str()];
        let mut rows = self.read_rows("WHERE container = ?1 AND ifname = ?2", key)?;
        let Some((request, attachments)) = rows.pop() else {
            return Ok(None);
        };
        let count = attachments.len();
        let readable = attachments.into_iter().filter_map(|raw| raw.parse().ok());
        let readable: Vec<_> = readable.collect();
        let are_all = readable.len() == count;
        let stored = request.parse(Vec::new(), &self.path).ok();
        let record = stored.map(|stored| Record {
            attachments: readable,
            ..stored.record
        });
        Ok(record.map(|record| (record, are_all)))
    }

    /// Those that can be read; the others are quarantined.
    pub(super) fn readable(&self, rows: Vec<Rows>) -> Vec<Stored> {
        let parsed = rows.into_iter().filter_map(|(raw, attachments)| {
            let key = format!("{}/{}", raw.container, raw.ifname);
            match raw.parse(attachments, &self.path) {
                Ok(stored) => Some(stored),
                Err(JournalError::Unreadable { problem, .. }) => {
                    self.unreadable.add(key, problem, &self.path);
                    None
                }
                Err(_) => None,
            }
        });
        parsed.collect()
    }
}
