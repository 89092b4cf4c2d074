//! Addresses: what the pools say is in use is in use, in the journal, the blocks in the API and
//! host-local's directories; none twice; and nothing belongs to a Node that is gone.

use super::observed::{Attachment, ClusterState, Node, string};
use ipnet::IpNet;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub(super) fn compare(
    state: &ClusterState,
    name: &str,
    node: &Node,
    report: &mut dyn FnMut(String),
) {
    blocks(state, name, node, report);
    for (network, subnet, used) in &node.pools {
        let all = node.pools.iter().filter(|(other, _, _)| other == network);
        let all: Vec<&str> = all.map(|(_, subnet, _)| subnet.as_str()).collect();
        let held = held(node, |one| one.network == *network, subnet, &all);
        if held.len() as u64 != *used {
            report(format!(
                "pool {subnet} of {network} counts {used}, the journal has {held:?}"
            ));
        }
    }
    for lease in &node.leases {
        let known = node
            .journal
            .iter()
            .any(|one| one.container == lease.container && one.ips.contains(&lease.address));
        if !known {
            report(format!(
                "host-local's {} of {} is held for {}, which has it not",
                lease.address, lease.network, lease.container
            ));
        }
    }
}

/// What only the whole cluster can tell.
pub(super) fn compare_all(state: &ClusterState, report: &mut dyn FnMut(String)) {
    // host-local's ranges are each node's own.
    let shared = divided(state);
    let shared = |one: &&Attachment| shared.contains(&one.uuid) || one.uuid == "cluster-default";
    let mut owners: BTreeMap<(&str, IpAddr), Vec<String>> = BTreeMap::new();
    for (name, node) in &state.nodes {
        for one in node.journal.iter().filter(shared) {
            for ip in &one.ips {
                let owner = format!("{} {} on {name}", one.pod, one.interface);
                owners.entry((&one.uuid, *ip)).or_default().push(owner);
            }
        }
    }
    for ((_, ip), all) in owners.iter().filter(|(_, all)| all.len() > 1) {
        report(format!(
            "{ip} is given out {} times: {}",
            all.len(),
            all.join(", ")
        ));
    }
    let uids: BTreeMap<String, String> = state
        .api_nodes
        .iter()
        .map(|node| {
            (
                string(&node["metadata"]["name"]),
                string(&node["metadata"]["uid"]),
            )
        })
        .collect();
    for block in &state.blocks {
        let spec = &block["spec"];
        if uids.get(&string(&spec["node"])) != Some(&string(&spec["nodeUID"])) {
            report(format!(
                "block {} is of Node {}, which is gone",
                spec["cidr"], spec["node"]
            ));
        }
    }
    for record in &state.records {
        let spec = &record["spec"];
        if !uids.contains_key(&string(&spec["node"])) {
            report(format!(
                "record of pod {} is of Node {}, which is gone",
                spec["pod"], spec["node"]
            ));
        }
    }
    usage(state, report);
}

/// What networks say of themselves.
fn usage(state: &ClusterState, report: &mut dyn FnMut(String)) {
    for network in &state.networks {
        let uid = &network["metadata"]["uid"];
        let blocks: Vec<&Value> = state
            .blocks
            .iter()
            .filter(|block| block["spec"]["network"]["uid"] == *uid)
            .collect();
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        // Addresses are those of the family with the fewest left: IPv4, where a network has it.
        let mut subnets = network["spec"]["subnets"].as_object().into_iter().flatten();
        let has_v4 = subnets.any(|(_, subnet)| is_v4(subnet));
        let counted = blocks.iter().filter(|one| is_v4(&one["spec"]) == has_v4);
        let sum: u64 = counted.map(|one| number(&one["status"]["allocated"])).sum();
        let reported = &network["status"]["usage"];
        let whole = whole(&blocks);
        if number(&reported["blocks"]) != whole || number(&reported["allocated"]) != sum {
            report(format!(
                "network {} says {reported}, but it has {whole} blocks with {sum} addresses in use",
                network["metadata"]["name"],
            ));
        }
    }
}

/// Of a subnet, or of a block.
fn is_v4(one: &Value) -> bool {
    !string(&one["cidr"]).contains(':')
}

/// How many blocks there are that are no parts of others.
fn whole(blocks: &[&Value]) -> u64 {
    let cidrs = blocks.iter().map(|block| string(&block["spec"]["cidr"]));
    let cidrs: Vec<IpNet> = cidrs.filter_map(|cidr| cidr.parse().ok()).collect();
    let is_part = |one: &IpNet| {
        cidrs
            .iter()
            .any(|other| other != one && other.contains(one))
    };
    cidrs.iter().filter(|one| !is_part(one)).count() as u64
}

fn blocks(state: &ClusterState, name: &str, node: &Node, report: &mut dyn FnMut(String)) {
    let mut covered: BTreeMap<String, BTreeSet<IpAddr>> = BTreeMap::new();
    let own = state
        .blocks
        .iter()
        .filter(|block| block["spec"]["node"] == name);
    let own: Vec<(String, String, &Value)> = own
        .map(|block| {
            let spec = &block["spec"];
            (
                string(&spec["network"]["uid"]),
                string(&spec["cidr"]),
                block,
            )
        })
        .collect();
    for (uid, cidr, block) in &own {
        let all = own.iter().filter(|(other, _, _)| other == uid);
        let all: Vec<&str> = all.map(|(_, cidr, _)| cidr.as_str()).collect();
        let held = held(node, |one| one.uuid == *uid, cidr, &all);
        let reported = block["status"]["allocated"].as_u64().unwrap_or_default();
        if reported != held.len() as u64 {
            report(format!(
                "block {cidr} of {} says {reported} in use, the journal has {held:?}",
                block["spec"]["network"]["name"]
            ));
        }
        covered.entry(uid.clone()).or_default().extend(held);
    }
    let divided = divided(state);
    for one in node
        .journal
        .iter()
        .filter(|one| divided.contains(&one.uuid))
    {
        for ip in &one.ips {
            if !covered.get(&one.uuid).is_some_and(|all| all.contains(ip)) {
                report(format!(
                    "{ip} of {} {} is in no block of this node",
                    one.pod, one.interface
                ));
            }
        }
    }
}

/// The networks that are divided into blocks, by UID.
fn divided(state: &ClusterState) -> BTreeSet<String> {
    let blocks = state.blocks.iter();
    blocks
        .map(|block| string(&block["spec"]["network"]["uid"]))
        .collect()
}

/// Addresses of a subnet in the journal; each counts to the smallest of `all` that has it.
fn held(
    node: &Node,
    which: impl Fn(&Attachment) -> bool,
    subnet: &str,
    all: &[&str],
) -> BTreeSet<IpAddr> {
    let Ok(subnet) = subnet.parse::<IpNet>() else {
        return BTreeSet::new();
    };
    let inside = all.iter().filter_map(|other| other.parse::<IpNet>().ok());
    let inside = inside.filter(|other| *other != subnet && subnet.contains(other));
    let inside: Vec<IpNet> = inside.collect();
    let of_it = node.journal.iter().filter(|one| which(one));
    let ips = of_it.flat_map(|one| one.ips.iter().copied());
    ips.filter(|ip| subnet.contains(ip) && !inside.iter().any(|part| part.contains(ip)))
        .collect()
}
