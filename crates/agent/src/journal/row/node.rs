//! What a network needs on the node.

use super::link::SettingRow;
use super::{List, rows};
use ipnet::IpNet;
use plexus_core::plan::{Bridge, Masquerade, NodePlan, Router, Setting};
use plexus_types::{IfName, Mac, NetworkName, RouterName};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::ops::Not;

#[derive(Serialize, Deserialize)]
#[serde(remote = "NodePlan", deny_unknown_fields)]
pub(crate) struct NodePlanRow {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<SettingRow>")]
    settings: Vec<Setting>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<BridgeRow>")]
    bridges: Vec<Bridge>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<MasqueradeRow>")]
    masquerades: Vec<Masquerade>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<RouterRow>")]
    routers: Vec<Router>,
    #[serde(default, skip_serializing_if = "Not::not")]
    whole: bool,
    #[serde(default, skip_serializing_if = "Not::not")]
    of_object: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Router", deny_unknown_fields)]
struct RouterRow {
    name: RouterName,
    uid: String,
    vni: u32,
    local: IpAddr,
    mac: Mac,
    mtu: u32,
    subnets: Vec<IpNet>,
    gateways: Vec<IpAddr>,
    #[serde(default, skip_serializing_if = "Not::not")]
    snat: bool,
    source_check: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Bridge", deny_unknown_fields)]
struct BridgeRow {
    name: IfName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mtu: Option<u32>,
    #[serde(default, skip_serializing_if = "Not::not")]
    promisc: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<IpNet>,
    #[serde(default, skip_serializing_if = "Not::not")]
    force_address: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<SettingRow>")]
    settings: Vec<Setting>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Masquerade", deny_unknown_fields)]
struct MasqueradeRow {
    network: NetworkName,
    source: IpNet,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    except: Vec<IpNet>,
}

rows! { NodePlanRow: NodePlan, RouterRow: Router, BridgeRow: Bridge, MasqueradeRow: Masquerade }
