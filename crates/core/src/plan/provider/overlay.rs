//! `overlay`: the other end of the pod's veth is in the network's router, which the node keeps: a
//! namespace of its own, with a VXLAN to the other nodes.

use super::{LinkParts, LinkRequest, ProviderPlan, routed};
use crate::attachment::Assigned;
use crate::fabric::vtep_mac;
use crate::plan::{Facts, FactsQuery, LinkKind, NodePlan, PlanProblem, Router, Underlay};
use plexus_api::cni::{Native, Overlay};
use plexus_types::{NetworkName, RouterName};
use std::net::IpAddr;

impl ProviderPlan for Overlay {
    fn masquerades(&self) -> bool {
        self.snat
    }

    fn facts(&self) -> FactsQuery<'_> {
        FactsQuery {
            underlay: true,
            ..FactsQuery::default()
        }
    }

    fn link(&self, request: &LinkRequest<'_>) -> Result<LinkParts, PlanProblem> {
        let mut end = request.host_end(Some(mtu(request)?));
        end.router = Some(RouterName::of(&self.uid));
        end.source_check = self.source_check;
        Ok(routed::link_to(end, request))
    }

    fn is_of(kind: &LinkKind) -> bool {
        kind.host_end().is_some_and(|end| end.router.is_some())
    }

    fn add_gateways(&self, assigned: &mut Assigned) {
        routed::to_next_hop(assigned);
    }

    /// Without a router if the node does not know its own address.
    fn node_plan(
        &self,
        _network: &NetworkName,
        native: &Native,
        _assigned: &Assigned,
        facts: &Facts,
    ) -> Option<NodePlan> {
        let router = facts.underlay.as_ref().map(|underlay| Router {
            name: RouterName::of(&self.uid),
            uid: self.uid.clone(),
            vni: self.vni,
            local: underlay.address,
            mac: vtep_mac(&self.uid, &underlay.node),
            mtu: native.mtu.unwrap_or(fits(underlay)),
            subnets: self.subnets.iter().map(|(subnet, _)| *subnet).collect(),
            gateways: self.subnets.iter().map(|(_, gateway)| *gateway).collect(),
            snat: self.snat,
            source_check: self.source_check,
        });
        Some(NodePlan {
            routers: router.into_iter().collect(),
            ..NodePlan::default()
        })
    }
}

/// The MTU of a pod's link: as asked for, else what fits through the underlay.
fn mtu(request: &LinkRequest<'_>) -> Result<u32, PlanProblem> {
    let underlay = request.facts.underlay.as_ref();
    let underlay = underlay.ok_or(PlanProblem::NoUnderlay)?;
    let fits = fits(underlay);
    match request.spec.native.mtu {
        Some(mtu) if mtu > fits => Err(PlanProblem::DoesNotFit {
            mtu,
            fits,
            underlay: underlay.mtu,
        }),
        Some(mtu) => Ok(mtu),
        None => Ok(fits),
    }
}

/// What is left of the underlay's MTU beside outer Ethernet, IP, UDP and VXLAN headers.
fn fits(underlay: &Underlay) -> u32 {
    let overhead = match underlay.address {
        IpAddr::V4(_) => 50,
        IpAddr::V6(_) => 70,
    };
    underlay.mtu.saturating_sub(overhead)
}
