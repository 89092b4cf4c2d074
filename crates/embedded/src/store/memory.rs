//! What is known without asking the disk: the current objects, the last changes, and who owns whom.
//! Changed only by the writer, after the disk.

use super::disk::Gaps;
use super::key::{Key, Table};
use super::log::{Change, Entry, Log};
use super::object::Stored;
use super::{ListScope, Unknown, history};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

pub(super) type Objects = BTreeMap<Key, Arc<Stored>>;

#[derive(Debug)]
struct MemoryTable {
    objects: Objects,
    log: Log,
}

/// Rows that nobody needs any more, and up to which version a table's changes are forgotten.
#[derive(Debug, Default)]
pub(super) struct Evicted {
    pub(super) rows: Vec<u64>,
    pub(super) floors: BTreeMap<Table, u64>,
}

/// Everything that is in memory.
#[derive(Debug)]
pub(super) struct Memory {
    tables: Vec<MemoryTable>,
    version: u64,
    gaps: Gaps,
    uids: BTreeMap<u128, (Table, Key)>,
    owned: BTreeMap<u128, BTreeSet<(Table, Key)>>,
}

impl Memory {
    /// Empty, with the floor of each table.
    pub(super) fn new(floors: &[u64], gaps: Gaps) -> Self {
        let held = |floor: &u64| MemoryTable {
            objects: Objects::new(),
            log: Log::new(*floor),
        };
        Self {
            tables: floors.iter().map(held).collect(),
            version: 0,
            gaps,
            uids: BTreeMap::new(),
            owned: BTreeMap::new(),
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    pub(super) fn get(&self, table: Table, key: &Key) -> Option<Arc<Stored>> {
        self.held(table)?.objects.get(key).cloned()
    }

    pub(super) fn by_uid(&self, uid: u128) -> Option<(Table, Key)> {
        self.uids.get(&uid).cloned()
    }

    pub(super) fn owned_by(&self, uid: u128) -> Vec<(Table, Key)> {
        self.owned
            .get(&uid)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    pub(super) fn list(&self, table: Table, part: ListScope<'_>) -> Vec<Arc<Stored>> {
        let objects = self.held(table).map(|held| range(&held.objects, part));
        objects
            .into_iter()
            .flatten()
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    pub(super) fn list_at(
        &self,
        table: Table,
        part: ListScope<'_>,
        version: u64,
    ) -> Result<Vec<Arc<Stored>>, Unknown> {
        let Some(held) = self.held(table) else {
            return Ok(Vec::new());
        };
        self.check(&held.log, version)?;
        let undone = history::undone(held.log.after(version));
        Ok(history::merged(range(&held.objects, part), undone, |key| {
            holds(part, key)
        }))
    }

    pub(super) fn changes(
        &self,
        table: Table,
        version: u64,
        limit: usize,
    ) -> Result<(Vec<Arc<Entry>>, u64), Unknown> {
        let Some(held) = self.held(table) else {
            return Ok((Vec::new(), self.version));
        };
        self.check(&held.log, version)?;
        let entries: Vec<Arc<Entry>> = held.log.after(version).take(limit).cloned().collect();
        let complete = entries.len() < limit;
        let upto = match entries.last() {
            Some(last) if !complete => last.version(),
            _ => self.version,
        };
        Ok((entries, upto))
    }

    /// Takes a change in, and says what of the past is now forgotten.
    pub(super) fn take(&mut self, table: Table, entry: Arc<Entry>, forgotten: &mut Evicted) {
        if let Some(before) = &entry.before {
            self.unlink(table, before);
        }
        if entry.change != Change::Deleted {
            self.link(table, &entry.object);
        }
        self.version = self.version.max(entry.version());
        let Some(held) = self.tables.get_mut(table.index()) else {
            return;
        };
        let object = &entry.object;
        if entry.change == Change::Deleted {
            let _ = held.objects.remove(&object.key);
        } else {
            let _ = held.objects.insert(object.key.clone(), Arc::clone(object));
        }
        held.log.push(entry);
        while let Some(old) = held.log.evict() {
            let before = old.before.as_ref().map(|before| before.version);
            let end = (old.change == Change::Deleted).then(|| old.version());
            forgotten.rows.extend(before.into_iter().chain(end));
            let _ = forgotten.floors.insert(table, held.log.floor());
        }
    }

    /// Takes an object in that was written before everything that the log knows.
    pub(super) fn take_old(&mut self, table: Table, object: Arc<Stored>) {
        if let Some(before) = self.get(table, &object.key) {
            self.unlink(table, &before);
        }
        self.link(table, &object);
        self.version = self.version.max(object.version);
        if let Some(held) = self.tables.get_mut(table.index()) {
            let _ = held.objects.insert(object.key.clone(), object);
        }
    }

    pub(super) fn floor(&self, table: Table) -> u64 {
        self.held(table).map_or(0, |held| held.log.floor())
    }

    fn held(&self, table: Table) -> Option<&MemoryTable> {
        self.tables.get(table.index())
    }

    fn check(&self, log: &Log, version: u64) -> Result<(), Unknown> {
        let known = version >= log.floor() && version <= self.version && !self.gaps.have(version);
        let oldest = log.floor();
        known.then_some(()).ok_or(Unknown { oldest })
    }

    fn link(&mut self, table: Table, object: &Stored) {
        let location = (table, object.key.clone());
        for owner in object.owners.iter().filter(|owner| **owner != 0) {
            let _ = self
                .owned
                .entry(*owner)
                .or_default()
                .insert(location.clone());
        }
        if object.uid != 0 {
            let _ = self.uids.insert(object.uid, location);
        }
    }

    fn unlink(&mut self, table: Table, object: &Stored) {
        let location = (table, object.key.clone());
        for owner in &object.owners {
            if let Some(owned) = self.owned.get_mut(owner) {
                let _ = owned.remove(&location);
                if owned.is_empty() {
                    let _ = self.owned.remove(owner);
                }
            }
        }
        let _ = self.uids.remove(&object.uid);
    }
}

/// The objects of a part.
fn range<'a>(
    objects: &'a Objects,
    part: ListScope<'a>,
) -> impl Iterator<Item = (&'a Key, &'a Arc<Stored>)> {
    let first = part.namespace.map(|namespace| format!("{namespace}/"));
    let start = match (part.after, &first) {
        (Some(after), Some(first)) if after < first.as_str() => Bound::Included(first.as_str()),
        (Some(after), _) => Bound::Excluded(after),
        (None, Some(first)) => Bound::Included(first.as_str()),
        (None, None) => Bound::Unbounded,
    };
    let inside = move |key: &Key| {
        part.namespace
            .is_none_or(|wanted| key.namespace() == wanted)
    };
    objects
        .range::<str, _>((start, Bound::Unbounded))
        .take_while(move |(key, _)| inside(key))
}

fn holds(part: ListScope<'_>, key: &Key) -> bool {
    let inside = part
        .namespace
        .is_none_or(|wanted| key.namespace() == wanted);
    inside && part.after.is_none_or(|after| key.text() > after)
}
