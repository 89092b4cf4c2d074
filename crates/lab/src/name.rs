//! What a lab, its nodes and its network namespaces are called. Everything of a lab carries its name, so that
//! two labs never meet, and so that what is left of a lab can be found without its records.

use crate::error::LabError;
use plexus_types::{MAX_LAB_NODES, SANDBOX_DIGITS, lab_of_namespace};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How many nodes a lab can have.
pub(crate) const MAX_NODES: u8 = MAX_LAB_NODES;

/// The name of a lab: 1 to 10 lower-case letters and digits, a letter first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabName(String);

impl LabName {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The namespace in which the underlay's bridges are, and the control plane.
    pub fn fabric(&self) -> String {
        format!("px-{}-fabric", self.0)
    }

    /// The namespace of a node.
    pub fn node(&self, node: NodeName) -> String {
        format!("px-{}-{node}", self.0)
    }

    /// The namespace of a pod, by the id of its sandbox.
    pub fn sandbox(&self, container: &str) -> String {
        let short: String = container.chars().take(SANDBOX_DIGITS).collect();
        format!("px-{}-s{short}", self.0)
    }

    /// Whether a namespace of this name belongs to the lab.
    pub fn owns(&self, namespace: &str) -> bool {
        lab_of_namespace(namespace) == Some(&self.0)
    }
}

impl FromStr for LabName {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if !(1..=10).contains(&text.len())
            || !text.bytes().all(plain)
            || text.starts_with(|c: char| c.is_ascii_digit())
        {
            return Err(LabError::Name(text.chars().take(64).collect()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for LabName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A node: `n1` to `n200`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(u8);

impl NodeName {
    /// The node with this number.
    pub fn numbered(number: u8) -> Result<Self, LabError> {
        if !(1..=MAX_NODES).contains(&number) {
            return Err(LabError::NodeName(format!("n{number}")));
        }
        Ok(Self(number))
    }

    /// 1 for `n1`.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl FromStr for NodeName {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        text.strip_prefix('n')
            .filter(|digits| !digits.starts_with(['0', '+']))
            .and_then(|digits| digits.parse().ok())
            .and_then(|number| Self::numbered(number).ok())
            .ok_or_else(|| LabError::NodeName(text.chars().take(64).collect()))
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl TryFrom<String> for NodeName {
    type Error = LabError;

    fn try_from(text: String) -> Result<Self, LabError> {
        text.parse()
    }
}

impl From<NodeName> for String {
    fn from(node: NodeName) -> Self {
        node.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_owns_its_namespaces_and_no_others() {
        let lab: LabName = "a".parse().unwrap();
        let container = "0123456789abcdef0123456789abcdef";
        for own in [lab.fabric(), lab.sandbox(container), "px-a-n200".to_owned()] {
            assert!(lab.owns(&own), "{own}");
        }
        assert_eq!(lab.node("n1".parse().unwrap()), "px-a-n1");
        for other in [
            "px-a",
            "px-a-",
            "px-a-n",
            "px-a-n0",
            "px-a-n01",
            "px-a-n201",
            "px-a-n1-x",
            "px-ab-n1",
            "px-a-s0123",
            "px-a-s0123456789AB",
            "px-a-s0123456789abc",
            "px-a-4711-0",
            "a-n1",
        ] {
            assert!(!lab.owns(other), "{other}");
        }
    }

    #[test]
    fn names_are_checked() {
        for bad in ["", "..", "a/b", "A", "1a", "a-b", "elevenchars", "ü"] {
            assert!(bad.parse::<LabName>().is_err(), "{bad:?}");
        }
        for bad in ["", "n", "n0", "n01", "n+1", "n201", "n999", "x1", "n1 "] {
            assert!(bad.parse::<NodeName>().is_err(), "{bad:?}");
        }
        assert_eq!("n7".parse::<NodeName>().unwrap().number(), 7);
    }
}
