//! What pods ask for, and why it cannot be had.

use super::*;
use crate::snapshot::{NodeView, kept_spec, nad_object};
use plexus_core::resolve::{MAX_KEPT_CONFIG, Objects};

#[test]
pub(super) fn annotations_that_cannot_be_had() {
    says(
        diagnose_pod(&snapshot(), &on("a,,b")),
        Reason::BadAnnotation,
        State::Wrong,
        &["plexus.dev/networks[1]"],
    );
    let misspelled_annotations = pod(json!({"plexus.dev/network": "blue"}));
    says(
        diagnose_pod(&snapshot(), &misspelled_annotations),
        Reason::BadAnnotation,
        State::Wrong,
        &[
            "annotation plexus.dev/network",
            "did you mean plexus.dev/networks?",
        ],
    );
    let mut snapshot = snapshot();
    snapshot.networks = vec![active("blue"), active("green")];
    let clash = pod(
        json!({"k8s.v1.cni.cncf.io/networks": "n", "plexus.dev/networks": "[{\"name\":\"blue\",\"interface\":\"net1\"}]"}),
    );
    snapshot
        .nads
        .push(nad("n", r#"{"type":"macvlan","master":"eth1"}"#));
    says(
        diagnose_pod(&snapshot, &clash),
        Reason::BadTogether,
        State::Wrong,
        &["both want", "net1"],
    );
    let nowhere = pod(json!({"plexus.dev/networks": "blue", "opencontrail.org/default-gw": "red"}));
    says(
        diagnose_pod(&snapshot, &nowhere),
        Reason::BadTogether,
        State::Wrong,
        &["red"],
    );
}

#[test]
pub(super) fn networks_that_are_not_there() {
    says(
        diagnose_pod(&snapshot(), &on("blue")),
        Reason::NetworkMissing,
        State::Wrong,
        &[
            "Network team-a/blue (number 1, annotation plexus.dev/networks)",
            "there is no Network",
            "create it",
        ],
    );
    says(
        diagnose_pod(&snapshot(), &by_nad("x")),
        Reason::NadMissing,
        State::Wrong,
        &["there is no NetworkAttachmentDefinition team-a/x"],
    );
    let fq = r#"{"domain":"default-domain","project":"p","name":"n"}"#;
    says(
        diagnose_pod(&snapshot(), &pod(json!({"opencontrail.org/network": fq}))),
        Reason::NetworkMissing,
        State::Wrong,
        &["Network n of project p"],
    );
    let mut all = snapshot();
    all.networks.push(active("green"));
    let both = diagnose_pod(&all, &on("blue,green,red"));
    let missing = both
        .answers
        .iter()
        .filter(|a| a.reason == Reason::NetworkMissing);
    assert_eq!(missing.count(), 2, "every reference is looked at");
}

#[test]
pub(super) fn networks_that_cannot_be_used() {
    let with = |status: Value| {
        let mut snapshot = snapshot();
        snapshot.networks.push(network(
            "blue",
            json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}}),
            status,
        ));
        snapshot
    };
    let of = |snapshot: &Snapshot| diagnose_pod(snapshot, &on("blue"));
    says(
        of(&with(json!({}))),
        Reason::NetworkInitializing,
        State::Waits,
        &["the controller runs"],
    );
    let no_controller = Snapshot {
        leases: vec![json!({"spec": {"renewTime": time(4000)}})],
        ..with(json!({}))
    };
    says(
        of(&no_controller),
        Reason::NetworkInitializing,
        State::Waits,
        &["last seen 66m ago"],
    );
    let never = Snapshot {
        leases: vec![],
        ..with(json!({}))
    };
    says(
        of(&never),
        Reason::NetworkInitializing,
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
        Reason::NetworkPending,
        State::Waits,
        &["overlaps another", "plexus diagnose network"],
    );
    let failed = with(ready("Failed", "InvalidSpec", "spec.mtu: is 3"));
    says(
        of(&failed),
        Reason::NetworkFailed,
        State::Wrong,
        &["spec.mtu: is 3", "correct the Network"],
    );
    let mut going = with(ready("Active", "Active", ""));
    going.networks[0]["metadata"]["deletionTimestamp"] = json!(time(1));
    says(
        of(&going),
        Reason::NetworkTerminating,
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
        Reason::ProviderMissing,
        State::Waits,
        &["start the provider mycorp/fancy"],
    );
    let mut private = with(ready("Active", "Active", ""));
    private.networks[0]["metadata"]["namespace"] = json!("team-b");
    private.networks[0]["spec"]["allowedNamespaces"] = json!({"from": "Same"});
    says(
        diagnose_pod(&private, &on("team-b/blue")),
        Reason::NotAllowed,
        State::Wrong,
        &["its own namespace", "spec.allowedNamespaces"],
    );
    labels_that_are_hidden(&with(ready("Active", "Active", "")));
    let mut odd = with(ready("Active", "Active", ""));
    odd.networks[0]["spec"]["mtu"] = json!("large");
    says(
        of(&odd),
        Reason::NetworkFailed,
        State::Wrong,
        &["cannot be read"],
    );
    let wish = r#"[{"name": "blue", "bandwidth": {"ingressRate": 1000}}]"#;
    says(
        diagnose_pod(&with(ready("Active", "Active", "")), &on(wish)),
        Reason::BadWish,
        State::Wrong,
        &["bandwidth"],
    );
}

/// Nodes keep no more of an object than 64 KiB: of a NAD with the annotations that they read.
#[test]
fn what_is_too_large_for_nodes() {
    let text = |size: usize| "x".repeat(size);
    let key = "k8s.v1.cni.cncf.io/resourceName";
    let config = r#"{"type":"macvlan","master":"eth1"}"#;
    let room = MAX_KEPT_CONFIG - config.len() - key.len();
    let with = |key: &str, size: usize| {
        let mut one = nad("x", config);
        one["metadata"]["annotations"] = json!({key: text(size)});
        one
    };
    for (one, fits) in [
        (with(key, room), true),
        (with(key, room + 1), false),
        (with("example.org/note", MAX_KEPT_CONFIG), true),
        (nad("x", &text(MAX_KEPT_CONFIG)), true),
        (nad("x", &text(MAX_KEPT_CONFIG + 1)), false),
    ] {
        let why = nad_object(&one).unusable;
        let expected = (!fits).then_some("it has 65537 bytes, and nodes keep at most 65536");
        assert_eq!(why.as_deref(), expected);
    }
    let mut snapshot = snapshot();
    snapshot.networks = vec![active("blue")];
    assert!(kept_spec(&snapshot.networks[0]).is_ok());
    snapshot.networks[0]["spec"]["config"] = json!({"x": text(MAX_KEPT_CONFIG)});
    let words = ["it has 65", "nodes keep at most 65536"];
    let seen = diagnose_pod(&snapshot, &on("blue"));
    says(seen, Reason::NetworkFailed, State::Wrong, &words);
    let seen = diagnose_network(&snapshot, &snapshot.networks[0]);
    says(seen, Reason::NetworkFailed, State::Wrong, &words);
    let view = NodeView::from(&snapshot, "n1");
    let why = view.network("team-a", "blue").unwrap().unusable.clone();
    assert!(why.unwrap().contains("nodes keep at most"));
}

#[test]
pub(super) fn definitions() {
    let with = |config: &str| {
        let mut snapshot = snapshot();
        snapshot.nads.push(nad("x", config));
        diagnose_pod(&snapshot, &by_nad("x"))
    };
    says(
        with("{"),
        Reason::NadUnreadable,
        State::Wrong,
        &["not valid JSON", "plexus validate"],
    );
    says(
        with(r#"{"type":"macvlan","mode":"loud"}"#),
        Reason::NadInvalid,
        State::Wrong,
        &["loud"],
    );
    says(
        with(r#"{"type":"plexus-cni"}"#),
        Reason::NadWithoutNetwork,
        State::Wrong,
        &["leaves everything to the Network", "the controller runs"],
    );
    says(
        with(r#"{"type":"calico"}"#),
        Reason::UnknownPlugin,
        State::Waits,
        &["calico", "n1 needs it in its plugin directory"],
    );
    let mut missing = snapshot();
    missing.nads.push(nad("x", r#"{"type":"tuning"}"#));
    missing.events.push(event(
        "network \"x\": ADD by plugin \"tuning\": no executable file \"tuning\" in /opt/cni/bin",
    ));
    says(
        diagnose_pod(&missing, &by_nad("x")),
        Reason::UnknownPlugin,
        State::Wrong,
        &["plugin directory of node n1"],
    );
}

#[test]
pub(super) fn what_later_versions_serve() {
    let mut snapshot = snapshot();
    snapshot
        .nads
        .push(nad("vpc", r#"{"type":"multus-multivpc-cni"}"#));
    says(
        diagnose_pod(&snapshot, &by_nad("vpc")),
        Reason::Later,
        State::Waits,
        &["other VPCs"],
    );
    snapshot.multi_nics.push(
        json!({"apiVersion": "net.cogadvisor.io/v1", "kind": "MultiNicNetwork",
        "metadata": {"name": "fast"}}),
    );
    says(
        diagnose_pod(&snapshot, &by_nad("fast")),
        Reason::NadMissing,
        State::Waits,
        &["MultiNicNetwork of that name"],
    );
    let devices = json!({"requests": [{"name": "a", "exactly": {"deviceClassName": "cni.networking.x-k8s.io"}}]});
    snapshot.waiting.push(
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "team-a"}, "spec": {"devices": devices}}),
    );
    snapshot.waiting.push(
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
            diagnose_pod(&snapshot, &claiming),
            Reason::Later,
            State::Waits,
            &["DRA driver"],
        );
    }
    claims_by_class(&mut snapshot);
    let mut claiming = pod(json!({}));
    claiming["spec"]["resourceClaims"] =
        json!([{"name": "x", "resourceClaimTemplateName": "nosuch"}]);
    says(
        diagnose_pod(&snapshot, &claiming),
        Reason::ClaimMissing,
        State::Wrong,
        &[
            "ResourceClaimTemplate team-a/nosuch",
            "is not there",
            "create it",
        ],
    );
    let says_missing = |snapshot: &Snapshot, pod: &Value| {
        let diagnosed = diagnose_pod(snapshot, pod);
        let mut kinds = diagnosed.answers.iter().map(|answer| answer.reason);
        kinds.any(|kind| kind == Reason::ClaimMissing)
    };
    let mut blind = snapshot.clone();
    blind.unknown.insert("waiting", "forbidden".to_owned());
    assert!(!says_missing(&blind, &claiming), "nobody knows");
    says(
        diagnose_pod(&blind, &claiming),
        Reason::NotSeen,
        State::Waits,
        &["ResourceClaimTemplate team-a/nosuch", "forbidden"],
    );
    claiming["status"]["resourceClaimStatuses"] =
        json!([{"name": "x", "resourceClaimName": "x-1"}]);
    assert!(!says_missing(&snapshot, &claiming), "it was needed once");
}

/// Whether a network is for a namespace cannot be told without its labels.
fn labels_that_are_hidden(snapshot: &Snapshot) {
    let mut snapshot = snapshot.clone();
    snapshot.networks[0]["spec"]["allowedNamespaces"] =
        json!({"from": "Selector", "selector": {"matchLabels": {"team": "a"}}});
    let diagnosed = |snapshot: &Snapshot| diagnose_pod(snapshot, &on("blue"));
    let refused = &["namespaces labelled team=a"];
    says(
        diagnosed(&snapshot),
        Reason::NotAllowed,
        State::Wrong,
        refused,
    );
    snapshot
        .unknown
        .insert("namespaces", "forbidden".to_owned());
    says(
        diagnosed(&snapshot),
        Reason::NotSeen,
        State::Waits,
        &["blue", "forbidden"],
    );
    snapshot.known_in.insert("namespaces", "team-a".to_owned());
    let mut own = json!({"metadata": {"name": "team-a", "labels": {}}});
    snapshot.namespaces = vec![own.clone()];
    says(
        diagnosed(&snapshot),
        Reason::NotAllowed,
        State::Wrong,
        refused,
    );
    own["metadata"]["labels"]["team"] = json!("a");
    snapshot.namespaces = vec![own];
    let answers = diagnosed(&snapshot).answers;
    assert!(
        answers.iter().all(|one| one.state != State::Wrong),
        "{answers:?}"
    );
}

/// Contrail's names: the project is a namespace, or the cluster's name and one; also as a definition's own
/// configuration writes it.
#[test]
fn names_of_projects() {
    let full = |name: &str| {
        network(
            name,
            json!({"provider": "mycorp/fancy", "subnets": {"a": {"cidr": "10.1.0.0/24"}}}),
            ready("Pending", "WaitingForProvider", "waits"),
        )
    };
    let mut snapshot = snapshot();
    snapshot.networks.push(full("blue"));
    let named = |project: &str| {
        let name = json!({"domain": "default-domain", "project": project, "name": "blue"});
        pod(json!({"opencontrail.org/network": name.to_string()}))
    };
    let waits = |snapshot: &Snapshot, pod: &Value| {
        let words = &["start the provider mycorp/fancy"];
        says(
            diagnose_pod(snapshot, pod),
            Reason::ProviderMissing,
            State::Waits,
            words,
        );
    };
    waits(&snapshot, &named("team-a"));
    waits(&snapshot, &named("k8s-team-a"));
    says(
        diagnose_pod(&snapshot, &named("east-team-a")),
        Reason::NetworkMissing,
        State::Wrong,
        &["in namespace east-team-a"],
    );
    snapshot.cluster_name = Some("east".to_owned());
    waits(&snapshot, &named("east-team-a"));

    let mut by_annotation = nad("x", r#"{"type":"plexus-cni"}"#);
    let name = json!({"domain": "default-domain", "project": "east-team-a", "name": "blue"});
    by_annotation["metadata"]["annotations"] =
        json!({"opencontrail.org/network": name.to_string()});
    let by_config = json!({"type": "plexus-cni", "network": name}).to_string();
    for definition in [by_annotation, nad("x", &by_config)] {
        snapshot.nads = vec![definition.clone()];
        says(
            diagnose_nad(&snapshot, &definition),
            Reason::ProviderMissing,
            State::Waits,
            &["Network team-a/blue"],
        );
        waits(&snapshot, &by_nad("x"));
    }
}

/// A pod waits for a claim by an administrator's class as soon as that leads to our driver.
fn claims_by_class(snapshot: &mut Snapshot) {
    let devices = json!({"requests": [{"name": "a", "exactly": {"deviceClassName": "fast-nic"}}]});
    snapshot.waiting.push(
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "by-class", "namespace": "team-a"}, "spec": {"devices": devices}}),
    );
    let mut claiming = pod(json!({}));
    claiming["spec"]["resourceClaims"] = json!([{"name": "x", "resourceClaimName": "by-class"}]);
    let says_it = |snapshot: &Snapshot| {
        let answers = diagnose_pod(snapshot, &claiming).answers;
        let about = "ResourceClaim team-a/by-class";
        let mut later = answers.iter().filter(|one| one.reason == Reason::Later);
        later.any(|one| one.about == about && one.why.contains("DRA driver"))
    };
    snapshot
        .waiting
        .push(device_class("fast-nic", "gpu.example.com"));
    assert!(!says_it(snapshot));
    snapshot.waiting.pop();
    // Nobody serves it as long as the class is not there; nobody knows whose it is if that is hidden.
    for (hidden, words) in [
        (false, "fast-nic is not there"),
        (true, "fast-nic cannot be seen"),
    ] {
        let mut blind = snapshot.clone();
        if hidden {
            blind.unknown.insert("waiting", "forbidden".to_owned());
            blind.known_in.insert("waiting", "team-a".to_owned());
        }
        let about = "ResourceClaim team-a/by-class";
        let diagnosed = diagnose_pod(&blind, &claiming);
        says(
            diagnosed,
            Reason::ClassUnknown,
            State::Waits,
            &[about, words],
        );
    }
    snapshot
        .waiting
        .push(device_class("fast-nic", "cni.dra.networking.x-k8s.io"));
    assert!(says_it(snapshot));
}
