//! How often plugins were run, and for how long: for whoever wants to know, never for a decision.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The runs of one plugin for one verb with one outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs {
    /// The plugin's type.
    pub plugin: String,
    /// `ADD`, …
    pub verb: &'static str,
    /// Whether it exited with 0.
    pub success: bool,
    /// How many there were.
    pub count: u64,
    /// How long they took together.
    pub took: Duration,
}

/// The counters. Plugins are files of a few directories: the map stays small.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<BTreeMap<Key, (u64, Duration)>>);

type Key = (String, &'static str, bool);

impl Tally {
    /// Counts one run.
    pub(super) fn count(&self, plugin: &Path, verb: &'static str, success: bool, took: Duration) {
        let name = plugin.file_name().unwrap_or_default().to_string_lossy();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, total) = all.entry((name.into_owned(), verb, success)).or_default();
        *count += 1;
        *total += took;
    }

    /// All of them, in order.
    pub(super) fn runs(&self) -> Vec<Runs> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let one = |((plugin, verb, success), (count, took)): (&Key, &(u64, Duration))| Runs {
            plugin: plugin.clone(),
            verb,
            success: *success,
            count: *count,
            took: *took,
        };
        all.iter().map(one).collect()
    }
}
