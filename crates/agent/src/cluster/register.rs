//! This host's Node, made and kept by the agent where no kubelet does. Owns what is written into it;
//! which addresses the host has is told.

use super::kinds::Nodes;
use super::shared::{MANAGER, Shared};
use super::watch;
use super::wire::NodeWire;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
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
    let api: Api<NodeWire> = Api::all(shared.client.clone());
    let status = status(&name, &addresses, &Timestamp::now().to_string());
    let written = match api.get_opt(&name).await? {
        None => create(&shared, &name, &status).await?,
        Some(_) => {
            let how = PatchParams {
                field_manager: Some(MANAGER.to_owned()),
                ..PatchParams::default()
            };
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status(&name, &how, &patch).await?
        }
    };
    watch::take::<Nodes>(&shared, written);
    shared.check_synced();
    Ok(true)
}

async fn create(shared: &Shared, name: &str, status: &Value) -> kube::Result<NodeWire> {
    let how = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    let node: Node = read(node(name, status))?;
    let api: Api<Node> = Api::all(shared.client.clone());
    let made = api.create(&how, &node).await?;
    read(serde_json::to_value(made).map_err(kube::Error::SerdeError)?)
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> kube::Result<T> {
    serde_json::from_value(value).map_err(kube::Error::SerdeError)
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
