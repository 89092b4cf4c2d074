//! Agents and controller come and go while pods start: no pod fails for good or lacks an interface,
//! networks are known before pods are handled, what was installed stays in place.

use crate::common;
use crate::disturb;
use crate::disturb::churn::Churn;
use crate::disturb::{
    NodeWithoutAgent, Scenario, kill_agent, kill_controller, pod_of_three, three_networks, uid_of,
    wait_agent,
};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::test_cluster::Need;
use plexus_kubekit::{Breakable, Cluster, Kube, Object, wait};
use serde_json::json;

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::anywhere("ten restarts of agents and controller", ten_restarts),
        Scenario::with(Need::Kinds, "a rolling update", a_rolling_update),
        Scenario::anywhere("a network made while the controller is away", no_controller),
        Scenario::anywhere("a network made while the agent is away", no_agent),
        Scenario::anywhere("the shim is replaced while it runs", the_shim_is_replaced),
        Scenario::anywhere("the conflist stays", the_conflist_stays),
        Scenario::with(
            Need::Containers,
            "mounts that do not propagate",
            wrong_mounts,
        ),
    ]
}

fn ten_restarts(cluster: &dyn Breakable) {
    let namespace = disturb::namespace(cluster, "restart");
    three_networks(cluster, namespace.name());
    let nodes = cluster.nodes().expect("nodes");
    let standing: Vec<Object> = nodes.iter().map(|node| namespace.pod(node)).collect();
    for node in &nodes {
        common::apply(cluster, &[pod_of_three(namespace.name(), node, node)]);
    }
    common::ready(cluster, &standing.iter().collect::<Vec<_>>());
    let before: Vec<String> = standing.iter().map(|pod| real(cluster, pod)).collect();

    let churn = Churn::new(cluster, namespace.name(), usize::MAX, 0);
    let pods = churn.during(|churn| {
        for round in 0..10 {
            let node = &nodes[round % nodes.len()];
            let begun = churn.count();
            kill_agent(cluster, node);
            kill_controller(cluster);
            wait_agent(cluster, node);
            churn.wait_for(begun + 4);
        }
    });
    eprintln!("{pods} pods were started meanwhile");
    let after: Vec<String> = standing.iter().map(|pod| real(cluster, pod)).collect();
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after, "a running pod lost something");
    }
    no_attach_failed(cluster, namespace.name());
}

fn a_rolling_update(kube: &Kube) {
    let namespace = disturb::namespace(kube, "rolling");
    three_networks(kube, namespace.name());
    let churn = Churn::new(kube, namespace.name(), usize::MAX, 0);
    let pods = churn.during(|churn| {
        churn.wait_for(4);
        let template = json!({"metadata": {"annotations": {"test/turn": format!("{:?}", std::time::Instant::now())}}});
        let patch = json!({"spec": {"template": template}});
        kube.lab().api().merge(&Kube::agents(), &patch).expect("patched");
        kube.wait_rolled_out(&Kube::agents()).expect("rolled out");
    });
    eprintln!("{pods} pods were started meanwhile");
    no_attach_failed(kube, namespace.name());
    let failed = events_with_reason(kube, namespace.name(), "FailedCreatePodSandBox");
    assert!(failed.is_empty(), "{failed:?}");
}

/// A NAD becomes a network as soon as the controller is back, and its pod waits for that.
fn no_controller(cluster: &dyn Breakable) {
    let namespace = disturb::namespace(cluster, "late");
    kill_controller(cluster);
    let late = common::contrail_nad(namespace.name(), "late", "10.66.0.0/24", &[]);
    let pod = common::pod(namespace.name(), "p", "n1", &[(common::NETWORKS, "late")]);
    common::apply(cluster, &[late, pod]);
    let pod = namespace.pod("p");
    common::ready(cluster, &[&pod]);
    assert_eq!(common::interfaces(cluster, &pod).len(), 2);
}

/// The node's agent hears of NAD, Network and pod only when it is back, in whatever order: that is no failure.
fn no_agent(cluster: &dyn Breakable) {
    let namespace = disturb::namespace(cluster, "unheard");
    let away = NodeWithoutAgent::send(cluster, "n2");
    let name = namespace.name();
    let made = [
        common::contrail_nad(name, "unheard", "10.67.0.0/24", &[]),
        common::network(
            name,
            "own",
            json!({"subnets": {"a": {"cidr": "10.68.0.0/24"}}}),
        ),
        common::pod(
            name,
            "p",
            "n2",
            &[(common::NETWORKS, "unheard"), (common::PLEXUS, "own")],
        ),
    ];
    common::apply(cluster, &made);
    let network = common::network_object(name, "unheard");
    common::holds("it is made of the NAD", TIMEOUT, || {
        cluster.get(&network).is_ok_and(|found| found.is_some())
    });
    drop(away);
    let pod = namespace.pod("p");
    common::ready(cluster, &[&pod]);
    assert_eq!(common::interfaces(cluster, &pod).len(), 3);
    no_attach_failed(cluster, name);
}

/// A program that is being executed cannot be written, only replaced. Another text under the name of
/// the shim stands for an older version.
fn the_shim_is_replaced(cluster: &dyn Breakable) {
    let on = |script: &str| cluster.on_node("n1", &["sh", "-c", script]).expect("runs");
    let shim = &cluster.files("n1").expect("files").shim;
    let older = format!(
        "cp {shim} {shim}.x && echo older >>{shim}.x && mv {shim}.x {shim} && cksum <{shim}"
    );
    let real = on(&format!("cksum <{shim}")).text().expect("a sum");
    assert_ne!(on(&older).text().expect("replaced"), real);
    // It waits for its configuration on standard input, as long as the pipe is open. Its files are beside the
    // agent's journal, where nobody takes them for plugins or configurations.
    let journal = cluster.files("n1").expect("files").journal;
    let (dir, _) = journal.rsplit_once('/').expect("a directory");
    let (go, output_of) = (&format!("{dir}/test-go"), &format!("{dir}/test-said"));
    let wait = format!("for i in $(seq 600); do [ -e {go} ] && break; sleep 0.1; done");
    let run = format!("({wait}) | CNI_COMMAND=VERSION {shim} >{output_of} 2>&1");
    on(&format!(
        "rm -f {go} {output_of}; setsid sh -c '{run}' </dev/null >/dev/null 2>&1 &"
    ));
    common::holds("the shim runs", TIMEOUT, || {
        let runs = on(&format!(
            "for dir in /proc/[0-9]*; do readlink $dir/exe; done | grep -cF {shim}"
        ));
        !matches!(runs.stdout.trim(), "" | "0")
    });
    kill_agent(cluster, "n1");
    let replaced = wait::until("the shim", TIMEOUT, || {
        Ok((on(&format!("cksum <{shim}")).stdout == real).then_some(()))
    });
    let answer = on(&format!(
        "touch {go}; for i in $(seq 300); do grep -q cniVersion {output_of} && break; sleep 0.1; done; \
         cat {output_of}; rm -f {go} {output_of}"
    ));
    replaced.expect("replaced while it ran");
    assert!(answer.stdout.contains("supportedVersions"), "{answer:?}");
    let left = on(&format!(
        "ls -a $(dirname {shim}) | grep -c '^[.][^.]\\|partial\\|tmp\\|[.]x$'"
    ));
    assert_eq!(left.stdout.trim(), "0", "something is left beside it");
    wait_agent(cluster, "n1");
}

fn the_conflist_stays(cluster: &dyn Breakable) {
    let configs = cluster.files("n2").expect("files").configs;
    let conflist = &format!("{configs}/00-plexus.conflist");
    let there = || {
        let tested = cluster.on_node("n2", &["test", "-s", conflist]);
        tested.is_ok_and(|output| output.ok())
    };
    let away = NodeWithoutAgent::send(cluster, "n2");
    assert!(there(), "the agent took its conflist along");
    drop(away);
    let removed = cluster.on_node("n2", &["rm", conflist]).expect("runs");
    removed.text().expect("removed");
    common::holds("the conflist is back", TIMEOUT, there);
}

/// The agent's own pod, but for the propagation.
fn wrong_mounts(kube: &Kube) {
    let set = kube.get(&Kube::agents()).expect("asked").expect("is there");
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
    let ended = kube.wait_for(&pod, TIMEOUT, &|pod| pod["status"]["phase"] == "Failed");
    let logs = kube.kubectl(&["logs", "-n", "plexus-system", "wrong-mounts"], "");
    common::gone(kube, &[&pod]);
    ended.expect("it refuses");
    let output_of = logs.expect("runs").stdout;
    for words in [
        "/run/netns",
        "mountPropagation: HostToContainer",
        "mountPropagation: Bidirectional",
    ] {
        assert!(output_of.contains(words), "{words}: {output_of}");
    }
    wait_agent(kube, "n1");
}

/// What the pod really has, and in which sandbox. Not the state of a link, which the kernel tells
/// a moment late.
fn real(cluster: &dyn Breakable, pod: &Object) -> String {
    let script = "ip -br link | awk '{print $1, $3, $4}'; ip -br addr | awk '{$2 = \"\"; print}'; \
                  ip route; ip -6 route";
    let printed = common::output_of(cluster, pod, script);
    let sandbox = cluster.sandbox_of(pod).expect("a sandbox");
    format!("{} {sandbox:?}\n{printed}", uid_of(cluster, pod))
}

/// Not even for a moment was a network unknown. What an agent would have said may have died with it;
/// the kubelet, which nobody kills here, repeats every error of CNI. That an agent was away for longer
/// than the shim waits is no answer of an agent.
fn no_attach_failed(cluster: &dyn Breakable, namespace: &str) {
    let mut failed = events_with_reason(cluster, namespace, "FailedCreatePodSandBox");
    failed.retain(|message| !message.contains("the agent does not answer"));
    failed.extend(events_with_reason(cluster, namespace, "FailedAttach"));
    assert!(failed.is_empty(), "{failed:?}");
}

/// The messages of all Events of a namespace with this reason.
fn events_with_reason(cluster: &dyn Breakable, namespace: &str, reason: &str) -> Vec<String> {
    let events = cluster.list("v1", "Event", namespace).expect("Events");
    let about = events.iter().filter(|event| event["reason"] == reason);
    about
        .map(|event| event["message"].as_str().unwrap_or_default().to_owned())
        .collect()
}
