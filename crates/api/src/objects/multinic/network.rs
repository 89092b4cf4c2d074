//! `MultiNicNetwork`: which NICs of the hosts, which addresses, which plugin.

use crate::objects::Condition;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a user writes. Values are text here, as they were written; what is wrong with them is reported with
/// field paths by whoever reads them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(
    feature = "objects",
    derive(kube::CustomResource, schemars::JsonSchema),
    kube(
        group = "net.cogadvisor.io",
        version = "v1",
        kind = "MultiNicNetwork",
        status = "MultiNicNetworkStatus"
    ),
    schemars(extend("x-kubernetes-validations" = crate::objects::rules::MULTI_NIC_NETWORK))
)]
pub struct MultiNicNetworkSpec {
    /// The subnet that all pods' addresses come from; for both families two of them, with a comma between.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "objects", schemars(length(max = 87)))]
    pub subnet: String,
    /// Subnets of the NICs to use, in the order of the interfaces; none: those of all NICs that are found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "objects",
        schemars(length(max = 64), inner(length(max = 43)))
    )]
    pub master_nets: Vec<String>,
    /// Configuration of the address management, as JSON text.
    #[cfg_attr(feature = "objects", schemars(length(max = 65536)))]
    pub ipam: String,
    /// Whether one call gives an address for every NIC; default: with type multi-nic-ipam.
    #[serde(
        default,
        rename = "multiNICIPAM",
        skip_serializing_if = "Option::is_none"
    )]
    pub multi_nic_ipam: Option<bool>,
    /// The plugin that makes the interfaces; none: ipvlan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "objects",
        schemars(extend("default" = {"type": "ipvlan"}))
    )]
    pub plugin: Option<PluginSpec>,
    /// How NICs are chosen for a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach_policy: Option<AttachPolicy>,
    /// Where it can be used; none: everywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "objects",
        schemars(length(max = 1024), inner(length(max = 63)))
    )]
    pub namespaces: Vec<String>,
    /// What happens to a pod of a host of which a NIC is down; default: fail.
    #[serde(default, rename = "onNicDown", skip_serializing_if = "Option::is_none")]
    pub on_nic_down: Option<OnNicDown>,
}

/// The plugin that makes the interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct PluginSpec {
    /// Version of the CNI specification.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cni_version: String,
    /// `ipvlan`, `macvlan` or `host-device`.
    #[serde(rename = "type", default = "ipvlan")]
    #[cfg_attr(feature = "objects", schemars(length(min = 1, max = 63)))]
    pub kind: String,
    /// What the plugin can do.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capabilities: BTreeMap<String, bool>,
    /// Name servers for the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<Dns>,
    /// Further keys of the plugin's configuration.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
}

impl Default for PluginSpec {
    fn default() -> Self {
        PluginSpec {
            cni_version: String::new(),
            kind: ipvlan(),
            capabilities: BTreeMap::new(),
            dns: None,
            args: BTreeMap::new(),
        }
    }
}

fn ipvlan() -> String {
    "ipvlan".to_owned()
}

/// Name servers, as CNI has them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct Dns {
    /// Their addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nameservers: Vec<String>,
    /// The local domain.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub domain: String,
    /// Domains to look into.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    /// For the resolver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// How NICs are chosen for a pod.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct AttachPolicy {
    /// `none`: those that the pod names, else in the order of masterNets.
    #[serde(default)]
    pub strategy: String,
    /// Bandwidth to reach; of no meaning with `none`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
}

/// What happens to a pod of a host of which a NIC is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub enum OnNicDown {
    /// It does not start.
    #[default]
    Fail,
    /// It starts without an interface on that NIC.
    Skip,
}

/// What became of it. Written by the controller.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct MultiNicNetworkStatus {
    /// The generation of the spec that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Subnets of NICs, and how many hosts have a block on each.
    #[serde(default)]
    pub compute_results: Vec<ComputeResult>,
    /// How far the search for NICs is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<Discovery>,
    /// WaitForConfig, Success or Failed.
    #[serde(default)]
    pub config_status: String,
    /// N/A: there are none; WaitForRoutes: no host has a block yet; Success: one host alone has, which needs none; Failed:
    /// a NIC has no address that a route can lead to; Unknown: hosts make them by themselves, and say so in their logs.
    #[serde(default)]
    pub route_status: String,
    /// For people.
    #[serde(default)]
    pub message: String,
    /// When this was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "objects",
        schemars(extend("format" = "date-time"))
    )]
    pub last_sync_time: Option<String>,
    /// Ready, Placed, SubnetConflict, Definitions, …
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

/// A subnet of NICs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct ComputeResult {
    /// The subnet.
    pub net_address: String,
    /// Hosts that have a block on it.
    pub num_of_hosts: u64,
}

/// How far the search for NICs is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct Discovery {
    /// Hosts that have a HostInterface.
    #[serde(default)]
    pub exist_daemon: u64,
    /// Those of them that have a NIC.
    #[serde(default)]
    pub info_available: u64,
    /// Hosts that have their blocks.
    #[serde(default)]
    pub cidr_processed: u64,
}
