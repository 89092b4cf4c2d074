//! What is known, and from whom.

use super::{TestNode, server, until};
use plexus_core::ipam::BlockSource;
use plexus_core::resolve::Objects;
use serde_json::json;

#[test]
fn what_the_cluster_has_is_known() {
    let admin = server();
    let (n1, n2, team) = (admin.name("n1"), admin.name("n2"), admin.name("team"));
    admin.namespace(&team);
    admin.node(&n2, "10.245.2.0/24", "192.0.2.2");
    let spec = json!({"provider": "routed", "subnets": {"a": {"cidr": "10.1.0.0/16"}}});
    let routed = admin.network(&team, "green", &spec);
    let overlay = admin.network(
        &team,
        "blue",
        &json!({"subnets": {"a": {"cidr": "10.2.0.0/16"}}}),
    );
    admin.nad(&team, "attach", "{\"type\":\"macvlan\"}");
    for (uid, cidr, name) in [
        (&routed, "10.1.0.64/26", format!("{routed}-0a010040-26")),
        (&overlay, "10.2.0.64/26", format!("{overlay}-0a020040-26")),
    ] {
        let body = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Block", "metadata": {"name": name},
            "spec": {"network": {"namespace": team, "name": "x", "uid": uid}, "cidr": cidr,
                "node": n2, "nodeUID": "other"}});
        admin.create(super::admin::BLOCKS, &body);
    }
    let node = TestNode::start(&admin, &n1, "10.245.1.0/24", "192.0.2.1").synced();
    let cluster = &node.cluster;

    let blue = cluster.network(&team, "blue").unwrap();
    assert_eq!((blue.vni, blue.unusable.clone()), (Some(4097), None));
    assert_eq!(cluster.network_by_uid(&overlay).unwrap().name, "blue");
    assert!(cluster.network(&team, "red").is_none());
    let nad = cluster.nad(&team, "attach").unwrap();
    assert_eq!(nad.config.as_deref(), Some("{\"type\":\"macvlan\"}"));
    assert_eq!(nad.annotations.len(), 1);
    assert_eq!(cluster.namespace(&team).unwrap()["team"], "blue");
    until("the Node's addresses", || {
        !cluster.own_node().unwrap().addresses.is_empty()
    });
    let own = cluster.own_node().unwrap();
    assert_eq!(own.pod_cidrs, ["10.245.1.0/24".parse().unwrap()]);
    assert!(cluster.is_live());

    let fabric = cluster.fabric();
    let of_n2 = |block: &&plexus_core::fabric::OwnedBlock| block.node == n2;
    let routes: Vec<String> = fabric
        .routed
        .iter()
        .filter(of_n2)
        .map(|b| b.cidr.to_string())
        .collect();
    assert_eq!(routes, ["10.245.2.0/24", "10.1.0.64/26"]);
    assert_eq!(fabric.overlay[&overlay].len(), 1);
    assert!(
        fabric.nodes.iter().any(|one| one.name == n2
            && one.addresses == ["192.0.2.2".parse::<std::net::IpAddr>().unwrap()])
    );
    assert!(cluster.blocks(&overlay).own.is_empty());

    // What comes later is known too, and the agent is told.
    let before = node.hooks.changes.load(std::sync::atomic::Ordering::SeqCst);
    admin.network(&team, "red", &json!({"provider": "bridge"}));
    until("the new network", || {
        let red = cluster.network(&team, "red");
        red.is_some_and(|red| red.unusable.is_none())
    });
    assert!(node.hooks.changes.load(std::sync::atomic::Ordering::SeqCst) > before);
    admin.delete(&super::admin::in_namespace(&team, "networks"), "red");
    until("that it is gone", || {
        cluster.network(&team, "red").is_none()
    });
}

#[test]
fn a_pod_is_found_by_the_uid_that_cni_has() {
    let admin = server();
    let (n1, team) = (admin.name("n1"), admin.name("team"));
    admin.namespace(&team);
    let node = TestNode::start(&admin, &n1, "10.245.1.0/24", "192.0.2.1").synced();
    let wants = json!({"k8s.v1.cni.cncf.io/networks": "a", "other": "x"});
    let pod = admin.pod(&team, "web", &n1, wants);
    let found = node
        .cluster
        .pod(&team, "web", Some(&pod.uid))
        .unwrap()
        .unwrap();
    assert_eq!(found.facts.annotations.len(), 1);
    assert_eq!(found.api_uid, pod.uid);
    assert_eq!(
        node.cluster.pod(&team, "web", Some("another")).unwrap(),
        None
    );
    assert_eq!(node.cluster.pod(&team, "nobody", None).unwrap(), None);
    assert!(node.cluster.pod(&team, "web", None).unwrap().is_some());

    let hash = "0123456789abcdef0123456789abcdef";
    let mirror = admin.pod(
        &team,
        "static",
        &n1,
        json!({"kubernetes.io/config.hash": hash}),
    );
    let found = node
        .cluster
        .pod(&team, "static", Some(hash))
        .unwrap()
        .unwrap();
    assert_eq!(found.api_uid, mirror.uid);
}
