//! What is wrong with an input: every problem, each with the path of its field.

use std::collections::BTreeSet;
use std::fmt;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `networks[1].ipam.subnets[0]`
    pub path: String,
    /// What is wrong with it and what would be right; names the value.
    pub text: String,
    /// The key is not one that we know: the reason to execute a plugin instead.
    pub unknown_key: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.text)
        } else {
            write!(f, "{}: {}", self.path, self.text)
        }
    }
}

/// All that is wrong with an input, in the order in which it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problems(pub Vec<Problem>);

/// The only thing that is wrong.
pub(crate) fn fault(path: impl Into<String>, text: impl Into<String>) -> Problems {
    let mut problems = Problems::default();
    problems.add(path, text);
    problems
}

impl Problems {
    /// Adds one.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.0.push(Problem {
            path: path.into(),
            text: text.into(),
            unknown_key: false,
        });
    }

    /// The value that was read, if nothing is wrong.
    pub(crate) fn unless_any<T>(self, value: T) -> Result<T, Self> {
        match self.0.is_empty() {
            true => Ok(value),
            false => Err(self),
        }
    }

    /// The same, each once: a field may have been looked at by more than one reader.
    pub fn without_repetition(mut self) -> Self {
        let mut seen = BTreeSet::new();
        let mut is_new = |one: &Problem| seen.insert((one.path.clone(), one.text.clone()));
        self.0.retain(&mut is_new);
        self
    }
}

/// How many problems a message shows; nobody reads more, and hostile input has thousands.
const SHOWN: usize = 20;

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.0.iter().take(SHOWN).map(ToString::to_string).collect();
        f.write_str(&shown.join("; "))?;
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more problems"),
        }
    }
}

impl std::error::Error for Problems {}
