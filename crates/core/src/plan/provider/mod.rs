//! What each provider makes of a network: the planning half of the registry in `api`. Owns what a
//! provider is asked, one file each; everything that is the same for all of them is around here.

use super::{Facts, FactsQuery, HostEnd, LinkKind, Neighbour, NodePlan, PlanError, settings};
use crate::attachment::{Assigned, NativeSpec, derived_mac};
use crate::plan::LinkOwner;
use plexus_api::cni::{self, Native, Provider};
use plexus_types::{Feature, IfName, Mac, NetworkName};

/// What the file of a provider answers about plans.
pub(super) trait ProviderPlan {
    /// The kernel features without which its networks cannot be made.
    fn features(&self) -> Vec<Feature>;

    /// What it must know of the node.
    fn facts(&self) -> FactsQuery<'_> {
        FactsQuery::default()
    }

    /// The pod's link.
    fn link(&self, request: &LinkRequest<'_>) -> Result<LinkParts, PlanError>;

    /// Whether a link of that kind is one of its own.
    fn is_of(kind: &LinkKind) -> bool
    where
        Self: Sized;

    /// Whether the pod's link has the MAC of its parent, unless another one is asked for.
    fn keeps_parent_mac(&self) -> bool {
        false
    }

    /// Adds the gateways and routes that it implies. Doing it twice changes nothing.
    fn add_gateways(&self, _assigned: &mut Assigned) {}

    /// What it keeps on the node; none: nothing, ever. `assigned` has its gateways.
    fn node_plan(
        &self,
        _network: &NetworkName,
        _native: &Native,
        _assigned: &Assigned,
        _facts: &Facts,
    ) -> Option<NodePlan> {
        None
    }

    /// Sysctls of a pod's link that has addresses: family, name and value, in order.
    fn sysctls(&self) -> &'static [(&'static str, &'static str, &'static str)] {
        &[
            ("ipv6", "accept_dad", "0"),
            ("ipv4", "arp_notify", "1"),
            ("ipv6", "ndisc_notify", "1"),
        ]
    }

    /// Whether a result has the DNS that came with the addresses.
    fn takes_ipam_dns(&self) -> bool {
        true
    }
}

/// What a pod's link is made from.
pub(super) struct LinkRequest<'a> {
    pub(super) spec: &'a NativeSpec,
    pub(super) assigned: &'a Assigned,
    pub(super) owner: &'a LinkOwner<'a>,
    pub(super) facts: &'a Facts,
    pub(super) alias: &'a str,
    pub(super) mac: Option<Mac>,
}

/// What the provider decides of a pod's link.
pub(super) struct LinkParts {
    pub(super) kind: LinkKind,
    pub(super) mtu: Option<u32>,
    pub(super) neighbours: Vec<Neighbour>,
}

impl LinkRequest<'_> {
    /// The node's end of a veth pair, in the node's namespace, a port of nothing.
    fn host_end(&self, mtu: Option<u32>) -> HostEnd {
        let container = self.owner.container.as_str();
        let ifname = &self.spec.ifname;
        let name = IfName::host_end(container, self.owner.cni_ifname.as_str(), ifname.as_str());
        HostEnd {
            mac: derived_mac(container, self.owner.netns, ifname, "host"),
            mtu,
            alias: self.alias.to_owned(),
            router: None,
            bridge: None,
            hairpin: false,
            source_check: false,
            settings: settings::of_node_link(&name),
            routes: Vec::new(),
            neighbours: Vec::new(),
            name,
        }
    }
}

macro_rules! plans {
    ($($module:ident $Options:ident,)*) => {
        $(mod $module;)*

        /// Who answers for a provider.
        pub(super) fn of(provider: &Provider) -> &dyn ProviderPlan {
            match provider {
                $(Provider::$Options(options) => options,)*
            }
        }

        /// The name of the provider that makes links of that kind; none: no provider does.
        pub fn provider_of(kind: &LinkKind) -> Option<&'static str> {
            match kind {
                $(kind if cni::$Options::is_of(kind) => Some(cni::$Options::KIND.name),)*
                _ => None,
            }
        }
    };
}
plexus_api::with_providers!(plans);

/// The kernel features that a network needs.
pub fn features(native: &Native) -> Vec<Feature> {
    of(&native.provider).features()
}

/// What a network must know of the node.
pub fn facts_query(native: &Native) -> FactsQuery<'_> {
    of(&native.provider).facts()
}
