//! What is wrong with a network, and with a pod that cannot have it, is told where people look: in the status
//! and by Events, which are counted and not repeated.

use crate::common::{PLEXUS, apply, event, holds, network, network_object, pod};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Namespace, test_cluster};
use serde_json::{Value, json};

#[test]
fn a_network_over_the_clusters_own_addresses_waits_and_every_address_is_none() {
    let kube = test_cluster::shared().expect("a cluster");
    let namespace = Namespace::create(kube, "own").expect("a namespace");
    let ns = namespace.name();
    let spec = |cidr: &str| json!({"subnets": {"a": {"cidr": cidr}}});
    apply(
        kube,
        &[
            network(ns, "pods", spec("10.244.0.0/16")),
            network(ns, "everything", spec("0.0.0.0/0")),
            pod(ns, "p", "n1", &[(PLEXUS, "pods")]),
        ],
    );
    for (name, phase, reason, words) in [
        (
            "pods",
            "Pending",
            "SubnetConflict",
            ["spec.subnets", "10.244.0.0/16 overlaps", "other addresses"],
        ),
        (
            "everything",
            "Failed",
            "InvalidSpec",
            ["subnets.a.cidr", "0.0.0.0/0", "10.1.0.0/16"],
        ),
    ] {
        let object = network_object(ns, name);
        let is = |net: &Value| net["status"]["phase"] == phase;
        let seen = kube.wait_for(&object, TIMEOUT, &is).expect(phase);
        let output_of = seen["status"]["conditions"].to_string();
        assert!(
            words.iter().all(|word| output_of.contains(word)),
            "{output_of}"
        );
        event(kube, &object, reason, &words);
    }
    event(
        kube,
        &namespace.pod("p"),
        "FailedAttach",
        &["pods", "10.244.0.0/16 overlaps"],
    );
}

#[test]
fn a_failure_that_lasts_is_one_event_that_is_counted() {
    let kube = test_cluster::shared().expect("a cluster");
    let namespace = Namespace::create(kube, "counted").expect("a namespace");
    let ns = namespace.name();
    apply(kube, &[pod(ns, "p", "n1", &[(PLEXUS, "nowhere")])]);
    let events = || -> Vec<Value> {
        let all = kube.list("v1", "Event", ns).expect("Events");
        let of = all.into_iter();
        of.filter(|one| one["reason"] == "FailedAttach").collect()
    };
    holds("counted", TIMEOUT, || {
        let all = events();
        all.first()
            .is_some_and(|one| one["count"].as_u64() > Some(2))
    });
    assert_eq!(events().len(), 1, "{:?}", events());
}
