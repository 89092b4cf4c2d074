//! Numbers for `/metrics`, in the text format of OpenMetrics, which Prometheus reads.
//!
//! Counters and histograms are kept as things happen; what has a home elsewhere (pools, the journal,
//! executed plugins) is asked for when somebody looks. Decides nothing.

use crate::background::task::Counts;
use plexus_api::cni::Command;
use plexus_cni::delegate::Runs;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What `/metrics` answers with.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// From what a native attachment takes to what a runtime waits for, in seconds.
const BUCKETS: [f64; 14] = [
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0,
];

type Seconds = Counter<f64, AtomicU64>;
type Number = Gauge<f64, AtomicU64>;
type Times = Family<Attachments, Histogram, fn() -> Histogram>;

/// All numbers.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    seconds: Family<Verb, Seconds>,
    attach: Times,
    detach: Times,
    /// What is asked for; one that looks at a time.
    snapshot: Mutex<Snapshot>,
}

#[derive(Debug, Default)]
struct Snapshot {
    adds: Number,
    running: Number,
    waiting: Number,
    pools: Family<Pool, Number>,
    journal: Family<JournalFile, Number>,
    delegates_running: Number,
    delegate_runs: Family<Delegate, Counter>,
    delegate_seconds: Family<Delegate, Seconds>,
    ready: Number,
    task_runs: Family<TaskRun, Counter>,
    task_seconds: Family<TaskName, Number>,
    task_stuck: Family<TaskName, Number>,
}

/// What is true at the moment.
#[derive(Debug, Default)]
pub(crate) struct Moment {
    /// ADDs, waiting or running.
    pub(crate) adds: usize,
    /// Operations that hold their container's lock.
    pub(crate) running: usize,
    /// Operations that wait for it.
    pub(crate) waiting: usize,
    /// Network, subnet, addresses used, addresses there are.
    pub(crate) pools: Vec<(String, String, u128, u128)>,
    /// Bytes of the journal, and of its write-ahead log.
    pub(crate) journal: (u64, u64),
    /// Plugins that run.
    pub(crate) delegates_running: usize,
    /// Plugins that ran.
    pub(crate) delegates: Vec<Runs>,
    /// Whether ADDs are served.
    pub(crate) ready: bool,
    /// Background work.
    pub(crate) tasks: Vec<Counts>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    verb: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Verb {
    verb: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attachments {
    provider: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Pool {
    network: String,
    subnet: String,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JournalFile {
    file: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Delegate {
    plugin: String,
    verb: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskRun {
    task: &'static str,
    reason: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskName {
    task: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        let mut metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            seconds: Family::default(),
            attach: Family::new_with_constructor(histogram),
            detach: Family::new_with_constructor(histogram),
            snapshot: Mutex::default(),
        };
        for command in Command::ALL {
            let verb = command.path();
            for outcome in [outcome(true), outcome(false)] {
                let _ = metrics.requests.get_or_create(&Request { verb, outcome });
            }
            let _ = metrics.seconds.get_or_create(&Verb { verb });
        }
        metrics.register();
        metrics
    }
}

impl Metrics {
    /// Counts one request.
    pub(crate) fn served(&self, command: Command, success: bool, took: Duration) {
        let verb = command.path();
        let outcome = outcome(success);
        self.requests
            .get_or_create(&Request { verb, outcome })
            .inc();
        let seconds = self.seconds.get_or_create(&Verb { verb });
        seconds.inc_by(took.as_secs_f64());
    }

    /// Counts one ADD that made, or tried to make, attachments.
    pub(crate) fn attached(&self, provider: &str, success: bool, took: Duration) {
        observe(&self.attach, provider, success, took);
    }

    /// Counts the removal of one record's attachments.
    pub(crate) fn detached(&self, provider: &str, success: bool, took: Duration) {
        observe(&self.detach, provider, success, took);
    }

    /// All of it as text.
    pub(crate) fn render(&self, moment: &Moment) -> String {
        let snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        snapshot.set(moment);
        let mut text = String::new();
        // Writing into a String does not fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }

    fn register(&mut self) {
        let snapshot = self
            .snapshot
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let registry = &mut self.registry;
        macro_rules! register {
            ($($metric:expr => $name:literal, $help:literal;)*) => {
                $(registry.register($name, $help, $metric.clone());)*
            };
        }
        // The encoder adds `_total` to counters, and the full stop to the help.
        register! {
            self.requests => "plexus_cni_requests", "CNI requests, by verb and outcome";
            self.seconds => "plexus_cni_seconds", "Seconds that CNI requests took, by verb";
            self.attach => "plexus_attach_seconds", "Seconds that ADDs took, by provider (mixed: several) and outcome";
            self.detach => "plexus_detach_seconds", "Seconds that removals took, by provider (mixed: several) and outcome";
            snapshot.adds => "plexus_adds_in_flight", "ADDs that wait or run; more than --queue are refused";
            snapshot.running => "plexus_operations_running", "Operations that run, one a container";
            snapshot.waiting => "plexus_operations_waiting", "Operations that wait for an earlier one on the same container";
            snapshot.pools => "plexus_pool_addresses", "Addresses by network and subnet: used, and how many there are";
            snapshot.journal => "plexus_journal_bytes", "Size of the journal and of its write-ahead log";
            snapshot.delegates_running => "plexus_delegates_running", "CNI plugins of others that run";
            snapshot.delegate_runs => "plexus_delegate_runs", "Executions of CNI plugins of others, by plugin, verb and outcome";
            snapshot.delegate_seconds => "plexus_delegate_seconds", "Seconds that executed plugins took, by plugin, verb and outcome";
            snapshot.ready => "plexus_ready", "Whether ADDs are served";
            snapshot.task_runs => "plexus_task_runs", "Runs of background work, by task, reason and outcome";
            snapshot.task_seconds => "plexus_task_last_seconds", "Seconds that the last run of background work took, by task";
            snapshot.task_stuck => "plexus_task_stuck", "Whether background work takes longer than it may, by task; /healthz says more";
        }
    }
}

impl Snapshot {
    fn set(&self, moment: &Moment) {
        let number = |count: usize| count as f64;
        self.adds.set(number(moment.adds));
        self.running.set(number(moment.running));
        self.waiting.set(number(moment.waiting));
        self.delegates_running.set(number(moment.delegates_running));
        self.ready.set(f64::from(u8::from(moment.ready)));
        // What is gone must not be shown for ever.
        self.pools.clear();
        for (network, subnet, used, capacity) in &moment.pools {
            for (state, count) in [("used", *used), ("capacity", *capacity)] {
                let (network, subnet) = (network.clone(), subnet.clone());
                let pool = Pool {
                    network,
                    subnet,
                    state,
                };
                self.pools.get_or_create(&pool).set(count as f64);
            }
        }
        let (journal, log) = moment.journal;
        for (file, bytes) in [("journal", journal), ("log", log)] {
            let file = JournalFile { file };
            self.journal.get_or_create(&file).set(bytes as f64);
        }
        self.delegate_runs.clear();
        self.delegate_seconds.clear();
        for runs in &moment.delegates {
            let delegate = Delegate {
                plugin: runs.plugin.clone(),
                verb: runs.verb.to_lowercase(),
                outcome: outcome(runs.success),
            };
            let count = self.delegate_runs.get_or_create(&delegate);
            count.inc_by(runs.count);
            let seconds = self.delegate_seconds.get_or_create(&delegate);
            seconds.inc_by(runs.took.as_secs_f64());
        }
        self.task_runs.clear();
        for counts in &moment.tasks {
            self.set_task(counts);
        }
    }

    fn set_task(&self, counts: &Counts) {
        let task = counts.name;
        for (reason, success, count) in &counts.runs {
            let run = TaskRun {
                task,
                reason: reason.word(),
                outcome: outcome(*success),
            };
            self.task_runs.get_or_create(&run).inc_by(*count);
        }
        let seconds = self.task_seconds.get_or_create(&TaskName { task });
        seconds.set(counts.last_duration.as_secs_f64());
        let stuck = self.task_stuck.get_or_create(&TaskName { task });
        stuck.set(f64::from(u8::from(counts.stuck)));
    }
}

fn observe(times: &Times, provider: &str, success: bool, took: Duration) {
    let attachments = Attachments {
        provider: provider.to_owned(),
        outcome: outcome(success),
    };
    times
        .get_or_create(&attachments)
        .observe(took.as_secs_f64());
}

fn outcome(success: bool) -> &'static str {
    if success { "success" } else { "error" }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
