//! Names that arrive from runtimes and configurations. Each is refused unless it can be used in a
//! file name, a log line and a netlink attribute without a second thought.

use crate::{Invalid, text_type};

/// CNI_CONTAINERID: starts with a letter or digit, then letters, digits, `_`, `.`, `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerId(String);

impl ContainerId {
    /// Checks the rule of the CNI specification, and a length that a file name can hold.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        plain("container id", text, 200, UP_TO_200).map(Self)
    }

    /// Enough of it to recognise it in a message, as its runtime shows it: nerdctl puts containerd's namespace
    /// before the id.
    pub fn short(&self) -> &str {
        let is_id = |id: &str| id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let parts = self.0.rsplit_once('-');
        let id = parts.map_or(&*self.0, |(_, id)| if is_id(id) { id } else { &self.0 });
        id.get(..12).unwrap_or(id)
    }
}

text_type!(ContainerId);

/// The `name` of a network configuration: same rule as a container id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkName(String);

impl NetworkName {
    /// Checks the rule of the CNI specification, and a length that a file name can hold.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        plain("network name", text, 200, UP_TO_200).map(Self)
    }
}

text_type!(NetworkName);

/// The `type` of a CNI plugin: a file name in the plugin directory, never a path to elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginType(String);

impl PluginType {
    /// Refuses separators, `..` and anything else that could leave the plugin directory.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        plain("plugin type", text, 100, PLUGIN_TYPE).map(Self)
    }
}

text_type!(PluginType);

/// The name of a network's router on a node: a network namespace of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouterName(String);

impl RouterName {
    /// Checks that it can be a file name.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        plain("router name", text, 64, UP_TO_64).map(Self)
    }

    /// The router of the network with that identity: a hash, so that any identity will do.
    pub fn of(network_uid: &str) -> Self {
        let hash = crate::hash64(&["router", network_uid]);
        Self(format!("px-{hash:016x}"))
    }
}

text_type!(RouterName);

const UP_TO_200: &str = "use 1 to 200 of A-Z a-z 0-9 _ . -, the first a letter or digit";
const UP_TO_64: &str = "use 1 to 64 of A-Z a-z 0-9 _ . -, the first a letter or digit";
const PLUGIN_TYPE: &str = "use the name of a file in the plugin directory, not a path: A-Z a-z 0-9 _ . -, the first a letter or digit";

fn plain(
    what: &'static str,
    text: &str,
    longest: usize,
    rule: &'static str,
) -> Result<String, Invalid> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    match begins && text.len() <= longest && text.bytes().all(legal) {
        true => Ok(text.to_owned()),
        false => Err(Invalid::new(what, text, rule)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_refused() {
        let long = "x".repeat(201);
        for text in [
            "", "../etc", "a/b", "-a", ".a", "a b", "a\n", "a\0b", "ä", &long,
        ] {
            assert!(ContainerId::new(text).is_err(), "{text:?}");
            assert!(NetworkName::new(text).is_err(), "{text:?}");
            assert!(PluginType::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_long_value_does_not_flood_the_message() {
        let error = NetworkName::new(&"!".repeat(10_000)).unwrap_err();
        assert!(error.to_string().len() < 400);
    }

    #[test]
    fn short_ids() {
        assert_eq!(
            ContainerId::new("5f10db93aabbccdd").unwrap().short(),
            "5f10db93aabb"
        );
        assert_eq!(ContainerId::new("c1").unwrap().short(), "c1");
        let nerdctl = format!("my-ns-2522b949b4dd{}", "0".repeat(52));
        assert_eq!(ContainerId::new(&nerdctl).unwrap().short(), "2522b949b4dd");
        let uid = ContainerId::new("uid-of-a-pod-2522b949b4dd").unwrap();
        assert_eq!(uid.short(), "uid-of-a-pod");
    }
}
