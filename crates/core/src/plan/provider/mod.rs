//! What each provider makes of a network: the planning half of the registry in `api`. Owns what a
//! provider is asked, one file each; everything that is the same for all of them is around here.

use super::{
    Facts, FactsQuery, HostEnd, LinkKind, Neighbour, NodePlan, Parent, PlanProblem, Stacked,
    StackedKind, settings,
};
use crate::attach::Preparation;
use crate::attachment::{Assigned, NativeSpec, derived_mac};
use crate::plan::LinkOwner;
use plexus_api::cni::{self, Native, Provider};
use plexus_types::{Feature, IfName, Mac, NetworkName};

/// What the file of a provider answers about plans.
pub(super) trait ProviderPlan {
    /// Whether traffic leaves under the node's address.
    fn masquerades(&self) -> bool {
        false
    }

    /// What it must know of the node.
    fn facts(&self) -> FactsQuery<'_> {
        FactsQuery::default()
    }

    /// What must happen next before the link can be planned, given what is done; none: nothing more.
    fn next_preparation(
        &self,
        _spec: &NativeSpec,
        _addresses: &Assigned,
        _done: &[Preparation],
    ) -> Option<Preparation> {
        None
    }

    /// The pod's link.
    fn link(&self, request: &LinkRequest<'_>) -> Result<LinkParts, PlanProblem>;

    /// The kind of links that it alone makes, on links of the node.
    fn stacked_kind() -> Option<&'static StackedKind>
    where
        Self: Sized,
    {
        None
    }

    /// Whether a link of that kind is one of its own.
    fn is_of(kind: &LinkKind) -> bool
    where
        Self: Sized,
    {
        let own = Self::stacked_kind().map(|own| own.name);
        kind.stacked()
            .is_some_and(|stacked| own == Some(&stacked.kind))
    }

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
    /// A link on `master`, else on the link that has the default route, with an MTU that fits.
    fn stacked(
        &self,
        master: Option<&IfName>,
        kind: &StackedKind,
        options: &[(&str, Option<u32>)],
    ) -> Result<LinkParts, PlanProblem> {
        let parent = self.facts.parent.as_ref();
        let parent = parent.ok_or_else(|| match master {
            Some(master) => PlanProblem::UnknownMaster(master.clone()),
            None => PlanProblem::NoMaster,
        })?;
        let mtu = self.spec.native.mtu;
        if let Some(mtu) = mtu.filter(|mtu| *mtu > parent.mtu) {
            return Err(PlanProblem::MtuTooLarge {
                mtu,
                parent: parent.name.clone(),
                parent_mtu: parent.mtu,
            });
        }
        let options = options.iter();
        let options = options.filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?)));
        Ok(LinkParts {
            kind: LinkKind::Stacked(Stacked {
                parent: Parent {
                    name: parent.name.clone(),
                    index: parent.index,
                },
                kind: kind.name.to_owned(),
                options: options.collect(),
            }),
            mtu,
            neighbours: Vec::new(),
        })
    }

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
    ($($(#[$when:meta])* $module:ident $Options:ident,)*) => {
        $($(#[$when])* mod $module;)*

        /// Who answers for a provider.
        pub(super) fn of(provider: &Provider) -> &dyn ProviderPlan {
            match provider {
                $($(#[$when])* Provider::$Options(options) => options,)*
            }
        }

        /// The name of the provider that makes links of that kind; none: no provider does.
        pub fn provider_of(kind: &LinkKind) -> Option<&'static str> {
            match kind {
                $($(#[$when])* kind if cni::$Options::is_of(kind) => Some(cni::$Options::KIND.name),)*
                _ => None,
            }
        }

        /// The kind of stacked links that the kernel calls so; none: no provider makes them.
        pub(super) fn stacked_kind(name: &str) -> Option<&'static StackedKind> {
            let kinds = [$($(#[$when])* cni::$Options::stacked_kind()),*];
            kinds.into_iter().flatten().find(|kind| kind.name == name)
        }
    };
}
plexus_api::with_providers!(plans);

/// The kernel features that a network needs.
pub fn features(native: &Native) -> Vec<Feature> {
    let mut needed = native.provider.kind().needs.to_vec();
    needed.extend(
        of(&native.provider)
            .masquerades()
            .then_some(Feature::Masquerade),
    );
    needed
}

/// What must happen next before a link can be planned, given what is done; none: nothing more.
pub(crate) fn next_preparation(
    spec: &NativeSpec,
    addresses: &Assigned,
    done: &[Preparation],
) -> Option<Preparation> {
    of(&spec.native.provider).next_preparation(spec, addresses, done)
}

/// What a network must know of the node.
pub fn facts_query(native: &Native) -> FactsQuery<'_> {
    of(&native.provider).facts()
}
