//! What networks need of a kernel, by name. `kernel` tries whether it is there; `core` says which
//! provider needs what.

use std::fmt;

/// Something that a kernel may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// Links of kind `veth`.
    Veth,
    /// Links of kind `bridge`.
    Bridge,
    /// Links of kind `macvlan`.
    Macvlan,
    /// Links of kind `ipvlan`.
    Ipvlan,
    /// Links of kind `vlan`.
    Vlan,
    /// Links of kind `vxlan`.
    Vxlan,
    /// Links of kind `vrf`.
    Vrf,
    /// Links of kind `dummy`.
    Dummy,
    /// nf_tables with nat and masquerade in the family `inet`.
    Masquerade,
    /// Cookies of network namespaces.
    NetnsCookie,
    /// Network namespaces that outlive the process, pinned by a mount.
    RouterNetns,
}

impl Feature {
    /// All of them, in order.
    pub const ALL: [Feature; 11] = [
        Feature::Veth,
        Feature::Bridge,
        Feature::Macvlan,
        Feature::Ipvlan,
        Feature::Vlan,
        Feature::Vxlan,
        Feature::Vrf,
        Feature::Dummy,
        Feature::Masquerade,
        Feature::NetnsCookie,
        Feature::RouterNetns,
    ];

    /// The kernel's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Feature::Veth => "veth",
            Feature::Bridge => "bridge",
            Feature::Macvlan => "macvlan",
            Feature::Ipvlan => "ipvlan",
            Feature::Vlan => "vlan",
            Feature::Vxlan => "vxlan",
            Feature::Vrf => "vrf",
            Feature::Dummy => "dummy",
            Feature::Masquerade => "nftables masquerade",
            Feature::NetnsCookie => "network namespace cookies",
            Feature::RouterNetns => "pinned network namespaces",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
