//! What the keeper's tasks have in common: the specification, a client of the API, and the report for
//! everybody else.

use crate::layout::Layout;
use crate::name::NodeName;
use crate::part::Part;
use crate::report::{PartReport, Report};
use crate::spec::Spec;
use kube::Client;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};

/// How often the keeper reads the specification.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Calls of plugins at a time.
const CONCURRENT_CALLS: usize = 16;

/// What the tasks share.
pub(super) struct Shared {
    pub(super) layout: Layout,
    spec: watch::Sender<Arc<Spec>>,
    client: watch::Sender<Option<Client>>,
    report: Mutex<Report>,
    reported: Notify,
    /// How many plugins may run at a time.
    pub(super) calls: Semaphore,
}

impl Shared {
    pub(super) fn new(layout: Layout, spec: Spec) -> Self {
        let report = Report {
            keeper: rustix::process::getpid().as_raw_nonzero().get(),
            ..Report::default()
        };
        Self {
            layout,
            spec: watch::Sender::new(Arc::new(spec)),
            client: watch::Sender::new(None),
            report: Mutex::new(report),
            reported: Notify::new(),
            calls: Semaphore::new(CONCURRENT_CALLS),
        }
    }

    /// The specification as it is now.
    pub(super) fn spec(&self) -> Arc<Spec> {
        self.spec.borrow().clone()
    }

    /// The specification and its changes.
    pub(super) fn specs(&self) -> watch::Receiver<Arc<Spec>> {
        self.spec.subscribe()
    }

    /// Whether a node is part of the lab now.
    pub(super) fn has_node(&self, node: NodeName) -> bool {
        self.spec.borrow().nodes.contains(&node)
    }

    /// A client, once the server has answered for the first time.
    pub(super) async fn client(&self) -> Client {
        let mut clients = self.client.subscribe();
        loop {
            if let Some(client) = clients.borrow_and_update().clone() {
                return client;
            }
            // The sender lives as long as we do.
            let _ = clients.changed().await;
        }
    }

    /// The client, if there is one already.
    pub(super) fn client_now(&self) -> Option<Client> {
        self.client.borrow().clone()
    }

    pub(super) fn set_client(&self, client: Client) {
        self.client.send_replace(Some(client));
    }

    /// Changes what is reported of a part.
    pub(super) fn report(&self, part: Part, change: impl FnOnce(&mut PartReport)) {
        self.report_all(|report| match part {
            Part::Keeper => {}
            Part::Server => change(&mut report.server),
            Part::Controller => change(&mut report.controller),
            Part::Agent(node) => change(report.nodes.entry(node).or_default()),
        });
    }

    /// Changes the report.
    pub(super) fn report_all(&self, change: impl FnOnce(&mut Report)) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        let before = report.clone();
        change(&mut report);
        if *report != before {
            self.reported.notify_one();
        }
    }

    /// Whether a node's agent serves pods, as it was last seen.
    pub(super) fn is_ready(&self, node: NodeName) -> bool {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.nodes.get(&node).is_some_and(|agent| agent.ready)
    }

    fn snapshot(&self) -> Report {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.clone()
    }
}

/// Reads the specification whenever it is written.
pub(super) async fn follow_spec(shared: Arc<Shared>) {
    let path = shared.layout.spec();
    let stamp = || {
        let found = fs::metadata(&path).ok()?;
        Some((found.ino(), found.mtime(), found.mtime_nsec()))
    };
    let mut seen = None;
    let mut complained = None;
    loop {
        let now = stamp();
        if now != seen {
            match Spec::read(&shared.layout) {
                Ok(Some(spec)) => {
                    seen = now;
                    shared.spec.send_if_modified(|current| {
                        let differs = **current != spec;
                        *current = Arc::new(spec);
                        differs
                    });
                }
                // The lab is being removed: we will be too.
                Ok(None) => {}
                Err(error) if complained != Some(now) => {
                    complained = Some(now);
                    tracing::error!(error = crate::error::chain(&error), "not followed");
                }
                Err(_) => {}
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Writes the report whenever it changes.
pub(super) async fn write_report(shared: Arc<Shared>) {
    loop {
        if let Err(error) = shared.snapshot().write(&shared.layout) {
            tracing::warn!(
                error = crate::error::chain(&error),
                "nobody can see the lab's state"
            );
        }
        shared.reported.notified().await;
        // Several changes come together.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
