//! `routed`: a veth that the node routes to. Owns its options; no reference plugin has them.

use super::kind::{Options, ProviderKind, Routing};
use crate::Fields;
use crate::cni::ObjectFacts;
use crate::cni::parse::request::RuntimeRequest;
use crate::objects::NetworkSpec;
use ipnet::IpNet;
use plexus_types::Feature;

/// Options of `routed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routed {
    /// Traffic that leaves the subnet takes the node's address.
    pub ip_masq: bool,
    /// Destinations outside the subnets that are reached without that: other nodes' pods.
    pub not_masq: Vec<IpNet>,
    /// Whether the pod may send only from its own addresses.
    pub source_check: bool,
}

impl Routed {
    /// What holds of all its networks.
    pub const KIND: ProviderKind = ProviderKind {
        name: "routed",
        in_config: true,
        is_plugin: false,
        needs: &[Feature::Veth],
        routing: Routing::Node,
        snat: true,
        host_ports: true,
        capabilities: &["ips", "mac"],
        keys: &["ipMasq", "mac"],
        own_keys: &[],
        segment: |_| None,
    };
}

impl Options for Routed {
    fn read(fields: &mut Fields<'_>, request: &RuntimeRequest) -> Option<Self> {
        let ip_masq = fields.flag("ipMasq");
        if !fields.has("ipam") && !request.has_subnets {
            fields.missing("ipam", "a routed network needs addresses to route to");
        }
        Some(Self {
            ip_masq,
            not_masq: Vec::new(),
            source_check: true,
        })
    }

    fn with_network(&mut self, spec: &NetworkSpec, facts: &ObjectFacts) {
        self.ip_masq |= spec.snat;
        self.not_masq = facts.not_masq.clone();
        self.source_check = spec.source_check;
    }
}
