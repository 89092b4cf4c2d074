//! Which NIC answers for which address. A node answers ARP requests for any of its addresses on every link, so that of two NICs
//! in one subnet either may answer for the other, and packets to pods come in where these are not. Owns the setting that
//! ends this; a value that an administrator chose stays.

use super::NicRouteError;
use crate::NodeSide;
use crate::sysctl;
use plexus_core::plan::Setting;

/// Only for addresses of the link itself.
const OWN_ONLY: &str = "1";
/// The kernel's default: for every address of the node.
const EVERY: &str = "0";

/// Lets a NIC answer for its own addresses only, unless it is set otherwise than the kernel does. Says whether that was
/// changed.
pub fn answer_for_own_addresses(node: &NodeSide, nic: &str) -> Result<bool, NicRouteError> {
    let setting = Setting {
        key: format!("net/ipv4/conf/{nic}/arp_ignore"),
        value: OWN_ONLY.to_owned(),
    };
    let changed = node.inside(|| -> Result<bool, sysctl::SysctlError> {
        if sysctl::read(&setting.key)? != EVERY {
            return Ok(false);
        }
        sysctl::write(&setting).map(|()| true)
    });
    Ok(changed.map_err(crate::NetlinkError::from)??)
}
