//! Ports of the node that lead to pods. Owns four maps of `inet plexus` (for any address of the
//! node and for one of them, per family), the chains that look into them, and the way back for a pod
//! that calls itself. An entry per port, no rule per pod.
//!
//! ```text
//! chain ports-guard { type filter hook prerouting priority raw;
//!   iifname != "lo" ip saddr 127.0.0.0/8 drop; the same for daddr }
//! chain ports-in  { type nat hook prerouting priority dstnat + 5;
//!   ip daddr != 127.0.0.0/8 fib daddr type local dnat ip to ip daddr . meta l4proto . th dport map @ports4-on
//!   ip daddr != 127.0.0.0/8 fib daddr type local dnat ip to meta l4proto . th dport map @ports4 … }
//! chain ports-out { type nat hook output priority dstnat + 5; the same, and of the loopback
//!   ip daddr 127.0.0.0/8 dnat ip to ip daddr . meta l4proto . th dport map @ports4-on
//!   ip daddr 127.0.0.1 dnat ip to meta l4proto . th dport map @ports4 }
//! chain ports-back { type nat hook postrouting priority srcnat - 5;
//!   ct status dnat ip saddr . ip daddr @ports4-self masquerade …
//!   ct status dnat ip saddr 127.0.0.0/8 ip daddr . ip daddr @ports4-self masquerade }
//! ```
//!
//! They come after kube-proxy's chains, in both of its modes: a Service of the same address and
//! port wins. That the node reaches its ports by 127.0.0.1 takes `route_localnet` on the link to the
//! pod, by which the pod could reach what listens there: it is set after the guard is (`loopback`). Of the
//! loopback's other addresses only one that a port names leads to a pod: others listen there, as resolvers
//! do. For `::1` the kernel has no such thing, so that it leads nowhere.

mod elements;
pub(crate) mod loopback;
mod rules;

use super::chain::{Chain, commit, differing};
use super::{NftError, Table, with_tables};
use crate::netlink::{Raw, Request};
use crate::node_side::lock;
use crate::sysctl::SysctlError;
use crate::{NetlinkError, NodeSide, Socket};
use elements::{Element, MAPS, Map};
use plexus_core::fabric::VXLAN_PORT;
use plexus_core::plan::{HostPort, PodPlan, Protocol};
use plexus_types::IfName;
pub(super) use rules::chains;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A port that cannot be led to a pod.
#[derive(Debug, thiserror::Error)]
pub enum HostPortError {
    /// Another pod has it.
    #[error(
        "host port {port}/{protocol} is taken: it leads to {taken_by} already; choose another hostPort or node"
    )]
    Taken {
        /// The port.
        port: u16,
        /// `tcp`, `udp` or `sctp`.
        protocol: &'static str,
        /// Where it leads.
        taken_by: std::net::SocketAddr,
    },
    /// The address of the node is of the other family than the pod's.
    #[error("host port {port} of {host_ip} cannot lead to {to}: both must be IPv4 or both IPv6")]
    Families {
        /// The port.
        port: u16,
        /// The node's address.
        host_ip: IpAddr,
        /// The pod's.
        to: std::net::SocketAddr,
    },
    /// The pod would get what other networks' pods say to each other.
    #[error(
        "host port {VXLAN_PORT}/udp is where overlay networks of other nodes arrive, so that it cannot lead to a pod; choose another hostPort"
    )]
    Tunnels,
    /// 127.0.0.1 cannot lead there, or cannot be kept from it.
    #[error("cannot set by which links the node reaches its ports by 127.0.0.1")]
    Loopback(#[from] SysctlError),
    /// Nor can they be seen.
    #[error("cannot list the links by which the node reaches its ports by 127.0.0.1")]
    Links(#[from] NetlinkError),
    /// nf_tables refused, or is not there.
    #[error("cannot lead ports of the node to the pod")]
    Nft(#[from] NftError),
}

/// Leads the ports of a plan to its pod. Can be repeated; a port that leads elsewhere is an error,
/// and then none is led.
pub fn add(node: &NodeSide, plan: &PodPlan) -> Result<(), HostPortError> {
    let _alone = lock(&node.firewall);
    change(node, |have| {
        for port in &plan.host_ports {
            check(port)?;
            if let Some(other) = have.keys().find(|other| conflict(port, other)) {
                return Err(HostPortError::Taken {
                    port: port.port,
                    protocol: name(port.protocol),
                    taken_by: other.to,
                });
            }
        }
        let mut all = have.clone();
        all.extend(of_plan(plan));
        Ok(all)
    })?;
    loopback::open(node, &of_plan(plan).filter_map(|(_, link)| link).collect())
}

/// Leads the ports of a plan nowhere any more; those that lead to others are left alone.
pub fn remove(node: &NodeSide, plan: &PodPlan) -> Result<(), HostPortError> {
    let _alone = lock(&node.firewall);
    let gone: BTreeSet<_> = plan.host_ports.iter().map(whole).collect();
    change(node, |have| {
        let mut rest = have.clone();
        rest.retain(|port, _| !gone.contains(port));
        Ok(rest)
    })
}

/// All ports that lead to pods, in order.
pub fn list(node: &NodeSide) -> Result<Vec<HostPort>, HostPortError> {
    let found = with_tables(node, |socket| {
        ListedMaps::read(socket, MAPS.into_iter().filter(|map| map.is_map()))
    })?;
    Ok(found.ports.into_iter().collect())
}

/// Ports, and by which link of the node each is reached from its loopback.
pub(super) type Ports = BTreeMap<HostPort, Option<IfName>>;

pub(super) fn of_plan(plan: &PodPlan) -> impl Iterator<Item = (HostPort, Option<IfName>)> {
    let ports = plan.host_ports.iter();
    ports.map(|port| (whole(port), plan.loopback_link(port).cloned()))
}

/// Makes chains and ports what is known; says what was changed. For who holds the firewall.
pub(super) fn put_back(socket: &mut Socket, known: &Table) -> Result<Vec<String>, HostPortError> {
    let Some(ports) = &known.ports else {
        return Ok(Vec::new());
    };
    ports.keys().try_for_each(check)?;
    let seen = ListedMaps::read(socket, MAPS)?;
    Ok(write(socket, &seen, ports, known.port_chains)?.0)
}

/// Makes the links by which the node's loopback leads to pods exactly those of the known ports.
pub(super) fn open_exactly(node: &NodeSide, known: &Table) -> Result<(), HostPortError> {
    let links = known.ports.iter().flat_map(Ports::values);
    let links = links.flatten().cloned().collect();
    loopback::close(node, &links)?;
    loopback::open(node, &links)
}

/// What a port is called.
fn name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Sctp => "sctp",
    }
}

/// What leads to pods is what was said last; only if nobody has said anything, what the kernel has. For who
/// holds the firewall.
fn change(
    node: &NodeSide,
    decide: impl FnOnce(&Ports) -> Result<Ports, HostPortError>,
) -> Result<(), HostPortError> {
    with_tables(node, |socket| {
        let seen = ListedMaps::read(socket, MAPS)?;
        let (said, made) = {
            let known = node.table();
            (known.ports.clone(), known.port_chains)
        };
        let unsaid = || seen.ports.iter().map(|port| (port.clone(), None)).collect();
        let wanted = decide(&said.unwrap_or_else(unsaid))?;
        let chains = made || !wanted.is_empty();
        let (_, whole) = write(socket, &seen, &wanted, chains)?;
        let mut known = node.table();
        known.port_chains |= whole;
        known.ports = Some(wanted);
        Ok(())
    })
}

/// Makes the elements what is wanted, and the chains too, if they are. Says what was changed, and whether the
/// chains are there now.
fn write(
    socket: &mut Socket,
    seen: &ListedMaps,
    wanted: &Ports,
    chains: bool,
) -> Result<(Vec<String>, bool), NftError> {
    let due = differing(socket, rules::chains())?;
    let whole = chains || due.is_empty();
    let mut requests: Vec<Request<Raw>> = Vec::new();
    if chains && !due.is_empty() {
        let maps = MAPS.iter().enumerate();
        requests.extend(maps.map(|(id, map)| map.create(id as u32 + 1)));
        requests.extend(due.into_iter().flat_map(Chain::fill));
    }
    let pods: BTreeSet<_> = wanted.keys().map(|port| port.to.ip()).collect();
    let before = elements(seen.ports.iter(), &seen.pods);
    let after = elements(wanted.keys(), &pods);
    requests.extend(before.difference(&after).map(Element::delete));
    requests.extend(after.difference(&before).map(Element::add));
    let words = requests.iter().map(|request| request.what.clone());
    let words = words.collect();
    if !requests.is_empty() {
        commit(socket, requests).map_err(NftError::Change)?;
    }
    Ok((words, whole))
}

/// What the maps and sets have, as far as they are there.
#[derive(Default)]
struct ListedMaps {
    ports: BTreeSet<HostPort>,
    /// Those that have a way back: those of the ports, unless somebody else has changed the set.
    pods: BTreeSet<IpAddr>,
}

impl ListedMaps {
    fn read(socket: &mut Socket, maps: impl IntoIterator<Item = Map>) -> Result<Self, NftError> {
        let mut seen = Self::default();
        for map in maps {
            let read = match map.is_map() {
                true => map.ports(socket).map(|ports| seen.ports.extend(ports)),
                false => map.pods(socket).map(|pods| seen.pods.extend(pods)),
            };
            match read {
                Err(error) if !error.is_missing() => return Err(NftError::List(error)),
                _ => {}
            }
        }
        Ok(seen)
    }
}

fn elements<'p>(
    ports: impl Iterator<Item = &'p HostPort>,
    pods: &BTreeSet<IpAddr>,
) -> BTreeSet<Element> {
    let ports = ports.map(Element::of_port);
    let pods = pods.iter().copied().map(Element::of_self);
    ports.chain(pods).collect()
}

/// Every address of the node is the same as none in particular.
fn whole(port: &HostPort) -> HostPort {
    HostPort {
        host_ip: port.host_ip.filter(|ip| !ip.is_unspecified()),
        ..port.clone()
    }
}

fn check(port: &HostPort) -> Result<(), HostPortError> {
    if port.port == VXLAN_PORT && port.protocol == Protocol::Udp {
        return Err(HostPortError::Tunnels);
    }
    match port.host_ip {
        Some(host_ip) if host_ip.is_ipv4() != port.to.is_ipv4() => Err(HostPortError::Families {
            port: port.port,
            host_ip,
            to: port.to,
        }),
        _ => Ok(()),
    }
}

fn conflict(one: &HostPort, other: &HostPort) -> bool {
    let (one, other) = (whole(one), whole(other));
    let same_place =
        one.host_ip.is_none() || other.host_ip.is_none() || one.host_ip == other.host_ip;
    one.protocol == other.protocol
        && one.port == other.port
        && one.to.is_ipv4() == other.to.is_ipv4()
        && same_place
        && one.to != other.to
}

/// How many ports and pods are read from an answer, in all maps and sets.
#[cfg(test)]
pub(super) fn read_elements(payload: &[u8]) -> usize {
    use super::set;
    let one = |map: Map| {
        let ports = set::elements(payload, |key, data| map.port(key, data)).count();
        ports + set::elements(payload, |key, _| map.pod(key)).count()
    };
    MAPS.into_iter().map(one).sum()
}
