//! The routes of an interface that is there: planned again, with the addresses that its record has.

use ipnet::IpNet;
use plexus_api::cni::{How, Ipam, Native, Network, RouteConf};
use plexus_core::attachment::{Assigned, AssignedIp, DefaultRoute, Wanted};
use plexus_core::plan::{LinkFacts, Underlay};
use plexus_core::rehearse::{Stage, link};
use plexus_types::{Family, IfName};
use std::net::IpAddr;

/// The routes and rules of an interface on a network, as `ip` writes them; none for one that plugins
/// made, and for one that would be planned otherwise today.
pub(super) fn routes(
    network: &Network,
    index: usize,
    ifname: &str,
    ips: &[IpNet],
    defaults: &[Family],
) -> Vec<String> {
    planned(network, index, ifname, ips, defaults).unwrap_or_default()
}

fn planned(
    network: &Network,
    index: usize,
    ifname: &str,
    ips: &[IpNet],
    defaults: &[Family],
) -> Option<Vec<String>> {
    let How::Native(native) = &network.how else {
        return None;
    };
    let wanted = Wanted {
        index,
        network: network.name.clone(),
        ifname: IfName::new(ifname).ok()?,
        native: native.clone(),
        source_routing: network.source_routing,
        several: true,
    };
    let default_route = DefaultRoute::Only {
        v4: defaults.contains(&Family::V4),
        v6: defaults.contains(&Family::V6),
    };
    let link = link(&wanted, &assigned(native, ips), default_route, &stage()?).ok()?;
    // The kernel makes these by itself, with the addresses.
    let by_address = link.addresses.iter().filter(|one| {
        let most = if one.net.addr().is_ipv4() { 32 } else { 128 };
        one.net.prefix_len() < most
    });
    let by_address = by_address.map(|one| format!("{} (by its address)", one.net.trunc()));
    let routes = by_address.chain(link.routes.iter().map(ToString::to_string));
    let rules = link.rules.iter().map(|rule| format!("rule: {rule}"));
    Some(routes.chain(rules).collect())
}

/// What IPAM answered once, from what is known of it now.
fn assigned(native: &Native, ips: &[IpNet]) -> Assigned {
    let (gateways, routes): (Vec<(IpNet, IpAddr)>, Vec<RouteConf>) = match &native.ipam {
        Some(Ipam::Blocks(ipam)) => (
            ipam.subnets.iter().map(|s| (s.cidr, s.gateway)).collect(),
            ipam.routes.clone(),
        ),
        Some(Ipam::HostLocal(ipam)) => {
            let ranges = ipam.ranges.iter().flatten();
            let gateways = ranges.map(|range| (range.subnet, range.gateway)).collect();
            (gateways, ipam.routes.clone())
        }
        Some(Ipam::Plexus(ipam)) => {
            let each = ipam.subnets.iter().filter_map(|subnet| {
                let gateway = ipam.gateway.iter().find(|gw| subnet.contains(*gw))?;
                Some((*subnet, *gateway))
            });
            (each.collect(), ipam.routes.clone())
        }
        Some(Ipam::Static(ipam)) => {
            let each = ipam.addresses.iter();
            let each = each.filter_map(|one| Some((one.address.trunc(), one.gateway?)));
            (each.collect(), ipam.routes.clone())
        }
        None => Default::default(),
    };
    let ips = ips.iter().map(|address| AssignedIp {
        address: *address,
        gateway: gateways
            .iter()
            .find(|(subnet, _)| subnet.contains(&address.addr()))
            .map(|(_, gateway)| *gateway),
    });
    Assigned {
        ips: ips.collect(),
        routes,
        ..Assigned::default()
    }
}

/// Links and MTUs do not matter to routes.
fn stage() -> Option<Stage> {
    Some(Stage {
        underlay: Underlay {
            node: String::new(),
            address: IpAddr::from([192, 0, 2, 1]),
            mtu: 1500,
        },
        uplink: LinkFacts {
            name: IfName::new("eth0").ok()?,
            index: 1,
            mtu: 65535,
            kind: String::new(),
        },
    })
}
