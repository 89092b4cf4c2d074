//! What is done about a key: look into the caches, decide, write the difference. One file per kind;
//! each may be repeated at any time and then writes nothing.

mod cluster;
mod later;
mod multi_nic;
mod nad;
mod network;
mod node;

pub(crate) use multi_nic::WrittenCidr;

use crate::cache::Name;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// The time, as the API writes it.
pub(crate) fn now() -> String {
    serde_json::to_value(Time(Timestamp::now()))
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// The network that index 0 takes its blocks from.
pub(crate) fn cluster_default(namespace: &str) -> Name {
    Name::new(namespace, "cluster-default")
}
