//! The thread of the API side: one runtime on it, all tasks in that. Ends with its handle; one that panics ends the
//! process.

use super::error::ClusterError;
use super::kinds::{Blocks, Kind, Nads, Namespaces, Networks, Nodes, Pods, Records, Requests};
use super::multi_nic::{MultiNics, Successors};
use super::report::{ClusterOptions, Hooks};
use super::shared::Shared;
use super::watch::follow;
use super::{donations, events, restore, resync, write};
use crate::background::task::EndsProcess;
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
    let shared = Arc::new(Shared::new(options, client, hooks));
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel();
    let over_there = Arc::clone(&shared);
    std::thread::Builder::new()
        .name("cluster".to_owned())
        .spawn(move || {
            let _guard = EndsProcess("cluster");
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
    watch::<Blocks>(runtime, shared, &watches);
    watch::<Requests>(runtime, shared, &watches);
    watch::<Pods>(runtime, shared, &watches);
    watch::<Records>(runtime, shared, &watches);
    watch::<MultiNics>(runtime, shared, &watches);
    watch::<Successors>(runtime, shared, &watches);
    spawn(runtime, Arc::clone(shared).run_disk_cache());
    spawn(runtime, restore::run(Arc::clone(shared)));
    spawn(runtime, donations::run(Arc::clone(shared)));
    spawn(runtime, resync::run(Arc::clone(shared)));
    spawn(runtime, write::write(Arc::clone(shared)));
    spawn(runtime, events::write(Arc::clone(shared)));
    // Ends when the other side is dropped, with or without a word.
    let _ = runtime.block_on(stopped);
    shared.disk.flush();
}

fn watch<K: Kind>(runtime: &Runtime, shared: &Arc<Shared>, watches: &Watches) {
    spawn(runtime, follow::<K>(Arc::clone(shared), watches.clone()));
}

/// One of the tasks that never end: if it panics, so does everything.
fn spawn(runtime: &Runtime, task: impl Future<Output = ()> + Send + 'static) {
    runtime.spawn(async move {
        let _guard = EndsProcess("cluster");
        task.await;
    });
}
