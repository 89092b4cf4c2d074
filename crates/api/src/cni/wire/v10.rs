//! 1.0.0: addresses lose their `version`, an empty `dns` is left out.

use super::{PlainInterface, PlainIp, WireRoute, all, empty_dns, read_interface, read_rest};
use crate::Fields;
use crate::cni::{Dns, Outcome, Version};
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    cni_version: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interfaces: Vec<PlainInterface<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ips: Vec<PlainIp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<WireRoute>,
    #[serde(skip_serializing_if = "empty_dns")]
    dns: &'a Dns,
}

pub(super) fn write(outcome: &Outcome) -> serde_json::Result<String> {
    serde_json::to_string(&Wire {
        cni_version: Version::V1_0_0.as_str(),
        interfaces: all(&outcome.interfaces),
        ips: all(&outcome.ips),
        routes: all(&outcome.routes),
        dns: &outcome.dns,
    })
}

pub(super) fn read(fields: &mut Fields<'_>) -> Outcome {
    let interfaces = fields.objects("interfaces", |interface, _| read_interface(interface));
    read_rest(fields, interfaces.unwrap_or_default())
}
