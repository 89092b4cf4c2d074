//! The rows: as a table for people, and as `bench/results/NAME.json` for programs.

use super::{Load, Samples};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A column of a report that compares two others: how many times the first is of the second.
#[derive(Debug, Clone, Copy)]
pub struct Ratio(pub &'static str, pub &'static str);

/// One line of the result: figures of several sides, each by its name.
#[derive(Debug, Clone, Default)]
pub struct Row {
    name: String,
    unit: &'static str,
    more_is_better: bool,
    figures: Vec<(&'static str, Figure)>,
    aim: Option<(String, bool)>,
    note: String,
    load: Load,
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
    /// Milliseconds, of which fewer are better.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            unit: "ms",
            ..Self::default()
        }
    }

    /// Something else than milliseconds.
    pub fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// A rate: its ratios are turned round, so that they say the same as those of times beside it.
    pub fn more_is_better(mut self) -> Self {
        self.more_is_better = true;
        self
    }

    /// What was measured of a side.
    pub fn of(self, side: &'static str, samples: &Samples) -> Self {
        let more = More {
            p99: samples.p99(),
            spread: samples.spread(),
            count: samples.count(),
        };
        let figure = Figure {
            median: samples.median(),
            more: Some(more),
        };
        self.put(side, figure)
    }

    /// A figure that is not the median of samples, if there is one.
    pub fn value(self, side: &'static str, value: impl Into<Option<f64>>) -> Self {
        match value.into() {
            Some(median) => self.put(side, Figure { median, more: None }),
            None => self,
        }
    }

    /// Instead of what was said of that side.
    fn put(mut self, side: &'static str, figure: Figure) -> Self {
        self.figures.retain(|(name, _)| *name != side);
        self.figures.push((side, figure));
        self
    }

    /// What else must be said.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// An aim, and whether it is met.
    pub fn aim(mut self, aim: &str, met: bool) -> Self {
        self.aim = Some((aim.to_owned(), met));
        self
    }

    /// The aim of a ratio of at least so much.
    pub fn at_least(self, ratio: Ratio, aim: f64) -> Self {
        let met = self.ratio(ratio).is_some_and(|ratio| ratio >= aim);
        self.aim(&format!("{}/{} >= {aim}", ratio.0, ratio.1), met)
    }

    /// The aim of a ratio of at most so much.
    pub fn at_most(self, ratio: Ratio, aim: f64) -> Self {
        let met = self.ratio(ratio).is_some_and(|ratio| ratio <= aim);
        self.aim(&format!("{}/{} <= {aim}", ratio.0, ratio.1), met)
    }

    /// How many times the first side's figure is of the second's.
    pub fn ratio(&self, Ratio(first, second): Ratio) -> Option<f64> {
        let (first, second) = (self.figure(first)?.median, self.figure(second)?.median);
        Some(if self.more_is_better {
            second / first
        } else {
            first / second
        })
    }

    fn figure(&self, side: &str) -> Option<Figure> {
        let mut figures = self.figures.iter();
        figures.find(|(name, _)| *name == side).map(|(_, one)| *one)
    }

    fn json(&self, ratios: &[Ratio]) -> Value {
        let mut row = json!({
            "row": self.name, "unit": self.unit, "note": self.note,
            "aim": self.aim.as_ref().map(|(aim, _)| aim),
            "met": self.aim.as_ref().map(|(_, met)| met),
            "idle_percent": rounded(self.load.idle_percent),
            "steal_percent": rounded(self.load.steal_percent),
        });
        for (side, figure) in &self.figures {
            row[side] = json!({"median": rounded(figure.median)});
            if let Some(more) = figure.more {
                row[side]["p10"] = rounded(more.spread.0).into();
                row[side]["p90"] = rounded(more.spread.1).into();
                row[side]["p99"] = rounded(more.p99).into();
                row[side]["n"] = more.count.into();
            }
        }
        for ratio in ratios {
            let key = format!("{}_over_{}", ratio.0, ratio.1);
            row[key] = self.ratio(*ratio).map(rounded).into();
        }
        row
    }

    fn line(&self, sides: &[&str], ratios: &[Ratio]) -> String {
        let mut line = format!("{:<52}", format!("{} ({})", self.name, self.unit));
        for side in sides {
            let _ = write!(line, " {:>30}", cell(self.figure(side)));
        }
        for ratio in ratios {
            let times = self.ratio(*ratio).map(|times| format!("{times:.2}"));
            let _ = write!(line, " {:>12}", times.unwrap_or_else(|| "-".to_owned()));
        }
        match &self.aim {
            Some((aim, true)) => line.push_str(&format!("  met     {aim}")),
            Some((aim, false)) => line.push_str(&format!("  MISSED  {aim}")),
            None => {}
        }
        format!("{line} {}", self.note).trim_end().to_owned()
    }
}

/// Everything that was measured.
#[derive(Debug)]
pub struct Report {
    name: &'static str,
    sides: &'static [&'static str],
    ratios: &'static [Ratio],
    rows: Vec<Row>,
    /// Where the rows of the current block begin.
    begun: usize,
}

impl Report {
    /// For `bench/results/NAME.json`; with the columns of its table.
    pub fn new(
        name: &'static str,
        sides: &'static [&'static str],
        ratios: &'static [Ratio],
    ) -> Self {
        Self {
            name,
            sides,
            ratios,
            rows: Vec::new(),
            begun: 0,
        }
    }

    /// One more row.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Says what the machine was doing while the rows since the last call were taken, and the rows.
    pub fn end_block(&mut self, name: &str, load: Load) {
        println!(
            "{name}: {:.1} s, {:.1} % idle, {:.1} % steal",
            load.seconds, load.idle_percent, load.steal_percent
        );
        for row in self.rows.iter_mut().skip(self.begun) {
            row.load = load;
            println!("  {}", row.line(self.sides, self.ratios));
        }
        self.begun = self.rows.len();
    }

    /// For a terminal.
    pub fn table(&self) -> String {
        let mut text = format!("\n{:<52}", "row (median p10-p90 p99)");
        for side in self.sides {
            let _ = write!(text, " {side:>30}");
        }
        for Ratio(first, second) in self.ratios {
            let _ = write!(text, " {:>12}", format!("{first}/{second}"));
        }
        text.push_str("  aim\n");
        for row in &self.rows {
            let _ = writeln!(text, "{}", row.line(self.sides, self.ratios));
        }
        text
    }

    /// Writes the list of rows; the file appears whole or not at all. A quick run has a place of its own.
    ///
    /// # Errors
    /// It cannot be written, or this is not run by `cargo bench`.
    pub fn write(&self, quick: bool) -> Result<PathBuf> {
        // Asked at run time: clones that share a build directory share the program's path too.
        let crate_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("CARGO_MANIFEST_DIR is not set: start this with cargo bench")?;
        let root = Path::new(&crate_dir)
            .ancestors()
            .nth(2)
            .context("the crate is in no tree")?;
        let path = match quick {
            true => std::env::temp_dir().join(format!("{}-quick.json", self.name)),
            false => root
                .join("bench/results")
                .join(format!("{}.json", self.name)),
        };
        let rows: Vec<Value> = self.rows.iter().map(|row| row.json(self.ratios)).collect();
        let temporary = path.with_extension("tmp");
        std::fs::write(&temporary, format!("{:#}\n", Value::from(rows)))
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
            more: Some(More { p99, spread, .. }),
        }) => format!("{median:.2} {:.2}-{:.2} {p99:.2}", spread.0, spread.1),
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
