//! A set of numbers kept as runs: its cost grows with the number of runs, never with their length,
//! so that a /64 costs no more than a /24.

use std::collections::BTreeMap;

/// A set of numbers. Runs never touch each other: neighbours are merged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Runs {
    /// First number of a run to its last.
    runs: BTreeMap<u128, u128>,
}

impl Runs {
    /// Adds all numbers from `first` to `last`.
    pub(crate) fn insert(&mut self, first: u128, last: u128) {
        let (mut first, mut last) = (first, last.max(first));
        if let Some((&start, &end)) = self.runs.range(..=first).next_back()
            && end.saturating_add(1) >= first
        {
            first = start;
            last = last.max(end);
        }
        while let Some((&start, &end)) = self.runs.range(first..=last.saturating_add(1)).next() {
            last = last.max(end);
            self.runs.remove(&start);
        }
        self.runs.insert(first, last);
    }

    /// Takes one number out.
    pub(crate) fn remove(&mut self, number: u128) {
        let Some((&start, &end)) = self.runs.range(..=number).next_back() else {
            return;
        };
        if end < number {
            return;
        }
        self.runs.remove(&start);
        if start < number {
            self.runs.insert(start, number - 1);
        }
        if number < end {
            self.runs.insert(number + 1, end);
        }
    }

    /// Whether it has the number.
    pub(crate) fn contains(&self, number: u128) -> bool {
        self.runs
            .range(..=number)
            .next_back()
            .is_some_and(|(_, &end)| end >= number)
    }

    /// The first number from `from` to `last`, both included, that the set does not have.
    pub(crate) fn next_free(&self, from: u128, last: u128) -> Option<u128> {
        let free = match self.runs.range(..=from).next_back() {
            Some((_, &end)) if end >= from => end.checked_add(1)?,
            _ => from,
        };
        (free <= last).then_some(free)
    }

    /// The first multiple of `size`, from `from` on, such that the set has none of the `size` numbers
    /// that begin with it; all of them up to `last`.
    pub(crate) fn next_free_aligned(&self, from: u128, last: u128, size: u128) -> Option<u128> {
        let size = size.max(1);
        let mut start = from.checked_next_multiple_of(size)?;
        loop {
            let end = start.checked_add(size - 1).filter(|end| *end <= last)?;
            let before = self.runs.range(..=end).next_back();
            match before.filter(|(_, run_end)| **run_end >= start) {
                None => return Some(start),
                Some((_, run_end)) => {
                    start = run_end.checked_add(1)?.checked_next_multiple_of(size)?;
                }
            }
        }
    }

    /// How many numbers from 0 to `last`, both included, the set does not have. All 2^128 of them
    /// count as one less, for want of a bigger integer.
    pub(crate) fn count_free(&self, last: u128) -> u128 {
        let mut free = 0_u128;
        let mut next = Some(0_u128);
        for (&start, &end) in &self.runs {
            let Some(from) = next.filter(|from| *from <= last) else {
                break;
            };
            free = free.saturating_add(start.min(last.saturating_add(1)).saturating_sub(from));
            next = end.checked_add(1);
        }
        match next.filter(|from| *from <= last) {
            Some(from) => free.saturating_add((last - from).saturating_add(1)),
            None => free,
        }
    }

    /// The runs, first and last number of each, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u128, u128)> {
        self.runs.iter().map(|(&first, &last)| (first, last))
    }

    /// How many runs there are: what the set costs.
    #[cfg(test)]
    pub(crate) fn cost(&self) -> usize {
        self.runs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_merge_and_split() {
        let mut runs = Runs::default();
        runs.insert(5, 5);
        runs.insert(7, 9);
        runs.insert(6, 6);
        assert_eq!(runs.cost(), 1);
        runs.remove(7);
        assert_eq!(runs.cost(), 2);
        assert_eq!(runs.next_free(5, 100), Some(7));
        assert_eq!(runs.next_free(8, 9), None);
        runs.remove(50);
        runs.insert(0, u128::MAX);
        assert_eq!(runs.cost(), 1);
        assert_eq!(runs.next_free(3, u128::MAX), None);
    }

    #[test]
    fn the_ends_of_the_number_line() {
        let mut runs = Runs::default();
        runs.insert(u128::MAX, u128::MAX);
        runs.insert(0, 0);
        assert_eq!(runs.cost(), 2);
        assert_eq!(runs.count_free(u128::MAX), u128::MAX - 1);
        assert_eq!(runs.next_free(u128::MAX, u128::MAX), None);
        runs.remove(u128::MAX);
        assert_eq!(runs.next_free(u128::MAX, u128::MAX), Some(u128::MAX));
        assert_eq!(runs.count_free(u128::MAX), u128::MAX);
    }

    #[test]
    fn free_numbers_that_begin_with_a_multiple() {
        let mut runs = Runs::default();
        assert_eq!(runs.next_free_aligned(1, 7, 4), Some(4));
        assert_eq!(runs.next_free_aligned(5, 7, 4), None);
        runs.insert(5, 5);
        runs.insert(9, 17);
        assert_eq!(runs.next_free_aligned(0, 31, 4), Some(0));
        assert_eq!(runs.next_free_aligned(1, 31, 4), Some(20));
        assert_eq!(runs.next_free_aligned(1, 31, 2), Some(2));
        assert_eq!(runs.next_free_aligned(4, 31, 2), Some(6));
        assert_eq!(runs.next_free_aligned(1, 31, 16), None);
        assert_eq!(runs.next_free_aligned(9, 31, 1), Some(18));
        runs.insert(0, u128::MAX);
        assert_eq!(runs.next_free_aligned(0, u128::MAX, 1), None);
    }

    #[test]
    fn counts_what_is_free_below_a_bound() {
        let mut runs = Runs::default();
        assert_eq!(runs.count_free(9), 10);
        runs.insert(2, 3);
        runs.insert(8, 20);
        assert_eq!(runs.count_free(9), 6);
        assert_eq!(runs.count_free(2), 2);
        runs.insert(0, 30);
        assert_eq!(runs.count_free(9), 0);
    }
}
