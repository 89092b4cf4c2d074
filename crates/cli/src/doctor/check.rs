//! A check, and all of them together.

use super::Subject;
use crate::text::{Paint, Screen};
use serde_json::{Value, json};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Pass,
    /// It works, but not everything, or not for long.
    Warn,
    /// Pods would not start, or not be removed.
    Fail,
}

impl Verdict {
    fn label(self) -> (&'static str, Paint) {
        match self {
            Verdict::Pass => ("pass", Paint::Good),
            Verdict::Warn => ("warn", Paint::Warn),
            Verdict::Fail => ("fail", Paint::Bad),
        }
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub subject: Subject,
    /// How it ended.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do next; empty if nothing.
    pub next: String,
}

impl Check {
    pub(super) fn pass(subject: Subject, found: impl Into<String>) -> Self {
        Self::of(Verdict::Pass, subject, found, "")
    }

    pub(super) fn warn(
        subject: Subject,
        found: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self::of(Verdict::Warn, subject, found, next)
    }

    pub(super) fn fail(
        subject: Subject,
        found: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self::of(Verdict::Fail, subject, found, next)
    }

    pub(super) fn of(
        verdict: Verdict,
        subject: Subject,
        found: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            subject,
            verdict,
            found: found.into(),
            next: next.into(),
        }
    }
}

/// All checks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// In the order in which they were made.
    pub checks: Vec<Check>,
}

impl Report {
    pub(super) fn extend(&mut self, checks: impl IntoIterator<Item = Check>) {
        self.checks.extend(checks);
    }

    /// The worst verdict.
    pub fn verdict(&self) -> Verdict {
        let verdicts = self.checks.iter().map(|check| check.verdict);
        verdicts.max().unwrap_or(Verdict::Pass)
    }

    /// For people: one line a check, with the next step where one is needed; `all` also shows what
    /// passed.
    pub fn render(&self, screen: Screen, all: bool) -> String {
        let mut out = String::new();
        let is_listed = |check: &&Check| all || check.verdict != Verdict::Pass;
        let width = self
            .checks
            .iter()
            .filter(is_listed)
            .map(|check| check.subject.name().chars().count())
            .max()
            .unwrap_or_default();
        for check in self.checks.iter().filter(is_listed) {
            let (word, paint) = check.verdict.label();
            let blanks = " ".repeat(width - check.subject.name().chars().count());
            let head = format!(
                "{}  {}{blanks}  ",
                screen.paint(paint, word),
                check.subject.name()
            );
            let indent = word.len() + width + 4;
            out.push_str(&screen.wrapped(&head, indent, &check.found));
            if !check.next.is_empty() {
                let head = format!(
                    "{}{} ",
                    " ".repeat(indent),
                    screen.paint(Paint::Strong, "next:")
                );
                out.push_str(&screen.wrapped(&head, indent + 6, &check.next));
            }
        }
        let count = |verdict| {
            let of = self.checks.iter().filter(|check| check.verdict == verdict);
            of.count()
        };
        out.push_str(&format!(
            "{} passed, {} to look at, {} failed\n",
            count(Verdict::Pass),
            count(Verdict::Warn),
            count(Verdict::Fail)
        ));
        out
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let checks = self.checks.iter().map(|check| {
            json!({
                "name": check.subject.name(), "verdict": check.verdict.label().0, "found": check.found,
                "next": check.next,
            })
        });
        json!({"verdict": self.verdict().label().0, "checks": checks.collect::<Vec<_>>()})
    }
}
