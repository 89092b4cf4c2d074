//! Every kind of answer, each by the fault that it is about.

use super::*;
use crate::world::World;
use serde_json::json;
use std::collections::BTreeSet;

const NOW: i64 = 1_700_000_000;

fn time(ago: i64) -> String {
    k8s_openapi::jiff::Timestamp::from_second(NOW - ago)
        .unwrap()
        .to_string()
}

fn pod(annotations: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "namespace": "team-a", "uid": "pod-1", "annotations": annotations},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Pending"},
    })
}

fn on(networks: &str) -> Value {
    pod(json!({"plexus.dev/networks": networks}))
}

fn by_nad(networks: &str) -> Value {
    pod(json!({"k8s.v1.cni.cncf.io/networks": networks}))
}

fn network(name: &str, spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": "plexus.dev/v1alpha1", "kind": "Network",
        "metadata": {"name": name, "namespace": "team-a", "uid": format!("uid-{name}")},
        "spec": spec, "status": status,
    })
}

fn ready(phase: &str, reason: &str, message: &str) -> Value {
    json!({"phase": phase, "vni": 4097, "conditions": [{
        "type": "Ready", "status": if phase == "Active" { "True" } else { "False" },
        "reason": reason, "message": message, "lastTransitionTime": time(60),
    }]})
}

fn active(name: &str) -> Value {
    network(
        name,
        json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}}),
        ready("Active", "Active", ""),
    )
}

fn nad(name: &str, config: &str) -> Value {
    json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": "team-a", "uid": format!("uid-nad-{name}")},
        "spec": {"config": config},
    })
}

fn block(network: &str, cidr: &str, node: &str, allocated: u64) -> Value {
    json!({
        "metadata": {"name": format!("uid-{network}-{cidr}")},
        "spec": {"network": {"namespace": "team-a", "name": network, "uid": format!("uid-{network}")},
            "cidr": cidr, "node": node, "nodeUID": "u"},
        "status": {"allocated": allocated},
    })
}

fn event(message: &str) -> Value {
    json!({
        "type": "Warning", "reason": "FailedCreatePodSandBox", "message": message,
        "involvedObject": {"kind": "Pod", "namespace": "team-a", "name": "web", "uid": "pod-1"},
        "lastTimestamp": time(30),
    })
}

fn record(attachments: Value) -> Value {
    json!({
        "metadata": {"name": "pod-1", "namespace": "team-a"},
        "spec": {"pod": {"name": "web", "uid": "pod-1"}, "node": "n1"},
        "status": {"sandbox": "s", "attachments": attachments},
    })
}

fn attachment(index: u64, interface: &str, state: &str, message: &str) -> Value {
    json!({
        "index": index, "total": 2, "ordinal": 0, "id": "x", "interface": interface,
        "network": {"namespace": "team-a", "name": "blue", "uuid": "uid-blue"},
        "ips": ["10.1.0.5/24"], "defaultRoute": ["ipv4"], "state": state, "message": message,
    })
}

fn world() -> World {
    World {
        now: NOW,
        nodes: vec![json!({"metadata": {"name": "n1"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}})],
        leases: vec![json!({"spec": {"renewTime": time(5)}})],
        ..World::default()
    }
}

/// The explanation has an answer of that kind and state, with those words; gives all of it.
#[track_caller]
fn says(explained: Explanation, because: Because, state: State, words: &[&str]) -> Explanation {
    let text = explained.render(Screen::PIPE);
    let found = explained
        .answers
        .iter()
        .find(|answer| answer.because == because);
    let found = found.unwrap_or_else(|| panic!("no {because:?}:\n{text}"));
    assert_eq!(found.state, state, "{text}");
    let whole = format!("{}: {} next: {}", found.about, found.why, found.next);
    for word in words {
        assert!(whole.contains(word), "no {word:?} in {whole}");
    }
    explained
}

#[test]
fn a_pod_that_is_fine() {
    let mut world = world();
    world.networks.push(active("blue"));
    let attached = json!([
        attachment(0, "eth0", "Attached", ""),
        attachment(1, "net1", "Attached", "")
    ]);
    world.records.push(record(attached));
    let explained = explain_pod(&world, &on("blue"));
    let explained = says(
        explained,
        Because::Attached,
        State::Good,
        &["eth0 on team-a/blue", "10.1.0.5/24", "default route (ipv4)"],
    );
    assert_eq!(explained.state(), State::Good);
    assert_eq!(explained.answers.len(), 2);
    assert!(
        explained
            .render(Screen::PIPE)
            .starts_with("Pod team-a/web on node n1: as it should be\n")
    );
}

#[test]
fn pods_about_which_there_is_nothing_to_say() {
    let mut finished = on("blue");
    finished["status"]["phase"] = json!("Succeeded");
    says(
        explain_pod(&world(), &finished),
        Because::Finished,
        State::Good,
        &["Succeeded"],
    );
    let mut host = pod(json!({}));
    host["spec"]["hostNetwork"] = json!(true);
    says(
        explain_pod(&world(), &host),
        Because::HostNetwork,
        State::Good,
        &["node's interfaces"],
    );
    let mut host = on("blue");
    host["spec"]["hostNetwork"] = json!(true);
    says(
        explain_pod(&world(), &host),
        Because::HostNetwork,
        State::Wrong,
        &["annotation plexus.dev/networks", "remove the annotation"],
    );
    let mut going = on("blue");
    going["metadata"]["deletionTimestamp"] = json!(time(1));
    says(
        explain_pod(&world(), &going),
        Because::Going,
        State::Waits,
        &["being deleted"],
    );
}

#[test]
fn nodes_and_agents() {
    let mut nowhere = on("blue");
    nowhere["spec"]["nodeName"] = Value::Null;
    nowhere["status"]["conditions"] =
        json!([{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]);
    says(
        explain_pod(&world(), &nowhere),
        Because::NotScheduled,
        State::Waits,
        &["0/1 nodes", "spec.nodeName"],
    );
    let gone = World {
        nodes: vec![],
        ..world()
    };
    says(
        explain_pod(&gone, &on("blue")),
        Because::NodeGone,
        State::Wrong,
        &["node n1", "delete the pod"],
    );
    let mut down = world();
    down.nodes[0]["status"]["conditions"] =
        json!([{"type": "Ready", "status": "Unknown", "message": "kubelet stopped posting"}]);
    says(
        explain_pod(&down, &on("blue")),
        Because::NodeNotReady,
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
    let mut crashing = world();
    crashing.pods.push(agent("n1", "False"));
    says(
        explain_pod(&crashing, &on("blue")),
        Because::AgentAway,
        State::Waits,
        &["CrashLoopBackOff", "kubectl -n plexus-system logs agent-n1"],
    );
    let mut elsewhere = world();
    elsewhere.pods.push(agent("n2", "True"));
    says(
        explain_pod(&elsewhere, &on("blue")),
        Because::AgentAway,
        State::Waits,
        &["no agent runs"],
    );
    let mut silent = world();
    silent.networks.push(active("blue"));
    silent.events.push(event(
        "plugin plexus-cni failed: the agent does not answer on /run/plexus/agent.sock",
    ));
    says(
        explain_pod(&silent, &on("blue")),
        Because::AgentAway,
        State::Waits,
        &["does not answer", "30s ago", "start the agent"],
    );
}

#[test]
fn annotations_that_cannot_be_had() {
    says(
        explain_pod(&world(), &on("a,,b")),
        Because::BadAnnotation,
        State::Wrong,
        &["plexus.dev/networks[1]"],
    );
    let mut world = world();
    world.networks = vec![active("blue"), active("green")];
    let clash = pod(
        json!({"k8s.v1.cni.cncf.io/networks": "n", "plexus.dev/networks": "[{\"name\":\"blue\",\"interface\":\"net1\"}]"}),
    );
    world
        .nads
        .push(nad("n", r#"{"type":"macvlan","master":"eth1"}"#));
    says(
        explain_pod(&world, &clash),
        Because::BadTogether,
        State::Wrong,
        &["both want", "net1"],
    );
    let nowhere = pod(json!({"plexus.dev/networks": "blue", "opencontrail.org/default-gw": "red"}));
    says(
        explain_pod(&world, &nowhere),
        Because::BadTogether,
        State::Wrong,
        &["red"],
    );
}

#[test]
fn networks_that_are_not_there() {
    says(
        explain_pod(&world(), &on("blue")),
        Because::NetworkMissing,
        State::Wrong,
        &[
            "Network team-a/blue (number 1, annotation plexus.dev/networks)",
            "there is no Network",
            "create it",
        ],
    );
    says(
        explain_pod(&world(), &by_nad("x")),
        Because::NadMissing,
        State::Wrong,
        &["there is no NetworkAttachmentDefinition team-a/x"],
    );
    let fq = r#"{"domain":"default-domain","project":"p","name":"n"}"#;
    says(
        explain_pod(&world(), &pod(json!({"opencontrail.org/network": fq}))),
        Because::NetworkMissing,
        State::Wrong,
        &["Network n of project p"],
    );
    let mut all = world();
    all.networks.push(active("green"));
    let both = explain_pod(&all, &on("blue,green,red"));
    let missing = both
        .answers
        .iter()
        .filter(|a| a.because == Because::NetworkMissing);
    assert_eq!(missing.count(), 2, "every reference is looked at");
}

#[test]
fn networks_that_cannot_be_used() {
    let with = |status: Value| {
        let mut world = world();
        world.networks.push(network(
            "blue",
            json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}}),
            status,
        ));
        world
    };
    let of = |world: &World| explain_pod(world, &on("blue"));
    says(
        of(&with(json!({}))),
        Because::NetworkInitializing,
        State::Waits,
        &["the controller runs"],
    );
    let no_controller = World {
        leases: vec![json!({"spec": {"renewTime": time(4000)}})],
        ..with(json!({}))
    };
    says(
        of(&no_controller),
        Because::NetworkInitializing,
        State::Waits,
        &["last seen 66m ago"],
    );
    let never = World {
        leases: vec![],
        ..with(json!({}))
    };
    says(
        of(&never),
        Because::NetworkInitializing,
        State::Waits,
        &["no controller has ever run"],
    );
    let waiting = with(ready(
        "Pending",
        "SubnetConflict",
        "10.1.0.0/24 overlaps another",
    ));
    says(
        of(&waiting),
        Because::NetworkPending,
        State::Waits,
        &["overlaps another", "plexus explain network"],
    );
    let failed = with(ready("Failed", "InvalidSpec", "spec.mtu: is 3"));
    says(
        of(&failed),
        Because::NetworkFailed,
        State::Wrong,
        &["spec.mtu: is 3", "correct the Network"],
    );
    let mut going = with(ready("Active", "Active", ""));
    going.networks[0]["metadata"]["deletionTimestamp"] = json!(time(1));
    says(
        of(&going),
        Because::NetworkTerminating,
        State::Wrong,
        &["Terminating", "another network"],
    );
    let mut external = with(ready(
        "Pending",
        "WaitingForProvider",
        "waits for the external provider",
    ));
    external.networks[0]["spec"]["provider"] = json!("mycorp/fancy");
    says(
        of(&external),
        Because::ProviderMissing,
        State::Waits,
        &["start the provider mycorp/fancy"],
    );
    let mut private = with(ready("Active", "Active", ""));
    private.networks[0]["metadata"]["namespace"] = json!("team-b");
    private.networks[0]["spec"]["allowedNamespaces"] = json!({"from": "Same"});
    says(
        explain_pod(&private, &on("team-b/blue")),
        Because::NotAllowed,
        State::Wrong,
        &["its own namespace", "spec.allowedNamespaces"],
    );
    let mut odd = with(ready("Active", "Active", ""));
    odd.networks[0]["spec"]["mtu"] = json!("large");
    says(
        of(&odd),
        Because::NetworkFailed,
        State::Wrong,
        &["cannot be read"],
    );
    let wish = r#"[{"name": "blue", "bandwidth": {"ingressRate": 1000}}]"#;
    says(
        explain_pod(&with(ready("Active", "Active", "")), &on(wish)),
        Because::BadWish,
        State::Wrong,
        &["bandwidth"],
    );
}

#[test]
fn definitions() {
    let with = |config: &str| {
        let mut world = world();
        world.nads.push(nad("x", config));
        explain_pod(&world, &by_nad("x"))
    };
    says(
        with("{"),
        Because::NadUnreadable,
        State::Wrong,
        &["not valid JSON", "plexus validate"],
    );
    says(
        with(r#"{"type":"macvlan","mode":"loud"}"#),
        Because::NadInvalid,
        State::Wrong,
        &["loud"],
    );
    says(
        with(r#"{"type":"plexus-cni"}"#),
        Because::NadWithoutNetwork,
        State::Wrong,
        &["leaves everything to the Network", "the controller runs"],
    );
    says(
        with(r#"{"type":"calico"}"#),
        Because::UnknownPlugin,
        State::Waits,
        &["calico", "n1 needs it in its plugin directory"],
    );
    let mut missing = world();
    missing.nads.push(nad("x", r#"{"type":"tuning"}"#));
    missing.events.push(event(
        "network \"x\": ADD by plugin \"tuning\": no executable file \"tuning\" in /opt/cni/bin",
    ));
    says(
        explain_pod(&missing, &by_nad("x")),
        Because::UnknownPlugin,
        State::Wrong,
        &["plugin directory of node n1"],
    );
}

#[test]
fn what_later_versions_serve() {
    let mut world = world();
    world
        .nads
        .push(nad("vpc", r#"{"type":"multus-multivpc-cni"}"#));
    says(
        explain_pod(&world, &by_nad("vpc")),
        Because::Later,
        State::Waits,
        &["other VPCs"],
    );
    world.waiting.push(
        json!({"apiVersion": "net.cogadvisor.io/v1", "kind": "MultiNicNetwork",
        "metadata": {"name": "fast"}}),
    );
    says(
        explain_pod(&world, &by_nad("fast")),
        Because::Later,
        State::Waits,
        &["MultiNicNetwork of that name"],
    );
    let devices = json!({"requests": [{"name": "a", "exactly": {"deviceClassName": "cni.networking.x-k8s.io"}}]});
    world.waiting.push(
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "team-a"}, "spec": {"devices": devices}}),
    );
    world.waiting.push(
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "team-a"}, "spec": {"spec": {"devices": devices}}}),
    );
    for claim in [
        json!({"name": "x", "resourceClaimName": "c"}),
        json!({"name": "x", "resourceClaimTemplateName": "t"}),
    ] {
        let mut claiming = pod(json!({}));
        claiming["spec"]["resourceClaims"] = json!([claim]);
        says(
            explain_pod(&world, &claiming),
            Because::Later,
            State::Waits,
            &["DRA driver"],
        );
    }
}

#[test]
fn objects_of_later_kinds() {
    let devices =
        json!({"requests": [{"exactly": {"deviceClassName": "cni.networking.x-k8s.io"}}]});
    let claim = |devices: &Value| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "team-a"}, "spec": {"devices": devices}})
    };
    let explained = explain_later(&claim(&devices));
    assert_eq!(explained.subject, "ResourceClaim team-a/c");
    says(explained, Because::Later, State::Waits, &["DRA driver"]);
    says(
        explain_later(&claim(&json!({}))),
        Because::Later,
        State::Good,
        &["another driver"],
    );
}

#[test]
fn addresses_run_out() {
    let small = || {
        let mut world = world();
        // 8 addresses: network, broadcast and gateway are nobody's.
        let spec = json!({"subnets": {"a": {"cidr": "10.1.0.0/29"}}, "blockSize": {"ipv4": 30}});
        world
            .networks
            .push(network("blue", spec, ready("Active", "Active", "")));
        world
    };
    let mut full = small();
    full.blocks = vec![
        block("blue", "10.1.0.0/30", "n1", 3),
        block("blue", "10.1.0.4/30", "n2", 2),
    ];
    says(
        explain_pod(&full, &on("blue")),
        Because::NoAddresses,
        State::Wrong,
        &["no IPv4 address is free", "5 of 5", "another subnet"],
    );
    let mut elsewhere = small();
    elsewhere.blocks = vec![
        block("blue", "10.1.0.0/30", "n1", 3),
        block("blue", "10.1.0.4/30", "n2", 0),
    ];
    says(
        explain_pod(&elsewhere, &on("blue")),
        Because::NoAddresses,
        State::Waits,
        &["n2 may give"],
    );
    let mut room = small();
    room.blocks = vec![block("blue", "10.1.0.0/30", "n1", 3)];
    says(
        explain_pod(&room, &on("blue")),
        Because::Starting,
        State::Waits,
        &["has not asked"],
    );
}

#[test]
fn what_became_of_it() {
    let mut failed = world();
    failed.networks.push(active("blue"));
    failed.records.push(record(json!([attachment(
        1,
        "net1",
        "Failed",
        "no such device"
    )])));
    says(
        explain_pod(&failed, &on("blue")),
        Because::AttachFailed,
        State::Wrong,
        &["no such device"],
    );
    let mut sandbox = world();
    sandbox.events.push(event("something odd"));
    says(
        explain_pod(&sandbox, &pod(json!({}))),
        Because::SandboxFailed,
        State::Waits,
        &["something odd", "FailedCreatePodSandBox"],
    );
    let mut changed = world();
    changed.networks = vec![active("blue"), active("green")];
    let attached = json!([
        attachment(0, "eth0", "Attached", ""),
        attachment(1, "net1", "Attached", "")
    ]);
    changed.records.push(record(attached));
    says(
        explain_pod(&changed, &on("blue,green")),
        Because::Changed,
        State::Wrong,
        &["ask for net1, net2", "it has net1", "create it again"],
    );
    let mut pulling = on("blue");
    pulling["status"]["containerStatuses"] = json!([{"name": "c",
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]);
    says(
        explain_pod(&changed, &pulling),
        Because::ContainersWait,
        State::Waits,
        &["ImagePullBackOff", "not about networks"],
    );
    let mut running = pod(json!({}));
    running["status"]["phase"] = json!("Running");
    says(
        explain_pod(&world(), &running),
        Because::NoRecord,
        State::Waits,
        &["no record"],
    );
}

#[test]
fn networks_by_themselves() {
    let of = |network: &Value, world: &World| explain_network(world, network);
    let mut world = world();
    world
        .records
        .push(record(json!([attachment(1, "net1", "Attached", "")])));
    let fine = says(
        of(&active("blue"), &world),
        Because::NetworkActive,
        State::Good,
        &["team-a/web does"],
    );
    assert_eq!(fine.state(), State::Good);
    says(
        of(&active("green"), &world),
        Because::NetworkActive,
        State::Good,
        &["none does"],
    );
    let spec = json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}});
    for (phase, reason, because, state, word) in [
        (
            "Failed",
            "InvalidSpec",
            Because::NetworkFailed,
            State::Wrong,
            "plexus validate",
        ),
        (
            "Failed",
            "UuidConflict",
            Because::NetworkFailed,
            State::Wrong,
            "another spec.uuid",
        ),
        (
            "Failed",
            "VniConflict",
            Because::NetworkFailed,
            State::Wrong,
            "create it again",
        ),
        (
            "Pending",
            "SubnetConflict",
            Because::NetworkPending,
            State::Waits,
            "other subnets",
        ),
        (
            "Pending",
            "NoVni",
            Because::NetworkPending,
            State::Waits,
            "delete overlay networks",
        ),
        (
            "Pending",
            "WaitingForProvider",
            Because::ProviderMissing,
            State::Waits,
            "start the provider",
        ),
    ] {
        let status = ready(phase, reason, "the message");
        let explained = of(&network("x", spec.clone(), status), &world);
        says(explained, because, state, &["the message", word]);
    }
    let new = network("x", spec.clone(), json!({}));
    says(
        of(&new, &world),
        Because::NetworkInitializing,
        State::Waits,
        &["not looked"],
    );
    let mut going = active("blue");
    going["metadata"]["deletionTimestamp"] = json!(time(1));
    going["status"]["conditions"][0] = json!({"type": "InUse", "status": "True", "reason": "x",
        "message": "used by 1 pod: team-a/web", "lastTransitionTime": time(1)});
    says(
        of(&going, &world),
        Because::NetworkTerminating,
        State::Waits,
        &["team-a/web", "delete those pods"],
    );
    let empty = network("x", json!({}), ready("Active", "Active", ""));
    says(
        of(&empty, &world),
        Because::NoSubnets,
        State::Wrong,
        &["could not be reached"],
    );
    let odd = network(
        "x",
        json!({"mtu": "x"}),
        ready("Failed", "InvalidSpec", "no"),
    );
    says(of(&odd, &world), Because::NetworkFailed, State::Wrong, &[]);
}

#[test]
fn networks_with_conditions() {
    let with = |kind: &str, status: &str, reason: &str| {
        let mut network = active("blue");
        let condition = json!({"type": kind, "status": status, "reason": reason,
            "message": "the message", "lastTransitionTime": time(1)});
        network["status"]["conditions"]
            .as_array_mut()
            .unwrap()
            .push(condition);
        explain_network(&world(), &network)
    };
    says(
        with("SubnetConflict", "True", "Overlap"),
        Because::SubnetConflict,
        State::Waits,
        &["the message"],
    );
    says(
        with("FollowsNad", "False", "InUse"),
        Because::NadDiffers,
        State::Wrong,
        &["the message"],
    );
    assert_eq!(with("FollowsNad", "False", "NoNad").state(), State::Good);
    let mut world = world();
    let mut said = event("somebody says");
    said["involvedObject"] =
        json!({"kind": "Network", "namespace": "team-a", "name": "blue", "uid": "uid-blue"});
    world.events.push(said);
    says(
        explain_network(&world, &active("blue")),
        Because::Event,
        State::Waits,
        &["somebody says"],
    );
}

#[test]
fn networks_that_are_full() {
    let spec = json!({"subnets": {"a": {"cidr": "10.1.0.0/29"}}, "blockSize": {"ipv4": 30}});
    let small = network("blue", spec, ready("Active", "Active", ""));
    let mut full = world();
    full.blocks = vec![
        block("blue", "10.1.0.0/30", "n1", 3),
        block("blue", "10.1.0.4/30", "n2", 2),
    ];
    says(
        explain_network(&full, &small),
        Because::NoAddresses,
        State::Wrong,
        &["all 5 are in use"],
    );
    let mut asking = world();
    asking.blocks = vec![
        block("blue", "10.1.0.0/30", "n1", 3),
        block("blue", "10.1.0.4/30", "n2", 0),
    ];
    asking
        .requests
        .push(json!({"spec": {"network": {"uid": "uid-blue"}, "node": "n1"}}));
    let explained = explain_network(&asking, &small);
    let explained = says(
        explained,
        Because::NoAddresses,
        State::Waits,
        &["every block has an owner"],
    );
    says(explained, Because::Asking, State::Waits, &["n1 asks"]);
}

#[test]
fn definitions_by_themselves() {
    let of = |config: &str| explain_nad(&world(), &nad("x", config));
    says(
        of(r#"{"type":"macvlan","master":"eth1"}"#),
        Because::NadUsable,
        State::Good,
        &["natively"],
    );
    says(
        of(r#"{"type":"tuning"}"#),
        Because::NadUsable,
        State::Good,
        &["executing tuning"],
    );
    says(
        of(r#"{"type":"calico"}"#),
        Because::UnknownPlugin,
        State::Waits,
        &["calico"],
    );
    says(
        of("{"),
        Because::NadUnreadable,
        State::Wrong,
        &["plexus validate"],
    );
    says(
        of(r#"{"type":"macvlan","mode":"x"}"#),
        Because::NadInvalid,
        State::Wrong,
        &["mode"],
    );
    says(
        of(r#"{"type":"multi-nic"}"#),
        Because::Later,
        State::Waits,
        &["multi-nic"],
    );
    says(
        of(r#"{"type":"plexus-cni"}"#),
        Because::NadWithoutNetwork,
        State::Wrong,
        &["create the Network"],
    );
    let mut making = nad("x", r#"{"type":"plexus-cni"}"#);
    making["metadata"]["annotations"] = json!({"opencontrail.org/cidr": "10.1.0.0/24"});
    says(
        explain_nad(&world(), &making),
        Because::NadWithoutNetwork,
        State::Waits,
        &["has not yet"],
    );
    let mut unclear = making.clone();
    unclear["metadata"]["annotations"]["opencontrail.org/cidr"] = json!("x");
    says(
        explain_nad(&world(), &unclear),
        Because::NadInvalid,
        State::Wrong,
        &["cidr"],
    );
    let mut made = world();
    made.networks.push(active("x"));
    says(
        explain_nad(&made, &making),
        Because::NetworkActive,
        State::Good,
        &["Network team-a/x"],
    );
}

#[test]
fn what_could_not_be_seen_is_not_concluded_from() {
    let mut blind = World {
        nodes: vec![],
        ..world()
    };
    blind.unknown.insert("nodes", "forbidden".to_owned());
    blind.networks.push(active("blue"));
    let explained = explain_pod(&blind, &on("blue"));
    assert!(
        explained
            .answers
            .iter()
            .all(|a| a.because != Because::NodeGone)
    );
}

#[test]
fn words_are_unlike() {
    let all = [
        Because::Attached,
        Because::NoAddresses,
        Because::NadWithoutNetwork,
    ];
    let words: BTreeSet<String> = all.iter().map(|because| because.word()).collect();
    assert!(words.contains("no-addresses") && words.len() == 3);
    let json = explain_pod(&world(), &on("blue")).to_json();
    assert_eq!(json["answers"][0]["kind"], "network-missing");
    assert_eq!(json["state"], "wrong");
}
