//! The agent's journal, read with the `sqlite3` program from a copy, so that looking neither
//! waits for the agent nor changes a byte of what it finds.

use crate::netns::PREFIX;
use crate::process::run;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// One row: column → value.
pub type Row = BTreeMap<String, Value>;

/// The table of requests.
const RECORD: &str = "request";
/// The table of host-local's directories: they stay, with its lock, when the last address goes, as the plugin's do.
const DIRECTORIES: &str = "directory";

/// Columns that differ between two runs of the same thing.
const VOLATILE: &[&str] = &[
    "id",
    "rowid",
    "boot",
    "boot_id",
    "cookie",
    "netns_cookie",
    "group",
    "grp",
    "link_group",
];

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A journal file.
#[derive(Debug, Clone)]
pub struct Journal {
    file: PathBuf,
}

impl Journal {
    /// The journal in that file.
    pub fn at(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
        }
    }

    /// The database file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// All rows of all tables.
    pub fn tables(&self) -> BTreeMap<String, Vec<Row>> {
        let Some(copy) = Copy::of(&self.file) else {
            return BTreeMap::new();
        };
        let names = copy.query("select name from sqlite_master where type='table' order by name");
        let names: Vec<&str> = names
            .iter()
            .filter_map(|row| row.get("name")?.as_str())
            .collect();
        names
            .iter()
            .map(|&name| {
                (
                    name.to_owned(),
                    copy.query(&format!("select * from {name}")),
                )
            })
            .collect()
    }

    /// The requests that are neither done nor gone, by state.
    pub fn open_intents(&self) -> BTreeMap<String, usize> {
        let mut open = BTreeMap::new();
        let Some(copy) = Copy::of(&self.file) else {
            return open;
        };
        let select =
            format!("select state, count(*) as n from {RECORD} where state<>'done' group by state");
        for row in copy.query(&select) {
            let state = row["state"].as_str().unwrap_or_default().to_owned();
            let count = row["n"]
                .as_u64()
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or_default();
            open.insert(state, count);
        }
        open
    }

    /// The requests.
    pub fn records(&self) -> Vec<Row> {
        Copy::of(&self.file)
            .map(|copy| copy.query(&format!("select * from {RECORD}")))
            .unwrap_or_default()
    }

    /// One line per row, without what differs between two runs of the same thing.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let tables = self.tables().into_iter();
        for (table, rows) in tables.filter(|(table, _)| table != DIRECTORIES) {
            for row in rows {
                let kept: BTreeMap<&str, Value> = row
                    .iter()
                    .filter(|(column, _)| !VOLATILE.contains(&column.as_str()))
                    .filter(|(column, _)| !column.ends_with("_at") && !column.ends_with("time"))
                    .map(|(column, value)| (column.as_str(), normalised(value)))
                    .collect();
                lines.push(format!("journal {table} {}", serde_json::json!(kept)));
            }
        }
        lines
    }

    /// Runs SQL on the journal itself: for tests that damage it while no agent runs.
    pub fn alter(&self, sql: &str) {
        run("sqlite3", &[&self.file.to_string_lossy(), sql]);
    }
}

/// A private copy of the database with its write-ahead log.
struct Copy {
    dir: PathBuf,
    file: PathBuf,
}

impl Copy {
    fn of(journal: &Path) -> Option<Self> {
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let dir =
            std::env::temp_dir().join(format!("{PREFIX}{}-journal{number}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("makes a directory for the copy");
        let copy = Self {
            file: dir.join("journal.db"),
            dir,
        };
        std::fs::copy(journal, &copy.file).ok()?;
        let mut log = journal.as_os_str().to_owned();
        log.push("-wal");
        let _ = std::fs::copy(log, copy.dir.join("journal.db-wal"));
        Some(copy)
    }

    fn query(&self, sql: &str) -> Vec<Row> {
        let text = run("sqlite3", &["-json", &self.file.to_string_lossy(), sql]);
        if text.trim().is_empty() {
            return Vec::new();
        }
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{sql}: {error}: {text}"))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Text that holds JSON is looked into: what varies is hidden there too.
fn normalised(value: &Value) -> Value {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => hidden(inner),
            _ => value.clone(),
        },
        other => other.clone(),
    }
}

fn hidden(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(hidden).collect(),
        Value::Object(map) => map
            .into_iter()
            .filter(|(key, _)| key != "index" && !VOLATILE.contains(&key.as_str()))
            .map(|(key, value)| (key, hidden(value)))
            .collect(),
        other => other,
    }
}
