//! An IPAM plugin of others that Plexus executes below its own links: whereabouts, whose addresses all nodes share.

use crate::common::{
    NETWORKS, NodeCleanup, PodsFirst, address, apply, gone, holds, nad, on, output_of, pings, pod,
    ready,
};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::multus::whereabouts;
use plexus_kubekit::test_cluster::{self, Need};
use plexus_kubekit::{Cluster, Namespace};
use serde_json::json;

#[test]
fn whereabouts_gives_addresses_to_links_of_ours() {
    let Some(kube) = test_cluster::kubernetes(Need::Kinds).expect("a lab") else {
        return;
    };
    let namespace = Namespace::create(kube, "whereabouts").expect("a namespace");
    let ns = namespace.name();
    whereabouts::prepare(kube.lab()).expect("whereabouts");
    let _clean = ["n1", "n2"].map(|node| NodeCleanup {
        cluster: kube,
        node,
        script: "rm -rf /opt/cni/bin/whereabouts /etc/cni/net.d/whereabouts.d; ip link del wb0 2>/dev/null; true"
            .to_owned(),
    });
    let _first = PodsFirst {
        cluster: kube,
        pods: ["a", "b", "c", "d"]
            .map(|name| namespace.pod(name))
            .to_vec(),
    };
    // Two addresses: what is not freed is missed.
    let config = json!({"cniVersion": "1.0.0", "type": "macvlan", "master": "eth1", "mode": "bridge",
        "ipam": {"type": "whereabouts", "range": "10.76.0.0/24", "range_start": "10.76.0.11",
            "range_end": "10.76.0.12", "configuration_path": whereabouts::CONFIGURATION}});
    apply(
        kube,
        &[
            nad(ns, "wide", &[], &config.to_string()),
            pod(ns, "a", "n1", &[(NETWORKS, "wide")]),
            pod(ns, "b", "n2", &[(NETWORKS, "wide")]),
        ],
    );
    let [a, b, c] = ["a", "b", "c"].map(|name| namespace.pod(name));
    ready(kube, &[&a, &b]);
    let mut both = [&a, &b].map(|pod| address(kube, pod, "net1", false));
    assert!(pings(kube, &a, &format!("-I net1 {}", both[1])), "{both:?}");
    both.sort();
    assert_eq!(both, ["10.76.0.11", "10.76.0.12"], "unique on all nodes");
    for pod in [&a, &b] {
        let link = output_of(kube, pod, "ip -d link show net1");
        assert!(
            link.contains("alias plexus ") && link.contains("macvlan mode bridge"),
            "made by Plexus: {link}"
        );
    }
    gone(kube, &[&a]);
    apply(kube, &[pod(ns, "c", "n2", &[(NETWORKS, "wide")])]);
    ready(kube, &[&c]);
    assert_ne!(
        address(kube, &c, "net1", false),
        address(kube, &b, "net1", false)
    );
    gone(kube, &[&b, &c]);
    below_a_device(kube, &namespace);
}

/// A device of the node that is moved into the pod has its address, and goes back without it.
fn below_a_device(kube: &dyn Cluster, namespace: &Namespace<'_>) {
    on(
        kube,
        "n1",
        "ip link add wb0 type veth peer name wb1 && ip addr add 10.77.0.1/24 dev wb0 && ip link set wb0 up",
    );
    let config = json!({"cniVersion": "1.0.0", "type": "host-device", "device": "wb1",
        "ipam": {"type": "whereabouts", "range": "10.77.0.0/24", "range_start": "10.77.0.11",
            "range_end": "10.77.0.11", "configuration_path": whereabouts::CONFIGURATION}});
    let (ns, d) = (namespace.name(), namespace.pod("d"));
    apply(kube, &[nad(ns, "device", &[], &config.to_string())]);
    for _ in 0..2 {
        apply(kube, &[pod(ns, "d", "n1", &[(NETWORKS, "device")])]);
        ready(kube, &[&d]);
        assert_eq!(address(kube, &d, "net1", false), "10.77.0.11");
        assert!(pings(kube, &d, "-I net1 10.77.0.1"));
        gone(kube, &[&d]);
        holds("the device is back on its node", TIMEOUT, || {
            on(kube, "n1", "ip -o addr show; ip -o link show").contains(" wb1@wb0:")
        });
        let addresses = on(kube, "n1", "ip -o addr show dev wb1");
        assert!(!addresses.contains("10.77.0.11"), "{addresses}");
    }
}
