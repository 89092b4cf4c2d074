//! 1.1.0: interfaces gain `mtu`, `socketPath` and `pciID`.

use super::{PlainIp, Wire};
use crate::Fields;
use crate::cni::{Interface, Outcome, Version};
use serde::Serialize;

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

pub(super) fn write(outcome: &Outcome, version: Version) -> serde_json::Result<String> {
    serde_json::to_string(&Wire::<WireInterface<'_>, PlainIp>::of(outcome, version))
}

pub(super) fn read_interface(fields: &mut Fields<'_>) -> Option<Interface> {
    let read = super::read_interface(fields)?;
    Some(Interface {
        mtu: fields.number("mtu").filter(|mtu| *mtu != 0),
        socket_path: fields.parsed("socketPath"),
        pci_id: fields.parsed("pciID"),
        ..read
    })
}
