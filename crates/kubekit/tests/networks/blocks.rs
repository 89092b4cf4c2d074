//! Addresses of a network are finite: a pod that gets none says so, and starts when one is free.

use crate::common::{PLEXUS, address, apply, event, gone, network, pod, ready};
use plexus_kubekit::cluster::{TIMEOUT, is_ready};
use plexus_kubekit::{Namespace, test_cluster, wait};
use serde_json::json;

#[test]
fn no_free_block_is_an_error_that_says_so() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "full").expect("a namespace");
    let ns = namespace.name();
    // Of four addresses two are usable, and one of those is the gateway's.
    let spec = json!({"subnets": {"a": {"cidr": "10.63.0.0/30"}}});
    apply(
        kube,
        &[
            network(ns, "tiny", spec),
            pod(ns, "first", "n1", &[(PLEXUS, "tiny")]),
        ],
    );
    let (first, second, third) = (
        namespace.pod("first"),
        namespace.pod("second"),
        namespace.pod("third"),
    );
    ready(kube, &[&first]);
    assert_eq!(address(kube, &first, "net1", false), "10.63.0.1");
    apply(
        kube,
        &[
            pod(ns, "second", "n1", &[(PLEXUS, "tiny")]),
            pod(ns, "third", "n2", &[(PLEXUS, "tiny")]),
        ],
    );
    let full = [
        "tiny",
        "no free IPv4 address",
        "no other block of 10.63.0.0/30",
    ];
    event(kube, &second, "FailedAttach", &full);
    event(
        kube,
        &third,
        "FailedAttach",
        &["tiny", "no free block in 10.63.0.0/30"],
    );
    // What failed has left nothing: as soon as the first is gone, the address is one of the others', of the
    // same node or of the other, to which it was given.
    gone(kube, &[&first]);
    let is_there = |pod| kube.get(pod).expect("asked").expect("is there");
    let waiting = [&second, &third];
    let ready = || waiting.into_iter().position(|pod| is_ready(&is_there(pod)));
    let winner = wait::until("one of them", TIMEOUT, || Ok(ready())).expect("ready");
    assert_eq!(address(kube, waiting[winner], "net1", false), "10.63.0.1");
    let loser = is_there(waiting[1 - winner]);
    assert_eq!(loser["status"]["phase"], "Pending");
}
