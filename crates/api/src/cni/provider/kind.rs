//! What a provider says of itself, whatever the options of one network are: for everyone who must
//! tell providers apart without knowing them.

use super::Provider;
use crate::Fields;
use crate::cni::parse::request::RuntimeRequest;
use crate::cni::{Chain, ObjectFacts};
use crate::objects::NetworkSpec;
use plexus_types::Feature;
use serde_json::{Map, Value};

/// What holds of all networks of one provider.
#[derive(Debug, Clone, Copy)]
pub struct ProviderKind {
    /// As users write it.
    pub name: &'static str,
    /// Whether a CNI configuration may ask for it; else only a `Network` object can.
    pub in_config: bool,
    /// Whether it stands in for the reference plugin whose `type` is its name.
    pub is_plugin: bool,
    /// The kernel features without which no network of it can be made.
    pub needs: &'static [Feature],
    /// Who leads to a pod's addresses.
    pub routing: Routing,
    /// Whether traffic passes the node, and so can leave under its address.
    pub snat: bool,
    /// Whether ports of the node can lead to its pods.
    pub host_ports: bool,
    /// What it takes of a runtime: CNI capabilities.
    pub(crate) capabilities: &'static [&'static str],
    /// The keys of its options; of those that all providers have, `mac` if the plugin takes it.
    pub(crate) keys: &'static [&'static str],
    /// Keys that it has beside its plugin's.
    pub(crate) own_keys: &'static [&'static str],
    /// Which pods are on one link, by the `config` of a `Network`; none: nobody can tell.
    pub segment: fn(&Map<String, Value>) -> Option<Segment>,
}

/// Who leads to a pod's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// Nobody: they are on the link.
    OnLink,
    /// The node, by its own tables.
    Node,
    /// The network's own router, a namespace on each node. Nodes agree on a VNI.
    Router,
}

/// Which pods of a network share a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// Those of one node.
    Node,
    /// Those of all nodes on one wire.
    Wire,
}

impl ProviderKind {
    /// The provider of that name.
    pub fn of(name: &str) -> Option<&'static Self> {
        let mut kinds = Provider::KINDS.iter().copied();
        kinds.find(|kind| kind.name == name)
    }

    /// Whether a pod has its addresses alone (/32, /128) and a link-local next hop.
    pub fn is_routed(&self) -> bool {
        self.routing != Routing::OnLink
    }

    /// Whether its pods cannot do without addresses.
    pub fn needs_addresses(&self) -> bool {
        self.is_routed()
    }

    /// Whether its networks have a number that all nodes agree on.
    pub fn has_vni(&self) -> bool {
        self.routing == Routing::Router
    }

    /// The names of those that a `Network` object may name, where `fits`.
    pub fn names(fits: impl Fn(&Self) -> bool) -> Vec<&'static str> {
        let listed = |kind: &&&Self| kind.in_config || !kind.is_plugin;
        let kinds = Provider::KINDS.iter().rev().filter(listed);
        let kinds = kinds.filter(|kind| fits(kind));
        kinds.map(|kind| kind.name).collect()
    }
}

/// What the file of a provider answers, beside its `KIND`.
pub(super) trait Options: Sized {
    /// Reads its options, but those that all providers have (`mtu`, `mac`, `dns`, `ipam`).
    fn read(fields: &mut Fields<'_>, request: &RuntimeRequest) -> Option<Self>;

    /// Adds what the spec of a `Network` says to every provider, and what the cluster knows of it.
    fn with_network(&mut self, _spec: &NetworkSpec, _facts: &ObjectFacts) {}

    /// Keeps the plugin that it stands in for, if there are devices that it must be executed for.
    fn keep_plugin(&mut self, _plugin: impl FnOnce() -> Chain) {}

    /// The plugin, if it was kept.
    fn plugin(&self) -> Option<&Chain> {
        None
    }
}
