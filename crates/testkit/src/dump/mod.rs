//! Everything that a namespace, the pools and the journal hold, as sorted lines of text that two
//! runs of the same thing have in common: no indexes, counters, lifetimes or handles.
//!
//! What the kernel does in its own time (carrier, duplicate address detection, its link-local
//! addresses) is left out, so a dump needs no waiting; but for the routes of IPv6 addresses ([`Dump::steady`]).

mod kernel;
mod nft;
mod sysctl;

use crate::{Journal, NetNs, TIMEOUT, within};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The lines of a dump.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dump {
    lines: BTreeSet<String>,
}

impl Dump {
    /// The dump to compare with once it no longer changes: on a busy machine the kernel adds the routes of IPv6 addresses some time
    /// after an ADD.
    pub fn steady(dump: impl Fn() -> Dump) -> Dump {
        let mut last = dump();
        within(TIMEOUT, || {
            std::thread::sleep(Duration::from_millis(200));
            let next = dump();
            let is_same = last.diff(&next).is_empty();
            last = next;
            is_same
        });
        last
    }

    /// The lines that only one of the two has; empty if they are equal.
    pub fn diff(&self, other: &Dump) -> String {
        let mut text = String::new();
        for line in self.lines.difference(&other.lines) {
            text.push_str(&format!("  - {line}\n"));
        }
        for line in other.lines.difference(&self.lines) {
            text.push_str(&format!("  + {line}\n"));
        }
        text
    }

    /// The dump without some of its lines.
    pub fn without(&self, unwanted: impl Fn(&str) -> bool) -> Dump {
        let lines = self
            .lines
            .iter()
            .filter(|line| !unwanted(line))
            .cloned()
            .collect();
        Dump { lines }
    }

    /// The dump with a word replaced everywhere; where it is only part of a longer word or number, it stays.
    pub fn replacing(&self, from: &str, to: &str) -> Dump {
        let lines = self.lines.iter();
        Dump {
            lines: lines.map(|line| replace_word(line, from, to)).collect(),
        }
    }

    /// The dump with the MACs of the pod's links and of their ends on the node replaced by names,
    /// wherever they occur: they are derived from the namespace, which differs from run to run. A
    /// neighbour that points at another MAC than the link has still shows.
    pub fn naming_macs(&self) -> Dump {
        let mut named = self.clone();
        for line in self.lines() {
            let Some((label, rest)) = line.split_once(" link ") else {
                continue;
            };
            let Some((link, mac)) = rest.split_once(" address=") else {
                continue;
            };
            let ours = link != "lo" && (label == "pod" || link.len() == 15);
            if ours {
                named = named.replacing(mac.trim_matches('"'), &format!("<mac of {link}>"));
            }
        }
        named
    }

    /// The lines, sorted.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// Whether a line contains the text.
    pub fn has(&self, text: &str) -> bool {
        self.lines().any(|line| line.contains(text))
    }

    /// Panics with the differences if there are any.
    #[track_caller]
    pub fn assert_same(&self, other: &Dump, what: &str) {
        let diff = self.diff(other);
        assert!(diff.is_empty(), "{what} (- before, + after):\n{diff}");
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Collects what a dump contains.
#[derive(Debug, Default)]
pub struct DumpBuilder<'a> {
    namespaces: Vec<(&'a str, &'a NetNs)>,
    directories: Vec<(&'a str, PathBuf)>,
    journal: Option<Journal>,
}

impl<'a> DumpBuilder<'a> {
    /// An empty dump.
    pub fn new() -> Self {
        Self::default()
    }

    /// A namespace, with links, addresses, routes, rules, neighbours, nftables, sysctls.
    pub fn namespace(mut self, label: &'a str, ns: &'a NetNs) -> Self {
        self.namespaces.push((label, ns));
        self
    }

    /// The files below a directory with their contents. host-local's lock and its memory of the
    /// last address are left out: they outlive every attachment.
    pub fn directory(mut self, label: &'a str, dir: &Path) -> Self {
        self.directories.push((label, dir.to_owned()));
        self
    }

    /// The journal's tables.
    pub fn journal(mut self, journal: &Journal) -> Self {
        self.journal = Some(journal.clone());
        self
    }

    /// Looks, at everything at the same time.
    pub fn take(self) -> Dump {
        let mut lines = BTreeSet::new();
        std::thread::scope(|scope| {
            let looking: Vec<_> = self
                .namespaces
                .iter()
                .map(|(label, ns)| scope.spawn(move || ns.enter(|| namespace(label))))
                .collect();
            if let Some(journal) = &self.journal {
                lines.extend(journal.lines());
            }
            for (label, dir) in &self.directories {
                files(label, dir, dir, &mut lines);
            }
            for one in looking {
                match one.join() {
                    Ok(found) => lines.extend(found),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        Dump { lines }
    }
}

/// All lines of the namespace that the thread is in.
fn namespace(label: &str) -> Vec<String> {
    let mut lines = kernel::lines();
    lines.extend(nft::lines());
    lines.extend(sysctl::lines());
    lines.iter().map(|line| format!("{label} {line}")).collect()
}

fn files(label: &str, root: &Path, dir: &Path, lines: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            files(label, root, &path, lines);
        } else if name != "lock" && !name.starts_with("last_reserved_ip") {
            let content = std::fs::read(&path).unwrap_or_default();
            let content = String::from_utf8_lossy(&content).into_owned();
            let path = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .display()
                .to_string();
            lines.insert(format!("{label} {path}: {content:?}"));
        }
    }
}

fn replace_word(line: &str, from: &str, to: &str) -> String {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let mut replaced = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(from) {
        let longer = is_part(before.chars().next_back()) || is_part(after.chars().next());
        replaced += before;
        replaced += if longer { from } else { to };
        rest = after;
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::replace_word;

    #[test]
    fn a_word_is_replaced_and_a_longer_one_is_not() {
        let replaced = |line| replace_word(line, "3000", "OWN");
        assert_eq!(
            replaced("ifalias=\"plexus 3000 c1 3000\""),
            "ifalias=\"plexus OWN c1 OWN\""
        );
        assert_eq!(replaced("ageing_time=30000"), "ageing_time=30000");
        assert_eq!(replaced("a3000 3000"), "a3000 OWN");
    }
}
