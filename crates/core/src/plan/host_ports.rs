//! Ports of the node that lead to a pod: what the runtime asks for, against the addresses that the
//! pod's first interface got.

use super::{HostPort, Link, PodPlan};
use crate::attachment::AssignedIp;
use plexus_api::cni::PortMapping;
use plexus_types::{Family, IfName};
use std::net::{IpAddr, SocketAddr};

/// One per mapping and address of a fitting family, sorted, each once. An unspecified address of
/// the node (`0.0.0.0`, `::`) means every one of its family.
pub fn host_ports(mappings: &[PortMapping], ips: &[AssignedIp]) -> Vec<HostPort> {
    let mut ports: Vec<HostPort> = mappings
        .iter()
        .flat_map(|mapping| {
            let fits = |ip: &IpAddr| {
                let family = Family::of(*ip);
                mapping
                    .host_ip
                    .is_none_or(|host| Family::of(host) == family)
            };
            let addresses = ips.iter().map(|ip| ip.address.addr());
            addresses.filter(fits).map(|address| HostPort {
                protocol: mapping.protocol,
                host_ip: mapping.host_ip.filter(|host| !host.is_unspecified()),
                port: mapping.host_port,
                to: SocketAddr::new(address, mapping.container_port),
            })
        })
        .collect();
    ports.sort();
    ports.dedup();
    ports
}

impl PodPlan {
    /// The node's link by which its 127.0.0.1 leads to the pod through that port; none if it does not.
    pub fn loopback_link(&self, port: &HostPort) -> Option<&IfName> {
        let host_ip = port.host_ip.filter(|ip| !ip.is_unspecified());
        let by_loopback = port.to.is_ipv4() && host_ip.is_none_or(|ip| ip.is_loopback());
        let has = |link: &&Link| link.addresses.iter().any(|a| a.net.addr() == port.to.ip());
        let link = self.links.iter().filter(|_| by_loopback).find(has)?;
        let end = link.kind.host_end().filter(|end| end.router.is_none())?;
        Some(end.bridge.as_ref().unwrap_or(&end.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_api::cni;

    fn mapping(host_ip: Option<&str>, host_port: u16, protocol: cni::Protocol) -> PortMapping {
        PortMapping {
            host_port,
            container_port: 80,
            protocol,
            host_ip: host_ip.map(|ip| ip.parse().unwrap()),
        }
    }

    fn both() -> Vec<AssignedIp> {
        let each = ["10.244.1.5/24", "fd00:244:1::5/64"].iter();
        each.map(|address| AssignedIp {
            address: address.parse().unwrap(),
            gateway: None,
        })
        .collect()
    }

    fn text(ports: &[HostPort]) -> Vec<String> {
        let each = ports.iter();
        each.map(|port| {
            format!(
                "{:?} {:?}:{} {}",
                port.protocol, port.host_ip, port.port, port.to
            )
        })
        .collect()
    }

    #[test]
    fn each_mapping_leads_to_each_address_of_its_family() {
        let mappings = [
            mapping(None, 8080, cni::Protocol::Tcp),
            mapping(Some("192.0.2.1"), 53, cni::Protocol::Udp),
            mapping(Some("::"), 9, cni::Protocol::Sctp),
            mapping(None, 8080, cni::Protocol::Tcp),
        ];
        assert_eq!(
            text(&host_ports(&mappings, &both())),
            [
                "Tcp None:8080 10.244.1.5:80",
                "Tcp None:8080 [fd00:244:1::5]:80",
                "Udp Some(192.0.2.1):53 10.244.1.5:80",
                "Sctp None:9 [fd00:244:1::5]:80",
            ]
        );
    }

    #[test]
    fn a_pod_without_addresses_has_none() {
        let mappings = [mapping(None, 8080, cni::Protocol::Tcp)];
        assert_eq!(host_ports(&mappings, &[]), []);
        let mappings = [mapping(Some("2001:db8::1"), 8080, cni::Protocol::Tcp)];
        assert_eq!(host_ports(&mappings, &both()[..1]), []);
    }
}
