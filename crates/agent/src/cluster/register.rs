//! This host's Node, made and kept by the agent where no kubelet does. Owns what is written into it;
//! which addresses the host has is told.

use super::api;
use super::kinds::Nodes;
use super::shared::Shared;
use super::watch;
use super::wire::NodeWire;
use k8s_openapi::jiff::Timestamp;
use plexus_api::objects::REGISTERED_BY_AGENT;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;

/// Makes the Node, or corrects its addresses; says whether anything was written.
pub(super) async fn run(shared: Arc<Shared>, addresses: Vec<IpAddr>) -> kube::Result<bool> {
    let name = shared.options.node.clone();
    let known = {
        let state = shared.state();
        state.nodes.get(&name).filter(|_| state.nodes.live)
    };
    if known.is_some_and(|known| known.addresses == addresses) {
        return Ok(false);
    }
    let nodes = api::all::<NodeWire>(&shared.client);
    let status = status(&name, &addresses, &Timestamp::now().to_string());
    let written = match nodes.get_opt(&name).await? {
        None => api::create(&shared.client, &node(&name, &status)).await?,
        Some(_) => api::merge_status(&nodes, &name, json!({"status": status})).await?,
    };
    watch::take::<Nodes>(&shared, written);
    shared.check_synced();
    Ok(true)
}

fn node(name: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
            },
        },
        "status": status,
    })
}

fn status(name: &str, addresses: &[IpAddr], now: &str) -> Value {
    let mut all: Vec<Value> = addresses
        .iter()
        .map(|address| json!({"type": "InternalIP", "address": address}))
        .collect();
    all.push(json!({"type": "Hostname", "address": name}));
    json!({
        "addresses": all,
        "conditions": [{
            "type": "Ready", "status": "True", "reason": REGISTERED_BY_AGENT,
            "message": "the Plexus agent of this host runs",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::cached;
    use k8s_openapi::api::core::v1::Node;

    #[test]
    fn a_node_is_what_we_read_of_one() {
        let addresses: Vec<IpAddr> = ["192.0.2.1", "2001:db8::1"]
            .map(|a| a.parse().unwrap())
            .into();
        let node = node("n1", &status("n1", &addresses, "2026-01-01T00:00:00Z"));
        let typed: Node = serde_json::from_value(node.clone()).unwrap();
        assert_eq!(typed.status.unwrap().addresses.unwrap().len(), 3);
        let seen = cached::node(&serde_json::from_value(node).unwrap());
        assert_eq!(seen.addresses, addresses);
    }
}
