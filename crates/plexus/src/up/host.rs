//! What `plexus up` must know of this host: its name, and which addresses are free for containers.

use anyhow::{Context, bail};
use ipnet::IpNet;
use plexus_core::plan::{ObservedRoute, PROTOCOL};
use plexus_kernel::observe::{self, What};
use plexus_kernel::{NetlinkError, NodeSide};
use std::path::Path;

/// Subnets of the network that containers get without naming one.
const SUBNETS: [&str; 2] = ["10.245.0.0/16", "fd00:245::/48"];
/// The routing table that packets are looked up in.
const MAIN: u32 = 254;

/// This host's name, as a Node can have it.
pub(crate) fn name() -> anyhow::Result<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .context("cannot read this host's name: name the node with --node")?;
    node_name(name.trim())
}

/// Refuses what the API does not take as a name.
pub(crate) fn node_name(text: &str) -> anyhow::Result<String> {
    let name = text.to_ascii_lowercase();
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |part: &str| {
        let inner = |byte: u8| plain(byte) || byte == b'-';
        let (first, last) = (part.bytes().next(), part.bytes().last());
        first.is_some_and(plain) && last.is_some_and(plain) && part.bytes().all(inner)
    };
    if name.len() > 63 || !name.split('.').all(label) {
        let shortened: String = name.chars().take(80).collect();
        bail!(
            "{shortened:?} cannot be a node's name: give one of up to 63 lower-case letters, digits, \
             \"-\" and \".\" with --node"
        );
    }
    Ok(name)
}

/// The usual subnets; those of IPv6 only where the host has it.
pub(crate) fn usual_subnets() -> Vec<IpNet> {
    let v6 = Path::new("/proc/sys/net/ipv6").exists();
    let all = SUBNETS.iter().filter_map(|text| text.parse::<IpNet>().ok());
    all.filter(|net| v6 || net.addr().is_ipv4()).collect()
}

/// Refuses subnets that this host reaches somewhere else already.
pub(crate) fn check_free(subnets: &[IpNet]) -> anyhow::Result<()> {
    let what = What {
        routes: (true, true),
        ..What::LINKS
    };
    let seen = NodeSide::current()
        .map_err(NetlinkError::from)
        .and_then(|node| node.with_socket(|socket| observe::observe(socket, what)))
        .context("cannot read this host's routes")?;
    match taken(&seen.routes, subnets) {
        None => Ok(()),
        Some((subnet, route)) => bail!(
            "containers would get addresses of {subnet}, but this host has a route to {route}: \
             choose others with --own-subnets"
        ),
    }
}

/// The first that is not free, and by what. A default route takes nothing.
fn taken(routes: &[ObservedRoute], subnets: &[IpNet]) -> Option<(IpNet, IpNet)> {
    let theirs = routes.iter().filter(|route| {
        route.protocol != PROTOCOL && route.table == MAIN && route.dst.prefix_len() > 0
    });
    let overlaps = |a: &IpNet, b: &IpNet| a.contains(b) || b.contains(a);
    theirs
        .flat_map(|route| subnets.iter().map(|subnet| (*subnet, route.dst)))
        .find(|(subnet, dst)| overlaps(subnet, dst))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_name_becomes_a_nodes() {
        assert_eq!(node_name("Web-1.Example").unwrap(), "web-1.example");
        for text in ["", "-a", "a_b", "a..b", "a b", &"a".repeat(64)] {
            let error = node_name(text).unwrap_err().to_string();
            assert!(error.contains("--node"), "{error}");
        }
    }

    #[test]
    fn only_others_routes_take_addresses() {
        let route = |dst: &str, protocol: u8, table: u32| ObservedRoute {
            link: None,
            dst: dst.parse().unwrap(),
            via: None,
            src: None,
            table,
            metric: 0,
            scope: 0,
            protocol,
        };
        let subnets = usual_subnets();
        let free = [
            route("0.0.0.0/0", 3, MAIN),
            route("192.0.2.0/24", 2, MAIN),
            route("10.245.0.64/26", PROTOCOL, MAIN),
            route("10.245.0.0/16", 3, 77),
        ];
        assert_eq!(taken(&free, &subnets), None);
        for dst in ["10.245.7.0/24", "10.0.0.0/8"] {
            let (subnet, by) = taken(&[route(dst, 3, MAIN)], &subnets).unwrap();
            assert_eq!(
                (subnet.to_string(), by.to_string()),
                (SUBNETS[0].to_owned(), dst.to_owned())
            );
        }
    }
}
