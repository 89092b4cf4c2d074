//! `routed`: the node routes to the pod's veth, and the pod sends everything there. Also what every
//! provider does whose pods have their addresses alone.

use super::{LinkParts, LinkRequest, ProviderPlan};
use crate::attachment::Assigned;
use crate::plan::effective::next_hop;
use crate::plan::node::masquerades;
use crate::plan::{
    Facts, FactsQuery, HostEnd, LinkKind, Neighbour, NodePlan, PlanProblem, Route, settings,
};
use ipnet::IpNet;
use plexus_api::cni::{Native, Routed};
use plexus_types::{Family, NetworkName};
use std::collections::BTreeSet;
use std::net::IpAddr;

impl ProviderPlan for Routed {
    fn masquerades(&self) -> bool {
        self.ip_masq
    }

    fn facts(&self) -> FactsQuery<'_> {
        FactsQuery::of_parent(None)
    }

    fn link(&self, request: &LinkRequest<'_>) -> Result<LinkParts, PlanProblem> {
        let parent = request.facts.parent.as_ref();
        let mtu = request.spec.native.mtu;
        let mut end = request.host_end(mtu.or(parent.map(|parent| parent.mtu)));
        end.source_check = self.source_check;
        Ok(link_to(end, request))
    }

    fn is_of(kind: &LinkKind) -> bool {
        kind.host_end()
            .is_some_and(|end| end.bridge.is_none() && end.router.is_none())
    }

    fn add_gateways(&self, assigned: &mut Assigned) {
        to_next_hop(assigned);
    }

    fn node_plan(
        &self,
        network: &NetworkName,
        _native: &Native,
        assigned: &Assigned,
        _facts: &Facts,
    ) -> Option<NodePlan> {
        Some(NodePlan {
            settings: settings::forwarding(assigned),
            masquerades: masquerades(self.ip_masq, &self.not_masq, network, assigned),
            ..NodePlan::default()
        })
    }
}

/// A veth whose ends know where the other one's addresses are without asking.
pub(super) fn link_to(mut end: HostEnd, request: &LinkRequest<'_>) -> LinkParts {
    let mut hops = BTreeSet::new();
    for ip in &request.assigned.ips {
        let address = ip.address.addr();
        end.routes.push(Route::new(IpNet::from(address), None));
        let neighbour = request.mac.map(|mac| Neighbour { address, mac });
        end.neighbours.extend(neighbour);
        hops.insert(next_hop(Family::of(address)));
    }
    let neighbour = |address: IpAddr| Neighbour {
        address,
        mac: end.mac,
    };
    LinkParts {
        mtu: end.mtu,
        neighbours: hops.into_iter().map(neighbour).collect(),
        kind: LinkKind::Veth(end),
    }
}

/// The gateway of every address is the next hop.
pub(super) fn to_next_hop(assigned: &mut Assigned) {
    for ip in &mut assigned.ips {
        ip.gateway = Some(next_hop(ip.family()));
    }
}
