//! A target: its corpus is replayed, then it is mutated. Per commit a fixed number of inputs with a fixed seed; a
//! minute with a seed of its own where `PLEXUS_TEST_LONG` is set.

use crate::guard::Guard;
use crate::mutate::Material;
use crate::{Kind, Rng, corpus};
use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A reader with what it is given. The name is that of its corpus, and the end of the test's.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    package: &'static str,
    name: &'static str,
    kind: Kind,
    words: &'static [&'static str],
    inputs: u64,
    most: usize,
}

/// How many inputs are looked at between two looks at the memory.
const LOOK: u64 = 256;
/// As many inputs are kept because they came to something new.
const KEPT: usize = 4096;
/// Only shorter ones are kept: long ones make all others slow.
const SHORT: usize = 8 << 10;

impl Target {
    /// `package` is `CARGO_PKG_NAME` of the room.
    pub const fn new(package: &'static str, name: &'static str, kind: Kind) -> Self {
        Self {
            package,
            name,
            kind,
            words: &[],
            inputs: 2_000,
            most: 64 << 10,
        }
    }

    /// Words that the reader looks for.
    pub const fn words(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }

    /// How many mutations are tried per commit.
    pub const fn inputs(self, inputs: u64) -> Self {
        Self { inputs, ..self }
    }

    /// How long an input may be.
    pub const fn most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Gives the inputs to `check`, which panics if a property does not hold, and else says what the input came to:
    /// inputs that come to something new are mutated further.
    ///
    /// # Panics
    ///
    /// If `check` does. The input is in a file then, which the message names.
    pub fn run(&self, check: impl Fn(&[u8]) -> String) {
        if let Some(file) = std::env::var_os("PLEXUS_FUZZ_INPUT") {
            let (guard, file) = (Guard::new(self.name), PathBuf::from(file));
            let came_to = self.one(&guard, &check, &corpus::one(&file), &file.display());
            println!("{}: {came_to}", file.display());
            return;
        }
        match std::env::var_os("PLEXUS_TEST_LONG") {
            None => self.run_from(1, None, check),
            Some(_) => self.run_from(Rng::from_env().1, Some(seconds()), check),
        }
    }

    /// Without a time: the usual number of inputs.
    fn run_from(&self, seed: u64, time: Option<Duration>, check: impl Fn(&[u8]) -> String) {
        let (guard, mut rng) = (Guard::new(self.name), Rng::new(seed));
        let (mut pool, mut known) = (Vec::new(), BTreeSet::new());
        for (file, input) in corpus::read(&self.corpus()) {
            known.insert(shape(&self.one(&guard, &check, &input, &file.display())));
            pool.push(input);
        }
        let (begun, committed, mut count) = (Instant::now(), pool.len(), 0);
        println!("{}: seed {seed}", self.name);
        while time.map_or(count < self.inputs, |time| begun.elapsed() < time) {
            let material = Material {
                kind: self.kind,
                words: self.words,
                pool: &pool,
                most: self.most,
            };
            let input = material.next(&mut rng);
            let came_to = self.one(&guard, &check, &input, &format_args!("seed {seed}"));
            let keep = input.len() <= SHORT && pool.len() < KEPT;
            if keep && known.insert(shape(&came_to)) {
                pool.push(input);
            }
            count += 1;
            if count % LOOK == 0
                && let Some(grown) = guard.grown()
            {
                panic!(
                    "{}: {grown} bytes of memory, seed {seed}, input {count}",
                    self.name
                );
            }
        }
        let (took, new) = (begun.elapsed(), pool.len() - committed);
        println!(
            "{}: {count} inputs in {took:?}, {new} came to something new",
            self.name
        );
    }

    fn one(
        &self,
        guard: &Guard,
        check: &impl Fn(&[u8]) -> String,
        input: &[u8],
        origin: &dyn std::fmt::Display,
    ) -> String {
        guard.begin(input);
        let done = catch_unwind(AssertUnwindSafe(|| check(input)));
        guard.end();
        done.unwrap_or_else(|why| self.failed(input, origin, &*why))
    }

    /// Cargo says where the room is when it starts a test; checkouts may share what they built.
    fn corpus(&self) -> PathBuf {
        let root = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo starts it");
        Path::new(&root).join("tests/corpus").join(self.name)
    }

    fn failed(&self, input: &[u8], origin: &dyn std::fmt::Display, why: &(dyn Any + Send)) -> ! {
        let literal = why.downcast_ref::<&str>().copied();
        let why = why.downcast_ref::<String>().map(String::as_str);
        let why = why.or(literal).unwrap_or("it panicked");
        let directory = std::env::var_os("PLEXUS_TEST_FAILED").map(PathBuf::from);
        let directory = directory.unwrap_or_else(std::env::temp_dir).join("fuzz");
        let file = format!("{}-{:016x}", self.name, hash(input));
        let file = corpus::write(&directory, &file, self.kind, input);
        let (name, package, corpus) = (self.name, self.package, self.corpus());
        panic!(
            "{name}: {why}\ninput, from {origin}: {file}\nagain: PLEXUS_FUZZ_INPUT={file} cargo test -p {package} \
             --all-features --lib fuzz::{name}\nonce it is corrected: cp {file} {corpus}/",
            file = file.display(),
            corpus = corpus.display()
        )
    }
}

/// Panics if a text is longer than that: what goes into logs, Events and answers has bounds.
///
/// # Panics
///
/// If it is longer.
pub fn bounded(what: &str, text: &str, most: usize) {
    let (length, start) = (text.len(), text.floor_char_boundary(400));
    assert!(
        length <= most,
        "{what} has {length} bytes, more than {most}: {}…",
        &text[..start]
    );
}

/// How long a target runs, if there is time.
fn seconds() -> Duration {
    let given = std::env::var("PLEXUS_FUZZ_SECONDS").ok();
    Duration::from_secs(given.and_then(|given| given.parse().ok()).unwrap_or(60))
}

/// What two inputs came to is the same if it differs in numbers and quoted text alone.
fn shape(came_to: &str) -> String {
    let mut shape = String::new();
    let (mut quoted, mut last) = (false, ' ');
    for c in came_to.chars().take(4000) {
        match c {
            '"' if last != '\\' => quoted = !quoted,
            '0'..='9' if !quoted && !last.is_ascii_digit() => shape.push('0'),
            '0'..='9' => {}
            _ if !quoted => shape.push(c),
            _ => {}
        }
        last = c;
    }
    shape.truncate(shape.floor_char_boundary(400));
    shape
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_panics_is_found_and_its_input_is_kept() {
        let target = Target::new("plexus-fuzz", "example", Kind::Json).words(&["deep"]);
        let tried = catch_unwind(|| {
            target.run_from(1, None, |input| {
                let value = serde_json::from_slice::<serde_json::Value>(input).unwrap_or_default();
                assert!(value.get("deep").is_none_or(|v| !v.is_array()), "a list");
                format!("{}", value.is_object())
            });
        });
        let why = tried.expect_err("no input has a list at this key");
        let why = why.downcast_ref::<String>().unwrap();
        assert!(
            why.starts_with("example: a list\ninput, from seed 1: "),
            "{why}"
        );
        let file = why.lines().nth(1).unwrap().split(": ").nth(1).unwrap();
        let kept: serde_json::Value =
            serde_json::from_slice(&corpus::one(Path::new(file))).unwrap();
        assert!(kept["deep"].is_array());
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn the_same_seed_makes_the_same_inputs() {
        let made = || {
            let made = std::cell::RefCell::new(Vec::new());
            let target = Target::new("plexus-fuzz", "example", Kind::Json);
            target.inputs(300).run_from(1, None, |input| {
                made.borrow_mut().push(input.to_vec());
                String::new()
            });
            made.into_inner()
        };
        assert_eq!(made(), made());
    }

    #[test]
    fn shapes_have_no_numbers_and_no_quoted_text() {
        let one = shape(r#"networks[12].name: "a\"b" is 7"#);
        assert_eq!(one, "networks[0].name:  is 0");
        assert_eq!(one, shape(r#"networks[3].name: "" is 88"#));
    }
}
