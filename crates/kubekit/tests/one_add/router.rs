//! A pod on two networks that forwards is the gateway between a pod on the one and a pod on the other.

use crate::common::{
    NETWORKS, NodeCleanup, apply, gone, nad, output_of, pings, pod, ready, silent, who,
};
use plexus_kubekit::{Namespace, test_cluster};
use serde_json::{Value, json};

/// `own` on a wire, and a route to the other wire by way of `via`, if there is one.
fn config(kind: Value, own: &[&str], routes: &[(&str, &str)]) -> String {
    let addresses: Vec<Value> = own.iter().map(|ip| json!({"address": ip})).collect();
    let routes = routes.iter().map(|(dst, gw)| json!({"dst": dst, "gw": gw}));
    let routes: Vec<Value> = routes.collect();
    let mut config = json!({"cniVersion": "1.0.0",
        "ipam": {"type": "static", "addresses": addresses, "routes": routes}});
    if let (Some(config), Value::Object(kind)) = (config.as_object_mut(), kind) {
        config.extend(kind);
    }
    config.to_string()
}

#[test]
fn a_pod_on_both_joins_a_bridge_and_a_macvlan_network() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "router").expect("a namespace");
    let ns = namespace.name();
    let _clean = NodeCleanup {
        cluster: kube,
        node: "n1",
        script: "ip link del e2ertr0".to_owned(),
    };
    let bridge = || json!({"type": "bridge", "bridge": "e2ertr0"});
    let macvlan = || json!({"type": "macvlan", "master": "eth2", "mode": "bridge"});
    let to_b = [
        ("10.103.0.0/24", "10.102.0.1"),
        ("fd00:103::/64", "fd00:102::1"),
    ];
    let to_a = [
        ("10.102.0.0/24", "10.103.0.1"),
        ("fd00:102::/64", "fd00:103::1"),
    ];
    apply(
        kube,
        &[
            nad(
                ns,
                "router-a",
                &[],
                &config(bridge(), &["10.102.0.1/24", "fd00:102::1/64"], &[]),
            ),
            nad(
                ns,
                "router-b",
                &[],
                &config(macvlan(), &["10.103.0.1/24", "fd00:103::1/64"], &[]),
            ),
            nad(
                ns,
                "client-a",
                &[],
                &config(bridge(), &["10.102.0.5/24", "fd00:102::5/64"], &to_b),
            ),
            nad(
                ns,
                "client-b",
                &[],
                &config(macvlan(), &["10.103.0.5/24", "fd00:103::5/64"], &to_a),
            ),
            pod(ns, "router", "n1", &[(NETWORKS, "router-a,router-b")]),
            pod(ns, "a", "n1", &[(NETWORKS, "client-a")]),
            pod(ns, "b", "n2", &[(NETWORKS, "client-b")]),
        ],
    );
    let [router, a, b] = ["router", "a", "b"].map(|name| namespace.pod(name));
    ready(kube, &[&router, &a, &b]);
    output_of(
        kube,
        &router,
        "sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
    );
    for (there, back) in [("10.103.0.5", "10.102.0.5"), ("fd00:103::5", "fd00:102::5")] {
        assert!(pings(kube, &a, there), "{there}");
        assert!(pings(kube, &b, back), "{back}");
        assert_eq!(who(kube, &a, there), "b");
        assert_eq!(who(kube, &b, back), "a");
    }
    // One hop away, and it is the router.
    let hop = output_of(kube, &a, "ping -n -c1 -W2 10.103.0.5");
    assert!(hop.contains("ttl=63"), "{hop}");
    gone(kube, &[&router]);
    assert!(silent(kube, &a, "10.103.0.5"));
}
