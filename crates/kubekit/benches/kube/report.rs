//! The rows: as a table for people, and as `bench/results/kube.json` for programs.

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
    thin: Option<Figure>,
    thick: Option<Figure>,
    hand: Option<Figure>,
    aim: Option<(String, bool)>,
    note: String,
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

    pub(crate) fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    pub(crate) fn ours(mut self, samples: &Samples) -> Self {
        self.ours = Some(Figure::of(samples));
        self
    }

    pub(crate) fn thin(mut self, samples: &Samples) -> Self {
        self.thin = Some(Figure::of(samples));
        self
    }

    pub(crate) fn thick(mut self, samples: &Samples) -> Self {
        self.thick = Some(Figure::of(samples));
        self
    }

    /// The same topology made by hand.
    pub(crate) fn hand(mut self, samples: &Samples) -> Self {
        self.hand = Some(Figure::of(samples));
        self
    }

    /// Figures that are not medians of samples.
    pub(crate) fn values(mut self, ours: f64, thin: Option<f64>, thick: Option<f64>) -> Self {
        let figure = |median| Figure { median, more: None };
        self.ours = Some(figure(ours));
        self.thin = thin.map(figure);
        self.thick = thick.map(figure);
        self
    }

    /// What else must be said.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// An aim, and whether it is met.
    pub(crate) fn aim(mut self, aim: &str, met: bool) -> Self {
        self.aim = Some((aim.to_owned(), met));
        self
    }

    /// The aim of being `times` faster than Multus thick.
    pub(crate) fn aim_thick(self, times: f64) -> Self {
        let met = self.ratio(self.thick).is_some_and(|ratio| ratio >= times);
        self.aim(&format!("thick/ours >= {times}"), met)
    }

    /// The aim of `share` of what is made by hand.
    pub(crate) fn aim_hand(self, share: f64) -> Self {
        let met = self.of_hand().is_some_and(|ratio| ratio >= share);
        self.aim(&format!("ours/hand >= {share}"), met)
    }

    fn ratio(&self, peer: Option<Figure>) -> Option<f64> {
        Some(peer?.median / self.ours?.median)
    }

    fn of_hand(&self) -> Option<f64> {
        Some(self.ours?.median / self.hand?.median)
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
            "ours": figure(self.ours), "thin": figure(self.thin),
            "thick": figure(self.thick), "hand": figure(self.hand),
            "thin_over_ours": self.ratio(self.thin).map(rounded),
            "thick_over_ours": self.ratio(self.thick).map(rounded),
            "ours_over_hand": self.of_hand().map(rounded),
            "aim": self.aim.as_ref().map(|(aim, _)| aim),
            "met": self.aim.as_ref().map(|(_, met)| met),
            "note": self.note,
            "idle_percent": rounded(self.load.idle_percent),
            "steal_percent": rounded(self.load.steal_percent),
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
        let line = format!(
            "{:<52} {:>20} {:>22} {:>22} {:>20} {:>8} {:>8}  {aim} {}",
            format!("{}{unit}", self.name),
            cell(self.ours),
            cell(self.thin),
            cell(self.thick),
            cell(self.hand),
            times(self.ratio(self.thick)),
            times(self.of_hand()),
            self.note,
        );
        line.trim_end().to_owned()
    }
}

impl Figure {
    fn of(samples: &Samples) -> Self {
        Self {
            median: samples.median(),
            more: Some((
                samples.quantile(0.1),
                samples.quantile(0.9),
                samples.count(),
            )),
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

    /// Says what the machine was doing while the rows since the last call were taken, and the rows.
    pub(crate) fn end_block(&mut self, name: &str, load: Load) {
        println!(
            "{name}: {:.1} s, {:.1} % idle, {:.1} % steal",
            load.seconds, load.idle_percent, load.steal_percent
        );
        for row in self.rows.iter_mut().skip(self.begun) {
            row.load = load;
            println!("  {}", row.line());
        }
        self.begun = self.rows.len();
    }

    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "\n{:<52} {:>20} {:>22} {:>22} {:>20} {:>8} {:>8}  aim\n",
            "row (ms; median p10-p90)", "ours", "thin", "thick", "by hand", "thick/o.", "o./hand"
        );
        for row in &self.rows {
            let _ = writeln!(text, "{}", row.line());
        }
        text
    }

    /// Writes the list of rows; the file appears whole or not at all. A quick run has its own name.
    pub(crate) fn write(&self, quick: bool) -> Result<PathBuf> {
        // Asked at run time: clones that share a build directory share this binary's path too.
        let crate_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("CARGO_MANIFEST_DIR is not set: start this with cargo bench")?;
        let root = Path::new(&crate_dir)
            .ancestors()
            .nth(2)
            .context("the crate is in no tree")?;
        let (directory, name) = if quick {
            (std::env::temp_dir(), "kube-quick.json")
        } else {
            (root.join("bench/results"), "kube.json")
        };
        let path = directory.join(name);
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let text = format!("{:#}\n", Value::from(rows));
        let temporary = path.with_extension("tmp");
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
            more: Some((p10, p90, _)),
        }) => format!("{median:.2} {p10:.2}-{p90:.2}"),
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
