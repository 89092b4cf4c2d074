//! `vlan`: the pod's link is one VLAN of a link of the node, whose MAC it has.

use super::{LinkParts, LinkRequest, ProviderPlan};
use crate::plan::{
    FactsQuery, LinkOption, ParentUse, PlanProblem, Refusal, Stacked, StackedKind, Width,
};
use plexus_api::cni::Vlan;

/// The kernel's side of it.
static LINK: StackedKind = StackedKind {
    name: Vlan::KIND.name,
    options: &[LinkOption {
        name: "id",
        attribute: 1,
        width: Width::U16,
        word: |_| None,
        is_compared: true,
    }],
    refusal,
    parent_use: |link| ParentUse {
        resource: link.to_string(),
        shared_as: None,
        why: "a VLAN of a link is one interface alone, in whichever namespace",
    },
    changes_siblings: false,
};

impl ProviderPlan for Vlan {
    fn facts(&self) -> FactsQuery<'_> {
        FactsQuery::of_parent(Some(&self.master))
    }

    fn link(&self, request: &LinkRequest<'_>) -> Result<LinkParts, PlanProblem> {
        let options = [("id", Some(u32::from(self.vlan_id)))];
        request.stacked(Some(&self.master), &LINK, &options)
    }

    fn stacked_kind() -> Option<&'static StackedKind> {
        Some(&LINK)
    }

    fn keeps_parent_mac(&self) -> bool {
        true
    }

    /// Others are on the wire: addresses are looked for before they are used.
    fn sysctls(&self) -> &'static [(&'static str, &'static str, &'static str)] {
        &[("ipv4", "arp_notify", "1"), ("ipv6", "ndisc_notify", "1")]
    }

    /// As the reference plugin.
    fn takes_ipam_dns(&self) -> bool {
        false
    }
}

fn refusal(link: &Stacked, refusal: Refusal) -> Option<String> {
    match refusal {
        Refusal::Exists => Some(format!(
            "it has {link} already, in whichever namespace; or the pod has an interface of that name"
        )),
        Refusal::Unsupported => Some("it carries no VLANs, as the loopback".to_owned()),
        Refusal::Busy | Refusal::Invalid => None,
    }
}
