//! 1.1.0: interfaces gain `mtu`, `socketPath` and `pciID`.

use super::{PlainIp, WireRoute, all, empty_dns, read_interface, read_rest};
use crate::Fields;
use crate::cni::{Dns, Interface, Outcome, Version};
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    cni_version: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interfaces: Vec<WireInterface<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ips: Vec<PlainIp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<WireRoute>,
    #[serde(skip_serializing_if = "empty_dns")]
    dns: &'a Dns,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireInterface<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    socket_path: Option<&'a str>,
    #[serde(rename = "pciID", skip_serializing_if = "Option::is_none")]
    pci_id: Option<&'a str>,
}

impl<'a> From<&'a Interface> for WireInterface<'a> {
    fn from(interface: &'a Interface) -> Self {
        Self {
            name: &interface.name,
            mac: interface.mac.as_deref(),
            mtu: interface.mtu,
            sandbox: interface.sandbox.as_deref(),
            socket_path: interface.socket_path.as_deref(),
            pci_id: interface.pci_id.as_deref(),
        }
    }
}

pub(super) fn write(outcome: &Outcome) -> serde_json::Result<String> {
    serde_json::to_string(&Wire {
        cni_version: Version::V1_1_0.as_str(),
        interfaces: all(&outcome.interfaces),
        ips: all(&outcome.ips),
        routes: all(&outcome.routes),
        dns: &outcome.dns,
    })
}

pub(super) fn read(fields: &mut Fields<'_>) -> Outcome {
    let interfaces = fields.objects("interfaces", |interface, _| {
        let mut read = read_interface(interface)?;
        read.mtu = interface.number("mtu").filter(|mtu| *mtu != 0);
        read.socket_path = interface.parsed("socketPath");
        read.pci_id = interface.parsed("pciID");
        Some(read)
    });
    read_rest(fields, interfaces.unwrap_or_default())
}
