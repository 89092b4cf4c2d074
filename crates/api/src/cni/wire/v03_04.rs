//! 0.3.0, 0.3.1 and 0.4.0: addresses carry their family as `version`, `dns` is always there.

use super::{PlainInterface, Wire};
use crate::cni::{Ip, Outcome, Version};
use ipnet::IpNet;
use plexus_types::Family;
use serde::Serialize;
use std::net::IpAddr;

#[derive(Serialize)]
struct WireIp {
    version: Family,
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<usize>,
    address: IpNet,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<IpAddr>,
}

impl From<&Ip> for WireIp {
    fn from(ip: &Ip) -> Self {
        Self {
            version: Family::of(ip.address.addr()),
            interface: ip.interface,
            address: ip.address,
            gateway: ip.gateway,
        }
    }
}

pub(super) fn write(outcome: &Outcome, version: Version) -> serde_json::Result<String> {
    let wire = Wire::<PlainInterface<'_>, WireIp> {
        dns: Some(&outcome.dns),
        ..Wire::of(outcome, version)
    };
    serde_json::to_string(&wire)
}
