//! `bridge`: the pod's veth is a port of a bridge, which the node keeps, with its gateways and
//! masquerading.

use super::{LinkParts, LinkRequest, ProviderPlan};
use crate::attachment::Assigned;
use crate::ipam::host_local::after;
use crate::plan::effective::{gateway, plain_route};
use crate::plan::node::{add_new, masquerades};
use crate::plan::{self, Facts, FactsQuery, LinkKind, NodePlan, PlanProblem, settings};
use ipnet::IpNet;
use plexus_api::cni::{Bridge, Native, RouteConf};
use plexus_types::{Family, NetworkName};

impl ProviderPlan for Bridge {
    fn masquerades(&self) -> bool {
        self.ip_masq
    }

    fn facts(&self) -> FactsQuery<'_> {
        FactsQuery {
            bridge: Some(&self.bridge),
            ..FactsQuery::default()
        }
    }

    fn link(&self, request: &LinkRequest<'_>) -> Result<LinkParts, PlanProblem> {
        if let Some(link) = &request.facts.bridge
            && link.kind != plan::Bridge::LINK_KIND
        {
            return Err(PlanProblem::NotABridge {
                bridge: self.bridge.clone(),
                kind: if link.kind.is_empty() {
                    "hardware".to_owned()
                } else {
                    link.kind.clone()
                },
            });
        }
        let mtu = request.spec.native.mtu;
        let mut end = request.host_end(mtu);
        end.bridge = Some(self.bridge.clone());
        end.hairpin = self.hairpin_mode;
        Ok(LinkParts {
            kind: LinkKind::Veth(end),
            mtu,
            neighbours: Vec::new(),
        })
    }

    fn is_of(kind: &LinkKind) -> bool {
        kind.host_end().is_some_and(|end| end.bridge.is_some())
    }

    fn add_gateways(&self, assigned: &mut Assigned) {
        if is_gateway(self) {
            for ip in &mut assigned.ips {
                // The subnet's first address after its own, as the reference plugin.
                ip.gateway = ip.gateway.or_else(|| after(ip.address.network()));
            }
        }
        if !self.is_default_gateway {
            return;
        }
        for family in Family::ALL {
            let is_default = |route: &RouteConf| {
                route.dst.prefix_len() == 0 && Family::of(route.dst.addr()) == family
            };
            if assigned.routes.iter().any(is_default) {
                continue;
            }
            if let Some(gateway) = gateway(assigned, family) {
                assigned
                    .routes
                    .push(plain_route(family.everything(), Some(gateway)));
            }
        }
    }

    fn node_plan(
        &self,
        network: &NetworkName,
        native: &Native,
        assigned: &Assigned,
        _facts: &Facts,
    ) -> Option<NodePlan> {
        let mut addresses = Vec::new();
        for ip in assigned.ips.iter().filter(|_| is_gateway(self)) {
            let family = ip.family();
            let gateway = ip.gateway.filter(|gateway| Family::of(*gateway) == family);
            let address = gateway.map(|gateway| IpNet::new(gateway, ip.address.prefix_len()));
            add_new(&mut addresses, address.into_iter().flatten().collect());
        }
        let bridge = plan::Bridge {
            name: self.bridge.clone(),
            mtu: native.mtu,
            promisc: self.promisc_mode,
            addresses,
            force_address: self.force_address,
            settings: settings::of_node_link(&self.bridge),
        };
        Some(NodePlan {
            settings: if is_gateway(self) {
                settings::forwarding(assigned)
            } else {
                Vec::new()
            },
            bridges: vec![bridge],
            masquerades: masquerades(self.ip_masq, &[], network, assigned),
            ..NodePlan::default()
        })
    }

    fn sysctls(&self) -> &'static [(&'static str, &'static str, &'static str)] {
        &[("ipv6", "accept_dad", "0"), ("ipv4", "arp_notify", "1")]
    }
}

fn is_gateway(bridge: &Bridge) -> bool {
    bridge.is_gateway || bridge.is_default_gateway
}
