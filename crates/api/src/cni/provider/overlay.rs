//! `overlay`: an isolated routing domain across nodes. Owns its options. Only a `Network` object can
//! ask for it: it needs a number that the cluster agrees on.

use super::kind::{Options, ProviderKind, Routing};
use crate::Fields;
use crate::cni::ObjectFacts;
use crate::cni::parse::request::RuntimeRequest;
use crate::objects::NetworkSpec;
use ipnet::IpNet;
use plexus_types::Feature;
use std::net::IpAddr;

/// Options of `overlay`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overlay {
    /// The network's identity: names the router.
    pub uid: String,
    /// The number of its VXLAN.
    pub vni: u32,
    /// Its subnets, masked, each with the gateway that answers in the router.
    pub subnets: Vec<(IpNet, IpAddr)>,
    /// Traffic to elsewhere leaves under the node's address.
    pub snat: bool,
    /// Whether a pod may send only from its own addresses.
    pub source_check: bool,
}

impl Overlay {
    /// What holds of all its networks.
    pub const KIND: ProviderKind = ProviderKind {
        name: "overlay",
        in_config: false,
        is_plugin: false,
        needs: &[Feature::Veth, Feature::Vxlan],
        routing: Routing::Router,
        snat: true,
        host_ports: false,
        capabilities: &["ips", "mac"],
        keys: &[],
        own_keys: &[],
        segment: |_| None,
    };
}

impl Options for Overlay {
    fn read(_fields: &mut Fields<'_>, _request: &RuntimeRequest) -> Option<Self> {
        Some(Self::default())
    }

    fn with_network(&mut self, spec: &NetworkSpec, facts: &ObjectFacts) {
        let subnets = spec.subnets.values();
        *self = Self {
            uid: facts.uid.clone(),
            vni: facts.vni.unwrap_or_default(),
            subnets: subnets
                .map(|subnet| (subnet.cidr.trunc(), spec.gateway_of(subnet)))
                .collect(),
            snat: spec.snat,
            source_check: spec.source_check,
        };
    }
}
