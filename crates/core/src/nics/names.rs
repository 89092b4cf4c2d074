//! Names of links as an administrator writes them: `eth1`, or `eth*` for all that begin so. Owns what is legal and what matches.

use plexus_types::{IfName, Invalid};
use std::fmt;
use std::str::FromStr;

/// A name, or how names begin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NicPattern {
    start: String,
    open: bool,
}

/// Several of them; none: nothing matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NicPatterns(Vec<NicPattern>);

impl NicPatterns {
    /// Whether one of them matches.
    pub fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(name))
    }
}

impl FromIterator<NicPattern> for NicPatterns {
    fn from_iter<I: IntoIterator<Item = NicPattern>>(patterns: I) -> Self {
        Self(patterns.into_iter().collect())
    }
}

impl NicPattern {
    /// Whether a link has such a name.
    pub fn matches(&self, name: &str) -> bool {
        match self.open {
            true => name.starts_with(&self.start),
            false => name == self.start,
        }
    }
}

impl FromStr for NicPattern {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (start, open) = match text.strip_suffix('*') {
            Some(start) => (start, true),
            None => (text, false),
        };
        // Every beginning of a name is a name.
        let legal = start.parse::<IfName>().is_ok() || (open && start.is_empty());
        if !legal || start.contains('*') {
            return Err(Invalid {
                what: "name of NICs",
                value: text.chars().take(40).collect(),
                rule: "the name of a link, or the beginning of one with * behind it: eth1, ens*",
            });
        }
        Ok(Self {
            start: start.to_owned(),
            open,
        })
    }
}

impl fmt::Display for NicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.open { "*" } else { "" };
        write!(f, "{}{star}", self.start)
    }
}
