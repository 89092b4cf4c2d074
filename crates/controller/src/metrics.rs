//! Numbers for `/metrics`, in the text format that Prometheus reads.

use plexus_api::objects::Phase;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What is counted. Written by the one loop that acts, read by whoever asks.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Whether this replica leads.
    pub(crate) leading: AtomicBool,
    /// How many keys wait for their turn.
    pub(crate) queue: AtomicU64,
    /// Keys handled.
    pub(crate) handled: AtomicU64,
    /// Keys that failed and are tried again.
    pub(crate) failed: AtomicU64,
    /// Blocks that returned because their Node is gone.
    pub(crate) blocks_returned: AtomicU64,
    /// NetworkPolicies that exist and that nobody enforces.
    pub(crate) policies: AtomicU64,
    phases: Mutex<BTreeMap<&'static str, u64>>,
}

impl Metrics {
    /// How many networks are in which phase.
    pub(crate) fn phases(&self, counts: BTreeMap<&'static str, u64>) {
        if let Ok(mut phases) = self.phases.lock() {
            *phases = counts;
        }
    }

    /// As Prometheus reads it.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        let rows = [
            (
                "plexus_controller_leading",
                "gauge",
                u64::from(self.leading.load(Relaxed)),
            ),
            (
                "plexus_controller_queue_depth",
                "gauge",
                self.queue.load(Relaxed),
            ),
            (
                "plexus_controller_handled_total",
                "counter",
                self.handled.load(Relaxed),
            ),
            (
                "plexus_controller_failures_total",
                "counter",
                self.failed.load(Relaxed),
            ),
            (
                "plexus_blocks_returned_total",
                "counter",
                self.blocks_returned.load(Relaxed),
            ),
            (
                "plexus_networkpolicies_not_enforced",
                "gauge",
                self.policies.load(Relaxed),
            ),
        ];
        for (name, kind, value) in rows {
            let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {value}");
        }
        text.push_str("# TYPE plexus_networks gauge\n");
        if let Ok(phases) = self.phases.lock() {
            for (phase, count) in &*phases {
                let _ = writeln!(text, "plexus_networks{{phase=\"{phase}\"}} {count}");
            }
        }
        text
    }
}

/// A phase, as users see it.
pub(crate) fn phase_name(phase: Option<Phase>) -> &'static str {
    match phase {
        None | Some(Phase::Initializing) => "Initializing",
        Some(Phase::Pending) => "Pending",
        Some(Phase::Active) => "Active",
        Some(Phase::Failed) => "Failed",
        Some(Phase::Terminating) => "Terminating",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_type_or_a_number() {
        let metrics = Metrics::default();
        metrics.policies.store(3, Relaxed);
        metrics.phases(BTreeMap::from([("Active", 2)]));
        let text = metrics.render();
        assert!(text.contains("plexus_networkpolicies_not_enforced 3\n"));
        assert!(text.contains("plexus_networks{phase=\"Active\"} 2\n"));
        for line in text.lines() {
            let number = line.rsplit(' ').next().unwrap().parse::<u64>().is_ok();
            assert!(line.starts_with("# TYPE ") || number, "{line}");
        }
    }
}
