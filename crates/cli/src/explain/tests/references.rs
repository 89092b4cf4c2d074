//! What pods ask for, and why it cannot be had.

use super::*;

#[test]
pub(super) fn annotations_that_cannot_be_had() {
    says(
        explain_pod(&world(), &on("a,,b")),
        Because::BadAnnotation,
        State::Wrong,
        &["plexus.dev/networks[1]"],
    );
    let misspelt = pod(json!({"plexus.dev/network": "blue"}));
    says(
        explain_pod(&world(), &misspelt),
        Because::BadAnnotation,
        State::Wrong,
        &[
            "annotation plexus.dev/network",
            "did you mean plexus.dev/networks?",
        ],
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
pub(super) fn networks_that_are_not_there() {
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
pub(super) fn networks_that_cannot_be_used() {
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
    labels_that_are_hidden(&with(ready("Active", "Active", "")));
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
pub(super) fn definitions() {
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
pub(super) fn what_later_versions_serve() {
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
    claims_by_class(&mut world);
    let mut claiming = pod(json!({}));
    claiming["spec"]["resourceClaims"] =
        json!([{"name": "x", "resourceClaimTemplateName": "nosuch"}]);
    says(
        explain_pod(&world, &claiming),
        Because::ClaimMissing,
        State::Wrong,
        &[
            "ResourceClaimTemplate team-a/nosuch",
            "is not there",
            "create it",
        ],
    );
    let says_missing = |world: &World, pod: &Value| {
        let explained = explain_pod(world, pod);
        let mut kinds = explained.answers.iter().map(|answer| answer.because);
        kinds.any(|kind| kind == Because::ClaimMissing)
    };
    let mut blind = world.clone();
    blind.unknown.insert("waiting", "forbidden".to_owned());
    assert!(!says_missing(&blind, &claiming), "nobody knows");
    says(
        explain_pod(&blind, &claiming),
        Because::NotSeen,
        State::Waits,
        &["ResourceClaimTemplate team-a/nosuch", "forbidden"],
    );
    claiming["status"]["resourceClaimStatuses"] =
        json!([{"name": "x", "resourceClaimName": "x-1"}]);
    assert!(!says_missing(&world, &claiming), "it was needed once");
}

/// Whether a network is for a namespace cannot be told without its labels.
fn labels_that_are_hidden(world: &World) {
    let mut world = world.clone();
    world.networks[0]["spec"]["allowedNamespaces"] =
        json!({"from": "Selector", "selector": {"matchLabels": {"team": "a"}}});
    let explained = |world: &World| explain_pod(world, &on("blue"));
    let refused = &["namespaces labelled team=a"];
    says(
        explained(&world),
        Because::NotAllowed,
        State::Wrong,
        refused,
    );
    world.unknown.insert("namespaces", "forbidden".to_owned());
    says(
        explained(&world),
        Because::NotSeen,
        State::Waits,
        &["blue", "forbidden"],
    );
    world.known_in.insert("namespaces", "team-a".to_owned());
    let mut own = json!({"metadata": {"name": "team-a", "labels": {}}});
    world.namespaces = vec![own.clone()];
    says(
        explained(&world),
        Because::NotAllowed,
        State::Wrong,
        refused,
    );
    own["metadata"]["labels"]["team"] = json!("a");
    world.namespaces = vec![own];
    let answers = explained(&world).answers;
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
    let mut world = world();
    world.networks.push(full("blue"));
    let named = |project: &str| {
        let name = json!({"domain": "default-domain", "project": project, "name": "blue"});
        pod(json!({"opencontrail.org/network": name.to_string()}))
    };
    let waits = |world: &World, pod: &Value| {
        let words = &["start the provider mycorp/fancy"];
        says(
            explain_pod(world, pod),
            Because::ProviderMissing,
            State::Waits,
            words,
        );
    };
    waits(&world, &named("team-a"));
    waits(&world, &named("k8s-team-a"));
    says(
        explain_pod(&world, &named("east-team-a")),
        Because::NetworkMissing,
        State::Wrong,
        &["in namespace east-team-a"],
    );
    world.cluster_name = Some("east".to_owned());
    waits(&world, &named("east-team-a"));

    let mut by_annotation = nad("x", r#"{"type":"plexus-cni"}"#);
    let name = json!({"domain": "default-domain", "project": "east-team-a", "name": "blue"});
    by_annotation["metadata"]["annotations"] =
        json!({"opencontrail.org/network": name.to_string()});
    let by_config = json!({"type": "plexus-cni", "network": name}).to_string();
    for definition in [by_annotation, nad("x", &by_config)] {
        world.nads = vec![definition.clone()];
        says(
            explain_nad(&world, &definition),
            Because::ProviderMissing,
            State::Waits,
            &["Network team-a/blue"],
        );
        waits(&world, &by_nad("x"));
    }
}

/// A pod waits for a claim by an administrator's class as soon as that leads to our driver.
fn claims_by_class(world: &mut World) {
    let devices = json!({"requests": [{"name": "a", "exactly": {"deviceClassName": "fast-nic"}}]});
    world.waiting.push(
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "by-class", "namespace": "team-a"}, "spec": {"devices": devices}}),
    );
    let mut claiming = pod(json!({}));
    claiming["spec"]["resourceClaims"] = json!([{"name": "x", "resourceClaimName": "by-class"}]);
    let says_it = |world: &World| {
        let answers = explain_pod(world, &claiming).answers;
        let about = "ResourceClaim team-a/by-class";
        let mut later = answers.iter().filter(|one| one.because == Because::Later);
        later.any(|one| one.about == about && one.why.contains("DRA driver"))
    };
    world
        .waiting
        .push(device_class("fast-nic", "gpu.example.com"));
    assert!(!says_it(world));
    world.waiting.pop();
    // Nobody serves it as long as the class is not there; nobody knows whose it is if that is hidden.
    for (hidden, words) in [
        (false, "fast-nic is not there"),
        (true, "fast-nic cannot be seen"),
    ] {
        let mut blind = world.clone();
        if hidden {
            blind.unknown.insert("waiting", "forbidden".to_owned());
            blind.known_in.insert("waiting", "team-a".to_owned());
        }
        let about = "ResourceClaim team-a/by-class";
        let explained = explain_pod(&blind, &claiming);
        says(
            explained,
            Because::ClassUnknown,
            State::Waits,
            &[about, words],
        );
    }
    world
        .waiting
        .push(device_class("fast-nic", "cni.dra.networking.x-k8s.io"));
    assert!(says_it(world));
}
