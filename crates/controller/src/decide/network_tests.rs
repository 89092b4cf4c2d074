//! Phases and conditions, case by case.

use super::*;
use crate::cache::Name;
use crate::decide::conflict::AddressOwner;
use serde_json::json;

fn spec(value: serde_json::Value) -> NetworkSpec {
    serde_json::from_value(value).unwrap()
}

fn facts(spec: Result<&NetworkSpec, &'static str>) -> NetworkFacts<'static> {
    // Leaked: a test's few bytes.
    let spec = spec.map(|spec| &*Box::leak(Box::new(spec.clone())));
    NetworkFacts {
        generation: Some(3),
        deleting: false,
        spec,
        number: VniState::Own(5000),
        rivals: Vec::new(),
        not_allowed: None,
        users: Users::default(),
        in_use_addresses: AddressesInUse::default(),
        usage: None,
        blocks: Vec::new(),
        same_uuid: None,
        nad: NadAgreement::None,
    }
}

fn overlay() -> NetworkSpec {
    spec(json!({"subnets": {"a": {"cidr": "10.1.0.0/16"}}}))
}

fn rival(precedes: bool) -> Rival {
    let net = "10.1.0.0/16".parse().unwrap();
    Rival {
        owner: AddressOwner::Network(Name::new("b", "old")),
        nets: (net, net),
        precedes,
    }
}

fn ready(status: &NetworkStatus) -> (&str, &str, &str) {
    let ready = status
        .conditions
        .iter()
        .find(|c| c.kind == "Ready")
        .unwrap();
    (&ready.status, &ready.reason, &ready.message)
}

fn condition<'a>(status: &'a NetworkStatus, kind: &str) -> Option<(&'a str, &'a str)> {
    let found = status.conditions.iter().find(|c| c.kind == kind)?;
    Some((&found.status, &found.message))
}

#[test]
fn a_sound_network_is_active_and_deciding_again_changes_nothing() {
    let facts = facts(Ok(&overlay()));
    let first = status(&facts, &NetworkStatus::default(), "t1");
    assert_eq!(first.phase, Some(Phase::Active));
    assert_eq!(
        (first.vni, first.observed_generation),
        (Some(5000), Some(3))
    );
    assert_eq!(first.conditions.len(), 1);
    assert_eq!(status(&facts, &first, "t2"), first);
}

#[test]
fn what_cannot_be_read_fails_with_the_reason() {
    let status = status(
        &facts(Err("unknown field `cidr`")),
        &NetworkStatus::default(),
        "t",
    );
    assert_eq!(status.phase, Some(Phase::Failed));
    let (holds, reason, message) = ready(&status);
    assert_eq!((holds, reason), ("False", "InvalidSpec"));
    assert!(message.contains("unknown field `cidr`"));
}

#[test]
fn an_external_provider_is_waited_for() {
    let external = spec(json!({"provider": "mycorp/fancy-network-provider"}));
    let mut facts = facts(Ok(&external));
    facts.number = VniState::None;
    let status = status(&facts, &NetworkStatus::default(), "t");
    assert_eq!(status.phase, Some(Phase::Pending));
    assert_eq!(ready(&status).1, "WaitingForProvider");
    assert!(ready(&status).2.contains("mycorp/fancy-network-provider"));
}

#[test]
fn both_say_that_they_overlap_and_the_younger_waits() {
    let mut young = facts(Ok(&overlay()));
    young.rivals = vec![rival(true)];
    let waits = status(&young, &NetworkStatus::default(), "t");
    assert_eq!(
        (waits.phase, ready(&waits).1),
        (Some(Phase::Pending), "SubnetConflict")
    );
    let (holds, message) = condition(&waits, "SubnetConflict").unwrap();
    assert_eq!(holds, "True");
    assert!(
        message.contains("10.1.0.0/16 of Network b/old"),
        "{message}"
    );

    let mut old = facts(Ok(&overlay()));
    old.rivals = vec![rival(false)];
    let stays = status(&old, &NetworkStatus::default(), "t");
    assert_eq!(stays.phase, Some(Phase::Active));
    assert_eq!(condition(&stays, "SubnetConflict").unwrap().0, "True");

    young.rivals.clear();
    let free = status(&young, &waits, "t2");
    assert_eq!(free.phase, Some(Phase::Active));
    assert_eq!(condition(&free, "SubnetConflict").unwrap().0, "False");
}

#[test]
fn one_that_pods_use_keeps_its_addresses_but_takes_no_new_pods_in_a_conflict() {
    let in_phase = |phase| NetworkStatus {
        phase: Some(phase),
        ..NetworkStatus::default()
    };
    let active = in_phase(Phase::Active);
    assert!(is_settled(&active, 1, 0) && is_settled(&active, 0, 1) && !is_settled(&active, 0, 0));
    assert!(is_settled(&in_phase(Phase::Pending), 0, 1));
    assert!(is_settled(&in_phase(Phase::Terminating), 1, 0));
    assert!(!is_settled(&in_phase(Phase::Failed), 1, 1));
    assert!(!is_settled(&NetworkStatus::default(), 1, 1));
    let mut used = facts(Ok(&overlay()));
    used.rivals = vec![Rival {
        owner: AddressOwner::Services("kubernetes".into()),
        ..rival(true)
    }];
    let waits = status(&used, &active, "t");
    assert_eq!(
        (waits.phase, ready(&waits).1),
        (Some(Phase::Pending), "SubnetConflict")
    );
    assert!(
        ready(&waits).2.contains("no new pod can use it"),
        "{waits:?}"
    );
}

#[test]
fn addresses_that_nodes_hold_are_use_too() {
    let mut facts = facts(Ok(&overlay()));
    facts.deleting = true;
    facts.in_use_addresses = AddressesInUse::of([("n1", 2, true)].into_iter());
    let held = status(&facts, &NetworkStatus::default(), "t");
    let (holds, message) = condition(&held, "InUse").unwrap();
    assert_eq!(
        (holds, message),
        ("True", "2 addresses are in use by blocks of n1")
    );
    assert!(ready(&held).2.contains("n1"), "{held:?}");
}

#[test]
fn deleted_in_use_says_by_whom_and_keeps_its_number() {
    let mut facts = facts(Ok(&overlay()));
    let before = status(&facts, &NetworkStatus::default(), "t");
    facts.deleting = true;
    facts.users = Users {
        count: 2,
        first: vec!["a/x".into(), "a/y".into()],
    };
    let after = status(&facts, &before, "t2");
    assert_eq!(
        (after.phase, after.vni),
        (Some(Phase::Terminating), Some(5000))
    );
    assert_eq!(
        condition(&after, "InUse").unwrap(),
        ("True", "used by 2 pods: a/x, a/y")
    );
    facts.users = Users::default();
    let free = status(&facts, &after, "t3");
    assert_eq!(condition(&free, "InUse").unwrap().0, "False");
}

#[test]
fn a_number_or_identity_that_another_has_fails_the_younger() {
    let mut shared = facts(Ok(&overlay()));
    shared.number = VniState::Shared(4097, "b/old".into());
    let status_of = |facts: &NetworkFacts<'_>| status(facts, &NetworkStatus::default(), "t");
    let shared = status_of(&shared);
    assert_eq!(
        (shared.phase, ready(&shared).1, shared.vni),
        (Some(Phase::Failed), "VniConflict", Some(4097))
    );
    let mut twin = facts(Ok(&overlay()));
    twin.same_uuid = Some("b/old".into());
    assert_eq!(ready(&status_of(&twin)).1, "UuidConflict");
}

#[test]
fn what_cannot_follow_its_nad_says_so() {
    let mut facts = facts(Ok(&overlay()));
    facts.nad = NadAgreement::Differs("s0: stays 10.1.0.0/16".into());
    let status = status(&facts, &NetworkStatus::default(), "t");
    assert_eq!(status.phase, Some(Phase::Active));
    assert_eq!(
        condition(&status, "FollowsNad").unwrap(),
        ("False", "s0: stays 10.1.0.0/16")
    );
}

#[test]
fn a_subnet_stays_known_while_blocks_of_it_are_left() {
    let nets =
        |texts: &[&str]| -> Vec<IpNet> { texts.iter().map(|t| t.parse().unwrap()).collect() };
    let previous_subnets = nets(&["10.9.0.0/16", "10.8.0.0/16"]);
    let before = NetworkStatus {
        subnets: previous_subnets.clone(),
        ..NetworkStatus::default()
    };
    let mut left = facts(Ok(&overlay()));
    left.blocks = nets(&["10.9.3.0/26"]);
    let after = status(&left, &before, "t");
    assert_eq!(after.subnets, nets(&["10.1.0.0/16", "10.9.0.0/16"]));
    // What cannot be read takes nothing away.
    assert_eq!(status(&facts(Err("?")), &before, "t").subnets.len(), 2);
}

#[test]
fn a_deleted_network_waits_for_agents_that_might_still_give_addresses_out() {
    let mut facts = facts(Ok(&overlay()));
    facts.deleting = true;
    facts.in_use_addresses = AddressesInUse::of([("n1", 0, true), ("n2", 0, false)].into_iter());
    let waits = status(&facts, &NetworkStatus::default(), "t");
    let (holds, message) = condition(&waits, "InUse").unwrap();
    assert_eq!(holds, "True");
    assert!(
        message.contains("n2") && !message.contains("n1"),
        "{message}"
    );
    facts.in_use_addresses = AddressesInUse::of([("n1", 0, true)].into_iter());
    assert!(!facts.in_use_addresses.any());
}

#[test]
fn every_address_is_no_subnet() {
    for (cidr, part) in [("0.0.0.0/0", "10.1.0.0/16"), ("::/0", "fd00:1::/48")] {
        let spec = spec(json!({"subnets": {"a": {"cidr": cidr}}}));
        let status = status(&facts(Ok(&spec)), &NetworkStatus::default(), "t1");
        assert_eq!(status.phase, Some(Phase::Failed));
        let (_, reason, message) = ready(&status);
        assert_eq!(reason, "InvalidSpec");
        for word in ["subnets.a.cidr", cidr, part] {
            assert!(message.contains(word), "{message} lacks {word}");
        }
        assert_eq!(
            complaints(&status),
            [(reason.to_owned(), message.to_owned())]
        );
    }
}

#[test]
fn subnets_that_nobody_allowed_wait_and_say_so() {
    let mut public = facts(Ok(&overlay()));
    public.not_allowed = Some("8.8.8.0/24 is not within a range".to_owned());
    let waits = status(&public, &NetworkStatus::default(), "t");
    assert_eq!(
        (waits.phase, ready(&waits).1),
        (Some(Phase::Pending), "SubnetNotAllowed")
    );
    let (holds, message) = condition(&waits, "SubnetNotAllowed").unwrap();
    assert!(
        holds == "True" && message.contains("8.8.8.0/24"),
        "{message}"
    );
    let said = complaints(&waits);
    assert_eq!((said.len(), said[0].0.as_str()), (1, "SubnetNotAllowed"));
    public.not_allowed = None;
    let free = status(&public, &waits, "t2");
    assert_eq!(free.phase, Some(Phase::Active));
    assert_eq!(condition(&free, "SubnetNotAllowed").unwrap().0, "False");
}

#[test]
fn what_is_wrong_is_said_once() {
    let sound = status(&facts(Ok(&overlay())), &NetworkStatus::default(), "t1");
    assert_eq!(complaints(&sound), []);
    let mut waiting = facts(Ok(&overlay()));
    waiting.rivals = vec![rival(true)];
    let found_complaints = complaints(&status(&waiting, &sound, "t2"));
    assert_eq!(
        found_complaints.len(),
        1,
        "the condition says the same: {found_complaints:?}"
    );
    assert_eq!(found_complaints[0].0, "SubnetConflict");
    for word in ["spec.subnets", "10.1.0.0/16", "other addresses"] {
        assert!(
            found_complaints[0].1.contains(word),
            "{found_complaints:?} lacks {word}"
        );
    }
    // It need not wait, but is to be known.
    waiting.rivals = vec![rival(false)];
    let found_complaints = complaints(&status(&waiting, &sound, "t2"));
    assert_eq!(found_complaints[0].0, "SubnetConflict");
    // Of a deleted one the pods are not named: they go one by one.
    let mut deleted = facts(Ok(&overlay()));
    deleted.deleting = true;
    let pods = |count| Users {
        count,
        first: vec![format!("a/{count}")],
    };
    deleted.users = pods(2);
    let two = complaints(&status(&deleted, &sound, "t2"));
    deleted.users = pods(1);
    assert_eq!(two, complaints(&status(&deleted, &sound, "t2")));
    assert_eq!(two[0].0, "InUse");
    deleted.users = Users::default();
    assert_eq!(complaints(&status(&deleted, &sound, "t2")), []);
}
