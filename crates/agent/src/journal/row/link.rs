//! A pod's interface, and the node's end of it.

use super::{List, Maybe, rows};
use ipnet::IpNet;
use plexus_core::plan::{
    Address, Device, Hardware, HostEnd, Link, LinkKind, Neighbour, Parent, Route, Rule, Setting,
    Stacked,
};
use plexus_types::{IfName, Mac, RouterName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Not;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Link", deny_unknown_fields)]
pub(crate) struct LinkRow {
    name: IfName,
    #[serde(with = "LinkKindRow")]
    kind: LinkKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<Mac>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mtu: Option<u32>,
    alias: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<SettingRow>")]
    settings: Vec<Setting>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<AddressRow>")]
    addresses: Vec<Address>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<NeighbourRow>")]
    neighbours: Vec<Neighbour>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<RouteRow>")]
    routes: Vec<Route>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<RuleRow>")]
    rules: Vec<Rule>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LinkKind", rename_all = "camelCase")]
enum LinkKindRow {
    Stacked(#[serde(with = "StackedRow")] Stacked),
    Veth(#[serde(with = "HostEndRow")] HostEnd),
    Moved(#[serde(with = "DeviceRow")] Device),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Stacked", deny_unknown_fields)]
struct StackedRow {
    #[serde(with = "ParentRow")]
    parent: Parent,
    kind: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    options: BTreeMap<String, u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Parent", deny_unknown_fields)]
struct ParentRow {
    name: IfName,
    index: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "HostEnd", deny_unknown_fields)]
struct HostEndRow {
    name: IfName,
    mac: Mac,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mtu: Option<u32>,
    alias: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    router: Option<RouterName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bridge: Option<IfName>,
    #[serde(default, skip_serializing_if = "Not::not")]
    hairpin: bool,
    #[serde(default, skip_serializing_if = "Not::not")]
    source_check: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<SettingRow>")]
    settings: Vec<Setting>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<RouteRow>")]
    routes: Vec<Route>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<NeighbourRow>")]
    neighbours: Vec<Neighbour>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Device", deny_unknown_fields)]
struct DeviceRow {
    name: IfName,
    index: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    altnames: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<Mac>,
    mtu: u32,
    up: bool,
    #[serde(default, skip_serializing_if = "Not::not")]
    promisc: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alias: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "Maybe::<HardwareRow>")]
    hardware: Option<Hardware>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Hardware", deny_unknown_fields)]
struct HardwareRow {
    bus: String,
    device: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<Mac>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Setting", deny_unknown_fields)]
pub(super) struct SettingRow {
    key: String,
    value: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Address", deny_unknown_fields)]
struct AddressRow {
    net: IpNet,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Neighbour", deny_unknown_fields)]
struct NeighbourRow {
    address: IpAddr,
    mac: Mac,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Route", deny_unknown_fields)]
struct RouteRow {
    dst: IpNet,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    via: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    src: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    table: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metric: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mtu: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    advmss: Option<u32>,
    #[serde(default, skip_serializing_if = "Not::not")]
    onlink: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Rule", deny_unknown_fields)]
struct RuleRow {
    from: IpNet,
    table: u32,
    priority: u32,
}

rows! {
    LinkRow: Link, HardwareRow: Hardware, SettingRow: Setting, AddressRow: Address,
    NeighbourRow: Neighbour, RouteRow: Route, RuleRow: Rule,
}
