//! The last changes of one kind, in order: what watchers are told, and what is undone to see how
//! things were. Bounded by number and by the memory of what is no longer current.

use super::object::Stored;
use std::collections::VecDeque;
use std::sync::Arc;

/// Changes that are kept. One that made an object costs next to nothing: the object is there anyway.
const CHANGES: usize = 16_384;
/// Bytes of objects that are kept for the sake of the log alone.
const SUPERSEDED: usize = 4 << 20;

/// What a write did to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It was made.
    Added,
    /// It was changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// One write of one object.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) change: Change,
    /// As it is now; if it is gone: as it was last, with the version of its end.
    pub(crate) object: Arc<Stored>,
    /// The object before; none if it is new.
    pub(crate) before: Option<Arc<Stored>>,
}

impl Entry {
    pub(crate) fn version(&self) -> u64 {
        self.object.version
    }

    fn weight(&self) -> usize {
        let last = (self.change == Change::Deleted).then(|| self.object.weight());
        self.before.as_ref().map_or(0, |before| before.weight()) + last.unwrap_or(0)
    }
}

/// The last changes of a table, in order: all after the version `floor`.
#[derive(Debug, Default)]
pub(super) struct Log {
    entries: VecDeque<Arc<Entry>>,
    floor: u64,
    weight: usize,
}

impl Log {
    pub(super) fn new(floor: u64) -> Self {
        Self {
            floor,
            ..Self::default()
        }
    }

    /// The version after which every change is known.
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    pub(super) fn push(&mut self, entry: Arc<Entry>) {
        self.weight += entry.weight();
        self.entries.push_back(entry);
    }

    /// Forgets the oldest change, if there are more than are to be kept. The last one stays.
    pub(super) fn evict(&mut self) -> Option<Arc<Entry>> {
        let over = self.entries.len() > CHANGES || self.weight > SUPERSEDED;
        if !over || self.entries.len() < 2 {
            return None;
        }
        let entry = self.entries.pop_front()?;
        self.weight -= entry.weight();
        self.floor = entry.version();
        Some(entry)
    }

    /// Changes after a version that is not below the floor.
    pub(super) fn after(&self, version: u64) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        let first = self
            .entries
            .partition_point(|entry| entry.version() <= version);
        self.entries.range(first..)
    }
}
