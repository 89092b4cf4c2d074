//! Figures and what is said of them.

use std::time::Duration;

/// In the order in which they were taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// A duration, as milliseconds.
    pub(crate) fn push(&mut self, duration: Duration) {
        self.value(duration.as_secs_f64() * 1e3);
    }

    pub(crate) fn value(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    pub(crate) fn p99(&self) -> f64 {
        self.quantile(0.99)
    }

    /// The middle 80 %.
    pub(crate) fn spread(&self) -> (f64, f64) {
        (self.quantile(0.1), self.quantile(0.9))
    }

    /// Sample by sample: what both would take one after the other.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a + b).collect())
    }

    /// The nearest rank; not a number if there are no samples.
    fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        let rank = (last as f64 * share).round() as usize;
        sorted.get(rank).copied().unwrap_or(f64::NAN)
    }
}

impl Extend<Duration> for Samples {
    fn extend<I: IntoIterator<Item = Duration>>(&mut self, durations: I) {
        durations
            .into_iter()
            .for_each(|duration| self.push(duration));
    }
}
