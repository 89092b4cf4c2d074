//! The lab's processes, found by what the kernel shows: each carries the lab and its part in its environment,
//! from before it runs until it ends. So there is no record that could be wrong or lost, whoever was killed
//! when.

use crate::error::LabError;
use crate::layout::Layout;
use crate::part::Part;
use plexus_kernel::residents::{self, all_processes};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// The variable by which a process is known.
pub(crate) const MARK: &str = "PLEXUS_LAB_PART";

/// Its value for a part.
pub(crate) fn mark(layout: &Layout, part: Part) -> String {
    format!("{} {part}", layout.dir().display())
}

/// How long all of them may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// A process that was there when we looked, held so that its number means nobody else.
#[derive(Debug)]
pub(crate) struct Process(residents::Process);

impl Process {
    /// The process that is this part of the lab, if it runs.
    pub(crate) fn of_part(layout: &Layout, part: Part) -> Option<Self> {
        let wanted = format!("{MARK}={}", mark(layout, part));
        let mut found = all_processes().filter_map(|pid| Self::if_is(pid, |entry| entry == wanted));
        found.find(|process| process.runs_verb(part.verb()))
    }

    /// Every process that carries the mark of the lab, whatever it is.
    pub(crate) fn of_lab(layout: &Layout) -> Vec<Self> {
        let wanted = format!("{MARK}={} ", layout.dir().display());
        all_processes()
            .filter_map(|pid| Self::if_is(pid, |entry| entry.starts_with(&wanted)))
            .collect()
    }

    /// Every process that lives in one of these network namespaces, but ourselves and those that wait for us.
    pub(crate) fn in_namespaces(names: &[String]) -> Vec<Self> {
        let found = residents::residents(names).into_iter();
        found.map(Self).collect()
    }

    /// The process with this number now; none if there is none, or only its remains.
    pub(crate) fn open(pid: i32) -> Option<Self> {
        residents::Process::open(pid).map(Self)
    }

    /// Whether it has ended, or does so within the limit.
    pub(crate) fn has_ended(&self, limit: Duration) -> bool {
        self.0.has_ended(limit)
    }

    /// Its number.
    pub(crate) fn pid(&self) -> i32 {
        self.0.pid()
    }

    /// Kills it and waits until it is gone.
    pub(crate) fn kill(&self) -> Result<(), LabError> {
        self.0.kill();
        let limit = Duration::from_secs(10);
        if self.has_ended(limit) {
            return Ok(());
        }
        Err(LabError::NotYet {
            what: format!("process {} to end", self.pid()),
            limit,
            last: "it was sent SIGKILL".to_owned(),
        })
    }

    /// Held first and looked at then: what is read is of the process that is held.
    fn if_is(pid: i32, wanted: impl Fn(&str) -> bool) -> Option<Self> {
        let environment = |pid: i32| -> io::Result<bool> {
            let bytes = fs::read(format!("/proc/{pid}/environ"))?;
            let mut entries = bytes.split(|byte| *byte == 0);
            Ok(entries.any(|entry| std::str::from_utf8(entry).is_ok_and(&wanted)))
        };
        if !environment(pid).ok()? {
            return None;
        }
        let process = Self::open(pid)?;
        environment(pid).ok()?.then_some(process)
    }

    /// What a part starts (a plugin that an agent executes) may carry its mark too.
    fn runs_verb(&self, verb: &str) -> bool {
        let words = fs::read(format!("/proc/{}/cmdline", self.pid())).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(verb.as_bytes())
    }
}

/// Ends those who are left, look after look, until nobody is: one that was being started shows up in the next.
/// Adds their numbers to those that have ended.
pub(crate) fn end_all(
    mut left: impl FnMut() -> Result<Vec<Process>, LabError>,
    ended: &mut BTreeSet<i32>,
) -> Result<(), LabError> {
    let start = Instant::now();
    loop {
        let found = left()?;
        if found.is_empty() {
            return Ok(());
        }
        if start.elapsed() > END_TIMEOUT {
            let pids: Vec<String> = found.iter().map(|one| one.pid().to_string()).collect();
            return Err(LabError::NotYet {
                what: "every process to end".to_owned(),
                limit: END_TIMEOUT,
                last: format!("still there: {}", pids.join(", ")),
            });
        }
        for process in &found {
            process.0.kill();
            ended.insert(process.pid());
        }
        for process in &found {
            process.has_ended(Duration::from_secs(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;
    use std::process::{Child, Command};

    fn sleeper(layout: &Layout, part: Part, verb: &str) -> Child {
        // `sleep 60 …` would refuse a word; the shell takes any and replaces itself.
        Command::new("sh")
            .args([verb, "60"])
            .env(MARK, mark(layout, part))
            .current_dir(layout.root())
            .spawn()
            .unwrap()
    }

    #[test]
    fn a_part_is_found_by_its_mark_and_its_verb() {
        let scratch = Scratch::new();
        // The script's name is the first argument, as a verb is.
        for verb in ["server", "agent", "plugin"] {
            fs::write(scratch.0.join(verb), "sleep 60; exit").unwrap();
        }
        let layout = Layout::in_root(&scratch.0, "x".parse().unwrap());
        let other = Layout::in_root(&scratch.0, "y".parse().unwrap());
        let agent = Part::Agent("n1".parse().unwrap());
        let mut children = [
            sleeper(&layout, Part::Server, "server"),
            sleeper(&layout, agent, "plugin"),
            sleeper(&other, agent, "agent"),
        ];
        let eventually = |found: &dyn Fn() -> bool| {
            (0..200).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                found()
            })
        };
        assert!(eventually(
            &|| Process::of_part(&layout, Part::Server).is_some()
        ));
        let server = Process::of_part(&layout, Part::Server).unwrap();
        assert_eq!(server.pid(), children[0].id() as i32);
        assert!(Process::of_part(&layout, agent).is_none(), "only a plugin");
        // Each shell, and the `sleep` that it started.
        assert!(eventually(&|| Process::of_lab(&layout).len() == 4));
        assert!(eventually(&|| Process::of_lab(&other).len() == 2));
        for process in Process::of_lab(&layout) {
            process.kill().unwrap();
        }
        assert!(Process::of_part(&layout, Part::Server).is_none());
        assert!(children[2].try_wait().unwrap().is_none(), "another lab's");
        for process in Process::of_lab(&other) {
            process.kill().unwrap();
        }
        for child in &mut children {
            child.wait().unwrap();
        }
    }

    #[test]
    fn whoever_is_started_meanwhile_ends_too() {
        let start = || {
            let child = Command::new("sleep").arg("60").spawn().unwrap();
            let process = Process::open(child.id() as i32).unwrap();
            (child, process)
        };
        let (first, process) = start();
        let (mut children, mut next) = (vec![first], vec![process]);
        let mut ended = BTreeSet::new();
        let find = || {
            // The one that is found next comes while others are looked at.
            let now = std::mem::take(&mut next);
            if children.len() < 3 {
                let (child, process) = start();
                children.push(child);
                next.push(process);
            }
            Ok(now)
        };
        end_all(find, &mut ended).unwrap();
        let pids: BTreeSet<i32> = children.iter().map(|child| child.id() as i32).collect();
        for child in &mut children {
            assert!(!child.wait().unwrap().success());
        }
        assert_eq!(ended, pids);
    }
}
