//! Which device of a node a network means, and what it may be known by. Never looks whether it is there.

use plexus_types::{IfName, Mac};
use std::fmt;

/// Which device of a node is meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceQuery {
    /// What it is known by; none: the runtime has to tell, and did not.
    pub key: Option<DeviceKey>,
    /// Its name on a bus (PCI, or auxiliary), if that is told: who drives it is known by that.
    pub on_bus: Option<String>,
}

/// What a device is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceKey {
    /// A name of its link.
    Name(IfName),
    /// The MAC of its link.
    Mac(Mac),
    /// Its path below `/sys/devices`.
    KernelPath(String),
    /// Its name on a bus.
    OnBus(String),
}

impl fmt::Display for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceKey::Name(name) => write!(f, "device {name}"),
            DeviceKey::Mac(mac) => write!(f, "device with MAC {mac}"),
            DeviceKey::KernelPath(path) => write!(f, "device {path}"),
            DeviceKey::OnBus(id) => write!(f, "device {id}"),
        }
    }
}
