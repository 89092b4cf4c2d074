//! What a run of test executables prints. Texts only.

use super::slow;
use std::time::Duration;

/// How many of the slowest are named at the end.
const SLOWEST: usize = 10;
/// A test that takes longer says why, in the table of [`slow`].
const LONG: Duration = Duration::from_secs(20);

/// A job that has ended.
pub(super) struct Done {
    pub(super) name: String,
    pub(super) took: Duration,
    pub(super) succeeded: bool,
    /// Its tests, and how long each took.
    pub(super) tests: Vec<(String, Duration)>,
}

impl Done {
    pub(super) fn never_started(name: String) -> Self {
        Self {
            name,
            took: Duration::ZERO,
            succeeded: false,
            tests: Vec::new(),
        }
    }
}

/// The tests that an executable printed with their times: `test a::b ... ok <1.250s>`. Lines that something else is printed into
/// are left out.
pub(super) fn times(text: &str) -> Vec<(String, Duration)> {
    let time = |line: &str| {
        let (name, end) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let seconds = end.split_once(" <")?.1.strip_suffix("s>")?.parse().ok()?;
        Some((name.to_owned(), Duration::try_from_secs_f64(seconds).ok()?))
    };
    text.lines().filter_map(time).collect()
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
        text.push_str(&row(job.took, &job.name));
    }
    text.push_str(&slow_tests(tier, done));
    let failed: Vec<&Done> = done.iter().filter(|job| !job.succeeded).collect();
    if !failed.is_empty() {
        text.push_str(&format!("{tier}: failed\n"));
    }
    for job in failed {
        text.push_str(&row(job.took, &job.name));
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

fn row(took: Duration, name: &str) -> String {
    format!("  {:>6.1} s  {name}\n", took.as_secs_f32())
}

/// The slowest tests, each that takes long with the reason.
fn slow_tests(tier: &str, done: &[Done]) -> String {
    let all = done.iter().flat_map(|job| {
        let named =
            move |(test, took): &(String, Duration)| (job.name.clone(), test.clone(), *took);
        job.tests.iter().map(named)
    });
    let mut slowest: Vec<_> = all.collect();
    slowest.sort_by_key(|(_, _, took)| std::cmp::Reverse(*took));
    let mut text = String::new();
    for (index, (job, test, took)) in slowest.into_iter().enumerate() {
        if index >= SLOWEST && took <= LONG {
            break;
        }
        let why = match slow::reason(&job, &test) {
            Some(reason) => format!(": {reason}"),
            None if took > LONG => {
                ": longer than 20 s, and xtask/src/suite/slow.rs does not say why".to_owned()
            }
            None => String::new(),
        };
        text.push_str(&row(took, &format!("{job} {test}{why}")));
    }
    match text.is_empty() {
        true => text,
        false => format!("{tier}: the slowest tests\n{text}"),
    }
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
    fn each_test_has_its_time() {
        let text = "running 3 tests\ntest a::b ... ok <1.250s>\ntest c ... FAILED <0.000s>\ntest d ... ok\n\
                    test e ... test f ... ok <2s>\ntest g ... ok <NaNs>\n";
        let expected = [
            ("a::b".to_owned(), Duration::from_millis(1250)),
            ("c".to_owned(), Duration::ZERO),
            ("e".to_owned(), Duration::from_secs(2)),
        ];
        assert_eq!(times(text), expected);
    }

    #[test]
    fn a_test_that_takes_long_says_why() {
        let tests = [("quick", 1), ("one::slow", 21), ("one::slower", 30)];
        let done = [Done {
            name: "plexus-nowhere one".to_owned(),
            took: Duration::from_secs(60),
            succeeded: true,
            tests: tests
                .map(|(name, s)| (name.to_owned(), Duration::from_secs(s)))
                .into(),
        }];
        let why = "longer than 20 s, and xtask/src/suite/slow.rs does not say why";
        let expected = format!(
            "make test: the slowest tests\n    30.0 s  plexus-nowhere one one::slower: {why}\n    \
             21.0 s  plexus-nowhere one one::slow: {why}\n     1.0 s  plexus-nowhere one quick\n"
        );
        assert_eq!(slow_tests("make test", &done), expected);
    }

    #[test]
    fn the_end_names_the_slowest_and_all_that_failed() {
        let job = |number: u64| Done {
            name: format!("job {number}"),
            took: Duration::from_secs(number),
            succeeded: number != 1,
            tests: Vec::new(),
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
