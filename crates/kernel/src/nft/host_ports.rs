//! Ports of the node that lead to pods. Owns four maps of `inet plexus` (for any address of the
//! node and for one of them, per family), the chains that look into them, and the way back for a pod
//! that calls itself. An entry per port, no rule per pod.
//!
//! ```text
//! chain ports-in  { type nat hook prerouting priority dstnat + 5;
//!   ip daddr != 127.0.0.0/8 fib daddr type local dnat ip to ip daddr . meta l4proto . th dport map @ports4-on
//!   ip daddr != 127.0.0.0/8 fib daddr type local dnat ip to meta l4proto . th dport map @ports4 … }
//! chain ports-back { type nat hook postrouting priority srcnat - 5;
//!   ct status dnat ip saddr . ip daddr @ports4-self masquerade … }
//! ```
//!
//! They come after kube-proxy's chains, in both of its modes: a Service of the same address and
//! port wins. The loopback addresses are left alone: a port of `127.0.0.1` leads nowhere, as the
//! kernel would need `route_localnet`, by which a pod could reach what listens there.

mod elements;
mod rules;

use super::NftError;
use super::chain::{commit, differing, fill};
use crate::netlink::{Raw, Request};
use crate::{NetlinkError, NodeSide, Socket};
use elements::{Element, MAPS};
use plexus_core::fabric::VXLAN_PORT;
use plexus_core::plan::{HostPort, PodPlan, Protocol};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::PoisonError;

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
    /// nf_tables refused, or is not there.
    #[error("cannot lead ports of the node to the pod")]
    Nft(#[from] NftError),
}

/// Leads the ports of a plan to its pod. Can be repeated; a port that leads elsewhere is an error,
/// and then none is led.
pub fn add(node: &NodeSide, plan: &PodPlan) -> Result<(), HostPortError> {
    change(node, |have| {
        for port in &plan.host_ports {
            check(port)?;
            if let Some(other) = have.iter().find(|other| conflict(port, other)) {
                return Err(HostPortError::Taken {
                    port: port.port,
                    protocol: name(port.protocol),
                    taken_by: other.to,
                });
            }
        }
        let mut all = have.clone();
        all.extend(plan.host_ports.iter().map(whole));
        Ok(all)
    })
    .map(drop)
}

/// Leads the ports of a plan nowhere any more; those that lead to others are left alone.
pub fn remove(node: &NodeSide, plan: &PodPlan) -> Result<(), HostPortError> {
    let gone: BTreeSet<_> = plan.host_ports.iter().map(whole).collect();
    change(node, |have| Ok(have.difference(&gone).cloned().collect())).map(drop)
}

/// Makes the ports that lead to pods exactly these: at start, when the journal says which. Gives
/// the number of ports that were changed.
pub fn restore(node: &NodeSide, ports: &[HostPort]) -> Result<usize, HostPortError> {
    ports.iter().try_for_each(check)?;
    change(node, |_| Ok(ports.iter().map(whole).collect()))
}

/// All ports that lead to pods, in order.
pub fn list(node: &NodeSide) -> Result<Vec<HostPort>, HostPortError> {
    let found = node.inside(|| {
        let mut socket = Socket::netfilter().map_err(NftError::List)?;
        read(&mut socket)
    });
    Ok(found.map_err(NftError::from)??.into_iter().collect())
}

/// What a port is called.
fn name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Sctp => "sctp",
    }
}

type Ports = BTreeSet<HostPort>;

fn change(
    node: &NodeSide,
    decide: impl FnOnce(&Ports) -> Result<Ports, HostPortError>,
) -> Result<usize, HostPortError> {
    let _alone = node.firewall.lock().unwrap_or_else(PoisonError::into_inner);
    node.inside(|| {
        let mut socket = Socket::netfilter().map_err(NftError::List)?;
        let have = read(&mut socket)?;
        let wanted = decide(&have)?;
        let due = differing(&mut socket, &rules::chains()).map_err(NftError::List)?;
        let mut requests = Vec::new();
        if !wanted.is_empty() && !due.is_empty() {
            requests.extend(
                MAPS.iter()
                    .enumerate()
                    .map(|(id, map)| map.create(id as u32 + 1)),
            );
            let chains = rules::chains().into_iter();
            requests.extend(chains.filter(|c| due.contains(&c.name)).flat_map(fill));
        }
        let (before, after) = (elements(&have), elements(&wanted));
        requests.extend(before.difference(&after).map(Element::delete));
        requests.extend(after.difference(&before).map(Element::add));
        if !requests.is_empty() {
            send(&mut socket, requests)?;
        }
        Ok(have.symmetric_difference(&wanted).count())
    })
    .map_err(NftError::from)?
}

fn send(socket: &mut Socket, requests: Vec<Request<Raw>>) -> Result<(), NftError> {
    commit(socket, requests).map_err(NftError::Change)
}

fn read(socket: &mut Socket) -> Result<Ports, NftError> {
    let mut ports = Ports::new();
    for map in MAPS.iter().filter(|map| map.is_map()) {
        match map.list(socket) {
            Ok(found) => ports.extend(found),
            Err(error) if error.is_missing() => return Ok(ports),
            Err(error) => return Err(NftError::List(error)),
        }
    }
    Ok(ports)
}

fn elements(ports: &Ports) -> BTreeSet<Element> {
    let each = |port: &HostPort| [Element::of_port(port), Element::of_self(port.to.ip())];
    ports.iter().flat_map(each).collect()
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

impl From<NetlinkError> for HostPortError {
    fn from(error: NetlinkError) -> Self {
        HostPortError::Nft(NftError::Change(error))
    }
}
