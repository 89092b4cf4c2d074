//! A running pod's annotation is edited: nothing changes, and an Event says so. Networks that are not
//! for everybody.

use crate::common::{
    NETWORKS, PLEXUS, apply, contrail_nad, event, interfaces, network, output_of, pod, ready,
};
use plexus_kubekit::{Namespace, test_cluster};
use serde_json::json;

#[test]
fn an_edited_annotation_changes_nothing_and_an_event_says_so() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "edited").expect("a namespace");
    let ns = namespace.name();
    apply(
        kube,
        &[
            contrail_nad(ns, "blue", "10.98.0.0/24", &[]),
            contrail_nad(ns, "red", "10.99.0.0/24", &[]),
            pod(ns, "p", "n1", &[(NETWORKS, "blue")]),
        ],
    );
    let p = namespace.pod("p");
    ready(kube, &[&p]);
    // Not the state of a link, which the kernel tells a moment late.
    let script = "ip -br addr | awk '{$2 = \"\"; print}'; ip route; ip -6 route";
    let state = || (interfaces(kube, &p), output_of(kube, &p, script));
    let before = state();
    let edit = json!({"metadata": {"annotations": {NETWORKS: "blue,red"}}});
    kube.api().merge(&p, &edit).expect("edited");
    event(
        kube,
        &p,
        "NetworkChangedIgnored",
        &[NETWORKS, "delete the pod"],
    );
    assert_eq!(state(), before);
    // Somebody else's annotation is nobody's business.
    let other = json!({"metadata": {"annotations": {NETWORKS: null, "example.com/note": "x"}}});
    kube.api().merge(&p, &other).expect("edited");
    assert_eq!(state(), before);
}

#[test]
fn a_network_that_is_not_for_everybody_refuses_others() {
    let kube = test_cluster::shared().expect("a lab");
    let (own, friend, stranger) = (
        Namespace::create(kube, "owner").expect("a namespace"),
        Namespace::create(kube, "friend").expect("a namespace"),
        Namespace::create(kube, "stranger").expect("a namespace"),
    );
    let label = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": friend.name(), "labels": {"team": "a"}}});
    let ns = own.name();
    let subnet = |number: u8| json!({"v4": {"cidr": format!("10.{number}.0.0/24")}});
    let selector = json!({"from": "Selector", "selector": {"matchLabels": {"team": "a"}}});
    let (same, some) = (format!("{ns}/same"), format!("{ns}/some"));
    apply(
        kube,
        &[
            label,
            network(
                ns,
                "same",
                json!({"subnets": subnet(100), "allowedNamespaces": {"from": "Same"}}),
            ),
            network(
                ns,
                "some",
                json!({"subnets": subnet(101), "allowedNamespaces": selector}),
            ),
            pod(ns, "p", "n1", &[(PLEXUS, "same")]),
            pod(friend.name(), "p", "n1", &[(PLEXUS, &some)]),
            pod(friend.name(), "q", "n1", &[(PLEXUS, &same)]),
            pod(stranger.name(), "p", "n1", &[(PLEXUS, &some)]),
        ],
    );
    ready(kube, &[&own.pod("p"), &friend.pod("p")]);
    event(
        kube,
        &friend.pod("q"),
        "FailedAttach",
        &[&same, "its own namespace"],
    );
    event(kube, &stranger.pod("p"), "FailedAttach", &[&some, "team=a"]);
}
