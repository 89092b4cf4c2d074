//! The networks that pods choose from: overlays, macvlans with addresses of every kind, a bridge, and
//! one that a reference plugin makes.

use anyhow::Result;
use plexus_kubekit::{Cluster, wait};
use serde_json::{Value, json};
use std::time::Duration;

/// How a pod names each, in `k8s.v1.cni.cncf.io/networks` or in `plexus.dev/networks`.
pub(crate) const NADS: [&str; 5] = ["local1", "local2", "bridge", DELEGATED, "contrail"];
/// The one that a reference plugin makes.
pub(crate) const DELEGATED: &str = "delegated";
pub(crate) const OBJECTS: [&str; 3] = ["overlay1", "overlay2", "blocks"];

/// Makes all of them, and waits until they are active.
pub(crate) fn make(cluster: &dyn Cluster, namespace: &str) -> Result<()> {
    let objects = nads(namespace).into_iter().chain(objects(namespace));
    for object in objects {
        cluster.apply(&object.to_string())?;
    }
    wait::until("networks active", Duration::from_secs(60), || {
        let all = cluster.list("plexus.dev/v1alpha1", "Network", namespace)?;
        let active = all
            .iter()
            .filter(|network| network["status"]["phase"] == "Active");
        // The NAD of Contrail's kind has one too.
        Ok((active.count() > OBJECTS.len()).then_some(()))
    })
}

fn nads(namespace: &str) -> Vec<Value> {
    let host_local = |net: u8| json!({"type": "host-local", "ranges": [[{"subnet": format!("10.13{net}.0.0/16")}]]});
    let nad = |name: &str, annotations: Value, config: Value| {
        json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
            "spec": {"config": config.to_string()},
        })
    };
    let macvlan = |net| json!({"cniVersion": "1.0.0", "type": "macvlan", "master": "eth1", "mode": "bridge", "ipam": host_local(net)});
    // `ptp` is none of ours: the reference plugin is executed.
    vec![
        nad("local1", json!({}), macvlan(1)),
        nad("local2", json!({}), macvlan(2)),
        nad(
            "bridge",
            json!({}),
            json!({"cniVersion": "1.0.0", "type": "bridge", "bridge": "soak0", "ipam": host_local(3)}),
        ),
        nad(
            DELEGATED,
            json!({}),
            json!({"cniVersion": "1.0.0", "type": "ptp", "ipam": host_local(4)}),
        ),
        nad(
            "contrail",
            json!({"opencontrail.org/cidr": "10.135.0.0/16,fd00:135::/64"}),
            json!({"cniVersion": "0.3.1", "type": "contrail-k8s-cni"}),
        ),
    ]
}

fn objects(namespace: &str) -> Vec<Value> {
    let network = |name: &str, spec: Value| {
        json!({
            "apiVersion": "plexus.dev/v1alpha1", "kind": "Network",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec,
        })
    };
    vec![
        network(
            "overlay1",
            json!({"provider": "overlay", "subnets": {"a": {"cidr": "10.136.0.0/16"}, "b": {"cidr": "fd00:136::/64"}}}),
        ),
        network(
            "overlay2",
            json!({"provider": "overlay", "subnets": {"a": {"cidr": "10.137.0.0/16"}}}),
        ),
        network(
            "blocks",
            json!({
                "provider": "macvlan", "config": {"master": "eth2", "mode": "bridge"},
                "subnets": {"a": {"cidr": "10.138.0.0/16"}},
            }),
        ),
    ]
}
