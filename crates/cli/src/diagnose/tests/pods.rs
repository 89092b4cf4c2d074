//! Pods by themselves: where they run, and what became of them.

use super::*;

#[test]
pub(super) fn a_pod_that_is_fine() {
    let mut snapshot = snapshot();
    snapshot.networks.push(active("blue"));
    let attached = json!([
        attachment(0, "eth0", "Attached", ""),
        attachment(1, "net1", "Attached", "")
    ]);
    snapshot.records.push(record(attached));
    let diagnosed = diagnose_pod(&snapshot, &on("blue"));
    let diagnosed = says(
        diagnosed,
        Reason::Attached,
        State::Good,
        &["eth0 on team-a/blue", "10.1.0.5/24", "default route (ipv4)"],
    );
    assert_eq!(diagnosed.state(), State::Good);
    assert_eq!(diagnosed.answers.len(), 2);
    assert!(
        diagnosed
            .render(Screen::PIPE)
            .starts_with("Pod team-a/web on node n1: as it should be\n")
    );
}

#[test]
pub(super) fn pods_about_which_there_is_nothing_to_say() {
    let mut finished = on("blue");
    finished["status"]["phase"] = json!("Succeeded");
    says(
        diagnose_pod(&snapshot(), &finished),
        Reason::Finished,
        State::Good,
        &["Succeeded"],
    );
    let mut host = pod(json!({}));
    host["spec"]["hostNetwork"] = json!(true);
    says(
        diagnose_pod(&snapshot(), &host),
        Reason::HostNetwork,
        State::Good,
        &["node's interfaces"],
    );
    let mut host = on("blue");
    host["spec"]["hostNetwork"] = json!(true);
    says(
        diagnose_pod(&snapshot(), &host),
        Reason::HostNetwork,
        State::Wrong,
        &["annotation plexus.dev/networks", "remove the annotation"],
    );
    let mut going = on("blue");
    going["metadata"]["deletionTimestamp"] = json!(time(1));
    says(
        diagnose_pod(&snapshot(), &going),
        Reason::Going,
        State::Waits,
        &["being deleted"],
    );
}

#[test]
pub(super) fn who_has_interfaces_and_is_no_pod() {
    let mut snapshot = snapshot();
    let mut left = record(json!([attachment(0, "eth0", "Attached", "")]));
    left["metadata"]["ownerReferences"] = json!([{"kind": "Pod", "name": "web", "uid": "pod-1"}]);
    snapshot.records.push(left);
    let diagnosed = |snapshot: &Snapshot| {
        let holder = crate::holder::Holder::find(snapshot, "team-a", "web").unwrap();
        diagnose_holder(snapshot, holder.unwrap())
    };
    // It was a pod.
    let gone = says(
        diagnosed(&snapshot),
        Reason::Going,
        State::Waits,
        &["the API no longer has this pod", "goes by itself"],
    );
    assert_eq!(gone.answers.len(), 2);
    let mut away = snapshot.clone();
    away.nodes[0]["status"]["conditions"][0]["status"] = json!("Unknown");
    says(
        diagnosed(&away),
        Reason::Going,
        State::Waits,
        &["node n1: it is not Ready", "delete its Node"],
    );
    away.nodes.clear();
    let released = says(
        diagnosed(&away),
        Reason::Going,
        State::Waits,
        &["the Node is gone as well", "releases what it had"],
    );
    assert_eq!(released.answers.len(), 2);
    // It never was one.
    snapshot.records[0]["metadata"]["ownerReferences"] = json!([]);
    let container = says(
        diagnosed(&snapshot),
        Reason::Attached,
        State::Good,
        &["eth0 on team-a/blue", "10.1.0.5/24"],
    );
    assert_eq!(container.answers.len(), 1);
    let text = container.render(Screen::PIPE);
    assert!(
        text.starts_with("Container team-a/web on node n1: as it should be\n"),
        "{text}"
    );
}

#[test]
pub(super) fn nodes_and_agents() {
    let mut nowhere = on("blue");
    nowhere["spec"]["nodeName"] = Value::Null;
    nowhere["status"]["conditions"] =
        json!([{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]);
    says(
        diagnose_pod(&snapshot(), &nowhere),
        Reason::NotScheduled,
        State::Waits,
        &["0/1 nodes", "spec.nodeName"],
    );
    let next = diagnose_pod(&snapshot(), &nowhere).answers[0].next.clone();
    assert!(!next.contains("lab"), "a lab has a scheduler: {next}");
    let gone = Snapshot {
        nodes: vec![],
        ..snapshot()
    };
    says(
        diagnose_pod(&gone, &on("blue")),
        Reason::NodeGone,
        State::Wrong,
        &["node n1", "delete the pod"],
    );
    let mut down = snapshot();
    down.nodes[0]["status"]["conditions"] =
        json!([{"type": "Ready", "status": "Unknown", "message": "kubelet stopped posting"}]);
    says(
        diagnose_pod(&down, &on("blue")),
        Reason::NodeNotReady,
        State::Waits,
        &["kubelet stopped", "plexus doctor"],
    );
    let labels =
        json!({"app.kubernetes.io/name": "plexus", "app.kubernetes.io/component": "agent"});
    let agent = |node: &str, ready: &str| {
        json!({"metadata": {"name": format!("agent-{node}"), "namespace": "plexus-system", "labels": labels},
            "spec": {"nodeName": node}, "status": {"conditions": [{"type": "Ready", "status": ready}],
                "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}})
    };
    let mut crashing = snapshot();
    crashing.pods.push(agent("n1", "False"));
    says(
        diagnose_pod(&crashing, &on("blue")),
        Reason::AgentAway,
        State::Waits,
        &["CrashLoopBackOff", "kubectl -n plexus-system logs agent-n1"],
    );
    let mut elsewhere = snapshot();
    elsewhere.pods.push(agent("n2", "True"));
    says(
        diagnose_pod(&elsewhere, &on("blue")),
        Reason::AgentAway,
        State::Waits,
        &["no agent runs"],
    );
    // The kubelet has noticed it, too.
    let unready = "container runtime network not ready: reason:NetworkPluginNotReady";
    elsewhere.nodes[0]["status"]["conditions"] =
        json!([{"type": "Ready", "status": "False", "message": unready}]);
    says(
        diagnose_pod(&elsewhere, &on("blue")),
        Reason::AgentAway,
        State::Waits,
        &["no agent runs"],
    );
    let mut silent = snapshot();
    silent.networks.push(active("blue"));
    silent.events.push(event(
        "plugin plexus-cni failed: the agent does not answer on /run/plexus/agent.sock",
    ));
    says(
        diagnose_pod(&silent, &on("blue")),
        Reason::AgentAway,
        State::Waits,
        &["does not answer", "30s ago", "start the agent"],
    );
}

#[test]
pub(super) fn what_became_of_it() {
    let mut sandbox = snapshot();
    sandbox.events.push(event("something odd"));
    says(
        diagnose_pod(&sandbox, &pod(json!({}))),
        Reason::SandboxFailed,
        State::Waits,
        &["something odd", "FailedCreatePodSandBox"],
    );
    let mut changed = snapshot();
    changed.networks = vec![active("blue"), active("green")];
    let attached = json!([
        attachment(0, "eth0", "Attached", ""),
        attachment(1, "net1", "Attached", "")
    ]);
    changed.records.push(record(attached));
    says(
        diagnose_pod(&changed, &on("blue,green")),
        Reason::Changed,
        State::Wrong,
        &[
            "ask for net1 on team-a/blue, net2 on team-a/green",
            "it has net1 on team-a/blue",
            "create it again",
        ],
    );
    // As many as before, and another one.
    says(
        diagnose_pod(&changed, &on("green")),
        Reason::Changed,
        State::Wrong,
        &[
            "ask for net1 on team-a/green beside",
            "has net1 on team-a/blue",
        ],
    );
    // The one that it has is no more: it still asks for nothing else.
    let without = Snapshot {
        networks: vec![],
        ..changed.clone()
    };
    let diagnosed = diagnose_pod(&without, &on("blue"));
    let mut kinds = diagnosed.answers.iter().map(|answer| answer.reason);
    assert!(!kinds.any(|kind| kind == Reason::Changed), "{diagnosed:#?}");
    let mut pulling = on("blue");
    pulling["status"]["containerStatuses"] = json!([{"name": "c",
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]);
    says(
        diagnose_pod(&changed, &pulling),
        Reason::ContainersWait,
        State::Waits,
        &["ImagePullBackOff", "not about networks"],
    );
    let mut running = pod(json!({}));
    running["status"]["phase"] = json!("Running");
    says(
        diagnose_pod(&snapshot(), &running),
        Reason::NoRecord,
        State::Waits,
        &["no record"],
    );
}

#[test]
pub(super) fn on_a_machine_of_its_own() {
    let mut up = snapshot();
    up.networks.push(active("blue"));
    up.nodes[0]["status"]["conditions"][0]["reason"] = json!("AgentReady");
    let mut nowhere = on("blue");
    nowhere["spec"]["nodeName"] = Value::Null;
    for pod in [on("blue"), nowhere] {
        says(
            diagnose_pod(&up, &pod),
            Reason::NobodyRunsPods,
            State::Wrong,
            &["plexus up runs no Pods", "podman run"],
        );
    }
    let attached = json!([attachment(1, "net1", "Attached", "")]);
    up.records.push(record(attached));
    let diagnosed = diagnose_pod(&up, &on("blue"));
    assert_eq!(
        diagnosed.state(),
        State::Good,
        "somebody did: {diagnosed:#?}"
    );
}

#[test]
pub(super) fn addresses_run_out() {
    let small = || {
        let mut snapshot = snapshot();
        // 8 addresses: network, broadcast and gateway are nobody's.
        let spec = json!({"subnets": {"a": {"cidr": "10.1.0.0/29"}}, "blockSize": {"ipv4": 30}});
        snapshot
            .networks
            .push(network("blue", spec, ready("Active", "Active", "")));
        snapshot
    };
    let mut full = small();
    full.blocks = vec![
        block("blue", "10.1.0.0/30", "n1", 3),
        block("blue", "10.1.0.4/30", "n2", 2),
    ];
    says(
        diagnose_pod(&full, &on("blue")),
        Reason::NoAddresses,
        State::Wrong,
        &["no IPv4 address is free", "5 of 5", "another subnet"],
    );
    full.networks[0]["spec"]["subnets"]["b"] = json!({"cidr": "fd00:1::/64"});
    says(
        diagnose_pod(&full, &on("blue")),
        Reason::NoAddresses,
        State::Wrong,
        &["no IPv4 address is free", "5 of 5"],
    );
    let mut elsewhere = small();
    elsewhere.blocks = vec![
        block("blue", "10.1.0.0/30", "n1", 3),
        block("blue", "10.1.0.4/30", "n2", 0),
    ];
    says(
        diagnose_pod(&elsewhere, &on("blue")),
        Reason::NoAddresses,
        State::Waits,
        &["n2 may give"],
    );
    let mut room = small();
    room.blocks = vec![block("blue", "10.1.0.0/30", "n1", 3)];
    says(
        diagnose_pod(&room, &on("blue")),
        Reason::Starting,
        State::Waits,
        &["has not asked"],
    );
}

#[test]
pub(super) fn what_could_not_be_seen_is_not_concluded_from() {
    let mut blind = Snapshot {
        nodes: vec![],
        ..snapshot()
    };
    blind.unknown.insert("nodes", "forbidden".to_owned());
    blind.networks.push(active("blue"));
    let diagnosed = diagnose_pod(&blind, &on("blue"));
    assert!(
        diagnosed
            .answers
            .iter()
            .all(|a| a.reason != Reason::NodeGone)
    );
    // A pod that runs is not said to lack something because we may not see what it has.
    blind.unknown.insert("attachments", "forbidden".to_owned());
    let diagnosed = diagnose_pod(&blind, &on("gone"));
    let diagnosed = says(
        diagnosed,
        Reason::NotSeen,
        State::Waits,
        &["its interfaces", "forbidden"],
    );
    assert_eq!(diagnosed.answers.len(), 1, "{diagnosed:?}");
    // In the pod's own namespace it is known.
    blind.known_in.insert("attachments", "team-a".to_owned());
    let diagnosed = diagnose_pod(&blind, &on("blue"));
    says(diagnosed, Reason::Starting, State::Waits, &[]);
    // Who uses a network is known there alone, or not at all.
    let blue = &blind.networks[0];
    let used = diagnose_network(&blind, blue);
    says(
        used,
        Reason::NetworkActive,
        State::Good,
        &["which do is not known", "forbidden"],
    );
    let mut partly = blind.clone();
    partly
        .records
        .push(record(json!([attachment(1, "net1", "Attached", "")])));
    let used = diagnose_network(&partly, blue);
    says(
        used,
        Reason::NetworkActive,
        State::Good,
        &["1 do that are known: team-a/web", "forbidden"],
    );
    // Nor whether it has what it asks for, if what its annotations mean cannot be seen.
    let name = json!({"domain": "default-domain", "project": "k8s-team-a", "name": "blue"});
    let named = pod(json!({"opencontrail.org/network": name.to_string()}));
    partly.networks.clear();
    let changed = |snapshot: &Snapshot| {
        let answers = diagnose_pod(snapshot, &named).answers;
        answers.iter().any(|one| one.reason == Reason::Changed)
    };
    assert!(changed(&partly));
    partly.unknown.insert("networks", "forbidden".to_owned());
    assert!(!changed(&partly));
    blind.known_in.clear();
    blind.unknown.remove("attachments");
    blind.unknown.insert("networks", "forbidden".to_owned());
    let diagnosed = diagnose_pod(&blind, &on("gone"));
    says(
        diagnosed,
        Reason::NotSeen,
        State::Waits,
        &["gone", "forbidden"],
    );
}
