//! The rows: as a table for people, and as `bench/results/embedded.json` for programs.

use crate::stats::Samples;
use crate::steal::Load;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Which figure is the better one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Better {
    #[default]
    Less,
    More,
}

/// One line of the result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    name: String,
    unit: &'static str,
    better: Better,
    ours: Option<Figure>,
    other: Option<Figure>,
    aim: Option<(String, bool)>,
    load: Load,
}

#[derive(Debug, Clone, Copy)]
struct Figure {
    median: f64,
    /// p10, p90 and how many; absent where the figure is not one of samples.
    more: Option<(f64, f64, usize)>,
}

impl Row {
    /// Milliseconds.
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            unit: "ms",
            ..Self::default()
        }
    }

    pub(crate) fn unit(mut self, unit: &'static str, better: Better) -> Self {
        self.unit = unit;
        self.better = better;
        self
    }

    pub(crate) fn ours(mut self, samples: &Samples) -> Self {
        self.ours = Some(Figure::of(samples));
        self
    }

    pub(crate) fn other(mut self, samples: &Samples) -> Self {
        self.other = Some(Figure::of(samples));
        self
    }

    /// Figures that are not medians of samples.
    pub(crate) fn values(mut self, ours: f64, other: f64) -> Self {
        let figure = |median| Some(Figure { median, more: None });
        self.ours = figure(ours);
        self.other = figure(other);
        self
    }

    /// An aim, and whether it is met.
    pub(crate) fn aim(mut self, aim: &str, met: bool) -> Self {
        self.aim = Some((aim.to_owned(), met));
        self
    }

    /// The aim of being better than the other.
    pub(crate) fn aim_ahead(self) -> Self {
        let met = self.ratio().is_some_and(|ratio| ratio > 1.0);
        self.aim("ahead", met)
    }

    /// The aim of being so many times better.
    pub(crate) fn aim_times(self, times: f64) -> Self {
        let met = self.ratio().is_some_and(|ratio| ratio > times);
        self.aim(&format!("{times} times better"), met)
    }

    /// How many times better ours is.
    fn ratio(&self) -> Option<f64> {
        let ratio = self.other?.median / self.ours?.median;
        Some(match self.better {
            Better::Less => ratio,
            Better::More => 1.0 / ratio,
        })
    }

    fn json(&self) -> Value {
        let figure = |figure: Option<Figure>| {
            figure.map(|figure| {
                let mut value = json!({"median": rounded(figure.median)});
                if let Some((p10, p90, n)) = figure.more {
                    value["p10"] = rounded(p10).into();
                    value["p90"] = rounded(p90).into();
                    value["n"] = n.into();
                }
                value
            })
        };
        json!({
            "row": self.name, "unit": self.unit,
            "ours": figure(self.ours), "other": figure(self.other),
            "times_better": self.ratio().map(rounded),
            "aim": self.aim.as_ref().map(|(aim, _)| aim),
            "met": self.aim.as_ref().map(|(_, met)| met),
            "idle_percent": rounded(self.load.idle_percent),
            "steal_percent": rounded(self.load.steal_percent),
        })
    }

    fn line(&self) -> String {
        let times = self
            .ratio()
            .map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let aim = match &self.aim {
            Some((aim, true)) => format!("met     {aim}"),
            Some((aim, false)) => format!("MISSED  {aim}"),
            None => String::new(),
        };
        let name = format!("{} ({})", self.name, self.unit);
        let (ours, other) = (cell(self.ours), cell(self.other));
        format!("{name:<44} {ours:>28} {other:>28} {times:>8}  {aim}")
    }
}

impl Figure {
    fn of(samples: &Samples) -> Self {
        let (p10, p90) = samples.spread();
        Self {
            median: samples.median(),
            more: Some((p10, p90, samples.count())),
        }
    }
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    /// Where the rows of the current block begin.
    begun: usize,
}

impl Report {
    pub(crate) fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Says what the machine was doing while the rows since the last call were taken.
    pub(crate) fn end_block(&mut self, name: &str, load: Load) {
        println!(
            "{name}: {:.1} s, {:.1} % idle, {:.1} % steal",
            load.seconds, load.idle_percent, load.steal_percent
        );
        for row in self.rows.iter_mut().skip(self.begun) {
            row.load = load;
        }
        self.begun = self.rows.len();
    }

    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "\n{:<44} {:>28} {:>28} {:>8}  aim\n",
            "row (median p10-p90)", "ours", "other", "times"
        );
        for row in &self.rows {
            let _ = writeln!(text, "{}", row.line());
        }
        text
    }

    /// Writes the list of rows; the file appears whole or not at all. A quick run has its own place.
    pub(crate) fn write(&self, quick: bool) -> Result<PathBuf> {
        // Asked at run time: clones that share a build directory share this binary's path too.
        let crate_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("CARGO_MANIFEST_DIR is not set: start this with cargo bench")?;
        let root = Path::new(&crate_dir)
            .ancestors()
            .nth(2)
            .context("the crate is in no tree")?;
        let (directory, name) = if quick {
            (std::env::temp_dir(), "embedded-quick.json")
        } else {
            (root.join("bench/results"), "embedded.json")
        };
        let path = directory.join(name);
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let temporary = path.with_extension("tmp");
        std::fs::create_dir_all(&directory)
            .and_then(|()| std::fs::write(&temporary, format!("{:#}\n", Value::from(rows))))
            .and_then(|()| std::fs::rename(&temporary, &path))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

fn cell(figure: Option<Figure>) -> String {
    match figure {
        None => "-".to_owned(),
        Some(Figure { median, more: None }) => format!("{median:.2}"),
        Some(Figure {
            median,
            more: Some((p10, p90, _)),
        }) => format!("{median:.2} {p10:.2}-{p90:.2}"),
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
