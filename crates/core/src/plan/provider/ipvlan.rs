//! `ipvlan`: the pod's link hangs off a link of the node and has its MAC. The mode is the parent's: another one there would
//! switch all of its ipvlans.

use super::{LinkParts, LinkRequest, ProviderPlan};
use crate::plan::{
    FactsQuery, LinkOption, ParentUse, PlanProblem, RECEIVED, Refusal, Stacked, StackedKind, Width,
};
use plexus_api::cni::{Ipvlan, IpvlanMode};

/// The kernel's side of it.
static LINK: StackedKind = StackedKind {
    name: Ipvlan::KIND.name,
    options: &[LinkOption {
        name: "mode",
        attribute: 1,
        width: Width::U16,
        word: |number| IpvlanMode::from_number(number).map(IpvlanMode::name),
        is_compared: true,
    }],
    refusal,
    parent_use: |link| ParentUse {
        resource: RECEIVED.to_owned(),
        shared_as: Some(link.to_string()),
        why: "the mode belongs to the master, all ipvlans there have the same, and nothing but them can be there",
    },
    changes_siblings: true,
};

impl ProviderPlan for Ipvlan {
    fn facts(&self) -> FactsQuery<'_> {
        FactsQuery::of_parent(self.master.as_ref())
    }

    fn link(&self, request: &LinkRequest<'_>) -> Result<LinkParts, PlanProblem> {
        let options = [("mode", Some(self.mode.number()))];
        request.stacked(self.master.as_ref(), &LINK, &options)
    }

    fn stacked_kind() -> Option<&'static StackedKind> {
        Some(&LINK)
    }

    fn keeps_parent_mac(&self) -> bool {
        true
    }

    /// Others are on the wire of l2; the other modes have no neighbours to tell.
    fn sysctls(&self) -> &'static [(&'static str, &'static str, &'static str)] {
        match self.mode {
            IpvlanMode::L2 => &[("ipv4", "arp_notify", "1"), ("ipv6", "ndisc_notify", "1")],
            IpvlanMode::L3 | IpvlanMode::L3s => &[],
        }
    }

    /// As the reference plugin.
    fn takes_ipam_dns(&self) -> bool {
        false
    }
}

fn refusal(_: &Stacked, refusal: Refusal) -> Option<String> {
    let text = match refusal {
        Refusal::Busy => "it is a bridge port, or has macvlans",
        Refusal::Invalid => "it is the loopback, or no Ethernet device",
        Refusal::Exists | Refusal::Unsupported => return None,
    };
    Some(text.to_owned())
}
