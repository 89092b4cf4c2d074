//! Networks, definitions and objects of later kinds by themselves.

use super::*;

#[test]
pub(super) fn objects_of_later_kinds() {
    let devices =
        json!({"requests": [{"exactly": {"deviceClassName": "cni.networking.x-k8s.io"}}]});
    let claim = |devices: &Value| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "team-a"}, "spec": {"devices": devices}})
    };
    let mut snapshot = snapshot();
    let diagnosed = diagnose_later(&snapshot, &claim(&devices));
    assert_eq!(diagnosed.subject, "ResourceClaim team-a/c");
    says(diagnosed, Reason::Later, State::Waits, &["DRA driver"]);
    says(
        diagnose_later(&snapshot, &claim(&json!({}))),
        Reason::Later,
        State::Good,
        &["another driver"],
    );
    // By an administrator's class, once that leads to our driver.
    let by_class = claim(&json!({"requests": [{"exactly": {"deviceClassName": "fast-nic"}}]}));
    let missing = &["DeviceClass fast-nic is not there"];
    let diagnosed = diagnose_later(&snapshot, &by_class);
    says(diagnosed, Reason::ClassUnknown, State::Waits, missing);
    snapshot
        .waiting
        .push(device_class("fast-nic", "gpu.example.com"));
    let diagnosed = diagnose_later(&snapshot, &by_class);
    says(diagnosed, Reason::Later, State::Good, &["another driver"]);
    snapshot.waiting.clear();
    snapshot.unknown.insert("waiting", "forbidden".to_owned());
    let diagnosed = diagnose_later(&snapshot, &by_class);
    let hidden = &["cannot be seen"];
    says(diagnosed, Reason::ClassUnknown, State::Waits, hidden);
    snapshot
        .waiting
        .push(device_class("fast-nic", "cni.dra.networking.x-k8s.io"));
    let diagnosed = diagnose_later(&snapshot, &by_class);
    says(diagnosed, Reason::Later, State::Waits, &["DRA driver"]);
}

#[test]
pub(super) fn networks_by_themselves() {
    let of = |network: &Value, snapshot: &Snapshot| diagnose_network(snapshot, network);
    let mut snapshot = snapshot();
    snapshot
        .records
        .push(record(json!([attachment(1, "net1", "Attached", "")])));
    let fine = says(
        of(&active("blue"), &snapshot),
        Reason::NetworkActive,
        State::Good,
        &["team-a/web does"],
    );
    assert_eq!(fine.state(), State::Good);
    says(
        of(&active("green"), &snapshot),
        Reason::NetworkActive,
        State::Good,
        &["none does"],
    );
    let spec = json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}});
    for (phase, condition_reason, reason, state, word) in [
        (
            "Failed",
            "InvalidSpec",
            Reason::NetworkFailed,
            State::Wrong,
            "plexus validate",
        ),
        (
            "Failed",
            "UuidConflict",
            Reason::NetworkFailed,
            State::Wrong,
            "another spec.uuid",
        ),
        (
            "Failed",
            "VniConflict",
            Reason::NetworkFailed,
            State::Wrong,
            "create it again",
        ),
        (
            "Pending",
            "SubnetConflict",
            Reason::NetworkPending,
            State::Waits,
            "under another name",
        ),
        (
            "Pending",
            "NoVni",
            Reason::NetworkPending,
            State::Waits,
            "delete overlay networks",
        ),
        (
            "Pending",
            "WaitingForProvider",
            Reason::ProviderMissing,
            State::Waits,
            "start the provider",
        ),
    ] {
        let status = ready(phase, condition_reason, "the message");
        let diagnosed = of(&network("x", spec.clone(), status), &snapshot);
        says(diagnosed, reason, state, &["the message", word]);
    }
    let new = network("x", spec.clone(), json!({}));
    says(
        of(&new, &snapshot),
        Reason::NetworkInitializing,
        State::Waits,
        &["not looked"],
    );
    let mut going = active("blue");
    going["metadata"]["deletionTimestamp"] = json!(time(1));
    going["status"]["conditions"][0] = json!({"type": "InUse", "status": "True", "reason": "x",
        "message": "used by 1 pod: team-a/web", "lastTransitionTime": time(1)});
    says(
        of(&going, &snapshot),
        Reason::NetworkTerminating,
        State::Waits,
        &["team-a/web", "delete those pods"],
    );
    let empty = network("x", json!({}), ready("Active", "Active", ""));
    says(
        of(&empty, &snapshot),
        Reason::NoSubnets,
        State::Wrong,
        &["could not be reached"],
    );
    let odd = network(
        "x",
        json!({"mtu": "x"}),
        ready("Failed", "InvalidSpec", "no"),
    );
    says(
        of(&odd, &snapshot),
        Reason::NetworkFailed,
        State::Wrong,
        &[],
    );
}

#[test]
pub(super) fn networks_with_conditions() {
    let with = |kind: &str, status: &str, reason: &str| {
        let mut network = active("blue");
        let condition = json!({"type": kind, "status": status, "reason": reason,
            "message": "the message", "lastTransitionTime": time(1)});
        network["status"]["conditions"]
            .as_array_mut()
            .unwrap()
            .push(condition);
        diagnose_network(&snapshot(), &network)
    };
    says(
        with("SubnetConflict", "True", "Overlap"),
        Reason::SubnetConflict,
        State::Waits,
        &["the message"],
    );
    says(
        with("FollowsNad", "False", "InUse"),
        Reason::NadDiffers,
        State::Wrong,
        &["the message"],
    );
    assert_eq!(with("FollowsNad", "False", "NoNad").state(), State::Good);
    let mut snapshot = snapshot();
    let mut message_event = event("somebody says");
    message_event["involvedObject"] =
        json!({"kind": "Network", "namespace": "team-a", "name": "blue", "uid": "uid-blue"});
    snapshot.events.push(message_event);
    says(
        diagnose_network(&snapshot, &active("blue")),
        Reason::Event,
        State::Waits,
        &["somebody says"],
    );
}

#[test]
pub(super) fn networks_that_are_full() {
    let spec = json!({"subnets": {"a": {"cidr": "10.1.0.0/29"}}, "blockSize": {"ipv4": 30}});
    let small = network("blue", spec, ready("Active", "Active", ""));
    let mut full = snapshot();
    full.blocks = vec![
        block("blue", "10.1.0.0/30", "n1", 3),
        block("blue", "10.1.0.4/30", "n2", 2),
    ];
    says(
        diagnose_network(&full, &small),
        Reason::NoAddresses,
        State::Wrong,
        &["IPv4 addresses", "all 5 are in use"],
    );
    // The other family has plenty: a pod gets an address of each.
    let mut both = small.clone();
    both["spec"]["subnets"]["b"] = json!({"cidr": "fd00:1::/64"});
    let diagnosed = says(
        diagnose_network(&full, &both),
        Reason::NoAddresses,
        State::Wrong,
        &["IPv4 addresses", "all 5 are in use"],
    );
    assert_eq!(diagnosed.state(), State::Wrong);
    let mut asking = snapshot();
    asking.blocks = vec![
        block("blue", "10.1.0.0/30", "n1", 3),
        block("blue", "10.1.0.4/30", "n2", 0),
    ];
    asking
        .requests
        .push(json!({"spec": {"network": {"uid": "uid-blue"}, "node": "n1"}}));
    let diagnosed = diagnose_network(&asking, &small);
    let diagnosed = says(
        diagnosed,
        Reason::NoAddresses,
        State::Waits,
        &["every block has an owner"],
    );
    says(diagnosed, Reason::Asking, State::Waits, &["n1 asks"]);
}

#[test]
pub(super) fn definitions_by_themselves() {
    let of = |config: &str| diagnose_nad(&snapshot(), &nad("x", config));
    says(
        of(r#"{"type":"macvlan","master":"eth1"}"#),
        Reason::NadUsable,
        State::Good,
        &["natively"],
    );
    says(
        of(r#"{"type":"tuning"}"#),
        Reason::NadUsable,
        State::Good,
        &["executing tuning"],
    );
    says(
        of(r#"{"type":"calico"}"#),
        Reason::UnknownPlugin,
        State::Waits,
        &["calico"],
    );
    says(
        of("{"),
        Reason::NadUnreadable,
        State::Wrong,
        &["plexus validate"],
    );
    says(
        of(r#"{"type":"macvlan","mode":"x"}"#),
        Reason::NadInvalid,
        State::Wrong,
        &["mode"],
    );
    says(
        of(r#"{"type":"multus-multivpc-cni"}"#),
        Reason::Later,
        State::Waits,
        &["eni"],
    );
    says(
        of(r#"{"type":"plexus-cni"}"#),
        Reason::NadWithoutNetwork,
        State::Wrong,
        &["leaves everything to the Network team-a/x"],
    );
    let mut making = nad("x", r#"{"type":"plexus-cni"}"#);
    making["metadata"]["annotations"] = json!({"opencontrail.org/cidr": "10.1.0.0/24"});
    says(
        diagnose_nad(&snapshot(), &making),
        Reason::NadWithoutNetwork,
        State::Waits,
        &["has not yet"],
    );
    let mut unclear = making.clone();
    unclear["metadata"]["annotations"]["opencontrail.org/cidr"] = json!("x");
    says(
        diagnose_nad(&snapshot(), &unclear),
        Reason::NadInvalid,
        State::Wrong,
        &["cidr"],
    );
    let mut made = snapshot();
    made.networks.push(active("x"));
    says(
        diagnose_nad(&made, &making),
        Reason::NadWithoutNetwork,
        State::Wrong,
        &["was not made from it"],
    );
    made.networks[0]["metadata"]["ownerReferences"] =
        json!([{"kind": "NetworkAttachmentDefinition", "name": "x", "uid": "uid-nad-x"}]);
    let mut blind = made.clone();
    blind.networks.clear();
    blind.unknown.insert("networks", "forbidden".to_owned());
    says(
        diagnose_nad(&blind, &making),
        Reason::NotSeen,
        State::Waits,
        &["forbidden"],
    );
    says(
        diagnose_nad(&made, &making),
        Reason::NetworkActive,
        State::Good,
        &["Network team-a/x"],
    );
}
