//! `HostInterface`: the NICs of a host, as its agent finds them, or as a user writes them. It has the name of the Node.

use crate::objects::Condition;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The NICs of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(
    feature = "objects",
    derive(kube::CustomResource, schemars::JsonSchema),
    kube(
        group = "net.cogadvisor.io",
        version = "v1",
        kind = "HostInterface",
        status = "HostInterfaceStatus"
    )
)]
pub struct HostInterfaceSpec {
    /// The Node.
    #[cfg_attr(feature = "objects", schemars(length(max = 253)))]
    pub host_name: String,
    /// Its NICs.
    #[serde(default)]
    #[cfg_attr(
        feature = "objects",
        schemars(
            length(max = 256),
            extend(
                "x-kubernetes-list-type" = "map",
                "x-kubernetes-list-map-keys" = ["interfaceName"]
            )
        )
    )]
    pub interfaces: Vec<HostNic>,
}

/// A NIC.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct HostNic {
    /// Its name in the kernel.
    #[cfg_attr(feature = "objects", schemars(length(min = 1, max = 15)))]
    pub interface_name: String,
    /// The subnet of its first address, IPv4 before IPv6.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::objects::text::maybe_net"
    )]
    #[cfg_attr(
        feature = "objects",
        schemars(with = "Option<String>", length(max = 43))
    )]
    pub net_address: Option<IpNet>,
    /// Its first address.
    #[serde(
        default,
        rename = "hostIP",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::objects::text::address"
    )]
    #[cfg_attr(
        feature = "objects",
        schemars(with = "Option<String>", length(max = 39))
    )]
    pub host_ip: Option<IpAddr>,
    /// All of its addresses, each with the length of its subnet's prefix: `10.0.1.1/24`.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::objects::text::nets"
    )]
    #[cfg_attr(
        feature = "objects",
        schemars(with = "Vec<String>", length(max = 64), inner(length(max = 43)))
    )]
    pub addresses: Vec<IpNet>,
    /// PCI vendor, in hexadecimal without `0x`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "objects", schemars(length(max = 64)))]
    pub vendor: String,
    /// PCI product, in hexadecimal without `0x`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "objects", schemars(length(max = 64)))]
    pub product: String,
    /// Where it is on the PCI bus: `0000:08:00.0`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "objects", schemars(length(max = 64)))]
    pub pci_address: String,
    /// Its MAC address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "objects", schemars(length(max = 64)))]
    pub mac: String,
    /// Megabits per second, where the driver knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<u32>,
    /// Its MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The NUMA node that it is on, if it is on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    /// Whether it carries packets; none: it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<NicState>,
}

impl HostNic {
    /// All of its addresses with their prefixes, also of one that has only what the original writes.
    pub fn all_addresses(&self) -> Vec<IpNet> {
        if !self.addresses.is_empty() {
            return self.addresses.clone();
        }
        let both = self.host_ip.zip(self.net_address);
        let net = both.and_then(|(ip, net)| IpNet::new(ip, net.prefix_len()).ok());
        net.into_iter().collect()
    }
}

/// Whether a NIC carries packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub enum NicState {
    /// It does.
    Up,
    /// It does not.
    Down,
}

/// What there is to say of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct HostInterfaceStatus {
    /// None yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "objects",
        schemars(extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["type"]
        ))
    )]
    pub conditions: Vec<Condition>,
}
