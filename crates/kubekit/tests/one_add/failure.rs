//! Any failure fails the pod, says which network and why, and leaves nothing.

use crate::common::{
    NETWORKS, NodeCleanup, PodsFirst, apply, contrail_nad, event, holds, messages, nad,
    network_object, on, pod, ready,
};
use crate::traces::{allocated, journal, uid};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Cluster, Namespace, test_cluster};

#[test]
fn a_failure_fails_the_pod_with_an_event_and_leaves_nothing() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "failure").expect("a namespace");
    let ns = namespace.name();
    let bin = kube.files("n1").expect("known").plugins;
    let _clean = NodeCleanup {
        cluster: kube,
        node: "n1",
        script: format!("rm -f {bin}/e2e-refuses; ip link del e2efai0"),
    };
    let _first = PodsFirst {
        cluster: kube,
        pods: vec![namespace.pod("fails")],
    };
    // The last network's plugin refuses, when all the others are made.
    let plugin = |body: &str| {
        let script = format!(
            "cat >{bin}/e2e-new <<'END'\n#!/bin/sh\n{body}\nEND\n\
             chmod +x {bin}/e2e-new; mv {bin}/e2e-new {bin}/e2e-refuses"
        );
        on(kube, "n1", &script);
    };
    let refusal = r#"{\"cniVersion\": \"0.4.0\", \"code\": 107, \"msg\": \"e2e says no\"}"#;
    plugin(&format!(
        "test $CNI_COMMAND = DEL && exit 0; \
         test $CNI_COMMAND = VERSION && exec {bin}/macvlan; echo \"{refusal}\"; exit 1"
    ));
    let bridge = r#"{"cniVersion": "0.3.1", "type": "bridge", "bridge": "e2efai0",
        "ipam": {"type": "host-local", "subnet": "10.105.0.0/24"}}"#;
    let refuses = r#"{"cniVersion": "0.4.0", "type": "e2e-refuses"}"#;
    apply(
        kube,
        &[
            contrail_nad(ns, "blue", "10.104.0.0/24", &[]),
            nad(ns, "br", &[], bridge),
            nad(ns, "refuses", &[], refuses),
            pod(ns, "fails", "n1", &[(NETWORKS, "blue,br,refuses")]),
            pod(ns, "missing", "n1", &[(NETWORKS, "blue,nowhere")]),
            pod(
                ns,
                "garbage",
                "n1",
                &[(NETWORKS, r#"[{"name": "blue", "colour": 1}]"#)],
            ),
            pod(ns, "clash", "n1", &[(NETWORKS, "blue@x0,br@x0")]),
            pod(
                ns,
                "foreign",
                "n1",
                &[(NETWORKS, r#"[{"name": "blue", "ips": ["10.9.9.9/24"]}]"#)],
            ),
        ],
    );
    for (name, words) in [
        ("fails", vec!["refuses", "e2e says no"]),
        ("missing", vec!["nowhere", "no NetworkAttachmentDefinition"]),
        ("garbage", vec!["colour"]),
        ("clash", vec!["x0"]),
        ("foreign", vec!["blue", "10.9.9.9"]),
    ] {
        let failed = namespace.pod(name);
        let text = event(kube, &failed, "FailedAttach", &words);
        // The kubelet was told the same.
        holds("the kubelet says so", TIMEOUT, || {
            let all = messages(kube, &failed);
            let mut all = all
                .iter()
                .filter(|(why, _)| why == "FailedCreatePodSandBox");
            all.any(|(_, output_of)| output_of.contains(words[words.len() - 1]))
        });
        let seen = kube.get(&failed).expect("asked").expect("is there");
        assert_eq!(seen["status"]["phase"], "Pending", "{text}");
    }
    nothing_is_left(kube, ns);

    // It is not the pod's fault: once the plugin agrees, it starts.
    plugin(&format!("exec {bin}/macvlan"));
    let fails = namespace.pod("fails");
    let allowed = r#"{"cniVersion": "0.4.0", "type": "e2e-refuses", "master": "eth2", "ipam": {"type": "static", "addresses": [{"address": "10.106.0.5/24"}]}}"#;
    apply(kube, &[nad(ns, "refuses", &[], allowed)]);
    ready(kube, &[&fails]);
    let blue = kube
        .get(&network_object(ns, "blue"))
        .expect("asked")
        .expect("is there");
    holds("one address in use", TIMEOUT, || {
        allocated(kube, &uid(&blue)) == 1
    });
}

/// No links, no leases, no rows; the kubelet may be trying again at any moment.
fn nothing_is_left(kube: &dyn Cluster, ns: &str) {
    let blue = kube
        .get(&network_object(ns, "blue"))
        .expect("asked")
        .expect("is there");
    for name in ["fails", "missing", "garbage", "clash", "foreign"] {
        holds("no rows", TIMEOUT, || {
            journal(kube, "n1", &format!("{ns}/{name}")) == 0
        });
    }
    holds("no ports", TIMEOUT, || {
        on(
            kube,
            "n1",
            "ip -o link show master e2efai0 2>/dev/null | wc -l",
        )
        .trim()
            == "0"
    });
    holds("no leases", TIMEOUT, || {
        on(
            kube,
            "n1",
            "find /var/lib/cni/networks -name '10.105.0.*' | wc -l",
        )
        .trim()
            == "0"
    });
    holds("no addresses", TIMEOUT, || {
        allocated(kube, &uid(&blue)) == 0
    });
    let records = kube.list("plexus.dev/v1alpha1", "PodAttachments", ns);
    assert!(records.expect("records").is_empty());
}
