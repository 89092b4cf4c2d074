//! How much of the machine the hypervisor kept for others, from `/proc/stat`: figures taken under
//! more than 2 % steal are not worth much.

use anyhow::{Context, Result};
use std::time::Instant;

/// The counters at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    at: Instant,
    idle: u64,
    steal: u64,
    total: u64,
}

/// What happened between two readings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    /// How long.
    pub seconds: f64,
    /// Of the processors' time.
    pub idle_percent: f64,
    /// Of the processors' time.
    pub steal_percent: f64,
}

impl Reading {
    /// Reads them.
    ///
    /// # Errors
    /// This is no Linux.
    pub fn now() -> Result<Self> {
        let text = std::fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        let line = text.lines().next().unwrap_or_default();
        // cpu user nice system idle iowait irq softirq steal guest guest_nice; guests are in user.
        let ticks: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|word| word.parse().ok())
            .collect();
        let [_, _, _, idle, _, _, _, steal] = ticks[..] else {
            anyhow::bail!("/proc/stat begins with {line:?}, not with eight counters");
        };
        Ok(Self {
            at: Instant::now(),
            idle,
            steal,
            total: ticks.iter().sum(),
        })
    }

    /// What happened since an earlier reading.
    pub fn since(self, before: Self) -> Load {
        let total = (self.total - before.total).max(1) as f64;
        let percent = |now: u64, then: u64| (now - then) as f64 * 100.0 / total;
        Load {
            seconds: (self.at - before.at).as_secs_f64(),
            idle_percent: percent(self.idle, before.idle),
            steal_percent: percent(self.steal, before.steal),
        }
    }
}
