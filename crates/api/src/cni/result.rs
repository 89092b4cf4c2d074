//! What an ADD answers, in our own words; `to_json` and `from_json` speak each wire version.

use super::RouteConf;
use ipnet::IpNet;
use plexus_types::Mac;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The result of an ADD, whatever the version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Interfaces made, on the node (no sandbox) and in the container.
    pub interfaces: Vec<Interface>,
    /// Addresses.
    pub ips: Vec<Ip>,
    /// Routes.
    pub routes: Vec<Route>,
    /// DNS.
    pub dns: Dns,
}

impl Outcome {
    /// What the plugins before us in a chain did, and then what we did.
    pub fn followed_by(mut self, ours: Outcome) -> Self {
        let offset = self.interfaces.len();
        let shifted = |ip: Ip| Ip {
            interface: ip.interface.map(|index| index + offset),
            ..ip
        };
        self.interfaces.extend(ours.interfaces);
        self.ips.extend(ours.ips.into_iter().map(shifted));
        self.routes.extend(ours.routes);
        if !ours.dns.is_empty() {
            self.dns = ours.dns;
        }
        self
    }
}

/// A route of a result: as written, the gateway only if it was.
pub type Route = RouteConf;

/// An interface of a result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its MAC. Text, since a delegate's may be of another kind.
    pub mac: Option<String>,
    /// Its MTU (1.1.0).
    pub mtu: Option<u32>,
    /// The namespace's path; none for the node.
    pub sandbox: Option<String>,
    /// Socket of a vhost-user interface (1.1.0).
    pub socket_path: Option<String>,
    /// PCI address (1.1.0).
    pub pci_id: Option<String>,
}

impl Interface {
    /// An interface with a MAC and perhaps a sandbox.
    pub fn new(name: &str, mac: Option<Mac>, mtu: Option<u32>, sandbox: Option<&str>) -> Self {
        Self {
            name: name.to_owned(),
            mac: mac.map(|mac| mac.to_string()),
            mtu,
            sandbox: sandbox.map(str::to_owned),
            ..Self::default()
        }
    }
}

/// An address of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ip {
    /// Address with prefix length.
    pub address: IpNet,
    /// Gateway.
    pub gateway: Option<IpAddr>,
    /// Which of `interfaces`.
    pub interface: Option<usize>,
}

/// `dns` of configurations and results.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Dns {
    /// Servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nameservers: Vec<String>,
    /// Local domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Search list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    /// Resolver options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

impl Dns {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
