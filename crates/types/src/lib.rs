//! Validated values. Owns the small things that every room passes around: interface names, MAC
//! addresses, container ids, network names, plugin types.
//!
//! A value of these types is valid: there is no `validate()` to forget. Knows nothing of
//! Kubernetes, netlink or tokio. Text goes in, a value or an [`Invalid`] comes out.

mod chain;
mod feature;
mod hash;
mod id;
mod ifname;
mod lab;
mod mac;
mod macvlan;

pub use chain::chain;
pub use feature::Feature;
pub use hash::hash64;
pub use id::{ContainerId, NetworkName, PluginType, RouterName};
pub use ifname::IfName;
pub use ipnet::{IpNet, Ipv4Net, Ipv6Net};
pub use lab::{MAX_LAB_NODES, SANDBOX_DIGITS, lab_of_namespace};
pub use mac::Mac;
pub use macvlan::MacvlanMode;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// A value that breaks its type's rule; says which value, and what would be legal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:?} is not valid: {rule}")]
pub struct Invalid {
    /// What it was meant to be: "interface name".
    pub what: &'static str,
    /// The offending text, shortened if it is long.
    pub value: String,
    /// What a legal value looks like.
    pub rule: &'static str,
}

impl Invalid {
    /// Keeps the offending text short, so that a hostile value cannot flood a log.
    pub fn new(what: &'static str, value: &str, rule: &'static str) -> Self {
        let mut shown: String = value.chars().take(64).collect();
        if shown.len() < value.len() {
            shown.push('…');
        }
        Self {
            what,
            value: shown,
            rule,
        }
    }
}

/// An address family; orders IPv4 before IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Family {
    /// IPv4.
    #[serde(rename = "4")]
    V4,
    /// IPv6.
    #[serde(rename = "6")]
    V6,
}

impl Family {
    /// Both, in order.
    pub const ALL: [Family; 2] = [Family::V4, Family::V6];

    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    /// The prefix of everything: `0.0.0.0/0` or `::/0`.
    pub fn everything(self) -> IpNet {
        match self {
            Family::V4 => IpNet::V4(Ipv4Net::default()),
            Family::V6 => IpNet::V6(Ipv6Net::default()),
        }
    }

    /// The bits of an address: 32 or 128.
    pub fn bits(self) -> u8 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
    }
}

/// The kernel's cookie of a network namespace: never reused until the machine reboots, unlike a
/// path or an inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NetnsCookie(pub u64);

impl fmt::Display for NetnsCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "netns#{}", self.0)
    }
}

/// Implements what every validated text type shares: `FromStr`, `Display`, `AsRef<str>`, serde.
macro_rules! text_type {
    ($name:ident) => {
        impl $name {
            /// The text, as given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl std::str::FromStr for $name {
            type Err = $crate::Invalid;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        $crate::serde_as_text!($name);
    };
}
use text_type;

/// Implements serde for a type by its `Display` and `FromStr`.
macro_rules! serde_as_text {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
use serde_as_text;
