//! NADs that are edited or deleted while pods use them: the pods go on, their deletion works, and
//! Events say what happened.

use crate::common::{
    NETWORKS, NodeCleanup, address, apply, contrail_nad, event, gone, nad, nad_object,
    network_object, on, output_of, pings, pod, ready,
};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Namespace, test_cluster};
use serde_json::Value;

#[test]
fn pods_go_on_when_their_nad_is_edited_or_deleted() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "changed").expect("a namespace");
    let ns = namespace.name();
    let _clean = NodeCleanup {
        cluster: kube,
        node: "n1",
        script: "ip link del e2echg0; ip link del e2echg1".to_owned(),
    };
    let bridge = |name: &str, subnet: &str| {
        format!(
            r#"{{"cniVersion": "0.3.1", "type": "bridge", "bridge": "{name}", "isGateway": true,
               "ipam": {{"type": "host-local", "subnet": "{subnet}"}}}}"#
        )
    };
    apply(
        kube,
        &[
            contrail_nad(ns, "blue", "10.76.0.0/24", &[]),
            nad(ns, "br", &[], &bridge("e2echg0", "10.77.0.0/24")),
            pod(ns, "a", "n1", &[(NETWORKS, "blue,br")]),
            pod(ns, "b", "n2", &[(NETWORKS, "blue")]),
        ],
    );
    let [a, b, c] = ["a", "b", "c"].map(|name| namespace.pod(name));
    let (blue, br) = (nad_object(ns, "blue"), nad_object(ns, "br"));
    ready(kube, &[&a, &b]);
    let there = address(kube, &b, "net1", false);
    let before = output_of(kube, &a, "ip -br addr; ip route");
    let as_ever = || {
        assert_eq!(output_of(kube, &a, "ip -br addr; ip route"), before);
        assert!(pings(kube, &a, &format!("-I net1 {there}")));
        assert!(pings(kube, &a, "-I net2 10.77.0.1"));
    };
    as_ever();

    apply(
        kube,
        &[
            contrail_nad(ns, "blue", "10.78.0.0/24", &[]),
            nad(ns, "br", &[], &bridge("e2echg1", "10.79.0.0/24")),
        ],
    );
    for changed in [&blue, &br] {
        event(kube, changed, "NetworkChangedInUse", &["edited", "n1"]);
        event(kube, &a, "NetworkChangedInUse", &["edited", &changed.name]);
    }
    event(kube, &blue, "NetworkInUse", &["subnets"]);
    let differs = |net: &Value| {
        net["status"]["conditions"]
            .to_string()
            .contains("FollowsNad")
    };
    kube.wait_for(&network_object(ns, "blue"), TIMEOUT, &differs)
        .expect("says so");
    as_ever();
    // A new pod gets what is written now.
    apply(kube, &[pod(ns, "c", "n1", &[(NETWORKS, "br")])]);
    ready(kube, &[&c]);
    assert!(address(kube, &c, "net1", false).starts_with("10.79.0."));

    gone(kube, &[&blue, &br]);
    event(kube, &a, "NetworkChangedInUse", &["deleted", "blue"]);
    event(kube, &a, "NetworkChangedInUse", &["deleted", "br"]);
    as_ever();
    let ends = |net: &Value| net["status"]["phase"] == "Terminating";
    kube.wait_for(&network_object(ns, "blue"), TIMEOUT, &ends)
        .expect("Terminating");
    gone(kube, &[&a, &b, &c]);
    kube.wait_gone(&network_object(ns, "blue"), TIMEOUT)
        .expect("gone");
    let leases = on(
        kube,
        "n1",
        "find /var/lib/cni/networks -name '10.7[79].0.*' | wc -l",
    );
    assert_eq!(leases.trim(), "0");
}
