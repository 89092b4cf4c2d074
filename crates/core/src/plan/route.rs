//! The routes and rules of a pod's interface.
//!
//! What is on the link comes from its addresses and is not listed, except in a table of its own
//! and for `routed`, whose addresses have no link to speak of.

use super::effective::{MAIN_TABLE, effective, gateway, next_hop};
use super::{PlanProblem, RULE_PRIORITY, Route, Rule};
use crate::attachment::{Assigned, DefaultRoute, NativeSpec};
use crate::stable::hash32;
use ipnet::IpNet;
use plexus_api::cni::{BlockSubnet, Ip, RouteConf};
use plexus_types::{Family, IfName};
use std::net::IpAddr;

/// The interface's routes and, if it has a table of its own, the rules that lead there.
pub(super) fn routes(
    spec: &NativeSpec,
    assigned: &Assigned,
    default_route: DefaultRoute,
) -> Result<(Vec<Route>, Vec<Rule>), PlanProblem> {
    let routed = spec.native.provider.is_routed();
    let now = effective(&spec.native, assigned, default_route);
    let mut routes = Vec::new();
    if routed {
        check_routed(spec, assigned)?;
        to_next_hops(spec, &now, None, &mut routes);
    }
    for conf in &now.routes {
        add(&mut routes, route(conf, &now, routed)?);
    }
    if !spec.source_routing {
        return Ok((routes, Vec::new()));
    }
    let table = source_table(&spec.ifname);
    let configured = effective(&spec.native, assigned, DefaultRoute::AsConfigured);
    own_table(spec, &configured, table, routed, &mut routes)?;
    let rules = assigned.ips.iter().map(|ip| Rule {
        from: IpNet::from(ip.address.addr()),
        table,
        priority: RULE_PRIORITY,
    });
    let mut rules: Vec<Rule> = rules.collect();
    rules.dedup();
    Ok((routes, rules))
}

/// The table of an interface's own traffic: a hash of its name, in a band that people do not use.
pub fn source_table(ifname: &IfName) -> u32 {
    0x4000_0000 | (hash32(&["table", ifname.as_str()]) & 0x3fff_ffff)
}

/// Fills the interface's own table: what is on the link, what is configured, a default route.
fn own_table(
    spec: &NativeSpec,
    assigned: &Assigned,
    table: u32,
    routed: bool,
    routes: &mut Vec<Route>,
) -> Result<(), PlanProblem> {
    if routed {
        to_next_hops(spec, assigned, Some(table), routes);
    }
    let mut add = |route: Route| {
        let table = Some(table);
        add(routes, Route { table, ..route });
    };
    for ip in assigned
        .ips
        .iter()
        .filter(|ip| !routed && !is_host(&ip.address))
    {
        add(Route::new(ip.address.trunc(), None));
    }
    let mut has_default = [false, false];
    for conf in &assigned.routes {
        let route = route(conf, assigned, routed)?;
        if route.table.is_none() {
            let v6 = usize::from(Family::of(route.dst.addr()) == Family::V6);
            has_default[v6] |= route.is_default();
            add(route);
        }
    }
    for (family, has) in Family::ALL.into_iter().zip(has_default) {
        if let Some(via) = gateway(assigned, family).filter(|_| !has) {
            let default = Route::new(family.everything(), Some(via));
            add(Route {
                onlink: !on_link(assigned, via),
                ..default
            });
        }
    }
    Ok(())
}

/// `routed`: the next hop is on the link; the rest of the subnet, and the other subnets of a network
/// that nodes share, are behind it.
fn to_next_hops(
    spec: &NativeSpec,
    assigned: &Assigned,
    table: Option<u32>,
    routes: &mut Vec<Route>,
) {
    for ip in &assigned.ips {
        let family = ip.family();
        let hop = next_hop(family);
        let onlink = family == Family::V4;
        if onlink {
            let to_hop = Route::new(IpNet::from(hop), None);
            add(routes, Route { table, ..to_hop });
        }
        let shared = shared_subnets(spec).iter();
        let shared = shared.map(|subnet| subnet.cidr.trunc());
        let shared = shared.filter(|subnet| Family::of(subnet.network()) == family);
        let subnets = std::iter::once(ip.address.trunc()).chain(shared);
        for subnet in subnets.filter(|subnet| !is_host(subnet)) {
            let route = Route::new(subnet, Some(hop));
            add(
                routes,
                Route {
                    table,
                    onlink,
                    ..route
                },
            );
        }
    }
}

/// The subnets of a network that nodes share.
fn shared_subnets(spec: &NativeSpec) -> &[BlockSubnet] {
    let ipam = spec.native.block_ipam();
    ipam.map_or(&[], |ipam| &ipam.subnets)
}

/// A configured route. Without a gateway it takes the address's, and `0.0.0.0` or `::` says that
/// it has none: as the reference plugins do.
fn route(conf: &RouteConf, assigned: &Assigned, routed: bool) -> Result<Route, PlanProblem> {
    let family = Family::of(conf.dst.addr());
    let via = match conf.gw {
        _ if routed => Some(next_hop(family)),
        Some(gw) if gw.is_unspecified() => None,
        Some(gateway) if Family::of(gateway) != family => {
            let of = conf.dst;
            return Err(PlanProblem::GatewayFamily { gateway, of });
        }
        Some(gw) => Some(gw),
        None => gateway(assigned, family),
    };
    // The reference plugins leave the scope of a route without a gateway global, too.
    let global = (via.is_none() && family == Family::V4).then_some(0);
    let meant = meant(conf, via);
    Ok(Route {
        scope: meant.scope.or(global),
        // A link-local next hop of IPv6 is on the link by its nature.
        onlink: routed && family == Family::V4,
        ..meant
    })
}

/// A route that a plugin told, beside the addresses that it told: without a gateway it takes theirs.
pub fn reported_route(conf: &RouteConf, ips: &[Ip]) -> Route {
    let family = Family::of(conf.dst.addr());
    let gateways = ips.iter().filter_map(|ip| ip.gateway);
    let mut gateways = gateways.filter(|gw| Family::of(*gw) == family);
    let via = match conf.gw {
        Some(gw) => Some(gw).filter(|gw| !gw.is_unspecified()),
        None => gateways.next(),
    };
    meant(conf, via)
}

/// What a configured route means by zeros.
fn meant(conf: &RouteConf, via: Option<IpAddr>) -> Route {
    Route {
        table: conf
            .table
            .filter(|table| *table != 0 && *table != MAIN_TABLE),
        metric: conf.priority.filter(|metric| *metric > 0),
        scope: conf.scope,
        mtu: conf.mtu.filter(|mtu| *mtu > 0),
        advmss: conf.advmss.filter(|mss| *mss > 0),
        ..Route::new(conf.dst.trunc(), via)
    }
}

/// A gateway in a route of `routed` may be the next hop or the subnet's, which stands for it.
fn check_routed(spec: &NativeSpec, assigned: &Assigned) -> Result<(), PlanProblem> {
    let shared = shared_subnets(spec);
    for route in &assigned.routes {
        let family = Family::of(route.dst.addr());
        let Some(gateway) = route.gw else { continue };
        let known = gateway == next_hop(family)
            || assigned.ips.iter().any(|ip| ip.gateway == Some(gateway))
            || shared.iter().any(|subnet| subnet.gateway == Some(gateway));
        if !known || Family::of(gateway) != family {
            let dst = route.dst;
            return Err(PlanProblem::RoutedGateway { dst, gateway });
        }
    }
    Ok(())
}

fn add(routes: &mut Vec<Route>, route: Route) {
    if !routes.contains(&route) {
        routes.push(route);
    }
}

/// Whether a gateway can be reached without being told that it is on the link.
fn on_link(assigned: &Assigned, via: IpAddr) -> bool {
    let link_local = matches!(via, IpAddr::V6(v6) if v6.is_unicast_link_local());
    link_local || assigned.ips.iter().any(|ip| ip.address.contains(&via))
}

fn is_host(net: &IpNet) -> bool {
    net.prefix_len() == net.max_prefix_len()
}
