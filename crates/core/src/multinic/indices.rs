//! Numbers that are given out: the next one after the highest that is taken, and once there is none, the lowest gap. So a
//! number that became free rests as long as possible.

use std::collections::{BTreeMap, BTreeSet};

/// The numbers from 0 to a last one.
#[derive(Debug, Clone)]
pub struct Indices {
    last: u32,
    taken: BTreeSet<u32>,
    /// Numbers that nobody may have, as first → last.
    barred: BTreeMap<u32, u32>,
}

impl Indices {
    /// All are free.
    pub fn to(last: u32) -> Self {
        Indices {
            last,
            taken: BTreeSet::new(),
            barred: BTreeMap::new(),
        }
    }

    /// Somebody has it.
    pub fn take(&mut self, index: u32) {
        self.taken.insert(index);
    }

    /// Nobody may have these.
    pub fn bar(&mut self, first: u32, last: u32) {
        let end = self.barred.entry(first).or_insert(last);
        *end = last.max(*end);
    }

    /// Gives out the next one: after the highest that is taken, else the lowest gap.
    pub fn append(&mut self) -> Option<u32> {
        let after = match self.taken.last() {
            None => Some(0),
            Some(last) => last.checked_add(1),
        };
        let found = after
            .and_then(|after| self.free_from(after))
            .or_else(|| self.free_from(0))?;
        self.take(found);
        Some(found)
    }

    /// Gives out the lowest that is free.
    pub fn lowest(&mut self) -> Option<u32> {
        let found = self.free_from(0)?;
        self.take(found);
        Some(found)
    }

    /// Whether somebody has it, or nobody may.
    pub fn is_free(&self, index: u32) -> bool {
        index <= self.last && !self.taken.contains(&index) && self.barred_until(index).is_none()
    }

    fn free_from(&self, first: u32) -> Option<u32> {
        let mut next = first;
        while next <= self.last {
            if let Some(end) = self.barred_until(next) {
                next = end.checked_add(1)?;
            } else if self.taken.contains(&next) {
                next = next.checked_add(1)?;
            } else {
                return Some(next);
            }
        }
        None
    }

    /// The last number of those barred with this one, if it is.
    fn barred_until(&self, index: u32) -> Option<u32> {
        let begun = self.barred.range(..=index).map(|(_, end)| *end);
        begun.filter(|end| *end >= index).max()
    }
}

/// The lowest number that is missing below the highest of these.
pub fn lowest_gap(taken: &BTreeSet<u32>) -> Option<u32> {
    let mut gaps = (0_u32..).zip(taken).filter(|(number, has)| number != *has);
    gaps.next().map(|(number, _)| number)
}
