//! The collector: what happens to objects because of others. Those whose owners are gone go, those in
//! a namespace that ends go with it, events go when they are old. Follows the log, acts by jobs like
//! any client, and after a restart looks at everything once. Decides by owner references, finalizers
//! and namespaces alone.

mod namespaces;
mod old;
mod owners;
mod task;

use crate::clock;
use crate::store::{Change, Entry, ListScope, Table};
use crate::verbs::Api;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use task::Task;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

/// Tasks that share a write.
const BATCH: usize = 256;
/// After a write that failed; twice as long after each further time, up to [`EXPIRY_INTERVAL`].
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How often the collector looks for expired objects.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);

/// Runs until the server ends.
pub(crate) async fn run(api: Arc<Api>) {
    tokio::select! {
        () = follow(&api) => {}
        () = api.stop.requested() => {}
    }
}

async fn follow(api: &Arc<Api>) {
    let mut changed = api.store.follow_all();
    let mut seen = SeenVersions::default();
    let mut minute = interval_at(Instant::now() + EXPIRY_INTERVAL, EXPIRY_INTERVAL);
    minute.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failed = Failed::new(Instant::now());
    let mut unfinished = BTreeSet::new();
    loop {
        changed.mark_unchanged();
        let mut tasks = seen.tasks_since(api);
        tasks.append(&mut unfinished);
        tasks.append(&mut failed.due(Instant::now()));
        let remaining = act(api, tasks).await;
        unfinished = remaining.unfinished;
        failed.note(remaining.failed, Instant::now());
        if !unfinished.is_empty() {
            continue;
        }
        tokio::select! {
            alive = changed.changed() => if alive.is_err() { return },
            _ = minute.tick() => old::sweep(api, clock::seconds()).await,
            () = sleep_until(failed.at), if !failed.tasks.is_empty() => {}
        }
    }
}

/// The tasks that a round did not finish.
#[derive(Default)]
struct Remaining {
    /// Did a part of it: the rest is done at once.
    unfinished: BTreeSet<Task>,
    /// Was refused: tried again later.
    failed: BTreeSet<Task>,
}

/// What has to be tried again, and when: whatever changes meanwhile is no reason to try it earlier.
struct Failed {
    tasks: BTreeSet<Task>,
    at: Instant,
    pause: Duration,
}

impl Failed {
    fn new(now: Instant) -> Self {
        Self {
            tasks: BTreeSet::new(),
            at: now,
            pause: FIRST_RETRY_DELAY,
        }
    }

    /// Takes those whose time has come.
    fn due(&mut self, now: Instant) -> BTreeSet<Task> {
        match self.at <= now {
            true => std::mem::take(&mut self.tasks),
            false => BTreeSet::new(),
        }
    }

    /// Adds what has just failed. Those that wait already keep their time.
    fn note(&mut self, failed: BTreeSet<Task>, now: Instant) {
        if !self.tasks.is_empty() {
            self.tasks.extend(failed);
            return;
        }
        if failed.is_empty() {
            self.pause = FIRST_RETRY_DELAY;
            return;
        }
        self.at = now + self.pause;
        self.pause = (self.pause * 2).min(EXPIRY_INTERVAL);
        self.tasks = failed;
    }
}

/// Does what can be done; gives back the rest.
async fn act(api: &Arc<Api>, tasks: BTreeSet<Task>) -> Remaining {
    let tasks: Vec<Task> = tasks.into_iter().collect();
    let mut remaining = Remaining::default();
    for some in tasks.chunks(BATCH) {
        let (writer, some) = (Arc::clone(api), some.to_vec());
        let again = some.clone();
        let done = api.store.write(move |changes| {
            let mut remaining = Remaining::default();
            for task in some {
                match changes.attempt(|changes| task.run(&writer, changes)) {
                    Ok(false) => {}
                    Ok(true) => {
                        let _ = remaining.unfinished.insert(task);
                    }
                    Err(refused) => {
                        tracing::warn!(?task, %refused, "not collected");
                        let _ = remaining.failed.insert(task);
                    }
                }
            }
            Ok(remaining)
        });
        match done.await {
            Ok(some) => {
                remaining.unfinished.extend(some.unfinished);
                remaining.failed.extend(some.failed);
            }
            Err(_) => remaining.failed.extend(again),
        }
    }
    remaining
}

/// The version up to which the collector has read each table.
#[derive(Default)]
struct SeenVersions(BTreeMap<Table, u64>);

impl SeenVersions {
    /// What follows from the changes since the last time.
    fn tasks_since(&mut self, api: &Api) -> BTreeSet<Task> {
        let mut tasks = BTreeSet::new();
        let tables: Vec<Table> = api.store.tables().map(|(table, _)| table).collect();
        for table in tables {
            loop {
                let since = self.0.get(&table).copied();
                let found = since.map(|since| api.store.changes(table, since, BATCH));
                let Some(Ok((entries, upto))) = found else {
                    // The first time, or too long ago: everything.
                    let (objects, version) = api.store.list(table, ListScope::default());
                    for object in &objects {
                        tasks.extend(task::of_object(api, table, object));
                    }
                    let _ = self.0.insert(table, version);
                    continue;
                };
                for entry in &entries {
                    of_change(api, table, entry, &mut tasks);
                }
                let _ = self.0.insert(table, upto);
                if entries.len() < BATCH {
                    break;
                }
            }
        }
        tasks
    }
}

fn of_change(api: &Api, table: Table, entry: &Entry, tasks: &mut BTreeSet<Task>) {
    let object = &entry.object;
    if entry.change == Change::Deleted {
        for (table, key) in api.store.owned_by(object.uid) {
            let _ = tasks.insert(Task::Owned(table, key));
        }
    } else {
        tasks.extend(task::of_object(api, table, object));
    }
    // Whoever waited for it may go on.
    let owners = entry.before.iter().flat_map(|before| before.owners.iter());
    tasks.extend(
        owners
            .filter(|owner| **owner != 0)
            .map(|owner| Task::Owner(*owner)),
    );
    if entry.change == Change::Deleted && !object.key.namespace().is_empty() {
        tasks.extend(task::of_namespace(api, object.key.namespace()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_always_fails_is_tried_more_and_more_rarely() {
        let mut now = Instant::now();
        let mut failed = Failed::new(now);
        let one = || BTreeSet::from([Task::Owner(1)]);
        let mut pauses = Vec::new();
        failed.note(one(), now);
        for _ in 0..8 {
            assert!(failed.due(now).is_empty(), "a change is no reason");
            pauses.push((failed.at - now).as_secs());
            now = failed.at;
            assert_eq!(failed.due(now), one());
            failed.note(one(), now);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        now = failed.at;
        assert_eq!(failed.due(now), one());
        failed.note(BTreeSet::new(), now);
        failed.note(one(), now);
        assert_eq!((failed.at - now).as_secs(), 1, "it was done in between");
    }
}
