//! Conditions and definitions of MultiNicNetworks, case by case.

use super::*;
use plexus_api::objects::{BlockNic, BlockSpec, MultiNicNetworkSpec, NetworkRef};
use serde_json::json;

fn meaning(mode: &str) -> MultiNic {
    let ipam =
        json!({"type": "multi-nic-ipam", "hostBlock": 6, "interfaceBlock": 2, "vlanMode": mode});
    let spec: MultiNicNetworkSpec =
        serde_json::from_value(json!({"subnet": "192.168.0.0/16", "ipam": ipam.to_string()}))
            .unwrap();
    spec.meaning().unwrap()
}

fn facts<'a>(meaning: &'a MultiNic, assignment: &'a Assignment) -> MultiNicFacts<'a> {
    MultiNicFacts {
        generation: Some(3),
        deleting: false,
        meaning: Ok(meaning),
        rivals: &[],
        assignment,
        hosts: (2, 2),
        unmade: &[],
        foreign: &[],
        undefined: &[],
    }
}

/// A block for each of these hosts and NICs.
fn assigned(blocks: &[(&str, u32, &str, &str)]) -> Assignment {
    let block = |(node, index, net, cidr): &(&str, u32, &str, &str)| {
        let spec = BlockSpec {
            network: NetworkRef {
                namespace: String::new(),
                name: "x".to_owned(),
                uuid: "u".to_owned(),
            },
            cidr: cidr.parse().unwrap(),
            node: (*node).to_owned(),
            node_uid: String::new(),
            nic: Some(BlockNic {
                interface: "eth1".to_owned(),
                net_address: net.parse().unwrap(),
                interface_index: *index,
                host_index: 0,
                via: None,
                retired: false,
            }),
        };
        ((*cidr).to_owned(), spec)
    };
    Assignment {
        blocks: blocks.iter().map(block).collect(),
        ..Assignment::default()
    }
}

fn ready(status: &MultiNicNetworkStatus) -> (&str, &str, &str) {
    condition(status, "Ready").unwrap()
}

fn condition<'s>(
    status: &'s MultiNicNetworkStatus,
    kind: &str,
) -> Option<(&'s str, &'s str, &'s str)> {
    let found = status.conditions.iter().find(|one| one.kind == kind)?;
    Some((&found.status, &found.reason, &found.message))
}

#[test]
fn a_placed_network_is_ready_and_deciding_again_changes_nothing() {
    let (meaning, assignment) = (
        meaning("l3"),
        assigned(&[
            ("n1", 0, "10.0.1.0/24", "192.168.0.0/24"),
            ("n2", 0, "10.0.1.0/24", "192.168.1.0/24"),
            ("n1", 1, "10.0.2.0/24", "192.168.64.0/24"),
        ]),
    );
    let facts = facts(&meaning, &assignment);
    let first = status(&facts, &MultiNicNetworkStatus::default(), "t1");
    assert_eq!(ready(&first), ("True", "Ready", ""));
    assert_eq!(
        (first.config_status.as_str(), first.route_status.as_str()),
        ("Success", "Unknown")
    );
    let results: Vec<_> = first
        .compute_results
        .iter()
        .map(|one| (one.net_address.as_str(), one.num_of_hosts))
        .collect();
    assert_eq!(results, [("10.0.1.0/24", 2), ("10.0.2.0/24", 1)]);
    let discovery = first.discovery.unwrap();
    assert_eq!(
        (
            discovery.exist_daemon,
            discovery.info_available,
            discovery.cidr_processed
        ),
        (2, 2, 2)
    );
    assert_eq!(first.last_sync_time.as_deref(), Some("t1"));
    assert_eq!(status(&facts, &first, "t2"), first);
    assert!(complaints(&facts).is_empty());
}

#[test]
fn what_is_wrong_with_it_fails_it() {
    let (meaning, assignment) = (meaning("l2"), Assignment::default());
    let mut facts = facts(&meaning, &assignment);
    facts.meaning = Err("spec.ipam.hostBlock: is 0");
    let failed = status(&facts, &MultiNicNetworkStatus::default(), "t");
    assert_eq!(failed.config_status, "Failed");
    assert_eq!(
        ready(&failed),
        ("False", "InvalidSpec", "spec.ipam.hostBlock: is 0")
    );
    assert_eq!(
        complaints(&facts),
        [("InvalidSpec", "spec.ipam.hostBlock: is 0".to_owned())]
    );
}

#[test]
fn overlapping_networks_are_reported_and_the_report_is_taken_back() {
    let (meaning, assignment) = (meaning("l2"), Assignment::default());
    let mut facts = facts(&meaning, &assignment);
    let rivals = ["192.168.0.0/24 of MultiNicNetwork old".to_owned()];
    facts.rivals = &rivals;
    let conflict = status(&facts, &MultiNicNetworkStatus::default(), "t");
    let (holds, _, message) = condition(&conflict, "SubnetConflict").unwrap();
    assert_eq!((holds, conflict.config_status.as_str()), ("True", "Failed"));
    assert!(message.contains("MultiNicNetwork old"), "{message}");
    assert_eq!(condition(&conflict, "Placed"), None);
    facts.rivals = &[];
    let over = status(&facts, &conflict, "t2");
    assert_eq!(condition(&over, "SubnetConflict").unwrap().0, "False");
}

#[test]
fn whoever_does_not_fit_is_named_in_a_condition_and_an_event() {
    let meaning = meaning("l2");
    let mut assignment = assigned(&[("n1", 0, "10.0.1.0/24", "192.168.0.0/24")]);
    assignment.left_out = (0..30)
        .map(|i| LeftOut::NoHostIndex {
            host: format!("h{i:02}"),
            nic: "eth1".to_owned(),
            net: "10.0.1.0/24".parse().unwrap(),
        })
        .collect();
    let facts = facts(&meaning, &assignment);
    let status = status(&facts, &MultiNicNetworkStatus::default(), "t");
    let (holds, reason, message) = condition(&status, "Placed").unwrap();
    assert_eq!((holds, reason), ("False", "NotPlaced"));
    assert!(
        message.contains("eth1 of h00") && message.ends_with("and 10 more"),
        "{message}"
    );
    assert_eq!(complaints(&facts)[0].0, "NotPlaced");
    assert_eq!(status.route_status, "N/A");
}

#[test]
fn of_routes_is_said_what_is_known() {
    let (l2, l3) = (meaning("l2"), meaning("l3s"));
    let routes = |meaning: &MultiNic, assignment: &Assignment| {
        let facts = facts(meaning, assignment);
        status(&facts, &MultiNicNetworkStatus::default(), "t").route_status
    };
    let none = Assignment::default();
    let one = [("n1", 0, "10.0.1.0/24", "192.168.0.0/24")];
    let two = [one[0], ("n2", 0, "10.0.1.0/24", "192.168.1.0/24")];
    assert_eq!(routes(&l2, &assigned(&two)), "N/A");
    assert_eq!(routes(&l3, &none), "WaitForRoutes");
    assert_eq!(routes(&l3, &assigned(&one)), "Success");
    assert_eq!(routes(&l3, &assigned(&two)), "Unknown");
    let mut no_way = assigned(&two);
    no_way.left_out = vec![LeftOut::NoAddress {
        host: "n2".to_owned(),
        nic: "eth1".to_owned(),
        family: plexus_types::Family::V6,
    }];
    assert_eq!(routes(&l3, &no_way), "Failed");
    let mut conflict = facts(&l3, &none);
    let rivals = ["192.168.0.0/24 of MultiNicNetwork old".to_owned()];
    conflict.rivals = &rivals;
    let conflict = status(&conflict, &MultiNicNetworkStatus::default(), "t");
    assert_eq!(conflict.route_status, "Unknown");
}

#[test]
fn what_the_server_refuses_is_said_and_taken_back() {
    let meaning = meaning("l2");
    let assignment = assigned(&[("n1", 0, "10.0.1.0/24", "192.168.0.0/24")]);
    let mut facts = facts(&meaning, &assignment);
    let blocks = ["Block u-1 is there".to_owned()];
    let definitions = ["cannot create a/x".to_owned()];
    (facts.unmade, facts.undefined) = (&blocks, &definitions);
    let refused = status(&facts, &MultiNicNetworkStatus::default(), "t");
    let not_written = ("False", "NotWritten", "Block u-1 is there");
    assert_eq!(ready(&refused), not_written);
    assert_eq!(condition(&refused, "Placed"), Some(not_written));
    assert_eq!(
        condition(&refused, "Definitions"),
        Some(("False", "NotWritten", "cannot create a/x"))
    );
    assert_eq!(refused.config_status, "Failed");
    assert_eq!(complaints(&facts).len(), 2);
    (facts.unmade, facts.undefined) = (&[], &[]);
    let written = status(&facts, &refused, "t2");
    assert_eq!(ready(&written).0, "True");
    assert_eq!(condition(&written, "Placed").unwrap().0, "True");
    assert_eq!(condition(&written, "Definitions").unwrap().1, "Made");
}

#[test]
fn what_it_waits_for() {
    let (meaning, assignment) = (meaning("l3"), Assignment::default());
    let mut facts = facts(&meaning, &assignment);
    facts.hosts = (0, 0);
    let hosts = status(&facts, &MultiNicNetworkStatus::default(), "t");
    assert_eq!(
        (hosts.config_status.as_str(), ready(&hosts).1),
        ("WaitForConfig", "WaitsForHosts")
    );
    assert!(hosts.message.contains("no HostInterface"));
    let assignment = Assignment {
        draining: 2,
        ..Assignment::default()
    };
    facts.assignment = &assignment;
    facts.deleting = true;
    let going = status(&facts, &hosts, "t");
    assert!(ready(&going).2.starts_with("2 of its blocks"), "{going:?}");
}

#[test]
fn definitions_are_made_followed_and_removed_and_those_of_others_left_alone() {
    let there = |namespace, ours, config| Definition {
        namespace,
        ours,
        config,
    };
    let wanted: Vec<String> = ["new", "old", "same", "theirs"].map(str::to_owned).into();
    let all = [
        there("old", true, Some("{}")),
        there("same", true, Some("{1}")),
        there("theirs", false, Some("{1}")),
        there("left", true, Some("{1}")),
        there("others", false, None),
    ];
    let changes = definitions(&wanted, "{1}", &all);
    assert_eq!(
        changes,
        DefinitionChanges {
            create: vec!["new".to_owned()],
            update: vec!["old".to_owned()],
            delete: vec!["left".to_owned()],
            foreign: vec!["theirs".to_owned()],
        }
    );
    let none = definitions(&[], "{1}", &all);
    assert_eq!(none.delete, ["old", "same", "left"]);
}
