//! `macvlan`: the pod's link hangs off a link of the node, which keeps nothing for it.

use super::{LinkParts, LinkRequest, ProviderPlan};
use crate::plan::{
    FactsQuery, LinkOption, ParentUse, PlanProblem, RECEIVED, Refusal, Stacked, StackedKind, Width,
};
use plexus_api::cni::Macvlan;
use plexus_types::MacvlanMode;

/// The kernel's side of it.
static LINK: StackedKind = StackedKind {
    name: Macvlan::KIND.name,
    options: &[
        LinkOption {
            name: "mode",
            attribute: 1,
            width: Width::U32,
            word: |number| MacvlanMode::from_number(number).map(MacvlanMode::name),
            is_compared: true,
        },
        LinkOption {
            name: "bcqueuelen",
            attribute: 7,
            width: Width::U32,
            word: |_| None,
            is_compared: false,
        },
    ],
    refusal,
    parent_use: |_| ParentUse {
        resource: RECEIVED.to_owned(),
        shared_as: Some(Macvlan::KIND.name.to_owned()),
        why: "the kernel hands what a link receives to macvlans or to links of another kind, not to both",
    },
    changes_siblings: false,
};

impl ProviderPlan for Macvlan {
    fn facts(&self) -> FactsQuery<'_> {
        FactsQuery::of_parent(self.master.as_ref())
    }

    fn link(&self, request: &LinkRequest<'_>) -> Result<LinkParts, PlanProblem> {
        let options = [
            ("mode", Some(self.mode.number())),
            ("bcqueuelen", self.bcqueuelen.filter(|length| *length > 0)),
        ];
        request.stacked(self.master.as_ref(), &LINK, &options)
    }

    fn stacked_kind() -> Option<&'static StackedKind> {
        Some(&LINK)
    }

    fn keeps_parent_mac(&self) -> bool {
        self.mode == MacvlanMode::Passthru
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
    let passthru = MacvlanMode::Passthru.number();
    let text = match refusal {
        Refusal::Busy => "it is a bridge port, or has ipvlans, or is the loopback",
        Refusal::Invalid if link.options.get("mode") == Some(&passthru) => {
            "it carries macvlans already, and passthru wants it alone"
        }
        Refusal::Invalid => "a passthru macvlan has taken it, or the MTU is larger than its own",
        Refusal::Exists | Refusal::Unsupported => return None,
    };
    Some(text.to_owned())
}
