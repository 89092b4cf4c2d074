//! Reading everything at the start: the rows in order are the history. Objects say the version in which their
//! kind is served now.

use super::super::StoreError;
use super::super::changes::ended;
use super::super::key::{Key, Table};
use super::super::log::{Change, Entry};
use super::super::memory::Memory;
use super::super::object::Stored;
use super::{Disk, Evicted, unsigned};
use crate::kinds::Kind;
use hyper::body::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Disk {
    pub(super) fn load(
        &mut self,
        kinds: &[Arc<Kind>],
        memory: &mut Memory,
    ) -> Result<(), StoreError> {
        let path = &self.path;
        let tables: BTreeMap<i64, (Table, &Arc<Kind>)> = kinds
            .iter()
            .enumerate()
            .zip(&self.resources)
            .map(|((index, kind), id)| (*id, (Table::new(index), kind)))
            .collect();
        let read = |source| StoreError::Open {
            path: path.clone(),
            source,
        };
        let mut rows = self
            .connection
            .prepare(
                "SELECT version, resource, key, written, object FROM revisions ORDER BY version",
            )
            .map_err(read)?;
        let mut rows = rows.query([]).map_err(read)?;
        while let Some(row) = rows.next().map_err(read)? {
            let resource: i64 = row.get(1).map_err(read)?;
            let Some((table, kind)) = tables.get(&resource) else {
                continue;
            };
            let revision = Revision {
                version: unsigned(row.get(0).map_err(read)?),
                key: Key::from_text(&row.get::<_, String>(2).map_err(read)?),
                written: row.get(3).map_err(read)?,
                object: row.get(4).map_err(read)?,
            };
            let taken = revision.take(*table, kind, memory, &mut self.forgotten);
            taken.map_err(|problem| StoreError::Damaged {
                path: path.clone(),
                problem,
            })?;
        }
        Ok(())
    }
}

/// A row.
struct Revision {
    version: u64,
    key: Key,
    written: i64,
    object: Option<Vec<u8>>,
}

impl Revision {
    fn take(
        self,
        table: Table,
        kind: &Kind,
        memory: &mut Memory,
        forgotten: &mut Evicted,
    ) -> Result<(), String> {
        let before = memory.get(table, &self.key);
        let (change, object) = match (self.object, &before) {
            (Some(body), _) => {
                let wrong = |error| format!("version {}: {error}", self.version);
                let mut value: Value = serde_json::from_slice(&body).map_err(wrong)?;
                let mut body = body;
                let version = kind.api_version();
                // Written by a server that had the kind in another version.
                if value["apiVersion"] != version.as_str() && value.is_object() {
                    value["apiVersion"] = version.into();
                    body = serde_json::to_vec(&value).map_err(wrong)?;
                }
                let body = Bytes::from(body.into_boxed_slice());
                let object = Stored::new(kind, self.key, self.version, self.written, &value, body);
                let change = if before.is_some() {
                    Change::Modified
                } else {
                    Change::Added
                };
                (change, object)
            }
            (None, Some(before)) => {
                let object = ended(kind, before, self.version, self.written);
                (
                    Change::Deleted,
                    object.map_err(|refused| refused.to_string())?,
                )
            }
            // The end of an object that is forgotten already: nobody can ask for it.
            (None, None) => return Ok(()),
        };
        let object = Arc::new(object);
        if self.version <= memory.floor(table) {
            memory.take_old(table, object);
            return Ok(());
        }
        let entry = Entry {
            change,
            object,
            before,
        };
        memory.take(table, Arc::new(entry), forgotten);
        Ok(())
    }
}
