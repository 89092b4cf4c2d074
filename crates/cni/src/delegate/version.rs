//! Which version to speak with a plugin: asked once per binary, by VERSION.

use super::error::excerpt;
use super::find::{Identity, PluginFile};
use plexus_api::cni::Version;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// What a binary answered, while it stays the same binary.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<BTreeMap<PathBuf, (Identity, Spoken)>>);

impl Known {
    /// The answer that we have, if the file is still the one that gave it.
    pub(super) fn get(&self, plugin_file: &PluginFile) -> Option<Spoken> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (identity, spoken) = known.get(&plugin_file.path)?;
        (*identity == plugin_file.identity).then(|| spoken.clone())
    }

    /// Remembers an answer. Paths are plugin types in a few directories: the map stays small.
    pub(super) fn put(&self, plugin_file: &PluginFile, spoken: Spoken) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(plugin_file.path.clone(), (plugin_file.identity, spoken));
    }
}

/// The versions that a plugin speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spoken {
    /// As it says, for messages.
    pub(super) all: Vec<String>,
    common: BTreeSet<Version>,
}

impl Spoken {
    /// Reads the answer to VERSION.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(rename = "supportedVersions")]
            supported: Vec<String>,
        }
        let answer: Answer =
            serde_json::from_str(text).map_err(|error| excerpt(error.to_string().as_bytes()))?;
        let common = answer
            .supported
            .iter()
            .filter_map(|text| Version::parse(text))
            .collect();
        Ok(Self {
            all: answer.supported,
            common,
        })
    }

    /// The version wanted if it speaks that, else the nearest lower one, else the lowest.
    pub(super) fn choose(&self, wanted: Version) -> Option<Version> {
        self.common
            .range(..=wanted)
            .next_back()
            .or(self.common.first())
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(theirs: &str, wanted: &str) -> Option<&'static str> {
        let text = format!(r#"{{"cniVersion":"1.0.0","supportedVersions":{theirs}}}"#);
        let spoken = Spoken::parse(&text).unwrap();
        spoken
            .choose(Version::parse(wanted).unwrap())
            .map(Version::as_str)
    }

    #[test]
    fn the_version_wanted_or_the_nearest() {
        let all = r#"["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0","2.0.0"]"#;
        assert_eq!(choose(all, "1.0.0"), Some("1.0.0"));
        assert_eq!(choose(r#"["0.3.0","0.3.1"]"#, "1.1.0"), Some("0.3.1"));
        assert_eq!(choose(r#"["1.0.0","1.1.0"]"#, "0.4.0"), Some("1.0.0"));
        assert_eq!(choose(r#"["0.1.0","0.2.0"]"#, "1.0.0"), None);
        assert_eq!(choose("[]", "1.0.0"), None);
    }

    #[test]
    fn answers_that_are_none() {
        for text in [
            "",
            "{}",
            "[]",
            "null",
            r#"{"supportedVersions":"1.0.0"}"#,
            r#"{"code":4}"#,
        ] {
            assert!(Spoken::parse(text).is_err(), "{text}");
        }
        let long = format!(r#"{{"supportedVersions":"{}"}}"#, "x".repeat(100_000));
        assert!(Spoken::parse(&long).unwrap_err().len() < 600);
    }
}
