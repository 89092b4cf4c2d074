//! Whatever dies, comes back with all that it had and leaves nothing behind: every component killed
//! under churn, etcd restored from a backup, pods that move by force, an API server that stays away.

use crate::common;
use crate::disturb;
use crate::disturb::churn::Churn;
use crate::disturb::follower::Follower;
use crate::disturb::{
    Scenario, kill_agent, kill_controller, pod_of_three, record_of, three_networks, uid_of,
    wait_agent,
};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::test_cluster::Need;
use plexus_kubekit::{Breakable, Cluster, Kube, Object, Part, wait};
use serde_json::{Value, json};

/// An address that a pod asks for by itself.
const FIXED: &str = "10.35.0.77";

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::with(
            Need::Parts,
            "everything is killed under churn",
            everything_is_killed,
        ),
        Scenario::anywhere("twenty sandboxes without an API server", twenty_sandboxes),
        Scenario::anywhere("a pod moves by force", a_pod_moves_by_force),
        Scenario::with(Need::Parts, "etcd is restored", etcd_is_restored),
    ]
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
            kill_agent(kube, node);
            due(1);
            kill_controller(kube);
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
            kill_agent(kube, node);
            lab.start(&Part::ApiServer).expect("started");
            lab.wait_api().expect("back");
        }
    });
    for node in ["n1", "n2"] {
        lab.ensure(&Part::Kubelet(node.to_owned())).expect("runs");
        wait_agent(kube, node);
    }
    let remaining = churn.remaining();
    assert_eq!(remaining.len(), 20);
    plexus_kubekit::consistency::check(kube, disturb::SETTLE_TIMEOUT).expect("with pods");
}

/// The kubelet makes sandboxes again from what it knows, the agent from what is on its disk.
fn twenty_sandboxes(cluster: &dyn Breakable) {
    let namespace = disturb::namespace(cluster, "cut-off");
    three_networks(cluster, namespace.name());
    let names: Vec<String> = (0..20).map(|number| format!("p{number}")).collect();
    let pods: Vec<Object> = names.iter().map(|name| namespace.pod(name)).collect();
    let texts: Vec<Value> = names
        .iter()
        .map(|name| pod_of_three(namespace.name(), name, "n1"))
        .collect();
    common::apply(cluster, &texts);
    for pod in &pods {
        disturb::wait_ready(cluster, pod, TIMEOUT * 2);
    }
    cluster.kill_api().expect("killed");
    let came_back = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        kill_agent(cluster, "n1");
        let sandboxes = || {
            cluster
                .sandboxes("n1", namespace.name())
                .expect("sandboxes")
        };
        let before = sandboxes();
        assert_eq!(before.len(), 20);
        for id in &before {
            cluster.stop_sandbox("n1", id).expect("stopped");
        }
        wait::until("all sandboxes are new", TIMEOUT * 2, || {
            let now = sandboxes();
            Ok((now.len() == 20 && now.is_disjoint(&before)).then_some(()))
        })
        .expect("new");
        let script = "curl -sf http://127.0.0.1:9091/attachments";
        let text = cluster
            .on_node("n1", &["sh", "-c", script])
            .expect("runs")
            .text();
        let journal: Vec<Value> = serde_json::from_str(&text.expect("an answer")).expect("JSON");
        for id in sandboxes() {
            let own = journal.iter().filter(|one| one["container"] == id.as_str());
            assert_eq!(own.count(), 4, "{id}");
        }
    }));
    cluster.start_api().expect("back");
    assert!(came_back.is_ok());
    for pod in &pods {
        disturb::wait_ready(cluster, pod, TIMEOUT);
    }
    plexus_kubekit::consistency::check(cluster.observer(), disturb::SETTLE_TIMEOUT)
        .expect("with pods");
}

/// Its old node cannot be asked, and on Kubernetes has the same name running: with an address that the pod asks for
/// by itself, which stays with the old one until its node has seen it gone.
fn a_pod_moves_by_force(cluster: &dyn Breakable) {
    let namespace = disturb::namespace(cluster, "moved");
    let space = namespace.name();
    three_networks(cluster, space);
    let home = common::contrail_nad(space, "home", "10.35.0.0/16", &[]);
    common::apply(cluster, &[home]);
    let asks = format!(r#"[{{"name": "home", "ips": ["{FIXED}/16"]}}]"#);
    let fixed_on =
        |node: &str| common::pod(space, "fixed", node, &[(common::NETWORKS, asks.as_str())]);
    let (pod, fixed) = (namespace.pod("p"), namespace.pod("fixed"));
    common::apply(cluster, &[pod_of_three(space, "p", "n1"), fixed_on("n1")]);
    common::ready(cluster, &[&pod, &fixed]);
    assert_eq!(common::address(cluster, &fixed, "net1", false), FIXED);
    let old = record_of(space, &uid_of(cluster, &pod));
    let old_fixed = record_of(space, &uid_of(cluster, &fixed));
    cluster.cut_off("n1").expect("cut off");
    let moved = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for pod in [&pod, &fixed] {
            cluster.api().delete(pod, Some(0)).expect("deleted");
            cluster.wait_gone(pod, TIMEOUT).expect("gone");
        }
        common::apply(cluster, &[pod_of_three(space, "p", "n2"), fixed_on("n2")]);
        common::ready(cluster, &[&pod]);
        assert_eq!(common::attachments(cluster, &pod).len(), 4);
        common::event(cluster, &fixed, "FailedAttach", &[FIXED, "n1"]);
        let new_fixed = record_of(space, &uid_of(cluster, &fixed));
        let told = cluster.get(&new_fixed).expect("asked").unwrap_or_default();
        assert!(!told.to_string().contains(FIXED), "given twice: {told}");
        for record in [&old, &old_fixed] {
            assert!(
                cluster.get(record).expect("asked").is_some(),
                "nobody has seen it end"
            );
        }
        let remaining = cluster.get(&old_fixed).expect("asked").unwrap_or_default();
        assert!(remaining.to_string().contains(FIXED), "{remaining}");
    }));
    cluster.rejoin("n1").expect("joined");
    assert!(moved.is_ok());
    let after = common::attachments(cluster, &pod);
    for record in [&old, &old_fixed] {
        cluster.wait_gone(record, TIMEOUT).expect("gone");
    }
    assert_eq!(
        common::attachments(cluster, &pod),
        after,
        "the old one's end touched the new one"
    );
    // Its block is n1's, which has seen the old one gone: there it is free.
    common::gone(cluster, &[&fixed]);
    common::apply(cluster, &[fixed_on("n1")]);
    common::ready(cluster, &[&fixed]);
    assert_eq!(common::address(cluster, &fixed, "net1", false), FIXED);
}

/// The cluster forgets a block that is in use: its node makes it again; and another one that somebody
/// else has taken meanwhile: its node issues nothing from it any more, and says so.
fn etcd_is_restored(kube: &Kube) {
    // What earlier scenes delete must not be in the copy: it would come back half deleted, and the garbage
    // collector, which has seen it go, would not look at it again.
    let gone = wait::until("earlier scenes' namespaces are gone", TIMEOUT * 2, || {
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
        disturb::wait_ready(kube, pod, TIMEOUT * 2);
    }
    let [remaining, lost] = pods.each_ref().map(|pod| {
        let address = common::address(kube, pod, "net1", false);
        (block_of(kube, &address).expect("a block"), address)
    });

    // It hears nothing of the outage: only the versions of the server that it finds afterwards tell it.
    let names = [&remaining, &lost].map(|(block, _)| {
        let name = block["metadata"]["name"].as_str();
        name.expect("a name").to_owned()
    });
    let mut follower = Follower::new(&lab.layout().kubeconfig());
    follower.listen_until(TIMEOUT, |known| {
        names.iter().all(|name| known.contains(name))
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
        assert!(block_of(kube, &remaining.1).is_none() && block_of(kube, &lost.1).is_none());
        follower.listen_until(TIMEOUT, |known| {
            !names.iter().any(|name| known.contains(name))
        });
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

    let again = wait::until("the block is there again", TIMEOUT * 2, || {
        Ok(block_of(kube, &remaining.1))
    });
    assert_eq!(again.expect("there")["spec"], remaining.0["spec"]);
    let network = common::network_object(space, "lost");
    common::event(kube, &network, "BlockLost", &["n2"]);
    for pod in &pods {
        disturb::wait_ready(kube, pod, TIMEOUT * 2);
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
    disturb::wait_ready(kube, &next, TIMEOUT * 2);
    let block = block_of(kube, &common::address(kube, &next, "net1", false)).expect("a block");
    assert_eq!(block["spec"]["node"], "n1");
    assert_ne!(block["spec"]["cidr"], lost.0["spec"]["cidr"]);
    let block = block_of(kube, &common::address(kube, &next, "net2", false)).expect("a block");
    assert_eq!(
        block["spec"], remaining.0["spec"],
        "the block goes on being used"
    );
    // The rest agrees once the pod is gone that uses another node's address.
    for pod in [&pods[0], &pods[1], &next] {
        kube.delete(pod).expect("deleted");
        kube.wait_gone(pod, TIMEOUT).expect("gone");
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
