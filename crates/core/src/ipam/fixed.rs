//! IPAM `static`: the addresses are written down in the configuration.

use crate::attachment::{Assigned, AssignedIp};
use plexus_api::cni::Static;

/// What the configuration says, as an answer.
pub fn assigned_static(config: &Static) -> Assigned {
    let ips = config.addresses.iter().map(|written| AssignedIp {
        address: written.address,
        gateway: written.gateway,
    });
    Assigned {
        ips: ips.collect(),
        routes: config.routes.clone(),
        dns: config.dns.clone(),
    }
}
