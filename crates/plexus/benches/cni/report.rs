//! The rows: as a table for people, and as `bench/results/cni.json` for programs.

use crate::stats::Samples;
use crate::steal::Load;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// One line of the result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    name: String,
    unit: &'static str,
    ours: Option<Figure>,
    peer: Option<Figure>,
    floor: Option<Figure>,
    aim: Option<(String, bool)>,
    steal: f64,
}

#[derive(Debug, Clone, Copy)]
struct Figure {
    median: f64,
    /// Absent where the figure is not one of samples.
    more: Option<More>,
}

#[derive(Debug, Clone, Copy)]
struct More {
    p99: f64,
    spread: (f64, f64),
    count: usize,
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

    pub(crate) fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    pub(crate) fn ours(mut self, samples: &Samples) -> Self {
        self.ours = Some(Figure::of(samples));
        self
    }

    pub(crate) fn peer(mut self, samples: &Samples) -> Self {
        self.peer = Some(Figure::of(samples));
        self
    }

    pub(crate) fn floor(mut self, samples: &Samples) -> Self {
        self.floor = Some(Figure::of(samples));
        self
    }

    /// Figures that are not medians of samples.
    pub(crate) fn values(mut self, ours: f64, peer: Option<f64>, floor: Option<f64>) -> Self {
        let figure = |median| Figure { median, more: None };
        self.ours = Some(figure(ours));
        self.peer = peer.map(figure);
        self.floor = floor.map(figure);
        self
    }

    /// An aim, and whether it is met.
    pub(crate) fn aim(mut self, aim: &str, met: bool) -> Self {
        self.aim = Some((aim.to_owned(), met));
        self
    }

    /// How many times the peer is slower.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.peer?.median / self.ours?.median)
    }

    /// How many times we are slower than the floor.
    pub(crate) fn of_floor(&self) -> Option<f64> {
        Some(self.ours?.median / self.floor?.median)
    }

    /// The aim of being `times` faster than the peer.
    pub(crate) fn aim_ratio(self, times: f64) -> Self {
        let met = self.ratio().is_some_and(|ratio| ratio >= times);
        self.aim(&format!("peer/ours >= {times}"), met)
    }

    /// The aim of staying within `times` the floor.
    pub(crate) fn aim_floor(self, times: f64) -> Self {
        let met = self.of_floor().is_some_and(|ratio| ratio <= times);
        self.aim(&format!("ours/floor <= {times}"), met)
    }

    fn json(&self) -> Value {
        let median = |figure: Option<Figure>| figure.map(|figure| rounded(figure.median));
        let details = |figure: Option<Figure>| {
            figure.and_then(|figure| figure.more).map(|more| {
                json!({
                    "p10": rounded(more.spread.0), "p90": rounded(more.spread.1),
                    "p99": rounded(more.p99), "n": more.count,
                })
            })
        };
        json!({
            "row": self.name, "unit": self.unit,
            "ours": median(self.ours), "peer": median(self.peer), "floor": median(self.floor),
            "ratio": self.ratio().map(rounded), "of_floor": self.of_floor().map(rounded),
            "aim": self.aim.as_ref().map(|(aim, _)| aim), "met": self.aim.as_ref().map(|(_, met)| met),
            "spread": {
                "ours": details(self.ours), "peer": details(self.peer), "floor": details(self.floor),
            },
            "steal_percent": rounded(self.steal),
        })
    }

    fn line(&self) -> String {
        let times =
            |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let aim = match &self.aim {
            Some((aim, true)) => format!("met     {aim}"),
            Some((aim, false)) => format!("MISSED  {aim}"),
            None => String::new(),
        };
        let unit = if self.unit == "ms" {
            String::new()
        } else {
            format!(" ({})", self.unit)
        };
        format!(
            "{:<44} {:>26} {:>26} {:>26} {:>9} {:>10}  {aim}",
            format!("{}{unit}", self.name),
            cell(self.ours),
            cell(self.peer),
            cell(self.floor),
            times(self.ratio()),
            times(self.of_floor()),
        )
    }
}

impl Figure {
    fn of(samples: &Samples) -> Self {
        Self {
            median: samples.median(),
            more: Some(More {
                p99: samples.p99(),
                spread: samples.spread(),
                count: samples.count(),
            }),
        }
    }
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    blocks: Vec<(String, Load)>,
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
            row.steal = load.steal_percent;
        }
        self.begun = self.rows.len();
        self.blocks.push((name.to_owned(), load));
    }

    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "\n{:<44} {:>26} {:>26} {:>26} {:>9} {:>10}  aim\n",
            "row (ms; median p10-p90 p99)", "ours", "peer", "floor", "peer/ours", "ours/floor"
        );
        for row in &self.rows {
            let _ = writeln!(text, "{}", row.line());
        }
        text.push_str("steal:");
        for (name, load) in &self.blocks {
            let _ = write!(text, " {name} {:.1} %;", load.steal_percent);
        }
        text.push('\n');
        text
    }

    /// Writes the list of rows; the file appears whole or not at all.
    pub(crate) fn write(&self) -> Result<PathBuf> {
        // Asked at run time: clones that share a build directory share this binary's path too.
        let crate_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("CARGO_MANIFEST_DIR is not set: start this with cargo bench")?;
        let root = Path::new(&crate_dir)
            .ancestors()
            .nth(2)
            .context("the crate is in no tree")?;
        let directory = root.join("bench/results");
        let path = directory.join("cni.json");
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let text = format!("{:#}\n", Value::from(rows));
        let temporary = directory.join("cni.json.tmp");
        std::fs::create_dir_all(&directory)
            .and_then(|()| std::fs::write(&temporary, text))
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
            more: Some(more),
        }) => format!(
            "{median:.2} {:.2}-{:.2} {:.2}",
            more.spread.0, more.spread.1, more.p99
        ),
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
