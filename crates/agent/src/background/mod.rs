//! What happens without anyone asking. Owns what each task watches and when it wants to run again; how a task is run is
//! in [`task`], or in [`async_task`] for those of the API's side, what is known of it in [`progress`], which ones there
//! are in [`tasks`], what they do in the files of their subjects.

pub(crate) mod async_task;
pub(crate) mod backoff;
pub(crate) mod progress;
pub(crate) mod task;
mod tasks;

pub(crate) use tasks::Tasks;

use crate::agent::Agent;
use crate::background::backoff::Backoff;
use crate::failure;
use crate::host::conflist::seen_or_made;
use crate::host::register;
use crate::journal::Journal;
use crate::node::nic_routes::KnownNicRoutes;
use crate::node::nics::PublishedNics;
use plexus_kernel::events::{DirectoryWatch, Source, Watched};
use plexus_kernel::{Changes, Feature, NetlinkError, memory};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use task::Next;

/// How often things are looked at whose changes are told: somebody may have missed it.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// How often, if the kernel does not tell: it has no watches left, or lacks the feature.
const UNWATCHED_INTERVAL: Duration = Duration::from_secs(2);
/// How often something is looked at that waits for something else.
const PENDING_INTERVAL: Duration = Duration::from_secs(1);
/// How long calls may take that are served when the node is to be restored.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often, at least, one looks whether something is to be removed.
const REMOVALS_INTERVAL: Duration = Duration::from_secs(10);
/// How often, at least, what could not be settled is looked at again.
const SETTLE_INTERVAL: Duration = Duration::from_secs(30);
/// How often namespaces are looked for that went without a DEL.
const GONE_INTERVAL: Duration = Duration::from_secs(300);
/// How often the size of the journal's log is looked at.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(30);
/// A write-ahead log larger than this is moved into the journal.
const LOG_BYTES: u64 = 4 << 20;
/// After how long NICs are looked at again that have no Node to be published for.
const NODE_INTERVAL: Duration = Duration::from_secs(2);
/// How often this host's addresses are looked at.
const REGISTER_INTERVAL: Duration = Duration::from_secs(15);

pub(crate) fn start(agent: &Arc<Agent>) -> io::Result<()> {
    start_conflists(agent)?;
    start_checkpoint(agent)?;
    start_firewall(agent)?;
    start_queue(agent)?;
    start_removals(agent)?;
    start_register(agent)?;
    start_fabric(agent)?;
    start_nics(agent)?;
    start_nic_routes(agent)
}

/// Tries again to restore the node, while nobody changes anything, until it succeeds.
pub(crate) fn start_restore(agent: &Arc<Agent>) -> io::Result<()> {
    let working = Arc::clone(agent);
    agent.tasks.restore.start(Vec::new(), move |_| {
        let restored = match working.restored.close(CLOSE_TIMEOUT) {
            true => working.restore(),
            false => Err("the node cannot be restored while calls are served".to_owned()),
        };
        working.ready.store(restored.is_ok(), SeqCst);
        working.restored.open();
        restored?;
        tracing::info!("the node is restored");
        let tasks = &working.tasks;
        let all = [&tasks.conflists, &tasks.removals, &tasks.fabric];
        for task in all.into_iter().chain([&tasks.nic_routes]) {
            task.wake();
        }
        Ok(Next::Done)
    })
}

/// The files in the runtime's directory: when networks change, or somebody changes the directory.
fn start_conflists(agent: &Arc<Agent>) -> io::Result<()> {
    if agent.conflist.is_none() && agent.conflists.is_none() {
        return Ok(());
    }
    let watch = directory_watch();
    let working = Arc::clone(agent);
    agent.tasks.conflists.start(sources(&watch), move |_| {
        let options = &working.options;
        let directory = seen_or_made(&options.cni_conf_dir, options.host_root.as_deref());
        let watched = watch.as_ref().is_some_and(|watch| {
            directory.is_ok_and(|directory| watch.add(&directory, Watched::All).is_ok())
        });
        if let Some(cluster) = working.cluster.get() {
            cluster.files_changed();
        }
        Ok(Next::After(match write_conflists(&working)? {
            true => check_interval(watched),
            false => PENDING_INTERVAL,
        }))
    })
}

/// Whether nothing is left for later.
fn write_conflists(agent: &Agent) -> Result<bool, String> {
    if !agent.ready.load(SeqCst) {
        return Ok(false);
    }
    let mut done = true;
    if let Some(conflist) = &agent.conflist {
        match agent.first_delegate() {
            Ok(first) => conflist
                .write_when_ready(first.as_ref().map(|(_, chain)| chain))
                .map_err(|error| format!("pods are not served: {}", failure::chain(&error)))?,
            Err(_) => done = false,
        }
        // A runtime for pods takes the first file that it finds: that must be the one for pods.
        if !conflist.is_written() {
            return Ok(false);
        }
    }
    match (&agent.conflists, agent.cluster.get()) {
        (Some(conflists), Some(cluster)) => Ok(conflists.write(cluster)? && done),
        _ => Ok(done),
    }
}

/// The journal's log: now and then. By the second time, what the cluster has was listed: the memory that it took to
/// read all of it is given back.
fn start_checkpoint(agent: &Arc<Agent>) -> io::Result<()> {
    let working = Arc::clone(agent);
    let mut runs = 0_u32;
    agent.tasks.checkpoint.start(Vec::new(), move |_| {
        runs = runs.saturating_add(1);
        if runs == 2 {
            memory::give_back();
        }
        if let Ok(journal) = working.journal()
            && log_is_large(journal)
        {
            journal.checkpoint().map_err(|error| {
                let error = failure::chain(&error);
                format!("cannot move the write-ahead log into the journal: {error}")
            })?;
        }
        Ok(Next::After(CHECKPOINT_INTERVAL))
    })
}

/// Rules of ours in nftables: when anybody changes anything there.
fn start_firewall(agent: &Arc<Agent>) -> io::Result<()> {
    let changes = event_sources(Changes::of_nftables(&agent.node), "nftables");
    let interval = check_interval(!changes.is_empty());
    let working = Arc::clone(agent);
    agent.tasks.firewall.start(changes, move |_| {
        working.restore_rules()?;
        Ok(Next::After(interval))
    })
}

/// DELs that the shim queued: when a file comes.
fn start_queue(agent: &Arc<Agent>) -> io::Result<()> {
    let watch = directory_watch();
    let mut backoff = Backoff::new();
    let working = Arc::clone(agent);
    agent.tasks.queue.start(sources(&watch), move |run| {
        let watched = watch
            .as_ref()
            .is_some_and(|watch| working.watch_queue(watch));
        let Some(_inside) = working.restored.enter(PENDING_INTERVAL, || false) else {
            return Ok(Next::After(PENDING_INTERVAL));
        };
        if run.is_routine() {
            working.sweep_queue();
        }
        let due = working.drain_queue(&mut backoff, |step| run.step(step))?;
        let interval = check_interval(watched);
        Ok(Next::After(due.map_or(interval, time_until)))
    })
}

/// What could not be removed or settled: when a call has failed, and when it is due.
fn start_removals(agent: &Arc<Agent>) -> io::Result<()> {
    let gone_interval = plexus_faults::hastened(GONE_INTERVAL);
    let mut backoff = Backoff::new();
    let mut settling = Backoff::up_to(SETTLE_INTERVAL);
    let mut gone_due = settling.put_off(&(), Instant::now()) + gone_interval;
    let mut at_start = true;
    let working = Arc::clone(agent);
    agent.tasks.removals.start(Vec::new(), move |run| {
        let Some(_inside) = working.restored.enter(PENDING_INTERVAL, || false) else {
            return Ok(Next::After(PENDING_INTERVAL));
        };
        let at_once = std::mem::replace(&mut at_start, false);
        working.retry_removals(&mut backoff, at_once, |step| run.step(step))?;
        if settling.is_due(&(), Instant::now()) {
            match working.settle_the_rest(|step| run.step(step)) {
                true => drop(settling.put_off(&(), Instant::now())),
                false => settling.keep_only(|()| false),
            }
        }
        if gone_due <= Instant::now() {
            run.step("looking for namespaces that are gone");
            working.remove_what_is_gone(|step| run.step(step));
            gone_due = Instant::now() + gone_interval;
        }
        let due = [backoff.next_due(), settling.next_due(), Some(gone_due)];
        let due = due.into_iter().flatten().map(time_until).min();
        Ok(Next::After(
            due.unwrap_or(REMOVALS_INTERVAL).min(REMOVALS_INTERVAL),
        ))
    })
}

/// This host's Node, if it is ours to make: now and then.
fn start_register(agent: &Arc<Agent>) -> io::Result<()> {
    if !register::is_ours(agent) {
        return Ok(());
    }
    let working = Arc::clone(agent);
    agent.tasks.register.start(Vec::new(), move |_| {
        working.register()?;
        Ok(Next::After(REGISTER_INTERVAL))
    })
}

/// Routes and tunnels to other nodes: when the cluster's blocks, nodes or networks change.
fn start_fabric(agent: &Arc<Agent>) -> io::Result<()> {
    if agent.cluster.get().is_none() {
        return Ok(());
    }
    let working = Arc::clone(agent);
    agent.tasks.fabric.start(Vec::new(), move |run| {
        let Some(_inside) = working.restored.enter(PENDING_INTERVAL, || false) else {
            return Ok(Next::After(PENDING_INTERVAL));
        };
        working.set_fabric(run)?;
        Ok(Next::After(CHECK_INTERVAL))
    })
}

/// This node's NICs, published: when a link, an address or a route changes.
fn start_nics(agent: &Arc<Agent>) -> io::Result<()> {
    if agent.cluster.get().is_none() {
        return Ok(());
    }
    let changes = event_sources(Changes::of_nics(&agent.node), "links and addresses");
    let interval = check_interval(!changes.is_empty());
    let mut last = PublishedNics::default();
    let working = Arc::clone(agent);
    agent.tasks.nics.start(changes, move |_| {
        Ok(Next::After(match working.publish_nics(&mut last)? {
            true => interval,
            false => NODE_INTERVAL,
        }))
    })
}

/// Routes to other nodes' blocks on NICs: when the cluster's blocks, nodes or networks change, or the kernel's links,
/// addresses, routes or rules.
fn start_nic_routes(agent: &Arc<Agent>) -> io::Result<()> {
    if agent.cluster.get().is_none() {
        return Ok(());
    }
    let changes = event_sources(Changes::of_nic_routes(&agent.node), "routes and rules");
    let interval = check_interval(!changes.is_empty());
    let mut known = KnownNicRoutes::default();
    let working = Arc::clone(agent);
    agent.tasks.nic_routes.start(changes, move |run| {
        let Some(_inside) = working.restored.enter(PENDING_INTERVAL, || false) else {
            return Ok(Next::After(PENDING_INTERVAL));
        };
        working.set_nic_routes(&mut known, !run.is_woken())?;
        Ok(Next::After(interval))
    })
}

/// What the kernel tells; nothing if it does not: then one looks more often.
fn event_sources(changes: Result<Changes, NetlinkError>, what: &str) -> Vec<Box<dyn Source>> {
    let changes = changes.inspect_err(|error| {
        let error = failure::chain(error);
        tracing::warn!(error, "the kernel does not tell who changes {what}");
    });
    let all = changes.into_iter();
    all.map(|all| Box::new(all) as Box<dyn Source>).collect()
}

impl Agent {
    /// Brings journal and kernel together: then ADDs can be served.
    pub(crate) fn restore(&self) -> Result<(), String> {
        let is_first = || self.tasks.restore.counts().runs.is_empty();
        if plexus_faults::mistake("restore-fails-once") && is_first() {
            return Err("the node cannot be restored: on purpose".to_owned());
        }
        let replayed = self.replay();
        replayed.map_err(|error| format!("the node cannot be restored: {error}"))?;
        // Without nf_tables there is no guard, and no network that needs one; the fabric's task says so.
        match self.features.has(Feature::Masquerade) {
            true => self.guard_tunnels(),
            false => Ok(()),
        }
    }
}

fn log_is_large(journal: &Journal) -> bool {
    let mut log = journal.path().as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(&log).is_ok_and(|log| log.len() > LOG_BYTES)
}

/// None if there is none to be had: then one looks more often.
fn directory_watch() -> Option<Arc<DirectoryWatch>> {
    let watch = DirectoryWatch::new().inspect_err(|error| {
        tracing::warn!(%error, "directories cannot be watched: is fs.inotify.max_user_instances used up?");
    });
    watch.ok().map(Arc::new)
}

fn sources(watch: &Option<Arc<DirectoryWatch>>) -> Vec<Box<dyn Source>> {
    let watch = watch.iter().map(Arc::clone);
    watch
        .map(|watch| Box::new(watch) as Box<dyn Source>)
        .collect()
}

fn check_interval(watched: bool) -> Duration {
    match watched {
        true => CHECK_INTERVAL,
        false => UNWATCHED_INTERVAL,
    }
}

fn time_until(due: Instant) -> Duration {
    due.saturating_duration_since(Instant::now())
}
