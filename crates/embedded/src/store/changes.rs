//! What a job sees and does: the store with everything that was done before it, committed or not.
//! What it changes gets its version here; nobody else sees it before it is on the disk.

use super::Shared;
use super::key::{Key, Table};
use super::log::{Change, Entry};
use super::object::Stored;
use crate::bounds;
use crate::kinds::Kind;
use crate::status::Refused;
use hyper::body::Bytes;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The changes of the jobs that share a commit.
pub(crate) struct Changes {
    shared: Arc<Shared>,
    made: Vec<(Table, Arc<Entry>)>,
    /// The last change of each object, as an index of `made`.
    latest: BTreeMap<(Table, Key), usize>,
    version: u64,
    now: i64,
    /// Nothing of what is done now will be: objects keep the version that they have.
    dry: bool,
}

impl Changes {
    pub(super) fn new(shared: Arc<Shared>, now: i64) -> Self {
        let version = shared.read().version();
        Self {
            shared,
            made: Vec::new(),
            latest: BTreeMap::new(),
            version,
            now,
            dry: false,
        }
    }

    pub(super) fn made(&self) -> &[(Table, Arc<Entry>)] {
        &self.made
    }

    /// The time, in seconds since 1970; one for all of a commit.
    pub(crate) fn now(&self) -> i64 {
        self.now
    }

    /// An object as the jobs before have left it.
    pub(crate) fn get(&self, table: Table, key: &Key) -> Option<Arc<Stored>> {
        match self.latest.get(&(table, key.clone())) {
            Some(index) => self.made.get(*index).and_then(|(_, entry)| current(entry)),
            None => self.shared.read().get(table, key),
        }
    }

    /// Writes an object: it gets a version, and says so.
    ///
    /// # Errors
    /// It is deeper or larger than an object may be.
    pub(crate) fn put(
        &mut self,
        table: Table,
        key: &Key,
        mut object: Value,
    ) -> Result<Arc<Stored>, Refused> {
        let kind = self.kind(table)?;
        let before = self.get(table, key);
        let version = self.version + 1;
        let shown_version = match (self.dry, &before) {
            (false, _) => Some(version),
            (true, before) => before.as_ref().map(|before| before.version),
        };
        let stored = stored(
            &kind,
            key,
            (version, shown_version),
            self.now,
            &mut object,
            &before,
        )?;
        let change = if before.is_some() {
            Change::Modified
        } else {
            Change::Added
        };
        self.note(table, change, Arc::clone(&stored), before);
        Ok(stored)
    }

    /// Removes an object; gives it as it was last, with the version of its end.
    ///
    /// # Errors
    /// There is no such object.
    pub(crate) fn remove(&mut self, table: Table, key: &Key) -> Result<Arc<Stored>, Refused> {
        let before = self.get(table, key);
        let before = before.ok_or_else(|| Refused::internal("nothing to remove"))?;
        self.remove_as(table, key, before.value()?)
    }

    /// Removes an object whose last state was never written: the change that made it so ends it.
    ///
    /// # Errors
    /// It is not there, or its last state is deeper or larger than an object may be.
    pub(crate) fn remove_as(
        &mut self,
        table: Table,
        key: &Key,
        mut last: Value,
    ) -> Result<Arc<Stored>, Refused> {
        let kind = self.kind(table)?;
        let before = self.get(table, key);
        if before.is_none() {
            return Err(Refused::internal("nothing to remove"));
        }
        let version = self.version + 1;
        let versions = (version, Some(version));
        let last = stored(&kind, key, versions, self.now, &mut last, &before)?;
        self.note(table, Change::Deleted, Arc::clone(&last), before);
        Ok(last)
    }

    /// All objects of a table that are in a namespace.
    pub(crate) fn in_namespace(&self, table: Table, namespace: &str) -> Vec<Arc<Stored>> {
        let part = super::ListScope {
            namespace: Some(namespace),
            after: None,
        };
        let committed = self.shared.read().list(table, part);
        let mut found: Vec<Arc<Stored>> = committed
            .into_iter()
            .filter(|object| !self.latest.contains_key(&(table, object.key.clone())))
            .collect();
        let made = self
            .latest
            .values()
            .filter_map(|index| self.made.get(*index));
        let made =
            made.filter(|(of, entry)| *of == table && entry.object.key.namespace() == namespace);
        found.extend(made.filter_map(|(_, entry)| current(entry)));
        found
    }

    /// The objects that name `uid` as an owner.
    pub(crate) fn owned_by(&self, uid: u128) -> Vec<(Table, Arc<Stored>)> {
        let committed = self.shared.read().owned_by(uid);
        let made = self.latest.keys().cloned();
        let locations: BTreeSet<(Table, Key)> = committed.into_iter().chain(made).collect();
        let found = locations.into_iter().filter_map(|(table, key)| {
            let object = self.get(table, &key)?;
            object.owners.contains(&uid).then_some((table, object))
        });
        found.collect()
    }

    /// The object of this identity.
    pub(crate) fn by_uid(&self, uid: u128) -> Option<(Table, Arc<Stored>)> {
        let made = self.made.iter().find(|(_, entry)| entry.object.uid == uid);
        let made = made.map(|(table, entry)| (*table, entry.object.key.clone()));
        let (table, key) = made.or_else(|| self.shared.read().by_uid(uid))?;
        let object = self.get(table, &key).filter(|object| object.uid == uid)?;
        Some((table, object))
    }

    /// Does work that leaves nothing behind, whatever it says: what would be.
    pub(crate) fn without_trace<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.made.len();
        self.dry = true;
        let answer = work(self);
        self.dry = false;
        self.undo(mark);
        answer
    }

    /// Does work; if it refuses, or fails, it has done nothing.
    pub(crate) fn attempt<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let mark = self.made.len();
        let answer = catch_unwind(AssertUnwindSafe(|| work(self)))
            .unwrap_or_else(|_| Err(Refused::internal("a write ended in a panic")));
        self.dry = false;
        if answer.is_err() {
            self.undo(mark);
        }
        answer
    }

    fn note(
        &mut self,
        table: Table,
        change: Change,
        object: Arc<Stored>,
        before: Option<Arc<Stored>>,
    ) {
        self.version = object.version;
        let location = (table, object.key.clone());
        let entry = Entry {
            change,
            object,
            before,
        };
        let _ = self.latest.insert(location, self.made.len());
        self.made.push((table, Arc::new(entry)));
    }

    fn undo(&mut self, mark: usize) {
        if self.made.len() == mark {
            return;
        }
        self.version -= (self.made.len() - mark) as u64;
        self.made.truncate(mark);
        self.latest.clear();
        for (index, (table, entry)) in self.made.iter().enumerate() {
            let _ = self
                .latest
                .insert((*table, entry.object.key.clone()), index);
        }
    }

    fn kind(&self, table: Table) -> Result<Arc<Kind>, Refused> {
        let kind = self.shared.kind(table).cloned();
        kind.ok_or_else(|| Refused::internal("no such table"))
    }
}

/// What is there after a change.
fn current(entry: &Entry) -> Option<Arc<Stored>> {
    (entry.change != Change::Deleted).then(|| Arc::clone(&entry.object))
}

/// A new version of an object, if it may be like that. It says the second of the versions.
fn stored(
    kind: &Kind,
    key: &Key,
    (version, shown_version): (u64, Option<u64>),
    now: i64,
    object: &mut Value,
    before: &Option<Arc<Stored>>,
) -> Result<Arc<Stored>, Refused> {
    bounds::depth(kind, key.name(), object)?;
    let body = with_version(object, shown_version)?;
    let sizes = (before.as_ref().map(|before| before.body.len()), body.len());
    let stored = Stored::new(kind, key.clone(), version, now, object, body);
    bounds::size(kind, key.name(), stored.dying, sizes)?;
    Ok(Arc::new(stored))
}

/// An object as it was last, with the version of its end.
pub(super) fn ended(
    kind: &Kind,
    before: &Stored,
    version: u64,
    now: i64,
) -> Result<Stored, Refused> {
    let mut object = before.value()?;
    let body = with_version(&mut object, Some(version))?;
    let key = before.key.clone();
    Ok(Stored::new(kind, key, version, now, &object, body))
}

/// Sets the version; gives the bytes.
fn with_version(object: &mut Value, version: Option<u64>) -> Result<Bytes, Refused> {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        match version {
            Some(version) => {
                let version = Value::String(version.to_string());
                drop(metadata.insert("resourceVersion".to_owned(), version));
            }
            None => drop(metadata.remove("resourceVersion")),
        }
    }
    let body = serde_json::to_vec(object).map_err(Refused::internal)?;
    Ok(Bytes::from(body.into_boxed_slice()))
}
