//! Agents and controller come and go while pods start: no pod fails for good or lacks an interface,
//! networks are known before pods are handled, what was installed stays in place.
#![cfg(feature = "e2e")]
#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

mod common;
mod disturb;

use disturb::churn::Churn;
use disturb::{Away, agents, kill_plexus, play, pod_of_three, three_networks, uid_of, wait_agent};
use plexus_kubekit::cluster::PATIENCE;
use plexus_kubekit::{Cluster, Kube, Object, wait};
use serde_json::json;

const CONFLIST: &str = "/etc/cni/net.d/00-plexus.conflist";
const SHIM: &str = "/opt/cni/bin/plexus-cni";

#[test]
fn restarts() {
    play(&[
        ("ten restarts of agents and controller", ten_restarts),
        ("a rolling update", a_rolling_update),
        ("a network made while the controller is away", no_controller),
        ("the shim is replaced while it runs", the_shim_is_replaced),
        ("the conflist stays", the_conflist_stays),
        ("mounts that do not propagate", wrong_mounts),
    ]);
}

fn ten_restarts(kube: &Kube) {
    let namespace = disturb::namespace(kube, "restart");
    three_networks(kube, namespace.name());
    let nodes = kube.nodes().expect("nodes");
    let standing: Vec<Object> = nodes.iter().map(|node| namespace.pod(node)).collect();
    for node in &nodes {
        common::apply(kube, &[pod_of_three(namespace.name(), node, node)]);
    }
    common::ready(kube, &standing.iter().collect::<Vec<_>>());
    let before: Vec<String> = standing.iter().map(|pod| real(kube, pod)).collect();

    let churn = Churn::new(kube, namespace.name(), usize::MAX, 0);
    let pods = churn.during(|churn| {
        for round in 0..10 {
            let node = &nodes[round % nodes.len()];
            let begun = churn.count();
            assert!(kill_plexus(kube, node, "agent"), "no agent on {node}");
            kill_controller(kube);
            wait_agent(kube, node);
            churn.wait_for(begun + 4);
        }
    });
    eprintln!("{pods} pods were started meanwhile");
    let after: Vec<String> = standing.iter().map(|pod| real(kube, pod)).collect();
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after, "a running pod lost something");
    }
    no_attach_failed(kube, namespace.name());
}

fn a_rolling_update(kube: &Kube) {
    let namespace = disturb::namespace(kube, "rolling");
    three_networks(kube, namespace.name());
    let churn = Churn::new(kube, namespace.name(), usize::MAX, 0);
    let pods = churn.during(|churn| {
        churn.wait_for(4);
        let template = json!({"metadata": {"annotations": {"test/turn": format!("{:?}", std::time::Instant::now())}}});
        let patch = json!({"spec": {"template": template}});
        kube.lab().api().merge(&agents(), &patch).expect("patched");
        kube.wait_rolled_out(&agents()).expect("rolled out");
    });
    eprintln!("{pods} pods were started meanwhile");
    no_attach_failed(kube, namespace.name());
    let failed = told(kube, namespace.name(), "FailedCreatePodSandBox");
    assert!(failed.is_empty(), "{failed:?}");
}

/// A NAD becomes a network as soon as the controller is back, and its pod waits for that.
fn no_controller(kube: &Kube) {
    let namespace = disturb::namespace(kube, "late");
    kill_controller(kube);
    let late = common::contrail_nad(namespace.name(), "late", "10.66.0.0/24", &[]);
    let pod = common::pod(namespace.name(), "p", "n1", &[(common::NETWORKS, "late")]);
    common::apply(kube, &[late, pod]);
    let pod = namespace.pod("p");
    common::ready(kube, &[&pod]);
    assert_eq!(common::interfaces(kube, &pod).len(), 2);
}

/// A program that is being executed cannot be written, only replaced. Another text under the name of
/// the shim stands for an older version.
fn the_shim_is_replaced(kube: &Kube) {
    let on = |script: &str| kube.on_node("n1", &["sh", "-c", script]).expect("runs");
    let older = format!(
        "cp {SHIM} {SHIM}.x && echo older >>{SHIM}.x && mv {SHIM}.x {SHIM} && cksum <{SHIM}"
    );
    let real = on(&format!("cksum <{SHIM}")).text().expect("a sum");
    assert_ne!(on(&older).text().expect("replaced"), real);
    // It waits for its configuration on standard input, as long as the pipe is open.
    let wait = "until [ -e /run/go ]; do sleep 0.1; done";
    let run = format!("({wait}) | CNI_COMMAND=VERSION {SHIM} >/run/said 2>&1");
    on(&format!(
        "rm -f /run/go; setsid sh -c '{run}' </dev/null >/dev/null 2>&1 & sleep 0.2"
    ));
    let runs = on("for dir in /proc/[0-9]*; do readlink $dir/exe; done | grep -c plexus-cni");
    assert_ne!(runs.stdout.trim(), "0", "it does not run");
    assert!(kill_plexus(kube, "n1", "agent"));
    let replaced = wait::until("the shim", PATIENCE, || {
        Ok((on(&format!("cksum <{SHIM}")).stdout == real).then_some(()))
    });
    let said = on(
        "touch /run/go; for i in $(seq 50); do grep -q cniVersion /run/said && break; sleep 0.1; done; cat /run/said; rm -f /run/go /run/said",
    );
    replaced.expect("replaced while it ran");
    assert!(said.stdout.contains("supportedVersions"), "{said:?}");
    let left = on("ls /opt/cni/bin | grep -c '^[.]\\|partial\\|tmp\\|[.]x$'");
    assert_eq!(left.stdout.trim(), "0", "something is left beside it");
    wait_agent(kube, "n1");
}

fn the_conflist_stays(kube: &Kube) {
    let there = |node: &str| {
        kube.on_node(node, &["test", "-s", CONFLIST])
            .is_ok_and(|o| o.ok())
    };
    let away = Away::send(kube, "n2");
    assert!(there("n2"), "the agent took its conflist along");
    drop(away);
    kube.on_node("n2", &["rm", CONFLIST]).expect("runs");
    common::holds("the conflist is back", PATIENCE, || there("n2"));
}

/// The agent's own pod, but for the propagation.
fn wrong_mounts(kube: &Kube) {
    let set = kube.get(&agents()).expect("asked").expect("is there");
    let mut spec = set["spec"]["template"]["spec"].clone();
    let mounts = spec["containers"][0]["volumeMounts"].as_array_mut();
    for mount in mounts.expect("mounts") {
        mount
            .as_object_mut()
            .expect("a mount")
            .remove("mountPropagation");
    }
    spec["nodeName"] = json!("n1");
    spec["restartPolicy"] = json!("Never");
    let metadata = json!({"name": "wrong-mounts", "namespace": "plexus-system"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    kube.apply(&pod.to_string()).expect("applied");
    let pod = Object::pod("plexus-system", "wrong-mounts");
    let ended = kube.wait_for(&pod, PATIENCE, &|pod| pod["status"]["phase"] == "Failed");
    let logs = kube.kubectl(&["logs", "-n", "plexus-system", "wrong-mounts"], "");
    common::gone(kube, &[&pod]);
    ended.expect("it refuses");
    let said = logs.expect("runs").stdout;
    for words in [
        "/run/netns",
        "mountPropagation: HostToContainer",
        "mountPropagation: Bidirectional",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    wait_agent(kube, "n1");
}

/// What the pod really has, and in which sandbox. Not the state of a link, which the kernel tells
/// a moment late.
fn real(kube: &Kube, pod: &Object) -> String {
    let script = "ip -br link | awk '{print $1, $3, $4}'; ip -br addr | awk '{$2 = \"\"; print}'; \
                  ip route; ip -6 route";
    let shown = common::said(kube, pod, script);
    let sandbox = kube.sandbox(pod).expect("a sandbox");
    format!("{} {sandbox}\n{shown}", uid_of(kube, pod))
}

/// There is one; if it was killed just now, it has to come back first.
fn kill_controller(kube: &Kube) {
    let nodes = kube.nodes().expect("nodes");
    common::holds("the controller is killed", PATIENCE, || {
        nodes
            .iter()
            .any(|node| kill_plexus(kube, node, "controller"))
    });
}

/// Not even for a moment was a network unknown. What an agent would have said may have died with it;
/// the kubelet, which nobody kills here, repeats every error of CNI. That an agent was away for longer
/// than the shim waits is no answer of an agent.
fn no_attach_failed(kube: &Kube, namespace: &str) {
    let mut failed = told(kube, namespace, "FailedCreatePodSandBox");
    failed.retain(|message| !message.contains("the agent does not answer"));
    failed.extend(told(kube, namespace, "FailedAttach"));
    assert!(failed.is_empty(), "{failed:?}");
}

/// The messages of all Events of a namespace with this reason.
fn told(kube: &Kube, namespace: &str, reason: &str) -> Vec<String> {
    let events = kube.list("v1", "Event", namespace).expect("Events");
    let about = events.iter().filter(|event| event["reason"] == reason);
    about
        .map(|event| event["message"].as_str().unwrap_or_default().to_owned())
        .collect()
}
