//! Numbers for `/metrics`, in the text format of OpenMetrics, which Prometheus reads.
//!
//! Counters and histograms are kept as things happen; what has a home elsewhere (pools, the journal,
//! executed plugins) is asked for when somebody looks. Decides nothing.

use crate::background::progress::Counts;
use plexus_api::cni::Command;
use plexus_cni::delegate::Runs;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// From what a native attachment takes to what a runtime waits for, in seconds.
const BUCKETS: [f64; 14] = [
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0,
];

type Seconds = Counter<f64, AtomicU64>;
type Number = Gauge<f64, AtomicU64>;
type Labels<const N: usize, Text = String> = [(&'static str, Text); N];
type Times = Family<Labels<2>, Histogram, fn() -> Histogram>;

#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Family<Labels<2, &'static str>, Counter>,
    seconds: Family<Labels<1, &'static str>, Seconds>,
    attach: Times,
    detach: Times,
}

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
    pub(crate) delegates_running: usize,
    pub(crate) delegates: Vec<Runs>,
    pub(crate) ready: bool,
    pub(crate) tasks: Vec<Counts>,
}

impl Default for Metrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        let metrics = Self {
            requests: Family::default(),
            seconds: Family::default(),
            attach: Family::new_with_constructor(histogram),
            detach: Family::new_with_constructor(histogram),
        };
        for command in Command::ALL {
            let verb = ("verb", command.path());
            for success in [true, false] {
                let request = [verb, ("outcome", outcome(success))];
                let _ = metrics.requests.get_or_create(&request);
            }
            let _ = metrics.seconds.get_or_create(&[verb]);
        }
        metrics
    }
}

impl Metrics {
    pub(crate) fn served(&self, command: Command, success: bool, took: Duration) {
        let verb = ("verb", command.path());
        let request = [verb, ("outcome", outcome(success))];
        self.requests.get_or_create(&request).inc();
        let seconds = self.seconds.get_or_create(&[verb]);
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

    pub(crate) fn render(&self, moment: &Moment) -> String {
        let mut registry = Registry::default();
        macro_rules! register {
            ($($metric:expr => $name:literal, $help:literal;)*) => {
                $(registry.register($name, $help, $metric);)*
            };
        }
        let (delegate_runs, delegate_seconds) = delegates(&moment.delegates);
        let (task_runs, task_seconds, task_stuck) = tasks(&moment.tasks);
        // The encoder adds `_total` to counters, and the full stop to the help.
        register! {
            self.requests.clone() => "plexus_cni_requests", "CNI requests, by verb and outcome";
            self.seconds.clone() => "plexus_cni_seconds", "Seconds that CNI requests took, by verb";
            self.attach.clone() => "plexus_attach_seconds", "Seconds that ADDs took, by provider (mixed: several) and outcome";
            self.detach.clone() => "plexus_detach_seconds", "Seconds that removals took, by provider (mixed: several) and outcome";
            number(moment.adds as f64) => "plexus_adds_in_flight", "ADDs that wait or run; more than --queue are refused";
            number(moment.running as f64) => "plexus_operations_running", "Operations that run, one a container";
            number(moment.waiting as f64) => "plexus_operations_waiting", "Operations that wait for an earlier one on the same container";
            pools(&moment.pools) => "plexus_pool_addresses", "Addresses by network and subnet: used, and how many there are";
            journal(moment.journal) => "plexus_journal_bytes", "Size of the journal and of its write-ahead log";
            number(moment.delegates_running as f64) => "plexus_delegates_running", "CNI plugins of others that run";
            delegate_runs => "plexus_delegate_runs", "Executions of CNI plugins of others, by plugin, verb and outcome";
            delegate_seconds => "plexus_delegate_seconds", "Seconds that executed plugins took, by plugin, verb and outcome";
            number(f64::from(moment.ready)) => "plexus_ready", "Whether ADDs are served";
            task_runs => "plexus_task_runs", "Runs of background work, by task, reason and outcome";
            task_seconds => "plexus_task_last_seconds", "Seconds that the last run of background work took, by task";
            task_stuck => "plexus_task_stuck", "Whether background work takes longer than it may, by task; /healthz says more";
        }
        let mut text = String::new();
        // Writing into a String does not fail.
        let _ = text::encode(&mut text, &registry);
        text
    }
}

fn number(value: f64) -> Number {
    let number = Number::default();
    number.set(value);
    number
}

fn pools(all: &[(String, String, u128, u128)]) -> Family<Labels<3>, Number> {
    let pools = Family::<Labels<3>, Number>::default();
    for (network, subnet, used, capacity) in all {
        for (state, count) in [("used", *used), ("capacity", *capacity)] {
            let pool = [
                ("network", network),
                ("subnet", subnet),
                ("state", &state.to_owned()),
            ];
            let pool = pool.map(|(key, value)| (key, value.clone()));
            pools.get_or_create(&pool).set(count as f64);
        }
    }
    pools
}

fn journal((journal, log): (u64, u64)) -> Family<Labels<1, &'static str>, Number> {
    let files = Family::<Labels<1, &'static str>, Number>::default();
    for (file, bytes) in [("journal", journal), ("log", log)] {
        files.get_or_create(&[("file", file)]).set(bytes as f64);
    }
    files
}

fn delegates(all: &[Runs]) -> (Family<Labels<3>, Counter>, Family<Labels<3>, Seconds>) {
    let counts: Family<Labels<3>, Counter> = Family::default();
    let seconds: Family<Labels<3>, Seconds> = Family::default();
    for runs in all {
        let delegate = [
            ("plugin", runs.plugin.clone()),
            ("verb", runs.verb.to_lowercase()),
            ("outcome", outcome(runs.success).to_owned()),
        ];
        counts.get_or_create(&delegate).inc_by(runs.count);
        let took = runs.took.as_secs_f64();
        seconds.get_or_create(&delegate).inc_by(took);
    }
    (counts, seconds)
}

type Tasks<const N: usize, Metric> = Family<Labels<N, &'static str>, Metric>;

/// Runs of tasks, how long the last ones took, and whether they are stuck.
fn tasks(all: &[Counts]) -> (Tasks<3, Counter>, Tasks<1, Number>, Tasks<1, Number>) {
    let runs: Tasks<3, Counter> = Family::default();
    let (seconds, stuck): (Tasks<1, Number>, Tasks<1, Number>) = Default::default();
    for counts in all {
        let task = ("task", counts.name);
        for (reason, success, count) in &counts.runs {
            let run = [
                task,
                ("reason", reason.word()),
                ("outcome", outcome(*success)),
            ];
            runs.get_or_create(&run).inc_by(*count);
        }
        let last = counts.last_duration.as_secs_f64();
        seconds.get_or_create(&[task]).set(last);
        stuck.get_or_create(&[task]).set(f64::from(counts.stuck));
    }
    (runs, seconds, stuck)
}

fn observe(times: &Times, provider: &str, success: bool, took: Duration) {
    let attachments = [
        ("provider", provider.to_owned()),
        ("outcome", outcome(success).to_owned()),
    ];
    let times = times.get_or_create(&attachments);
    times.observe(took.as_secs_f64());
}

fn outcome(success: bool) -> &'static str {
    if success { "success" } else { "error" }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
