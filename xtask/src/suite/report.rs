//! What a run of test executables prints. Texts only.

use std::time::Duration;

/// How many of the slowest are named at the end.
const SLOWEST: usize = 10;

/// A job that has ended.
pub(super) struct Done {
    pub(super) name: String,
    pub(super) took: Duration,
    pub(super) succeeded: bool,
}

impl Done {
    pub(super) fn never_started(name: String) -> Self {
        Self {
            name,
            took: Duration::ZERO,
            succeeded: false,
        }
    }
}

/// What is shown of what a job printed: all if it failed, or if it does not say how many of its tests passed; else this, and which
/// tests say that they left something out.
pub(super) fn excerpt(text: &str, succeeded: bool) -> String {
    let closing = |line: &&str| line.starts_with("test result: ");
    let mut shown = String::new();
    if !succeeded || !text.lines().any(|line| closing(&line)) {
        shown.push_str(text);
    } else {
        for line in text
            .lines()
            .filter(|line| closing(line) || line.contains(": left out, "))
        {
            shown.push_str(line);
            shown.push('\n');
        }
    }
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    shown
}

/// The slowest, those that failed, and how long all took.
pub(super) fn closing(tier: &str, took: Duration, done: &[Done]) -> String {
    let mut slowest: Vec<&Done> = done.iter().collect();
    slowest.sort_by_key(|job| std::cmp::Reverse(job.took));
    let mut text = format!("\n{tier}: the slowest\n");
    for job in slowest.iter().take(SLOWEST) {
        text.push_str(&format!(
            "  {:>6.1} s  {}\n",
            job.took.as_secs_f32(),
            job.name
        ));
    }
    let failed: Vec<&Done> = done.iter().filter(|job| !job.succeeded).collect();
    if !failed.is_empty() {
        text.push_str(&format!("{tier}: failed\n"));
    }
    for job in failed {
        text.push_str(&format!(
            "  {:>6.1} s  {}\n",
            job.took.as_secs_f32(),
            job.name
        ));
    }
    let one_by_one: Duration = done.iter().map(|job| job.took).sum();
    text.push_str(&format!(
        "{tier}: {} jobs in {} s, one after the other {} s",
        done.len(),
        took.as_secs(),
        one_by_one.as_secs()
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\nrunning 2 tests\na::b: left out, needs Power: a reason\ntest a::b ... ok\ntest c ... ok\n\n\
                          test result: ok. 2 passed; 0 failed; finished in 0.00s\n\n";

    #[test]
    fn all_is_shown_of_one_that_failed_and_the_count_of_one_that_passed() {
        assert_eq!(excerpt(OUTPUT, false), OUTPUT);
        assert_eq!(
            excerpt(OUTPUT, true),
            "a::b: left out, needs Power: a reason\ntest result: ok. 2 passed; 0 failed; finished in 0.00s\n"
        );
    }

    #[test]
    fn one_that_counts_nothing_is_shown_whole() {
        assert_eq!(
            excerpt("case one: fine\ncase two: fine", true),
            "case one: fine\ncase two: fine\n"
        );
        assert_eq!(excerpt("", true), "");
    }

    #[test]
    fn the_end_names_the_slowest_and_all_that_failed() {
        let job = |number: u64| Done {
            name: format!("job {number}"),
            took: Duration::from_secs(number),
            succeeded: number != 1,
        };
        let done: Vec<Done> = (1..=12).map(job).collect();
        let text = closing("make test", Duration::from_secs(40), &done);
        let (slowest, rest) = text.split_once("make test: failed\n").unwrap();
        let names: Vec<&str> = slowest
            .lines()
            .skip(2)
            .filter_map(|line| line.split("  ").last())
            .collect();
        assert_eq!(
            names,
            (3..=12)
                .rev()
                .map(|n| format!("job {n}"))
                .collect::<Vec<_>>()
        );
        assert_eq!(
            rest,
            "     1.0 s  job 1\nmake test: 12 jobs in 40 s, one after the other 78 s"
        );
    }
}
