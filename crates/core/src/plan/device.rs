//! Links that are moved instead of made: a device of the node that a pod gets for its life. Owns what must be known of one
//! to give it back as it was, and how it is told from others; never looks for one.

use super::ObservedLink;
use crate::attachment::MovedMark;
use plexus_types::{IfName, Mac};
use std::fmt;

/// A device of the node as it was before a pod got it, and as it shall be again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name on the node.
    pub name: IfName,
    /// Its index on the node when the plan was made, for the kernel.
    pub index: u32,
    /// Its further names.
    pub altnames: Vec<String>,
    /// Its MAC, if it has one.
    pub mac: Option<Mac>,
    /// Its MTU.
    pub mtu: u32,
    /// Whether it was up.
    pub up: bool,
    /// Whether it was promiscuous.
    pub promisc: bool,
    /// Its alias, which our mark takes the place of.
    pub alias: Option<String>,
    /// `vlan`, `veth`, …; empty for hardware.
    pub kind: String,
    /// What it is part of, if that is hardware: no pod can change that.
    pub hardware: Option<Hardware>,
}

/// What a link is known by in whichever namespace it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hardware {
    /// `pci`, `virtio`, `usb`, …
    pub bus: String,
    /// Its name on that bus, such as `0000:00:03.0`.
    pub device: String,
    /// The MAC that it was built with, if it has one: one device may have several ports.
    pub mac: Option<Mac>,
}

impl fmt::Display for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} device {}", self.bus, self.device)
    }
}

impl Device {
    /// A link of the node as it is now; none if its name is no name.
    pub fn of(link: &ObservedLink) -> Option<Self> {
        Some(Self::named(IfName::new(&link.name).ok()?, link))
    }

    fn named(name: IfName, link: &ObservedLink) -> Self {
        Self {
            name,
            index: link.index,
            altnames: link.altnames.clone(),
            mac: link.mac,
            mtu: link.mtu,
            up: link.up,
            promisc: link.promisc,
            alias: link.alias.clone(),
            kind: link.kind.clone(),
            hardware: link.hardware.clone(),
        }
    }

    /// What a mark tells of a link that was moved, for when there is no plan. The rest is as the hardware has it: a pod
    /// may have changed the mark.
    pub fn marked(link: &ObservedLink, mark: &MovedMark) -> Self {
        Self {
            mac: link.hardware.as_ref().and_then(|hardware| hardware.mac),
            mtu: mark.mtu,
            up: mark.up,
            promisc: false,
            alias: None,
            ..Self::named(mark.name.clone(), link)
        }
    }

    /// What the mark of its link tells.
    pub fn mark(&self) -> MovedMark {
        MovedMark {
            name: self.name.clone(),
            mtu: self.mtu,
            up: self.up,
        }
    }

    /// Whether a link is this device. Hardware is known by itself; of other links, `is_marked` decides among those of its
    /// kind.
    pub fn is(&self, link: &ObservedLink, is_marked: impl FnOnce(&ObservedLink) -> bool) -> bool {
        match (&self.hardware, &link.hardware) {
            (Some(own), Some(other)) => own == other,
            (None, None) => self.kind == link.kind && is_marked(link),
            _ => false,
        }
    }
}
