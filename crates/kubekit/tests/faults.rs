//! Whatever dies, comes back with all that it had and leaves nothing behind: every component killed
//! under churn, etcd restored from a backup, pods that move by force, an API server that stays away.
#![cfg(feature = "e2e")]
#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

mod common;
mod disturb;

use disturb::churn::Churn;
use disturb::{kill_plexus, play, pod_of_three, record_of, three_networks, uid_of, wait_agent};
use plexus_kubekit::cluster::PATIENCE;
use plexus_kubekit::{Cluster, Kube, Object, Part, wait};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// An address that a pod asks for by itself.
const FIXED: &str = "10.35.0.77";

#[test]
fn faults() {
    play(&[
        ("everything is killed under churn", everything_is_killed),
        ("twenty sandboxes without an API server", twenty_sandboxes),
        ("a pod moves by force", a_pod_moves_by_force),
        ("etcd is restored", etcd_is_restored),
    ]);
}

/// A hundred pods; each part is killed twice. Nothing starts the lab's own parts again but we.
fn everything_is_killed(kube: &Kube) {
    let namespace = disturb::namespace(kube, "killed");
    three_networks(kube, namespace.name());
    let churn = Churn::new(kube, namespace.name(), 100, 20);
    let lab = kube.lab();
    churn.during(|churn| {
        for (round, node) in ["n1", "n2"].into_iter().enumerate() {
            let kubelet = Part::Kubelet(node.to_owned());
            let containerd = Part::Containerd(node.to_owned());
            let due = |step: usize| churn.wait_for(round * 45 + step * 9 + 5);
            due(0);
            wait_agent(kube, node);
            assert!(kill_plexus(kube, node, "agent"), "no agent on {node}");
            due(1);
            let killed = ["n1", "n2"].map(|node| kill_plexus(kube, node, "controller"));
            assert!(killed.contains(&true), "no controller");
            due(2);
            lab.kill(&kubelet).expect("killed");
            lab.start(&kubelet).expect("started");
            due(3);
            lab.kill(&containerd).expect("killed");
            lab.start(&containerd).expect("started");
            // It may have ended for want of a runtime.
            lab.ensure(&kubelet).expect("runs");
            due(4);
            wait_agent(kube, node);
            lab.kill(&Part::ApiServer).expect("killed");
            assert!(kill_plexus(kube, node, "agent"), "no agent on {node}");
            lab.start(&Part::ApiServer).expect("started");
            lab.wait_api().expect("back");
        }
    });
    for node in ["n1", "n2"] {
        lab.ensure(&Part::Kubelet(node.to_owned())).expect("runs");
        wait_agent(kube, node);
    }
    let kept = churn.kept();
    assert_eq!(kept.len(), 20);
    plexus_kubekit::truth::check(kube, disturb::SETTLED).expect("with pods");
}

/// The kubelet makes sandboxes again from what it knows, the agent from what is on its disk.
fn twenty_sandboxes(kube: &Kube) {
    let namespace = disturb::namespace(kube, "cut-off");
    three_networks(kube, namespace.name());
    let names: Vec<String> = (0..20).map(|number| format!("p{number}")).collect();
    let pods: Vec<Object> = names.iter().map(|name| namespace.pod(name)).collect();
    let texts: Vec<Value> = names
        .iter()
        .map(|name| pod_of_three(namespace.name(), name, "n1"))
        .collect();
    common::apply(kube, &texts);
    for pod in &pods {
        disturb::wait_ready(kube, pod, PATIENCE * 2);
    }
    let lab = kube.lab();
    lab.kill(&Part::ApiServer).expect("killed");
    let came_back = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        assert!(kill_plexus(kube, "n1", "agent"));
        let before = sandboxes(kube, namespace.name());
        assert_eq!(before.len(), 20);
        for id in &before {
            kube.crictl("n1", &["stopp", id])
                .expect("runs")
                .text()
                .expect("stopped");
        }
        wait::until("all sandboxes are new", PATIENCE * 2, || {
            let now = sandboxes(kube, namespace.name());
            Ok((now.len() == 20 && now.is_disjoint(&before)).then_some(()))
        })
        .expect("new");
        let script = "curl -sf http://127.0.0.1:9091/attachments";
        let text = kube
            .on_node("n1", &["sh", "-c", script])
            .expect("runs")
            .text();
        let journal: Vec<Value> = serde_json::from_str(&text.expect("an answer")).expect("JSON");
        for id in sandboxes(kube, namespace.name()) {
            let own = journal.iter().filter(|one| one["container"] == id.as_str());
            assert_eq!(own.count(), 4, "{id}");
        }
    }));
    lab.start(&Part::ApiServer).expect("started");
    lab.wait_api().expect("back");
    assert!(came_back.is_ok());
    for pod in &pods {
        disturb::wait_ready(kube, pod, PATIENCE);
    }
    plexus_kubekit::truth::check(kube, disturb::SETTLED).expect("with pods");
}

/// Its old node cannot be asked, and has the same name running: with an address that the pod asks for
/// by itself, which stays with the old one until its node has seen it gone.
fn a_pod_moves_by_force(kube: &Kube) {
    let namespace = disturb::namespace(kube, "moved");
    let space = namespace.name();
    three_networks(kube, space);
    let home = common::contrail_nad(space, "home", "10.35.0.0/16", &[]);
    common::apply(kube, &[home]);
    let asks = format!(r#"[{{"name": "home", "ips": ["{FIXED}/16"]}}]"#);
    let fixed_on =
        |node: &str| common::pod(space, "fixed", node, &[(common::NETWORKS, asks.as_str())]);
    let (pod, fixed) = (namespace.pod("p"), namespace.pod("fixed"));
    common::apply(kube, &[pod_of_three(space, "p", "n1"), fixed_on("n1")]);
    common::ready(kube, &[&pod, &fixed]);
    assert_eq!(common::address(kube, &fixed, "net1", false), FIXED);
    let old = record_of(space, &uid_of(kube, &pod));
    let old_fixed = record_of(space, &uid_of(kube, &fixed));
    let kubelet = Part::Kubelet("n1".to_owned());
    kube.lab().kill(&kubelet).expect("killed");
    let moved = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for pod in [&pod, &fixed] {
            kube.lab().api().delete(pod, Some(0)).expect("deleted");
            kube.wait_gone(pod, PATIENCE).expect("gone");
        }
        common::apply(kube, &[pod_of_three(space, "p", "n2"), fixed_on("n2")]);
        common::ready(kube, &[&pod]);
        assert_eq!(common::attachments(kube, &pod).len(), 4);
        common::event(kube, &fixed, "FailedAttach", &[FIXED, "n1"]);
        let new_fixed = record_of(space, &uid_of(kube, &fixed));
        let told = kube.get(&new_fixed).expect("asked").unwrap_or_default();
        assert!(!told.to_string().contains(FIXED), "given twice: {told}");
        for record in [&old, &old_fixed] {
            assert!(kube.get(record).expect("asked").is_some(), "it still runs");
        }
        let kept = kube.get(&old_fixed).expect("asked").unwrap_or_default();
        assert!(kept.to_string().contains(FIXED), "{kept}");
    }));
    kube.lab().start(&kubelet).expect("started");
    assert!(moved.is_ok());
    let after = common::attachments(kube, &pod);
    for record in [&old, &old_fixed] {
        kube.wait_gone(record, PATIENCE).expect("gone");
    }
    assert_eq!(
        common::attachments(kube, &pod),
        after,
        "the old one's end touched the new one"
    );
    // Its block is n1's, which has seen the old one gone: there it is free.
    common::gone(kube, &[&fixed]);
    common::apply(kube, &[fixed_on("n1")]);
    common::ready(kube, &[&fixed]);
    assert_eq!(common::address(kube, &fixed, "net1", false), FIXED);
}

/// The cluster forgets a block that is in use: its node makes it again; and another one that somebody
/// else has taken meanwhile: its node issues nothing from it any more, and says so.
fn etcd_is_restored(kube: &Kube) {
    // What earlier scenes delete must not be in the copy: it would come back half deleted, and the garbage
    // collector, which has seen it go, would not look at it again.
    let gone = wait::until("earlier scenes' namespaces are gone", PATIENCE * 2, || {
        let all = kube.list("v1", "Namespace", "")?;
        let goes = |one: &Value| !one["metadata"]["deletionTimestamp"].is_null();
        Ok((!all.iter().any(goes)).then_some(()))
    });
    gone.expect("gone");
    let namespace = disturb::namespace(kube, "restored");
    let space = namespace.name();
    let subnet = |cidr: &str| json!({"subnets": {"a": {"cidr": cidr}}});
    common::apply(
        kube,
        &[
            common::network(space, "kept", subnet("10.31.0.0/16")),
            common::network(space, "lost", subnet("10.32.0.0/16")),
        ],
    );
    let kubelet = Part::Kubelet("n1".to_owned());
    let lab = kube.lab();
    lab.kill(&kubelet).expect("killed");
    // They are known before the backup, and get their blocks after it.
    for name in ["kept", "lost"] {
        common::apply(
            kube,
            &[common::pod(space, name, "n1", &[(common::PLEXUS, name)])],
        );
    }
    let copy = lab.snapshot_etcd().expect("a copy");
    lab.start(&kubelet).expect("started");
    let pods = ["kept", "lost"].map(|name| namespace.pod(name));
    for pod in &pods {
        disturb::wait_ready(kube, pod, PATIENCE * 2);
    }
    let [kept, lost] = pods.each_ref().map(|pod| {
        let address = common::address(kube, pod, "net1", false);
        (block_of(kube, &address).expect("a block"), address)
    });

    // n1 hears nothing until somebody else has its block.
    let cut = |verb: &str| {
        kube.on_node(
            "n1",
            &["ip", "route", verb, "blackhole", "192.168.77.254/32"],
        )
        .expect("runs")
    };
    cut("add").text().expect("cut off");
    let taken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        lab.restore_etcd(&copy).expect("restored");
        assert!(block_of(kube, &kept.1).is_none() && block_of(kube, &lost.1).is_none());
        let n2 = kube
            .get(&Object::new("v1", "Node", "", "n2"))
            .expect("asked")
            .expect("is there");
        let mut theirs = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Block",
            "metadata": {"name": lost.0["metadata"]["name"], "labels": lost.0["metadata"]["labels"]},
            "spec": lost.0["spec"]});
        theirs["metadata"]["labels"]["plexus.dev/node"] = json!("n2");
        theirs["spec"]["node"] = json!("n2");
        theirs["spec"]["nodeUID"] = n2["metadata"]["uid"].clone();
        common::apply(kube, &[theirs]);
    }));
    cut("del");
    assert!(taken.is_ok());

    let again = wait::until("the block is there again", PATIENCE * 2, || {
        Ok(block_of(kube, &kept.1))
    });
    assert_eq!(again.expect("there")["spec"], kept.0["spec"]);
    let network = common::network_object(space, "lost");
    common::event(kube, &network, "BlockLost", &["n2"]);
    for pod in &pods {
        disturb::wait_ready(kube, pod, PATIENCE * 2);
    }
    common::apply(
        kube,
        &[common::pod(
            space,
            "next",
            "n1",
            &[(common::PLEXUS, "lost,kept")],
        )],
    );
    let next = namespace.pod("next");
    disturb::wait_ready(kube, &next, PATIENCE * 2);
    let block = block_of(kube, &common::address(kube, &next, "net1", false)).expect("a block");
    assert_eq!(block["spec"]["node"], "n1");
    assert_ne!(block["spec"]["cidr"], lost.0["spec"]["cidr"]);
    let block = block_of(kube, &common::address(kube, &next, "net2", false)).expect("a block");
    assert_eq!(
        block["spec"], kept.0["spec"],
        "the block goes on being used"
    );
    // The rest agrees once the pod is gone that uses another node's address.
    for pod in [&pods[0], &pods[1], &next] {
        kube.delete(pod).expect("deleted");
        kube.wait_gone(pod, PATIENCE).expect("gone");
    }
}

fn block_of(kube: &Kube, address: &str) -> Option<Value> {
    let address: std::net::IpAddr = address.parse().expect("an address");
    let blocks = kube
        .list("plexus.dev/v1alpha1", "Block", "")
        .expect("blocks");
    blocks.into_iter().find(|block| {
        let cidr = block["spec"]["cidr"].as_str().unwrap_or_default();
        cidr.parse::<ipnet::IpNet>()
            .is_ok_and(|cidr| cidr.contains(&address))
    })
}

/// Running sandboxes of the namespace on n1.
fn sandboxes(kube: &Kube, namespace: &str) -> BTreeSet<String> {
    let wanted = format!("^{namespace}$");
    let listed = kube.crictl(
        "n1",
        &["pods", "-q", "--state", "ready", "--namespace", &wanted],
    );
    let text = listed.expect("runs").stdout;
    text.split_whitespace().map(str::to_owned).collect()
}
