//! The collector: what happens to objects because of others. Those whose owners are gone go, those in
//! a namespace that ends go with it, events go when they are old. Follows the log, acts by jobs like
//! any client, and after a restart looks at everything once. Decides by owner references, finalizers
//! and namespaces alone.

mod namespaces;
mod old;
mod owners;
mod task;

use crate::store::{Change, Entry, Part, Table};
use crate::verbs::Api;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use task::Task;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

/// Tasks that share a write.
const TOGETHER: usize = 256;
/// After a write that failed.
const AGAIN: Duration = Duration::from_secs(1);
/// How often old things are looked for.
const OLD: Duration = Duration::from_secs(60);

/// Runs until the server ends.
pub(crate) async fn run(api: Arc<Api>) {
    tokio::select! {
        () = follow(&api) => {}
        () = api.stop.said() => {}
    }
}

async fn follow(api: &Arc<Api>) {
    let mut changed = api.store.follow_all();
    let mut seen = Seen::default();
    let mut minute = interval_at(Instant::now() + OLD, OLD);
    minute.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut left = BTreeSet::new();
    loop {
        changed.mark_unchanged();
        left.append(&mut seen.news(api));
        left = act(api, left).await;
        let again = async {
            match left.is_empty() {
                true => std::future::pending().await,
                false => sleep(AGAIN).await,
            }
        };
        tokio::select! {
            alive = changed.changed() => if alive.is_err() { return },
            _ = minute.tick() => old::sweep(api).await,
            () = again => {}
        }
    }
}

/// Does what can be done; gives back what has to be tried again.
async fn act(api: &Arc<Api>, tasks: BTreeSet<Task>) -> BTreeSet<Task> {
    let tasks: Vec<Task> = tasks.into_iter().collect();
    let mut left = BTreeSet::new();
    for some in tasks.chunks(TOGETHER) {
        let (writer, some) = (Arc::clone(api), some.to_vec());
        let again = some.clone();
        let done = api.store.write(move |changes| {
            let failed = some.into_iter().filter(|task| {
                let done = changes.attempt(|changes| task.run(&writer, changes));
                done.inspect_err(|refused| tracing::warn!(?task, %refused, "not collected"))
                    .unwrap_or(true)
            });
            Ok(failed.collect::<Vec<Task>>())
        });
        match done.await {
            Ok(failed) => left.extend(failed),
            Err(_) => left.extend(again),
        }
    }
    left
}

/// Up to where each table has been looked at.
#[derive(Default)]
struct Seen(BTreeMap<Table, u64>);

impl Seen {
    /// What follows from the changes since the last time.
    fn news(&mut self, api: &Api) -> BTreeSet<Task> {
        let mut tasks = BTreeSet::new();
        let tables: Vec<Table> = api.store.tables().map(|(table, _)| table).collect();
        for table in tables {
            loop {
                let since = self.0.get(&table).copied();
                let found = since.map(|since| api.store.changes(table, since, TOGETHER));
                let Some(Ok((entries, upto))) = found else {
                    // The first time, or too long ago: everything.
                    let (objects, version) = api.store.list(table, Part::default());
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
                if entries.len() < TOGETHER {
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
