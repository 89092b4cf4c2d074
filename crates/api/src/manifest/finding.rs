//! What was found out about an object in a file.

use super::Written;
use crate::Problems;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// An API server refuses it, or nothing can come of it.
    Problem,
    /// It works, but not as somebody may think, or not everywhere.
    Warning,
    /// It is accepted and kept, and waits for what this version does not have.
    Waiting,
    /// What was not looked at, and why; what was read as something else.
    Note,
}

/// One thing that was found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// The field; empty for the whole object.
    pub path: String,
    /// Its line, from 1.
    pub line: usize,
    /// What there is to say.
    pub text: String,
}

/// A path below another one; either may be empty.
pub(super) fn joined(within: &str, path: &str) -> String {
    match (within, path) {
        ("", path) => path.to_owned(),
        (within, "") => within.to_owned(),
        (within, path) => format!("{within}.{path}"),
    }
}

/// Findings about one object, as they are collected.
pub(super) struct Findings<'w> {
    written: &'w Written,
    list: Vec<Finding>,
}

impl<'w> Findings<'w> {
    pub(super) fn about(written: &'w Written) -> Self {
        let list = Vec::new();
        Self { written, list }
    }

    pub(super) fn add(&mut self, level: Level, path: &str, text: impl Into<String>) {
        self.add_at(level, path, path, text);
    }

    pub(super) fn problem(&mut self, path: &str, text: impl Into<String>) {
        self.add(Level::Problem, path, text);
    }

    /// Problems whose paths begin at `within`, which is left out of what is shown.
    pub(super) fn problems(&mut self, within: &str, problems: Problems) {
        for problem in problems.0 {
            let location = joined(within, &problem.path);
            self.add_at(Level::Problem, &location, &problem.path, problem.text);
        }
    }

    /// Shown by one path, found by another.
    fn add_at(&mut self, level: Level, location: &str, path: &str, text: impl Into<String>) {
        self.list.push(Finding {
            level,
            path: path.to_owned(),
            line: self.written.line(location),
            text: text.into(),
        });
    }

    /// In the order of the text, each once.
    pub(super) fn finish(mut self) -> Vec<Finding> {
        self.list
            .sort_by_key(|finding| (finding.line, finding.level));
        self.list.dedup();
        self.list
    }
}
