//! What pods ask for and cannot have, and what becomes of those that can.

use super::{NADS, NETWORKS, Scene};
use crate::said::{ok, plexus};
use plexus_cli::explain::Because;

pub(super) const LEADS_TO: &[Because] = &[
    Because::Attached,
    Because::BadAnnotation,
    Because::BadTogether,
    Because::BadWish,
    Because::Changed,
    Because::HostNetwork,
    Because::NadInvalid,
    Because::NadMissing,
    Because::NadUnreadable,
    Because::NetworkMissing,
    Because::NetworkTerminating,
    Because::NoAddresses,
    Because::NodeGone,
    Because::NotAllowed,
    Because::UnknownPlugin,
];

#[test]
fn what_pods_ask_for_and_cannot_have() {
    let scene = Scene::up('x', 2, LEADS_TO);
    let lab = &scene.lab;
    let one_block = "{subnets: {a: {cidr: 10.9.0.0/30}}, blockSize: {ipv4: 30}}";
    scene.network("tiny", one_block);
    scene.network("wide", "{subnets: {a: {cidr: 10.6.0.0/16}}}");
    scene.apply(
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n---\n\
         apiVersion: plexus.dev/v1alpha1\nkind: Network\nmetadata: {name: private, namespace: other}\n\
         spec: {subnets: {a: {cidr: 10.8.0.0/24}}, allowedNamespaces: {from: Same}}\n",
    );
    scene.nad("broken", "{}", "{");
    let loud = r#"{"type": "macvlan", "mode": "loud"}"#;
    scene.nad("wrong", "{}", loud);
    let unknown = r#"{"cniVersion": "1.0.0", "name": "x", "type": "no-such-plugin"}"#;
    scene.nad("unknown", "{}", unknown);
    let slow = r#"[{"name": "wide", "bandwidth": {"ingressRate": 1000}}]"#;
    for (name, annotation, networks, because) in [
        ("missing", NETWORKS, "nosuch", Because::NetworkMissing),
        ("no-nad", NADS, "nosuch", Because::NadMissing),
        ("odd", NETWORKS, "a,,b", Because::BadAnnotation),
        (
            "misspelt",
            "plexus.dev/network",
            "wide",
            Because::BadAnnotation,
        ),
        ("broken", NADS, "broken", Because::NadUnreadable),
        ("invalid", NADS, "wrong", Because::NadInvalid),
        ("plugin", NADS, "unknown", Because::UnknownPlugin),
        ("foreign", NETWORKS, "other/private", Because::NotAllowed),
        ("slow", NETWORKS, slow, Because::BadWish),
    ] {
        scene.pod(name, "n1", annotation, networks);
        scene.comes_to(&["pod", name], because, "wrong");
    }
    scene.pod("nowhere", "n9", NETWORKS, "tiny");
    scene.comes_to(&["pod", "nowhere"], Because::NodeGone, "wrong");
    scene.apply(
        "apiVersion: v1\nkind: Pod\n\
         metadata: {name: host, namespace: default, annotations: {plexus.dev/networks: wide}}\n\
         spec: {nodeName: n1, hostNetwork: true, containers: [{name: a, image: busybox}]}\n",
    );
    scene.comes_to(&["pod", "host"], Because::HostNetwork, "wrong");
    // Each annotation by itself is fine.
    scene.apply(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: clash, namespace: default, annotations: \
         {plexus.dev/networks: wide, opencontrail.org/default-gw: nosuch}}\n\
         spec: {nodeName: n1, containers: [{name: a, image: busybox}]}\n",
    );
    scene.comes_to(&["pod", "clash"], Because::BadTogether, "wrong");

    // One address, which the first has; the other node may not have any either.
    scene.pod("first", "n1", NETWORKS, "tiny");
    scene.comes_to(&["pod", "first"], Because::Attached, "ok");
    scene.pod("second", "n1", NETWORKS, "tiny");
    scene.comes_to(&["pod", "second"], Because::NoAddresses, "wrong");
    scene.comes_to(&["network", "tiny"], Because::NoAddresses, "wrong");

    // Networks of a pod that runs.
    scene.pod("first", "n1", NETWORKS, "tiny,tiny");
    scene.comes_to(&["pod", "first"], Because::Changed, "wrong");

    // What is missing comes: the pod starts by itself.
    let create = ["create", "network", "nosuch", "--subnet", "10.7.0.0/24"];
    ok(lab, &create);
    scene.comes_to(&["pod", "missing"], Because::Attached, "ok");
    let said = plexus(lab, &["delete", "network", "nosuch", "--wait", "0"]);
    assert_eq!(said.code, Some(0), "{said:#?}");
    let terminating = Because::NetworkTerminating;
    scene.comes_to(&["network", "nosuch"], terminating, "waits");
    scene.pod("late", "n2", NETWORKS, "nosuch");
    scene.comes_to(&["pod", "late"], terminating, "wrong");
    scene.end();
}
