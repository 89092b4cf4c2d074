//! The tasks of an agent: their names, how long they may take, and how soon they are tried again.

use super::progress::Progress;
use super::task::Task;
use crate::options::Options;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How soon a change of the firewall is looked at: mostly an ADD has made it, which should not have to wait for us.
const FIREWALL_DELAY: Duration = Duration::from_millis(200);
/// How long the firewall is left alone after a look: a program that changes much changes it often.
const FIREWALL_PAUSE: Duration = Duration::from_secs(2);
/// How soon a change of NICs, or of routes on them, is looked at: mostly there are several at a time.
const NICS_DELAY: Duration = Duration::from_millis(100);
/// How long they are left alone after a look.
const NICS_PAUSE: Duration = Duration::from_secs(1);
/// How often a port that is another's is tried again.
const QUERY_RETRY: Duration = Duration::from_secs(10);
/// How often something that is short and cheap is tried again.
const SHORT_RETRY: Duration = Duration::from_secs(2);
/// Files that are written together are one change.
const FILES_PAUSE: Duration = Duration::from_millis(50);
/// After how long a restoration counts as stuck: it may have thousands of containers to look at.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(900);
/// One removal may execute this many plugins, each as long as it may take.
const PLUGINS: u32 = 10;

#[derive(Debug)]
pub(crate) struct Tasks {
    /// Brings journal and kernel together, until that has succeeded once.
    pub(crate) restore: Arc<Task>,
    pub(crate) conflists: Arc<Task>,
    /// Moves the journal's log into it when it is large.
    pub(crate) checkpoint: Arc<Task>,
    /// Puts back what somebody removes from nftables.
    pub(crate) firewall: Arc<Task>,
    pub(crate) queue: Arc<Task>,
    /// Finishes what could not be removed or settled.
    pub(crate) removals: Arc<Task>,
    /// Keeps this host's Node in the API, where no kubelet does.
    pub(crate) register: Arc<Task>,
    pub(crate) fabric: Arc<Task>,
    /// Tells the cluster of this node's NICs.
    pub(crate) nics: Arc<Task>,
    /// Keeps routes to other nodes' blocks on NICs.
    pub(crate) nic_routes: Arc<Task>,
    /// Listens for queries, once the port can be had.
    pub(crate) query: Arc<Task>,
}

impl Tasks {
    pub(crate) fn new(options: &Options) -> io::Result<Self> {
        let removal = Duration::from_secs(60) + options.delegate_timeout * PLUGINS;
        let removal = plexus_faults::hastened(removal);
        Ok(Self {
            restore: Arc::new(Task::new("restore")?.stuck_after(RESTORE_TIMEOUT)),
            conflists: Arc::new(
                Task::new("conflists")?
                    .resting(FILES_PAUSE)
                    .retried_within(SHORT_RETRY),
            ),
            checkpoint: Arc::new(Task::new("checkpoint")?),
            firewall: Arc::new(
                Task::new("firewall")?
                    .delayed(FIREWALL_DELAY)
                    .resting(FIREWALL_PAUSE)
                    .retried_within(SHORT_RETRY),
            ),
            queue: Arc::new(
                Task::new("queue")?
                    .stuck_after(removal)
                    .resting(FILES_PAUSE),
            ),
            removals: Arc::new(Task::new("removals")?.stuck_after(removal)),
            register: Arc::new(Task::new("register")?.retried_within(SHORT_RETRY)),
            fabric: Arc::new(Task::new("fabric")?),
            nics: Arc::new(Task::new("nics")?.delayed(NICS_DELAY).resting(NICS_PAUSE)),
            nic_routes: Arc::new(
                Task::new("nic-routes")?
                    .delayed(NICS_DELAY)
                    .resting(NICS_DELAY)
                    .retried_within(SHORT_RETRY),
            ),
            query: Arc::new(Task::new("query")?.retried_within(QUERY_RETRY)),
        })
    }

    pub(crate) fn all(&self) -> [&Progress; 11] {
        [
            &self.restore,
            &self.conflists,
            &self.checkpoint,
            &self.firewall,
            &self.queue,
            &self.removals,
            &self.register,
            &self.fabric,
            &self.nics,
            &self.nic_routes,
            &self.query,
        ]
    }
}
