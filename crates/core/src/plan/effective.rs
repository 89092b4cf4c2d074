//! What IPAM answered, completed as the provider and the choice of the default route say: what a
//! plan is built from, and what the result reports.

use super::provider;
use crate::attachment::{Assigned, DefaultRoute};
use ipnet::IpNet;
use plexus_api::cni::{Native, RouteConf};
use plexus_types::Family;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The main routing table, which a route is in unless it says otherwise.
pub(crate) const MAIN_TABLE: u32 = 254;

/// Completes what IPAM answered: gateways that the provider implies, default routes that were
/// chosen or refused. Doing it twice changes nothing.
pub fn effective(native: &Native, assigned: &Assigned, default_route: DefaultRoute) -> Assigned {
    let mut out = assigned.clone();
    provider::of(&native.provider).add_gateways(&mut out);
    for family in Family::ALL {
        match default_route.of(family) {
            None => {}
            Some(false) => out.routes.retain(|route| !is_main_default(route, family)),
            Some(true) => {
                let has = out
                    .routes
                    .iter()
                    .any(|route| is_main_default(route, family));
                if let Some(gateway) = gateway(&out, family).filter(|_| !has) {
                    out.routes
                        .push(plain_route(family.everything(), Some(gateway)));
                }
            }
        }
    }
    out
}

/// The first gateway of a family.
pub(crate) fn gateway(assigned: &Assigned, family: Family) -> Option<IpAddr> {
    assigned
        .ips
        .iter()
        .filter(|ip| ip.family() == family)
        .find_map(|ip| ip.gateway.filter(|gateway| Family::of(*gateway) == family))
}

/// Whether it is a default route of that family, in the main table.
pub(crate) fn is_main_default(route: &RouteConf, family: Family) -> bool {
    route.dst.prefix_len() == 0
        && Family::of(route.dst.addr()) == family
        && route
            .table
            .is_none_or(|table| table == 0 || table == MAIN_TABLE)
}

/// What `routed` pods send everything to: an address that nobody has, with a permanent neighbour.
pub(crate) fn next_hop(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::V4(Ipv4Addr::new(169, 254, 1, 1)),
        Family::V6 => IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)),
    }
}

/// A route with nothing but a destination and perhaps a gateway.
pub(crate) fn plain_route(dst: IpNet, gw: Option<IpAddr>) -> RouteConf {
    RouteConf {
        dst,
        gw,
        mtu: None,
        advmss: None,
        priority: None,
        table: None,
        scope: None,
    }
}
