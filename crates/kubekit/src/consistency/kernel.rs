//! The node's side: every host end has its pod and the routes of that pod's addresses, and no other;
//! every block of another node has its route or its tunnel, and nothing leads anywhere else.

use super::observed::{ClusterState, Link, NetnsState, Node, list, string};
use ipnet::IpNet;
use plexus_types::RouterName;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub(super) fn compare(
    state: &ClusterState,
    name: &str,
    node: &Node,
    report: &mut dyn FnMut(String),
) {
    let mut pods = inner_ends(node);
    ends(&node.here, "the node", &mut pods, report);
    for (router, space) in &node.routers {
        ends(space, router, &mut pods, report);
    }
    uplinks(node, report);
    ports(node, report);
    remote_blocks(state, name, node, report);
}

/// Addresses of the pods' ends of veths, by (own index, index of the other end).
fn inner_ends(node: &Node) -> BTreeMap<(u64, u64), Vec<BTreeSet<IpAddr>>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let running: BTreeSet<&String> = node.sandboxes.values().map(|one| &one.space).collect();
    let spaces = node
        .spaces
        .iter()
        .filter(|(name, _)| running.contains(name));
    for link in spaces.flat_map(|(_, links)| links) {
        if let Some(peer) = link.peer {
            found
                .entry((link.index, peer))
                .or_default()
                .push(link.ips.clone());
        }
    }
    found
}

fn ends(
    space: &NetnsState,
    location: &str,
    pods: &mut BTreeMap<(u64, u64), Vec<BTreeSet<IpAddr>>>,
    report: &mut dyn FnMut(String),
) {
    for link in space.links.iter().filter(|link| is_host_end(link)) {
        let key = (link.peer.unwrap_or_default(), link.index);
        let routed: BTreeSet<IpAddr> = space
            .routes
            .iter()
            .filter(|route| route.device == link.name)
            .filter_map(|route| route.to.parse().ok())
            .collect();
        let candidates = pods.entry(key).or_default();
        // Ends in different namespaces may have the same pair of numbers: the routes tell.
        let same = candidates.iter().position(|ips| *ips == routed);
        match same.or((!candidates.is_empty()).then_some(0)) {
            None => report(format!("{} in {location} leads to no pod", link.name)),
            Some(at) => {
                let ips = candidates.swap_remove(at);
                if ips != routed && !link.has_master {
                    report(format!(
                        "{} in {location} has routes {routed:?}, its pod has {ips:?}",
                        link.name
                    ));
                }
            }
        }
    }
    let links: BTreeSet<&String> = space.links.iter().map(|link| &link.name).collect();
    for route in space.routes.iter().filter(|route| !route.device.is_empty()) {
        if !links.contains(&route.device) {
            report(format!(
                "route {} in {location} is by {}, which is gone",
                route.to, route.device
            ));
        }
    }
}

/// Ports of the node lead to pods that are there.
fn ports(node: &Node, report: &mut dyn FnMut(String)) {
    let here = node.journal.iter().flat_map(|one| &one.ips);
    let here: BTreeSet<&IpAddr> = here.collect();
    for (port, address) in &node.ports {
        if !here.contains(address) {
            report(format!("port {port} leads to {address}, which no pod has"));
        }
    }
}

/// Between node and router.
fn uplinks(node: &Node, report: &mut dyn FnMut(String)) {
    let inside = node.routers.values().flat_map(|space| &space.links);
    let inside: BTreeSet<(u64, u64)> = inside
        .filter(|link| link.name == "uplink")
        .filter_map(|link| Some((link.peer?, link.index)))
        .collect();
    let outside = node
        .here
        .links
        .iter()
        .filter(|link| link.name.starts_with("pxr"));
    let outside: BTreeSet<(u64, u64)> = outside
        .filter_map(|link| Some((link.index, link.peer?)))
        .collect();
    if inside != outside {
        report(format!(
            "uplinks of routers {inside:?} are not those of the node {outside:?}"
        ));
    }
}

fn remote_blocks(state: &ClusterState, name: &str, node: &Node, report: &mut dyn FnMut(String)) {
    let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let others = state
        .blocks
        .iter()
        .filter(|block| block["spec"]["node"] != name);
    for block in others {
        let uid = string(&block["spec"]["network"]["uid"]);
        let network = state
            .networks
            .iter()
            .find(|one| one["metadata"]["uid"] == uid.as_str());
        let Some(network) = network else { continue };
        let location = match network["spec"]["provider"].as_str() {
            Some("routed") => String::new(),
            Some("overlay") | None => RouterName::of(&uid).to_string(),
            Some(_) => continue,
        };
        expected
            .entry(location)
            .or_default()
            .insert(string(&block["spec"]["cidr"]));
    }
    let nodes = state.api_nodes.iter();
    for other in nodes.filter(|other| other["metadata"]["name"] != name) {
        let cidrs = list(&other["spec"]["podCIDRs"])
            .iter()
            .filter_map(Value::as_str);
        expected
            .entry(String::new())
            .or_default()
            .extend(cidrs.map(str::to_owned));
    }
    let empty = BTreeSet::new();
    let mut locations = vec![(String::new(), &node.here)];
    locations.extend(
        node.routers
            .iter()
            .map(|(name, space)| (name.clone(), space)),
    );
    for (location, space) in locations {
        let routes = space.routes.iter();
        let has: BTreeSet<String> = routes
            .filter(|route| !route.unreachable && route.via.is_some() && route.to != "default")
            .map(|route| prefix(&route.to))
            .collect();
        let expected = expected.get(&location).unwrap_or(&empty);
        if has != *expected {
            let location = if location.is_empty() {
                "the node"
            } else {
                &location
            };
            report(format!(
                "{location} has routes to the blocks {has:?}, others have {expected:?}"
            ));
        }
    }
}

/// A part of a block may be one address, which `ip` writes without its length.
fn prefix(to: &str) -> String {
    match to.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address).to_string(),
        Err(_) => to.to_owned(),
    }
}

fn is_host_end(link: &Link) -> bool {
    link.name.starts_with("px") && !link.name.starts_with("pxr")
}
