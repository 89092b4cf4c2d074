//! Telling neighbours where an address lives now: gratuitous ARP and unsolicited neighbour
//! advertisements. Owns the frames; never fails an ADD: what could not be sent is reported.
//!
//! A macvlan's addresses are announced from inside the pod: IPv4 by the kernel (`arp_notify` is
//! set and the link goes up after its addresses), IPv6 by a raw ICMPv6 socket, unless
//! `ndisc_notify` has the kernel do that too. A bridge port may not forward yet when its pod's end
//! goes up (its state follows the carrier by way of a work queue), so that such an announcement
//! can be lost: it is made by the bridge itself, to all its ports.
//! A packet socket serves for that, one per node that is never closed: closing one waits for an
//! RCU grace period, which takes longer than the whole ADD.

use crate::effect::effect;
use crate::netlink::Request;
use crate::{NodeSide, Socket, echo, neighbour, sys};
use plexus_core::plan::Link;
use plexus_types::Mac;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrV6, SocketFlags, SocketType, ipproto, sockopt,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

/// Announces the IPv6 addresses of the stacked links among `links` from the calling thread's namespace,
/// where they have these `indices`. Gives what did not work.
pub(crate) fn advertise(links: &[Link], indices: &[u32]) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut socket = None;
    for (link, index) in links.iter().zip(indices) {
        let stacked = link.kind.stacked().is_some();
        let (true, Some(mac), false) = (stacked, link.mac, kernel_advertises(link)) else {
            continue;
        };
        for address in link.addresses.iter().map(|a| a.net.addr()) {
            let IpAddr::V6(address) = address else {
                continue;
            };
            let sent = open_icmpv6(&mut socket).and_then(|s| send_na(s, *index, address, mac));
            let failed = |e| format!("could not announce {address} on {}: {e}", link.name);
            warnings.extend(sent.err().map(failed));
        }
    }
    warnings
}

/// Announces addresses to everything behind a bridge of the node, and to the node itself.
pub(crate) fn on_bridge(
    node: &NodeSide,
    on_node: &mut Socket,
    bridge: u32,
    mac: Mac,
    addresses: impl Iterator<Item = IpAddr>,
) -> io::Result<()> {
    let socket = packet_socket(node)?;
    let mut known = Vec::new();
    for address in addresses {
        let frame = match address {
            IpAddr::V4(v4) => gratuitous_arp(v4, mac).to_vec(),
            IpAddr::V6(v6) => advertisement_frame(v6, mac),
        };
        sys::send_frame(socket, bridge, &frame)?;
        known.push(neighbour::correct(bridge, address, mac));
    }
    correct_own(on_node, &known)
}

/// The node does not hear what its own bridge sends: an entry that it has is put right directly.
fn correct_own(on_node: &mut Socket, known: &[Request]) -> io::Result<()> {
    let refused = on_node
        .batch_all(effect!("netlink.announce"), known)
        .map_err(io::Error::other)?;
    // No such entry is the normal case.
    match refused.into_iter().find(|r| r.errno != libc::ENOENT) {
        Some(refused) => Err(io::Error::from_raw_os_error(refused.errno)),
        None => Ok(()),
    }
}

fn kernel_advertises(link: &Link) -> bool {
    let mut settings = link.settings.iter();
    settings.any(|s| s.key.ends_with("/ndisc_notify") && s.value == "1")
}

fn open_icmpv6(socket: &mut Option<OwnedFd>) -> io::Result<&OwnedFd> {
    if socket.is_none() {
        let (family, kind) = (AddressFamily::INET6, SocketType::RAW);
        let opened =
            rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, Some(ipproto::ICMPV6))?;
        sockopt::set_ipv6_multicast_hops(&opened, 255)?;
        sockopt::set_ipv6_multicast_loop(&opened, false)?;
        *socket = Some(opened);
    }
    socket.as_ref().ok_or_else(|| io::Error::other("no socket"))
}

fn send_na(socket: &OwnedFd, index: u32, address: Ipv6Addr, mac: Mac) -> io::Result<()> {
    rustix::net::bind(socket, &SocketAddrV6::new(address, 0, 0, index))?;
    let to = SocketAddrV6::new(ALL_NODES, 0, 0, index);
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::sendto(socket, &advertisement(address, mac), flags, &to)?;
    Ok(())
}

fn packet_socket(node: &NodeSide) -> io::Result<&OwnedFd> {
    if let Some(socket) = node.packets.get() {
        return Ok(socket);
    }
    // Protocol 0: it receives nothing.
    let (family, kind) = (AddressFamily::PACKET, SocketType::RAW);
    let open = || rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None);
    let opened = node.inside(open).map_err(io::Error::other)??;
    Ok(node.packets.get_or_init(|| opened))
}

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// An ARP request for oneself.
fn gratuitous_arp(address: Ipv4Addr, mac: Mac) -> [u8; 42] {
    let mut frame = [0; 42];
    let (mac, ip) = (mac.bytes(), address.octets());
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&mac);
    frame[12..22].copy_from_slice(&[0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
    frame[22..28].copy_from_slice(&mac);
    frame[28..32].copy_from_slice(&ip);
    frame[38..42].copy_from_slice(&ip);
    frame
}

/// An unsolicited neighbour advertisement with the override flag: the ICMPv6 part, no checksum.
fn advertisement(address: Ipv6Addr, mac: Mac) -> [u8; 32] {
    let mut body = [0; 32];
    body[0] = 136;
    body[4] = 0x20;
    body[8..24].copy_from_slice(&address.octets());
    body[24..26].copy_from_slice(&[2, 1]);
    body[26..32].copy_from_slice(&mac.bytes());
    body
}

fn advertisement_frame(address: Ipv6Addr, mac: Mac) -> Vec<u8> {
    let mut body = advertisement(address, mac);
    let sum = checksum(address, ALL_NODES, &body);
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = vec![0x33, 0x33, 0, 0, 0, 1];
    frame.extend(mac.bytes());
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, body.len() as u8, 58, 255]);
    frame.extend(address.octets());
    frame.extend(ALL_NODES.octets());
    frame.extend(body);
    frame
}

fn checksum(from: Ipv6Addr, to: Ipv6Addr, body: &[u8; 32]) -> u16 {
    let lengths = [0, 0, 0, body.len() as u8, 0, 0, 0, 58];
    echo::checksum(&[&from.octets()[..], &to.octets(), &lengths, body].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correct_checksum_sums_to_zero() {
        let address: Ipv6Addr = "fd00::1:9".parse().unwrap();
        let mac: Mac = "02:00:5e:10:00:01".parse().unwrap();
        let frame = advertisement_frame(address, mac);
        let body: [u8; 32] = frame[54..].try_into().unwrap();
        assert_eq!(checksum(address, ALL_NODES, &body), 0);
    }
}
