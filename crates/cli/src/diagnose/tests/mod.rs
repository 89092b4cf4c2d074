//! Every kind of answer, each by the fault that it is about; and that none is without.

mod objects;
mod pods;
mod references;

use super::*;
use crate::snapshot::Snapshot;
use serde_json::json;
use std::cell::RefCell;
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

fn device_class(name: &str, driver: &str) -> Value {
    let expression = format!("device.driver == \"{driver}\"");
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
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

fn snapshot() -> Snapshot {
    Snapshot {
        now: NOW,
        nodes: vec![json!({"metadata": {"name": "n1"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}})],
        leases: vec![json!({"spec": {"renewTime": time(5)}})],
        ..Snapshot::default()
    }
}

thread_local! {
    /// What the tests that ran in this thread have produced.
    static PRODUCED: RefCell<BTreeSet<Reason>> = const { RefCell::new(BTreeSet::new()) };
}

/// The diagnosis has an answer of that kind and state, with those words; gives all of it.
#[track_caller]
fn says(diagnosed: Diagnosis, reason: Reason, state: State, words: &[&str]) -> Diagnosis {
    let text = diagnosed.render(Screen::PIPE);
    let found = diagnosed
        .answers
        .iter()
        .find(|answer| answer.reason == reason);
    let found = found.unwrap_or_else(|| panic!("no {reason:?}:\n{text}"));
    assert_eq!(found.state, state, "{text}");
    let whole = format!("{}: {} next: {}", found.about, found.why, found.next);
    for word in words {
        assert!(whole.contains(word), "no {word:?} in {whole}");
    }
    PRODUCED.with(|produced| produced.borrow_mut().insert(reason));
    diagnosed
}

/// The test that produces each kind of answer: one without does not compile.
fn test_of(reason: Reason) -> fn() {
    match reason {
        Reason::Attached => pods::a_pod_that_is_fine,
        Reason::HostNetwork => pods::pods_about_which_there_is_nothing_to_say,
        Reason::Finished => pods::pods_about_which_there_is_nothing_to_say,
        Reason::Going => pods::pods_about_which_there_is_nothing_to_say,
        Reason::NotScheduled => pods::nodes_and_agents,
        Reason::NodeGone => pods::nodes_and_agents,
        Reason::NodeNotReady => pods::nodes_and_agents,
        Reason::AgentAway => pods::nodes_and_agents,
        Reason::BadAnnotation => references::annotations_that_cannot_be_had,
        Reason::NadMissing => references::networks_that_are_not_there,
        Reason::NadUnreadable => references::definitions,
        Reason::NadInvalid => references::definitions,
        Reason::NadWithoutNetwork => references::definitions,
        Reason::NadUsable => objects::definitions_by_themselves,
        Reason::UnknownPlugin => references::definitions,
        Reason::NetworkMissing => references::networks_that_are_not_there,
        Reason::NetworkInitializing => references::networks_that_cannot_be_used,
        Reason::ProviderMissing => references::networks_that_cannot_be_used,
        Reason::NetworkPending => references::networks_that_cannot_be_used,
        Reason::NetworkFailed => references::networks_that_cannot_be_used,
        Reason::NetworkTerminating => references::networks_that_cannot_be_used,
        Reason::NetworkActive => objects::networks_by_themselves,
        Reason::NotAllowed => references::networks_that_cannot_be_used,
        Reason::BadWish => references::networks_that_cannot_be_used,
        Reason::BadTogether => references::annotations_that_cannot_be_had,
        Reason::NoAddresses => pods::addresses_run_out,
        Reason::Asking => objects::networks_that_are_full,
        Reason::SubnetConflict => objects::networks_with_conditions,
        Reason::NadDiffers => objects::networks_with_conditions,
        Reason::NoSubnets => objects::networks_by_themselves,
        Reason::Later => references::what_later_versions_serve,
        Reason::ClassUnknown => references::what_later_versions_serve,
        Reason::ClaimMissing => references::what_later_versions_serve,
        Reason::NobodyRunsPods => pods::on_a_machine_of_its_own,
        Reason::SandboxFailed => pods::what_became_of_it,
        Reason::ContainersWait => pods::what_became_of_it,
        Reason::Changed => pods::what_became_of_it,
        Reason::NoRecord => pods::what_became_of_it,
        Reason::NotSeen => pods::what_could_not_be_seen_is_not_concluded_from,
        Reason::Starting => pods::addresses_run_out,
        Reason::Event => objects::networks_with_conditions,
    }
}

#[test]
fn every_kind_of_answer_is_produced_by_its_test() {
    for reason in Reason::ALL {
        PRODUCED.with(|produced| produced.borrow_mut().clear());
        test_of(*reason)();
        let produced = PRODUCED.with(|produced| produced.borrow().clone());
        assert!(produced.contains(reason), "{reason:?}: {produced:?}");
    }
}

#[test]
fn words_are_unlike() {
    let words: BTreeSet<String> = Reason::ALL.iter().map(|reason| reason.word()).collect();
    assert!(words.contains("no-addresses") && words.len() == Reason::ALL.len());
    let json = diagnose_pod(&snapshot(), &on("blue")).to_json();
    assert_eq!(json["answers"][0]["kind"], "network-missing");
    assert_eq!(json["state"], "wrong");
}
