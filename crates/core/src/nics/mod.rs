//! The node's NICs: what is known of each, which of them are published, and how two inventories differ. Owns the
//! choice; a look at the kernel comes in, a list in a stable order goes out, for whoever publishes it.
//!
//! Knows no API object: `HostInterface` is one form of the inventory, the slices of dynamic resource allocation
//! may be another.

mod names;

pub use names::{NicPattern, NicPatterns};

use ipnet::IpNet;
use plexus_types::{Family, Mac};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A NIC, or a link that can be one: whether it counts is decided here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nic {
    /// Index in the node's namespace.
    pub index: u32,
    /// Name.
    pub name: String,
    /// `bond`, `vlan`, `veth`, …; empty for hardware.
    pub kind: String,
    /// Addresses with their prefix lengths, in the kernel's order; those that come and go by themselves (temporary,
    /// tentative) are left out.
    pub addresses: Vec<IpNet>,
    /// Hardware address, if it has one of six bytes.
    pub mac: Option<Mac>,
    /// The one that the hardware was made with.
    pub permanent_mac: Option<Mac>,
    /// MTU.
    pub mtu: u32,
    /// What it can do now.
    pub state: NicState,
    /// In Mbit/s, if there is a carrier and the driver says it.
    pub speed: Option<u32>,
    /// What it is part of; none for virtual links.
    pub device: Option<NicDevice>,
    /// Kind of the link that it is a port of.
    pub master: Option<String>,
    /// Index of the link that it is made on, if that is in the same namespace.
    pub parent: Option<u32>,
    /// A default route of the main table leads there.
    pub default_route: bool,
    /// Plexus made it.
    pub ours: bool,
}

/// Whether a NIC carries packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NicState {
    /// It does.
    Up,
    /// It would, but there is nobody on the wire.
    NoCarrier,
    /// It was not switched on.
    Down,
}

impl NicState {
    /// As it is published.
    pub fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::NoCarrier => "no-carrier",
            Self::Down => "down",
        }
    }
}

/// A piece of hardware. Ids are hexadecimal, without `0x`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NicDevice {
    /// `0000:3b:00.1`; none if it is not on that bus.
    pub pci_address: Option<String>,
    /// Who made it.
    pub vendor: Option<String>,
    /// What it is.
    pub product: Option<String>,
    /// Near which memory it is; none if the machine does not say.
    pub numa_node: Option<u32>,
    /// Who drives it.
    pub driver: Option<String>,
}

/// Which NICs an administrator wants published.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NicChoice {
    /// Virtual links that count as NICs, by their names.
    pub virtual_names: NicPatterns,
    /// Also the one that the default route leads to.
    pub default_route: bool,
}

impl Nic {
    /// Its addresses that others can be told of: none that hold on one wire only.
    pub fn global_addresses(&self) -> impl Iterator<Item = IpNet> {
        let global = |net: &&IpNet| match net.addr() {
            IpAddr::V4(address) => !address.is_link_local() && !address.is_loopback(),
            IpAddr::V6(address) => !address.is_unicast_link_local() && !address.is_loopback(),
        };
        self.addresses.iter().filter(global).copied()
    }

    /// Its first address of a family: what others are told to reach it by.
    pub fn address(&self, family: Family) -> Option<IpNet> {
        self.global_addresses()
            .find(|net| Family::of(net.addr()) == family)
    }
}

/// The NICs to publish, by name: hardware, bonds, VLANs on these, and virtual links that were named. A port of a bond or a
/// bridge is part of that and no NIC of its own; neither is anything that Plexus made.
pub fn published(all: Vec<Nic>, choice: &NicChoice) -> Vec<Nic> {
    let by_index: BTreeMap<u32, &Nic> = all.iter().map(|nic| (nic.index, nic)).collect();
    let counting: Vec<bool> = all
        .iter()
        .map(|nic| counts(nic, &by_index, choice))
        .collect();
    let chosen = all
        .into_iter()
        .zip(counting)
        .filter(|(nic, counts)| *counts && (choice.default_route || !nic.default_route));
    let mut chosen: Vec<Nic> = chosen.map(|(nic, _)| nic).collect();
    chosen.sort_by(|one, other| natural(&one.name).cmp(&natural(&other.name)));
    chosen
}

/// A VLAN on a VLAN, and so on, this deep.
const MAX_STACKED: usize = 8;

fn counts(nic: &Nic, by_index: &BTreeMap<u32, &Nic>, choice: &NicChoice) -> bool {
    let mut at = nic;
    if is_port(nic) || nic.ours {
        return false;
    }
    for _ in 0..MAX_STACKED {
        if choice.virtual_names.matches(&at.name) {
            return true;
        }
        match at.kind.as_str() {
            "" => return at.device.is_some(),
            "bond" | "team" => return true,
            "vlan" => {}
            _ => return false,
        }
        match at.parent.and_then(|parent| by_index.get(&parent)) {
            Some(parent) => at = parent,
            None => return false,
        }
    }
    false
}

/// A VRF only chooses the routing table: its links are NICs as before.
fn is_port(nic: &Nic) -> bool {
    nic.master.as_deref().is_some_and(|master| master != "vrf")
}

/// `eth2` comes before `eth10`: numbers in names are compared as numbers. What is the same so is not the same name.
fn natural(name: &str) -> (Vec<(String, u64)>, &str) {
    let mut parts: Vec<(String, u64)> = vec![Default::default()];
    let mut was_digit = false;
    for character in name.chars() {
        let digit = character.to_digit(10);
        if was_digit && digit.is_none() {
            parts.push(Default::default());
        }
        was_digit = digit.is_some();
        if let Some((text, number)) = parts.last_mut() {
            match digit {
                Some(digit) => *number = number.saturating_mul(10).saturating_add(digit.into()),
                None => text.push(character),
            }
        }
    }
    (parts, name)
}

/// Without what is nobody else's business.
fn public_part(nic: &Nic) -> Nic {
    Nic {
        index: 0,
        parent: None,
        addresses: nic.global_addresses().collect(),
        ..nic.clone()
    }
}

/// What has changed between two inventories, for the log; empty if nothing has.
pub fn differences(before: &[Nic], after: &[Nic]) -> Vec<String> {
    let find = |all: &[Nic], name: &str| all.iter().position(|nic| nic.name == name);
    let mut all = Vec::new();
    for nic in after {
        match find(before, &nic.name).and_then(|at| before.get(at)) {
            None => all.push(format!("{} is new", nic.name)),
            Some(old) if public_part(old) != public_part(nic) => {
                all.push(format!("{} has changed", nic.name))
            }
            Some(_) => {}
        }
    }
    let gone = before.iter().filter(|nic| find(after, &nic.name).is_none());
    all.extend(gone.map(|nic| format!("{} is gone", nic.name)));
    all
}

#[cfg(test)]
mod tests;
