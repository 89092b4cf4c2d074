//! The modes of a macvlan, as users write them and as the kernel numbers them.

use serde::{Deserialize, Serialize};

/// How the macvlans on one parent talk to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MacvlanMode {
    /// Siblings talk directly.
    #[default]
    Bridge,
    /// Siblings talk through an outside switch.
    Vepa,
    /// Siblings do not talk.
    Private,
    /// The one and only; takes the parent over.
    Passthru,
}

impl MacvlanMode {
    /// All of them.
    pub const ALL: [MacvlanMode; 4] = [Self::Bridge, Self::Vepa, Self::Private, Self::Passthru];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            MacvlanMode::Bridge => "bridge",
            MacvlanMode::Vepa => "vepa",
            MacvlanMode::Private => "private",
            MacvlanMode::Passthru => "passthru",
        }
    }

    /// As the kernel numbers it.
    pub fn number(self) -> u32 {
        match self {
            MacvlanMode::Private => 1,
            MacvlanMode::Vepa => 2,
            MacvlanMode::Bridge => 4,
            MacvlanMode::Passthru => 8,
        }
    }

    /// From the word that users write.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// From the kernel's number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.number() == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_read_back() {
        for mode in MacvlanMode::ALL {
            assert_eq!(MacvlanMode::from_name(mode.name()), Some(mode));
            assert_eq!(MacvlanMode::from_number(mode.number()), Some(mode));
        }
        assert_eq!(MacvlanMode::from_name("Bridge"), None);
        assert_eq!(MacvlanMode::from_number(3), None);
    }
}
