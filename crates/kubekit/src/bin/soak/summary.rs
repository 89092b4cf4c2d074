//! What happened, for a terminal and as JSON.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub(crate) struct Summary {
    minutes: u64,
    seed: u64,
    pub(crate) made: u32,
    pub(crate) removed: u32,
    pub(crate) recreated: u32,
    /// Changes that the API server did not take while it was dead.
    pub(crate) refused: u32,
    pub(crate) checks: u32,
    /// Seconds from the end of a stretch until everything agreed.
    pub(crate) settled: Vec<f64>,
    kills: BTreeMap<String, u32>,
    memory: BTreeMap<String, Vec<(f64, f64)>>,
    wrong: Vec<String>,
}

impl Summary {
    pub(crate) fn new(minutes: u64, seed: u64) -> Self {
        Self {
            minutes,
            seed,
            made: 0,
            removed: 0,
            recreated: 0,
            refused: 0,
            checks: 0,
            settled: Vec::new(),
            kills: BTreeMap::new(),
            memory: BTreeMap::new(),
            wrong: Vec::new(),
        }
    }

    pub(crate) fn kill(&mut self, victim: &str) {
        *self.kills.entry(victim.to_owned()).or_default() += 1;
    }

    pub(crate) fn memory(&mut self, who: &str, at: Duration, megabytes: f64) {
        let seen = self.memory.entry(who.to_owned()).or_default();
        seen.push((at.as_secs_f64().round(), (megabytes * 10.0).round() / 10.0));
    }

    /// Something that must not be.
    pub(crate) fn wrong(&mut self, what: String) {
        println!("WRONG: {what}");
        self.wrong.push(what);
    }

    pub(crate) fn good(&self) -> bool {
        self.wrong.is_empty()
    }

    /// One line for the terminal.
    pub(crate) fn print_progress(&self, at: Duration) {
        let memory: Vec<String> = self
            .memory
            .iter()
            .filter_map(|(who, seen)| Some(format!("{who} {} MB", seen.last()?.1)))
            .collect();
        println!(
            "{:4.0} s: {} pods made, {} removed, {} re-created; killed {:?}; {} checks, settled in {:.0} s; {}; {} wrong",
            at.as_secs_f64(),
            self.made,
            self.removed,
            self.recreated,
            self.kills,
            self.checks,
            self.settled.last().copied().unwrap_or_default(),
            memory.join(", "),
            self.wrong.len()
        );
    }

    /// Prints everything; a full run leaves it in the tree too.
    pub(crate) fn print(&self, full: bool) -> Result<()> {
        let text = format!("{:#}\n", self.json());
        print!("{text}");
        let Some(crate_dir) = std::env::var_os("CARGO_MANIFEST_DIR").filter(|_| full) else {
            return Ok(());
        };
        let root = Path::new(&crate_dir)
            .ancestors()
            .nth(2)
            .context("the crate is in no tree")?;
        let path = root.join("bench/results/soak.json");
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn json(&self) -> Value {
        let memory: BTreeMap<&String, Value> = self
            .memory
            .iter()
            .map(|(who, seen)| {
                let sizes = seen.iter().map(|(_, size)| *size);
                let of = |pair: Option<&(f64, f64)>| pair.map(|(_, size)| *size);
                let value = json!({
                    "first_mb": of(seen.first()), "last_mb": of(seen.last()),
                    "most_mb": sizes.fold(0.0, f64::max), "over_time": seen,
                });
                (who, value)
            })
            .collect();
        json!({
            "minutes": self.minutes, "seed": self.seed,
            "pods": {"made": self.made, "removed": self.removed, "recreated": self.recreated},
            "refused_while_down": self.refused, "kills": self.kills, "checks": self.checks,
            "settled_seconds": self.settled, "memory": memory, "wrong": self.wrong,
        })
    }
}
