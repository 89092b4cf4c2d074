//! The thread of the API side: one runtime on it, all tasks in that. Ends with its handle; one that panics ends the
//! process.

use super::donations::Reconcile;
use super::error::ClusterError;
use super::events::WriteEvents;
use super::kinds::{
    ApiServers, Blocks, Kind, Nads, Namespaces, Networks, Nodes, Pods, Records, Requests,
};
use super::multi_nic::{MultiNics, Successors};
use super::report::{ClusterOptions, Hooks};
use super::restore::Restore;
use super::resync::Resync;
use super::shared::{DiskCache, Shared};
use super::watch::follow;
use super::write::WriteRecords;
use crate::background::async_task::start_endless;
use crate::background::progress::EndsProcess;
use plexus_client::{Timeouts, Watches};
use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

const API_TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(3),
    send: Some(Duration::from_secs(10)),
    answer: Duration::from_secs(60),
};
/// The longest label that the API takes.
const LONGEST_LABEL: usize = 63;

/// A way to the thread.
pub(super) struct Side {
    handle: Handle,
    /// The thread ends when this is gone.
    _stop: oneshot::Sender<()>,
}

impl Side {
    /// Does something over there and waits for it, at most so long; none: it took longer.
    pub(super) fn run<T: Send + 'static>(
        &self,
        timeout: Duration,
        what: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            let done = tokio::time::timeout(timeout, what).await.ok();
            // Nobody listens any more: then nobody needs it.
            let _ = sender.try_send(done);
        });
        // The timer is over there; here it only matters if the thread is gone or stuck.
        receiver
            .recv_timeout(timeout + Duration::from_secs(1))
            .ok()
            .flatten()
    }
}

pub(super) fn start(
    options: ClusterOptions,
    hooks: Arc<dyn Hooks>,
) -> Result<(Arc<Shared>, Side), ClusterError> {
    if options.node.len() > LONGEST_LABEL {
        return Err(ClusterError::NodeName(options.node));
    }
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ClusterError::Thread)?;
    let client = runtime.block_on(options.server.client(API_TIMEOUTS))?;
    let reached = runtime.block_on(options.server.addresses())?;
    let shared = Arc::new(Shared::new(options, client, hooks));
    shared.state_mut().api_server = reached;
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel();
    let over_there = Arc::clone(&shared);
    std::thread::Builder::new()
        .name("cluster".to_owned())
        .spawn(move || {
            let _guard = EndsProcess::new("cluster");
            serve(&runtime, &over_there, stopped);
        })
        .map_err(ClusterError::Thread)?;
    let side = Side {
        handle,
        _stop: stop,
    };
    Ok((shared, side))
}

fn serve(runtime: &Runtime, shared: &Arc<Shared>, stopped: oneshot::Receiver<()>) {
    // Who is attached must be known before the first change is judged.
    shared.records.before_journal();
    let journaled = shared.hooks.pods().unwrap_or_default();
    shared.records.journal(journaled.done, |_| false);
    let watches = Watches::default();
    watch::<Networks>(runtime, shared, &watches);
    watch::<Nads>(runtime, shared, &watches);
    watch::<Nodes>(runtime, shared, &watches);
    watch::<Namespaces>(runtime, shared, &watches);
    watch::<ApiServers>(runtime, shared, &watches);
    watch::<Blocks>(runtime, shared, &watches);
    watch::<Requests>(runtime, shared, &watches);
    watch::<Pods>(runtime, shared, &watches);
    watch::<Records>(runtime, shared, &watches);
    watch::<MultiNics>(runtime, shared, &watches);
    watch::<Successors>(runtime, shared, &watches);
    start_tasks(runtime.handle(), shared);
    // Ends when the other side is dropped, with or without a word.
    let _ = runtime.block_on(stopped);
    shared.disk.flush();
}

fn watch<K: Kind>(runtime: &Runtime, shared: &Arc<Shared>, watches: &Watches) {
    let follow = follow::<K>(Arc::clone(shared), watches.clone());
    start_endless(runtime.handle(), "watches", follow);
}

fn start_tasks(runtime: &Handle, shared: &Arc<Shared>) {
    let tasks = &shared.tasks;
    tasks.cache.start(runtime, DiskCache::new(shared));
    tasks.blocks.start(runtime, Restore::new(shared));
    tasks.donations.start(runtime, Reconcile::new(shared));
    tasks.resync.start(runtime, Resync(Arc::clone(shared)));
    let records = WriteRecords(Arc::clone(shared));
    tasks.records.start(runtime, records);
    tasks.events.start(runtime, WriteEvents::new(shared));
}

#[cfg(test)]
mod tests {
    use super::super::tests::fake_hooks::{FakeHooks, shared};
    use super::*;
    use tokio::time::sleep;

    /// How often each task has run, by its name.
    fn runs(shared: &Shared) -> Vec<(&'static str, u64)> {
        let all = shared.tasks.all().into_iter().map(|task| task.counts());
        all.map(|counts| (counts.name, counts.runs.iter().map(|run| run.2).sum()))
            .collect()
    }

    #[test]
    fn tasks_run_at_their_times_while_the_api_is_away() {
        let directory = std::env::temp_dir().join(format!("plexus-tasks-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut runtime = Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        let shared = Arc::new(shared(
            &runtime,
            &directory,
            &Arc::new(FakeHooks::default()),
        ));
        start_tasks(runtime.handle(), &shared);
        runtime.block_on(async {
            let (records, events, watches) = (("records", 1), ("events", 1), ("watches", 0));
            sleep(Duration::from_millis(10_100)).await;
            let (cache, blocks) = (("cache", 20), ("blocks", 2));
            let late = [("donations", 0), ("resync", 0)];
            let first = [cache, blocks, late[0], late[1], records, events, watches];
            assert_eq!(runs(&shared), first);
            shared.blocks.look();
            shared.donations.changed();
            shared.orphans.notify_one();
            shared.records.hurry();
            sleep(Duration::from_millis(2_950)).await;
            let (cache, blocks) = (("cache", 26), ("blocks", 3));
            let (donations, records) = (("donations", 2), ("records", 2));
            let second = [
                cache,
                blocks,
                donations,
                ("resync", 0),
                records,
                events,
                watches,
            ];
            assert_eq!(runs(&shared), second, "donations are tried again after 2 s");
            sleep(Duration::from_millis(100)).await;
            assert_eq!(runs(&shared)[3], ("resync", 1), "3 s after the pod is gone");
            shared.resync.notify_one();
            sleep(Duration::from_millis(210)).await;
            assert_eq!(runs(&shared)[3], ("resync", 2));
            assert!(shared.tasks.all().iter().all(|task| task.stuck().is_none()));
        });
        drop(runtime);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
