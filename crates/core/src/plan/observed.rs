//! What a kernel has, as `kernel` reports it: the other side of the comparison with a plan.

use super::Hardware;
use ipnet::IpNet;
use plexus_types::{IfName, Mac};
use std::net::IpAddr;

/// The objects of one network namespace (or those of it that were asked for).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observed {
    /// Links, by index.
    pub links: Vec<ObservedLink>,
    /// Addresses of all links.
    pub addresses: Vec<ObservedAddress>,
    /// Unicast routes of all tables but `local`.
    pub routes: Vec<ObservedRoute>,
    /// Rules that have a source prefix.
    pub rules: Vec<ObservedRule>,
    /// Permanent neighbours.
    pub neighbours: Vec<ObservedNeighbour>,
}

impl Observed {
    /// The link of that name.
    pub fn link(&self, name: &IfName) -> Option<&ObservedLink> {
        self.links.iter().find(|link| link.name == name.as_str())
    }
}

/// One link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedLink {
    /// Index in its namespace.
    pub index: u32,
    /// Name; plain text, since a link that is not ours may be called anything.
    pub name: String,
    /// `macvlan`, `veth`, `bridge`, …; empty for hardware and loopback.
    pub kind: String,
    /// The numbers in the data of its kind, by attribute, if it has a parent.
    pub options: Vec<(u16, u32)>,
    /// Hardware address, if it has one of six bytes that is not zero.
    pub mac: Option<Mac>,
    /// MTU.
    pub mtu: u32,
    /// Administratively up.
    pub up: bool,
    /// Group.
    pub group: u32,
    /// Alias, if set.
    pub alias: Option<String>,
    /// Index of the link that it is a port of.
    pub master: Option<u32>,
    /// Index of its parent or peer, in whichever namespace that is.
    pub parent: Option<u32>,
    /// The number that the namespace of whoever asked has for the parent's, if that is not the link's own.
    pub parent_netns: Option<i32>,
    /// Promiscuity was asked for by flag.
    pub promisc: bool,
    /// Its further names.
    pub altnames: Vec<String>,
    /// What it is part of, if that is hardware.
    pub hardware: Option<Hardware>,
}

impl ObservedLink {
    /// Whether its parent or peer is in another namespace than its own.
    pub fn is_parent_elsewhere(&self) -> bool {
        self.parent_netns.is_some()
    }

    /// The number that it has in an attribute of its kind's data.
    pub fn option(&self, attribute: u16) -> Option<u32> {
        let mut options = self.options.iter();
        let found = options.find(|(number, _)| *number == attribute);
        found.map(|(_, value)| *value)
    }
}

/// One address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedAddress {
    /// Index of its link.
    pub link: u32,
    /// Address with prefix length.
    pub net: IpNet,
}

/// One route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedRoute {
    /// Index of its link, if it has just one.
    pub link: Option<u32>,
    /// Destination.
    pub dst: IpNet,
    /// Next hop.
    pub via: Option<IpAddr>,
    /// Preferred source.
    pub src: Option<IpAddr>,
    /// Table.
    pub table: u32,
    /// Metric; 0 if none.
    pub metric: u32,
    /// Scope, as the kernel numbers it.
    pub scope: u8,
    /// Who set it, as the kernel numbers it.
    pub protocol: u8,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedRule {
    /// Source prefix.
    pub from: IpNet,
    /// Table.
    pub table: u32,
    /// Priority.
    pub priority: u32,
}

/// One permanent neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedNeighbour {
    /// Index of its link.
    pub link: u32,
    /// Who.
    pub address: IpAddr,
    /// Where.
    pub mac: Option<Mac>,
}
