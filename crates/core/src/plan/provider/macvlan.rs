//! `macvlan`: the pod's link hangs off a link of the node, which keeps nothing for it.

use super::{LinkParts, LinkRequest, ProviderPlan};
use crate::plan::{FactsQuery, LinkKind, Parent, ParentQuery, PlanError};
use plexus_api::cni::Macvlan;
use plexus_types::{Feature, MacvlanMode};

impl ProviderPlan for Macvlan {
    fn features(&self) -> Vec<Feature> {
        vec![Feature::Macvlan]
    }

    fn facts(&self) -> FactsQuery<'_> {
        let master = self.master.as_ref().map(ParentQuery::Named);
        FactsQuery {
            parent: master.or(Some(ParentQuery::DefaultRoute)),
            ..FactsQuery::default()
        }
    }

    fn link(&self, request: &LinkRequest<'_>) -> Result<LinkParts, PlanError> {
        let network = || request.spec.network.clone();
        let parent = request.facts.parent.as_ref();
        let parent = parent.ok_or_else(|| match &self.master {
            Some(master) => PlanError::UnknownMaster {
                network: network(),
                master: master.clone(),
            },
            None => PlanError::NoMaster { network: network() },
        })?;
        let mtu = request.spec.native.mtu;
        if let Some(mtu) = mtu.filter(|mtu| *mtu > parent.mtu) {
            let (parent, parent_mtu) = (parent.name.clone(), parent.mtu);
            return Err(PlanError::MtuTooLarge {
                network: network(),
                mtu,
                parent,
                parent_mtu,
            });
        }
        let kind = LinkKind::Macvlan {
            parent: Parent {
                name: parent.name.clone(),
                index: parent.index,
            },
            mode: self.mode,
            bcqueuelen: self.bcqueuelen.filter(|length| *length > 0),
        };
        Ok(LinkParts {
            kind,
            mtu,
            neighbours: Vec::new(),
        })
    }

    fn is_of(kind: &LinkKind) -> bool {
        matches!(kind, LinkKind::Macvlan { .. })
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
