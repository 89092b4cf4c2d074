//! What pods ask for and cannot have, and what becomes of those that can.

use super::{FaultyLab, NADS, NETWORKS};
use crate::output::{ok, plexus};
use plexus_cli::diagnose::Reason;

pub(super) const LEADS_TO: &[Reason] = &[
    Reason::Attached,
    Reason::BadAnnotation,
    Reason::BadTogether,
    Reason::BadWish,
    Reason::Changed,
    Reason::HostNetwork,
    Reason::NadInvalid,
    Reason::NadMissing,
    Reason::NadUnreadable,
    Reason::NetworkMissing,
    Reason::NetworkTerminating,
    Reason::NoAddresses,
    Reason::NodeGone,
    Reason::NotAllowed,
    Reason::UnknownPlugin,
];

#[test]
fn what_pods_ask_for_and_cannot_have() {
    let faulty = FaultyLab::up('x', 2, LEADS_TO);
    let lab = &faulty.lab;
    let one_block = "{subnets: {a: {cidr: 10.9.0.0/30}}, blockSize: {ipv4: 30}}";
    faulty.network("tiny", one_block);
    faulty.network("wide", "{subnets: {a: {cidr: 10.6.0.0/16}}}");
    faulty.apply(
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n---\n\
         apiVersion: plexus.dev/v1alpha1\nkind: Network\nmetadata: {name: private, namespace: other}\n\
         spec: {subnets: {a: {cidr: 10.8.0.0/24}}, allowedNamespaces: {from: Same}}\n",
    );
    faulty.nad("broken", "{}", "{");
    let loud = r#"{"type": "macvlan", "mode": "loud"}"#;
    faulty.nad("wrong", "{}", loud);
    let unknown = r#"{"cniVersion": "1.0.0", "name": "x", "type": "no-such-plugin"}"#;
    faulty.nad("unknown", "{}", unknown);
    let slow = r#"[{"name": "wide", "bandwidth": {"ingressRate": 1000}}]"#;
    for (name, annotation, networks, reason) in [
        ("missing", NETWORKS, "nosuch", Reason::NetworkMissing),
        ("no-nad", NADS, "nosuch", Reason::NadMissing),
        ("odd", NETWORKS, "a,,b", Reason::BadAnnotation),
        (
            "misspelt",
            "plexus.dev/network",
            "wide",
            Reason::BadAnnotation,
        ),
        ("broken", NADS, "broken", Reason::NadUnreadable),
        ("invalid", NADS, "wrong", Reason::NadInvalid),
        ("plugin", NADS, "unknown", Reason::UnknownPlugin),
        ("foreign", NETWORKS, "other/private", Reason::NotAllowed),
        ("slow", NETWORKS, slow, Reason::BadWish),
    ] {
        faulty.pod(name, "n1", annotation, networks);
        faulty.comes_to(&["pod", name], reason, "wrong");
    }
    faulty.pod("nowhere", "n9", NETWORKS, "tiny");
    faulty.comes_to(&["pod", "nowhere"], Reason::NodeGone, "wrong");
    faulty.apply(
        "apiVersion: v1\nkind: Pod\n\
         metadata: {name: host, namespace: default, annotations: {plexus.dev/networks: wide}}\n\
         spec: {nodeName: n1, hostNetwork: true, containers: [{name: a, image: busybox}]}\n",
    );
    faulty.comes_to(&["pod", "host"], Reason::HostNetwork, "wrong");
    // Each annotation by itself is fine.
    faulty.apply(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: clash, namespace: default, annotations: \
         {plexus.dev/networks: wide, opencontrail.org/default-gw: nosuch}}\n\
         spec: {nodeName: n1, containers: [{name: a, image: busybox}]}\n",
    );
    faulty.comes_to(&["pod", "clash"], Reason::BadTogether, "wrong");

    // One address, which the first has; the other node may not have any either.
    faulty.pod("first", "n1", NETWORKS, "tiny");
    faulty.comes_to(&["pod", "first"], Reason::Attached, "ok");
    faulty.pod("second", "n1", NETWORKS, "tiny");
    faulty.comes_to(&["pod", "second"], Reason::NoAddresses, "wrong");
    faulty.comes_to(&["network", "tiny"], Reason::NoAddresses, "wrong");

    // Networks of a pod that runs.
    faulty.pod("first", "n1", NETWORKS, "tiny,tiny");
    faulty.comes_to(&["pod", "first"], Reason::Changed, "wrong");

    // What is missing comes: the pod starts by itself.
    let create = ["create", "network", "nosuch", "--subnet", "10.7.0.0/24"];
    ok(lab, &create);
    faulty.comes_to(&["pod", "missing"], Reason::Attached, "ok");
    let output = plexus(lab, &["delete", "network", "nosuch", "--wait=false"]);
    assert_eq!(output.code, Some(0), "{output:#?}");
    let terminating = Reason::NetworkTerminating;
    faulty.comes_to(&["network", "nosuch"], terminating, "waits");
    faulty.pod("late", "n2", NETWORKS, "nosuch");
    faulty.comes_to(&["pod", "late"], terminating, "wrong");
    faulty.end();
}
