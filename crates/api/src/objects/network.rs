//! `Network`: something that pods attach to.

use super::selector::LabelSelector;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What a network is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(
    feature = "objects",
    derive(kube::CustomResource, schemars::JsonSchema),
    kube(
        group = "plexus.dev",
        version = "v1alpha1",
        kind = "Network",
        namespaced,
        status = "NetworkStatus",
        shortname = "pnet"
    ),
    schemars(extend("x-kubernetes-validations" = super::rules::network()))
)]
pub struct NetworkSpec {
    /// Who makes it real; none: `overlay`. A name with `/` is an external provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "objects",
        schemars(length(min = 1, max = 253), extend("default" = crate::cni::Provider::DEFAULT))
    )]
    pub provider: Option<String>,
    /// Kept as given; else the object's UID counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "objects", schemars(length(min = 1, max = 128)))]
    pub uuid: Option<String>,
    /// One address per family, from the first by key that has room.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "objects", schemars(extend("maxProperties" = 64)))]
    pub subnets: BTreeMap<String, Subnet>,
    /// Prefix length of a node's blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size: Option<BlockSize>,
    /// Default: from the underlay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "objects", schemars(range(min = 576, max = 65535)))]
    pub mtu: Option<u32>,
    /// Routes that every pod gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "objects", schemars(length(max = 256)))]
    pub routes: Vec<RouteSpec>,
    /// Traffic to elsewhere leaves under the node's address.
    #[serde(default)]
    pub snat: bool,
    /// Whether a pod may send only from its own addresses; default true.
    #[serde(default = "yes")]
    pub source_check: bool,
    /// Whose pods may use it; default: as the agents are told, everybody's unless the administrator decides otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_namespaces: Option<AllowedNamespaces>,
    /// Options of the provider: a reference plugin's JSON, or a conflist for `delegate`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "objects", schemars(schema_with = "any_object"))]
    pub config: Map<String, Value>,
}

/// A range of addresses of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(
    feature = "objects",
    derive(schemars::JsonSchema),
    schemars(extend("x-kubernetes-validations" = super::rules::SUBNET))
)]
pub struct Subnet {
    /// The subnet.
    #[serde(deserialize_with = "super::text::net")]
    #[cfg_attr(feature = "objects", schemars(with = "String", length(max = 43)))]
    pub cidr: IpNet,
    /// Default: the last usable address.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "super::text::address"
    )]
    #[cfg_attr(
        feature = "objects",
        schemars(with = "Option<String>", length(max = 39))
    )]
    pub gateway: Option<IpAddr>,
    /// Prefixes and addresses that nobody gets.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "super::text::nets"
    )]
    #[cfg_attr(
        feature = "objects",
        schemars(with = "Vec<String>", length(max = 1024), inner(length(max = 43)))
    )]
    pub exclude: Vec<IpNet>,
}

/// Prefix length of a node's blocks, per family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct BlockSize {
    /// IPv4; default 26, or the subnet's length if that is longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "objects", schemars(range(min = 1, max = 32)))]
    pub ipv4: Option<u8>,
    /// IPv6; default 122, or the subnet's length if that is longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "objects", schemars(range(min = 1, max = 128)))]
    pub ipv6: Option<u8>,
}

/// A route in every pod of the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    feature = "objects",
    derive(schemars::JsonSchema),
    schemars(extend("x-kubernetes-validations" = super::rules::ROUTE))
)]
pub struct RouteSpec {
    /// Where to.
    #[serde(deserialize_with = "super::text::net")]
    #[cfg_attr(feature = "objects", schemars(with = "String", length(max = 43)))]
    pub dst: IpNet,
    /// Next hop; none: the subnet's gateway, which is the only one that `overlay` and `routed` take.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "super::text::address"
    )]
    #[cfg_attr(
        feature = "objects",
        schemars(with = "Option<String>", length(max = 39))
    )]
    pub gw: Option<IpAddr>,
}

/// Whose pods may use a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    feature = "objects",
    derive(schemars::JsonSchema),
    schemars(extend("x-kubernetes-validations" = super::rules::NAMESPACES))
)]
pub struct AllowedNamespaces {
    /// `All`, `Same` or `Selector`.
    pub from: From,
    /// With `Selector`: the labels that a namespace must have; not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// Which namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub enum From {
    /// Every namespace.
    All,
    /// The network's own.
    Same,
    /// Those with certain labels.
    Selector,
}

/// What became of a network. Written by the controller.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct NetworkStatus {
    /// Where it is in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The generation of the spec that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `overlay`: the number of its VXLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<u32>,
    /// Where its blocks may be: the subnets of the spec, and earlier ones of which blocks are left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "objects",
        schemars(with = "Vec<String>", length(max = 1024), inner(length(max = 43)))
    )]
    pub subnets: Vec<IpNet>,
    /// How full it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Ready, SubnetConflict, KernelFeature, InUse, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "objects",
        schemars(extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["type"]
        ))
    )]
    pub conditions: Vec<Condition>,
}

impl NetworkStatus {
    /// Why no new pod may use the network, if so; `going`: it is being deleted.
    pub fn unusable(&self, going: bool) -> Option<String> {
        let phase = match self.phase {
            _ if going => "Terminating",
            Some(Phase::Active) => return None,
            Some(Phase::Pending) => "Pending",
            Some(Phase::Failed) => "Failed",
            Some(Phase::Terminating) => "Terminating",
            Some(Phase::Initializing) | None => {
                return Some("Initializing: the controller has not looked at it yet".to_owned());
            }
        };
        let mut conditions = self.conditions.iter();
        let why = conditions.find(|one| one.kind == "Ready" && one.status != "True");
        Some(match why {
            Some(condition) if !condition.message.is_empty() => {
                format!("{phase}: {}", condition.message)
            }
            _ => phase.to_owned(),
        })
    }
}

/// The phases of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub enum Phase {
    /// Seen, nothing decided.
    Initializing,
    /// Waits for something; a condition says for what.
    Pending,
    /// Pods can use it.
    Active,
    /// It cannot be made; a condition says why.
    Failed,
    /// Deleted, but still in use; a condition says by whom.
    Terminating,
}

/// How full a network is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Blocks that nodes own.
    pub blocks: u64,
    /// Addresses in use, of the family that has the fewest left: a pod gets one of each.
    pub allocated: u64,
    /// Addresses of that family that there are; at most 2^63-1 is said.
    pub capacity: u64,
}

/// A condition, as every Kubernetes object has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct Condition {
    /// Ready, SubnetConflict, …
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    #[cfg_attr(
        feature = "objects",
        schemars(extend("enum" = ["True", "False", "Unknown"]))
    )]
    pub status: String,
    /// One word.
    pub reason: String,
    /// For people.
    pub message: String,
    /// RFC 3339.
    #[cfg_attr(feature = "objects", schemars(extend("format" = "date-time")))]
    pub last_transition_time: String,
    /// The generation that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

fn yes() -> bool {
    true
}

#[cfg(feature = "objects")]
fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true
    })
}
