//! Numbers for `/metrics`: what was served, how long it took.

use plexus_api::cni::Command;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counters, one row a verb.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    verbs: [Verb; 5],
}

#[derive(Debug, Default)]
struct Verb {
    succeeded: AtomicU64,
    failed: AtomicU64,
    microseconds: AtomicU64,
}

impl Metrics {
    /// Counts one request.
    pub(crate) fn served(&self, command: Command, success: bool, took: Duration) {
        let Some(verb) = self.verbs.get(position(command)) else {
            return;
        };
        if success {
            &verb.succeeded
        } else {
            &verb.failed
        }
        .fetch_add(1, Relaxed);
        verb.microseconds
            .fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// In the text format that Prometheus reads.
    pub(crate) fn render(&self) -> String {
        let mut text = String::from("# TYPE plexus_cni_requests_total counter\n");
        for command in Command::ALL {
            let Some(verb) = self.verbs.get(position(command)) else {
                continue;
            };
            for (outcome, count) in [("success", &verb.succeeded), ("error", &verb.failed)] {
                let count = count.load(Relaxed);
                let path = command.path();
                let _ = writeln!(
                    text,
                    "plexus_cni_requests_total{{verb=\"{path}\",outcome=\"{outcome}\"}} {count}"
                );
            }
        }
        text.push_str("# TYPE plexus_cni_seconds_total counter\n");
        for command in Command::ALL {
            let Some(verb) = self.verbs.get(position(command)) else {
                continue;
            };
            let seconds = Duration::from_micros(verb.microseconds.load(Relaxed)).as_secs_f64();
            let _ = writeln!(
                text,
                "plexus_cni_seconds_total{{verb=\"{}\"}} {seconds:.6}",
                command.path()
            );
        }
        text
    }
}

fn position(command: Command) -> usize {
    Command::ALL
        .iter()
        .position(|one| *one == command)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_verb_and_outcome() {
        let metrics = Metrics::default();
        metrics.served(Command::Add, true, Duration::from_micros(1500));
        metrics.served(Command::Add, false, Duration::from_micros(500));
        metrics.served(Command::Del, true, Duration::ZERO);
        let text = metrics.render();
        for line in [
            "plexus_cni_requests_total{verb=\"add\",outcome=\"success\"} 1",
            "plexus_cni_requests_total{verb=\"add\",outcome=\"error\"} 1",
            "plexus_cni_requests_total{verb=\"del\",outcome=\"success\"} 1",
            "plexus_cni_seconds_total{verb=\"add\"} 0.002000",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
