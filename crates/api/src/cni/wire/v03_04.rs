//! 0.3.0, 0.3.1 and 0.4.0: addresses carry their family as `version`, `dns` is always there.

use super::{PlainInterface, WireRoute, all, read_interface, read_rest};
use crate::Fields;
use crate::cni::{Dns, Ip, Outcome, Version};
use ipnet::IpNet;
use plexus_types::Family;
use serde::Serialize;
use std::net::IpAddr;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    cni_version: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interfaces: Vec<PlainInterface<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ips: Vec<WireIp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<WireRoute>,
    dns: &'a Dns,
}

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
    serde_json::to_string(&Wire {
        cni_version: version.as_str(),
        interfaces: all(&outcome.interfaces),
        ips: all(&outcome.ips),
        routes: all(&outcome.routes),
        dns: &outcome.dns,
    })
}

/// The family of an address is read from the address itself.
pub(super) fn read(fields: &mut Fields<'_>) -> Outcome {
    let interfaces = fields.objects("interfaces", |interface, _| read_interface(interface));
    read_rest(fields, interfaces.unwrap_or_default())
}
