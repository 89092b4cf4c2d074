//! `ipvlan`: an interface on one of the node's links that has that link's MAC; the kernel tells them apart by address. Owns
//! its options, which are the reference plugin's.

use super::kind::{Options, ProviderKind, Routing, Segment};
use crate::Fields;
use crate::cni::parse::common;
use crate::cni::parse::native::{not_native, not_ours};
use crate::cni::parse::request::RuntimeRequest;
use plexus_types::{Feature, IfName};
use serde_json::Value;

/// Options of `ipvlan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ipvlan {
    /// The node's link; none: the one that has the default route.
    pub master: Option<IfName>,
    /// `mode`, default l2. It is the master's: all its ipvlans have the same.
    pub mode: IpvlanMode,
}

/// How ipvlans send and receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IpvlanMode {
    /// They are on the master's wire.
    #[default]
    L2,
    /// The node's tables lead out of them; there are no neighbours, no broadcasts and no multicast.
    L3,
    /// As l3, and the node's firewall sees what passes.
    L3s,
}

impl IpvlanMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::L2, Self::L3, Self::L3s];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::L2 => "l2",
            Self::L3 => "l3",
            Self::L3s => "l3s",
        }
    }

    /// As the kernel numbers it.
    pub fn number(self) -> u32 {
        match self {
            Self::L2 => 0,
            Self::L3 => 1,
            Self::L3s => 2,
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

impl Ipvlan {
    /// What holds of all its networks.
    pub const KIND: ProviderKind = ProviderKind {
        name: "ipvlan",
        in_config: true,
        is_plugin: true,
        needs: &[Feature::Ipvlan],
        routing: Routing::OnLink,
        snat: false,
        host_ports: false,
        // Its MAC is the master's.
        capabilities: &["ips"],
        keys: &["master", "mode", "linkInContainer"],
        own_keys: &[],
        segment: |config| match config.get("mode").and_then(Value::as_str) {
            None | Some("" | "l2") => Some(Segment::Wire),
            _ => None,
        },
    };
}

impl Options for Ipvlan {
    fn read(fields: &mut Fields<'_>, request: &RuntimeRequest) -> Option<Self> {
        let master = fields.parsed("master");
        not_native(fields, &Self::KIND, &["linkInContainer"]);
        let addressed = fields.has("ipam") || request.has_subnets;
        if fields.has("prevResult") && !(addressed && fields.has("master")) {
            // The plugin takes what is missing from there.
            not_ours(fields, &Self::KIND, "prevResult", "set");
        } else if !addressed {
            fields.missing("ipam", "an ipvlan receives only what is for its addresses");
        }
        let mode = common::mode(fields, IpvlanMode::from_name, "l2, l3 or l3s")?;
        Some(Self { master, mode })
    }
}
