//! Addresses, and where they are taken from.

use super::{List, rows};
use ipnet::IpNet;
use plexus_api::cni::{Dns, RouteConf};
use plexus_core::attach::Lease;
use plexus_core::attachment::{Assigned, AssignedIp};
use plexus_types::IfName;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Assigned", deny_unknown_fields)]
pub(crate) struct AssignedRow {
    #[serde(with = "List::<AssignedIpRow>")]
    ips: Vec<AssignedIp>,
    routes: Vec<RouteConf>,
    dns: Dns,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "AssignedIp", deny_unknown_fields)]
struct AssignedIpRow {
    address: IpNet,
    gateway: Option<IpAddr>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Lease", rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum LeaseRow {
    Pool(String),
    HostLocal { directory: PathBuf, ifname: IfName },
}

rows! { AssignedIpRow: AssignedIp, LeaseRow: Lease }
