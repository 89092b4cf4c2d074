//! The underlay's addresses. Those of `eth0` are the same in every lab: labs are apart from each other and from the
//! machine. Of the other NICs they are those of a lab without a topology.
//!
//! ```text
//!   NIC k of node i:  10.200.k.i/24   fd00:200:k::i/64       the fabric, on NIC 0's network: .254, ::fe
//! ```

use crate::name::NodeName;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// At most this many NICs besides `eth0`.
pub(crate) const MAX_NICS: u8 = 8;
/// Where the server is reached from inside the lab.
pub(crate) const API_PORT: u16 = 6443;
/// The fabric's own part of an address.
const FABRIC: u8 = 254;

/// The default subnets of the default network.
pub(crate) const POD_SUBNETS: [&str; 2] = ["10.244.0.0/16", "fd00:244::/56"];
/// An address outside of the cluster that knows the nodes and nobody else: a pod is answered if it comes
/// under its node's address.
pub(crate) const OUTSIDE: [&str; 2] = ["203.0.113.1", "2001:db8:113::1"];

/// The addresses of a node on its `eth0`.
pub(crate) fn of_node(node: NodeName) -> [IpNet; 2] {
    numbered(0, node.number())
}

/// The fabric's addresses on the network of `eth0`: the nodes' gateway, and where the server is.
pub(crate) fn of_fabric() -> [IpNet; 2] {
    numbered(0, FABRIC)
}

/// The networks of a NIC of a lab without a topology.
pub(crate) fn networks(nic: u8) -> [IpNet; 2] {
    numbered(nic, 0)
}

/// Where the server is reached from inside the lab.
pub(crate) fn api_server() -> SocketAddr {
    SocketAddr::new(of_fabric()[0].addr(), API_PORT)
}

/// The addresses outside, as the fabric has them.
pub(crate) fn outside() -> Vec<IpNet> {
    let parsed = OUTSIDE.iter().filter_map(|text| text.parse().ok());
    parsed.map(|address: IpAddr| IpNet::from(address)).collect()
}

/// What every lab has and a NIC's subnet would hide, and what it is.
pub(crate) fn reserved(subnet: IpNet) -> Option<(IpNet, &'static str)> {
    let uplink = networks(0).map(|net| (net, "the network of eth0"));
    let outside = outside().into_iter();
    let outside = outside.map(|net| (net, "which is outside of the cluster"));
    let mut all = uplink.into_iter().chain(outside);
    all.find(|(net, _)| overlap(*net, subnet))
}

/// Whether two subnets have an address in common.
pub(crate) fn overlap(one: IpNet, other: IpNet) -> bool {
    one.contains(&other) || other.contains(&one)
}

fn numbered(nic: u8, host: u8) -> [IpNet; 2] {
    let v4 = Ipv4Addr::new(10, 200, nic, host);
    let v6 = Ipv6Addr::new(0xfd00, 0x200, nic.into(), 0, 0, 0, 0, host.into());
    [prefixed(v4.into(), 24), prefixed(v6.into(), 64)]
}

fn prefixed(address: IpAddr, length: u8) -> IpNet {
    // The lengths above are legal; an address alone would be the fallback.
    IpNet::new(address, length).unwrap_or_else(|_| IpNet::from(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uplink_is_the_same_in_every_lab() {
        let node: NodeName = "n10".parse().unwrap();
        let text = of_node(node).map(|net| net.to_string());
        assert_eq!(text, ["10.200.0.10/24", "fd00:200::a/64"]);
        let second = networks(2).map(|net| net.to_string());
        assert_eq!(second, ["10.200.2.0/24", "fd00:200:2::/64"]);
        assert_eq!(api_server().to_string(), "10.200.0.254:6443");
        assert_eq!(outside().len(), 2);
    }
}
