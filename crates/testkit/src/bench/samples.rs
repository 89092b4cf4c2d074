//! Figures and what is said of them.

use std::time::Duration;

/// In the order in which they were taken.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// A duration, as milliseconds.
    pub fn push(&mut self, duration: Duration) {
        self.value(duration.as_secs_f64() * 1e3);
    }

    /// Any figure.
    pub fn value(&mut self, value: f64) {
        self.0.push(value);
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The one in the middle.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Above which is one in a hundred.
    pub fn p99(&self) -> f64 {
        self.quantile(0.99)
    }

    /// The middle 80 %.
    pub fn spread(&self) -> (f64, f64) {
        (self.quantile(0.1), self.quantile(0.9))
    }

    /// Sample by sample: what both would take one after the other.
    pub fn plus(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a + b).collect())
    }

    /// The nearest rank; not a number if there are no samples.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        let rank = (last as f64 * share).round() as usize;
        sorted.get(rank).copied().unwrap_or(f64::NAN)
    }

    /// The mean and half the width of its 95 % interval (normal; there are many samples).
    pub fn mean(&self) -> (f64, f64) {
        let count = self.0.len() as f64;
        let mean = self.0.iter().sum::<f64>() / count;
        let squares: f64 = self.0.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        (mean, 1.96 * deviation / count.sqrt())
    }
}

impl Extend<Duration> for Samples {
    fn extend<I: IntoIterator<Item = Duration>>(&mut self, durations: I) {
        durations
            .into_iter()
            .for_each(|duration| self.push(duration));
    }
}
