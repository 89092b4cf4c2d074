//! One element of the Working Group's list.

use crate::Fields;
use crate::cni::PortMapping;
use plexus_types::{IfName, Mac};
use serde_json::{Map, Value};
use std::net::IpAddr;

/// A network that a pod asks for, and what it asks of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NetworkSelection {
    /// Where the network is; the pod's own namespace unless written.
    pub namespace: String,
    /// The network.
    pub name: String,
    /// Name of the interface in the pod.
    pub interface: Option<IfName>,
    /// Addresses asked for, with a prefix length if one is written.
    pub ips: Vec<(IpAddr, Option<u8>)>,
    /// The MAC asked for.
    pub mac: Option<Mac>,
    /// `infiniband-guid`: eight bytes, lower case, with colons.
    pub infiniband_guid: Option<String>,
    /// Ports of the node that lead to this interface.
    pub port_mappings: Vec<PortMapping>,
    /// Limits.
    pub bandwidth: Option<Bandwidth>,
    /// `cni-args`: for `args.cni` of the plugins.
    pub cni_args: Map<String, Value>,
    /// `default-route`: the gateways; an empty list takes the default route away and gives none.
    pub default_route: Option<Vec<IpAddr>>,
    /// `ipam-claim-reference`.
    pub ipam_claim: Option<String>,
    /// `deviceID`.
    pub device_id: Option<String>,
}

/// Bits, and bits per second; none is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bandwidth {
    /// `ingressRate`
    pub ingress_rate: Option<u64>,
    /// `ingressBurst`
    pub ingress_burst: Option<u64>,
    /// `egressRate`
    pub egress_rate: Option<u64>,
    /// `egressBurst`
    pub egress_burst: Option<u64>,
}

impl NetworkSelection {
    /// Just a network.
    pub fn named(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// `runtimeConfig` for plugins: what is asked, by the names of the capabilities.
    pub fn runtime_config(&self) -> Map<String, Value> {
        Map::new()
    }
}

pub(super) fn read(_fields: &mut Fields<'_>, _pod_namespace: &str) -> Option<NetworkSelection> {
    None
}
