//! What a request has besides its attachments, and how the cluster knows these.

use super::rows;
use ipnet::IpNet;
use plexus_core::plan::{HostPort, Protocol};
use plexus_core::resolve::Reference;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

#[derive(Serialize, Deserialize)]
#[serde(remote = "HostPort", deny_unknown_fields)]
pub(crate) struct HostPortRow {
    #[serde(with = "ProtocolRow")]
    protocol: Protocol,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host_ip: Option<IpAddr>,
    port: u16,
    to: SocketAddr,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Protocol", rename_all = "camelCase")]
enum ProtocolRow {
    Tcp,
    Udp,
    Sctp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Reference", deny_unknown_fields)]
pub(crate) struct ReferenceRow {
    index: u32,
    total: u32,
    namespace: String,
    name: String,
    uuid: String,
    source: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    subnets: Vec<(IpNet, Option<IpAddr>)>,
}

rows! { HostPortRow: HostPort, ReferenceRow: Reference }
