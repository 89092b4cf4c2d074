//! What networks keep on the node.

use super::effective::effective;
use super::{Bridge, Facts, Masquerade, NodePlan, settings};
use crate::attachment::{Assigned, DefaultRoute};
use crate::ipam::{every_block_subnet, every_subnet};
use ipnet::IpNet;
use plexus_api::cni::{self, Ipam, Native, Provider};
use plexus_types::{Family, NetworkName};

/// What one attachment of a network needs on the node.
///
/// With IPAM `plexus` or blocks it is what the network needs: gateways and masquerading of all its subnets,
/// whichever of them the attachment's addresses are from. So it is the same for every pod, and
/// nothing changes on the node when a subnet is full and the next one is begun.
pub fn node_plan(
    network: &NetworkName,
    native: &Native,
    assigned: &Assigned,
    facts: &Facts,
) -> NodePlan {
    let every = match &native.ipam {
        Some(Ipam::Plexus(config)) => Some(every_subnet(config)),
        Some(Ipam::Blocks(config)) => Some(every_block_subnet(config)),
        Some(Ipam::HostLocal(_) | Ipam::Static(_)) | None => None,
    };
    let every = every.map(|ips| Assigned {
        ips,
        ..Assigned::default()
    });
    let assigned = every.as_ref().unwrap_or(assigned);
    let assigned = effective(native, assigned, DefaultRoute::AsConfigured);
    match &native.provider {
        Provider::Macvlan(_) => NodePlan::default(),
        Provider::Bridge(bridge) => NodePlan {
            settings: if is_gateway(bridge) {
                settings::forwarding(&assigned)
            } else {
                Vec::new()
            },
            bridges: vec![bridge_plan(bridge, native, &assigned)],
            masquerades: masquerades(bridge.ip_masq, &[], network, &assigned),
            routers: Vec::new(),
        },
        Provider::Routed(routed) => NodePlan {
            settings: settings::forwarding(&assigned),
            bridges: Vec::new(),
            masquerades: masquerades(routed.ip_masq, &routed.not_masq, network, &assigned),
            routers: Vec::new(),
        },
        Provider::Overlay(overlay) => NodePlan {
            routers: super::overlay::router(overlay, native, facts)
                .into_iter()
                .collect(),
            ..NodePlan::default()
        },
    }
}

impl NodePlan {
    /// Adds what another attachment needs: each thing once, in order of appearance.
    pub fn merge(&mut self, other: NodePlan) {
        add_new(&mut self.settings, other.settings);
        add_new(&mut self.masquerades, other.masquerades);
        add_new(&mut self.routers, other.routers);
        for bridge in other.bridges {
            match self
                .bridges
                .iter_mut()
                .find(|mine| mine.name == bridge.name)
            {
                Some(mine) => {
                    add_new(&mut mine.addresses, bridge.addresses);
                    add_new(&mut mine.settings, bridge.settings);
                    mine.promisc |= bridge.promisc;
                    mine.force_address |= bridge.force_address;
                    mine.mtu = mine.mtu.or(bridge.mtu);
                }
                None => self.bridges.push(bridge),
            }
        }
    }
}

fn bridge_plan(bridge: &cni::Bridge, native: &Native, assigned: &Assigned) -> Bridge {
    let mut addresses = Vec::new();
    for ip in assigned.ips.iter().filter(|_| is_gateway(bridge)) {
        let family = Family::of(ip.address.addr());
        let gateway = ip.gateway.filter(|gateway| Family::of(*gateway) == family);
        let address = gateway.map(|gateway| IpNet::new(gateway, ip.address.prefix_len()));
        add_new(&mut addresses, address.into_iter().flatten().collect());
    }
    Bridge {
        name: bridge.bridge.clone(),
        mtu: native.mtu,
        promisc: bridge.promisc_mode,
        addresses,
        force_address: bridge.force_address,
        settings: settings::of_node_link(&bridge.bridge),
    }
}

fn masquerades(
    wanted: bool,
    except: &[IpNet],
    network: &NetworkName,
    assigned: &Assigned,
) -> Vec<Masquerade> {
    let mut masquerades = Vec::new();
    for ip in assigned.ips.iter().filter(|_| wanted) {
        let source = ip.address.trunc();
        add_new(
            &mut masquerades,
            vec![Masquerade {
                network: network.clone(),
                source,
                except: except.to_vec(),
            }],
        );
    }
    masquerades
}

fn is_gateway(bridge: &cni::Bridge) -> bool {
    bridge.is_gateway || bridge.is_default_gateway
}

fn add_new<T: PartialEq>(to: &mut Vec<T>, from: Vec<T>) {
    for item in from {
        if !to.contains(&item) {
            to.push(item);
        }
    }
}
