//! Which change makes which work, and what the indexes answer.

use super::*;
use crate::decide::conflict::must_wait;
use plexus_api::objects::{NetworkSpec, NetworkStatus, Phase};
use serde_json::json;

fn id(uid: &str, created: &str) -> Identity {
    Identity {
        uid: uid.to_owned(),
        created: created.to_owned(),
        ..Identity::default()
    }
}

fn net(name: &str, created: &str, provider: &str, cidr: &str) -> (Name, Net) {
    let spec: NetworkSpec =
        serde_json::from_value(json!({"provider": provider, "subnets": {"a": {"cidr": cidr}}}))
            .unwrap();
    let net = Net {
        id: id(&format!("uid-{name}"), created),
        owner: None,
        spec: Ok(spec),
        status: NetworkStatus::default(),
    };
    (Name::new("t", name), net)
}

fn record(pod: &str, node: &str, network: &str) -> (Name, Record) {
    let record = Record {
        id: id(&format!("uid-{pod}"), "t"),
        pod: pod.to_owned(),
        pod_uid: format!("pod-{pod}"),
        node: node.to_owned(),
        networks: BTreeSet::from([network.to_owned()]),
    };
    (Name::new("t", format!("pod-{pod}")), record)
}

fn block(name: &str, node: &str, network: &str) -> (Name, Owned) {
    let block = Owned {
        id: id(name, "t"),
        network: network.to_owned(),
        of: Name::new("t", "x"),
        cidr: "10.0.0.0/26".parse().ok(),
        node: node.to_owned(),
        node_uid: format!("uid-{node}"),
        allocated: 1,
        given: Vec::new(),
        closed: false,
    };
    (Name::new("", name), block)
}

fn node(name: &str, cidr: &str, address: &str) -> (Name, Machine) {
    let machine = Machine {
        id: id(&format!("uid-{name}"), "t"),
        pod_cidrs: vec![cidr.parse().unwrap()],
        addresses: vec![address.parse().unwrap()],
    };
    (Name::new("", name), machine)
}

fn has(work: &Work, key: &Key) -> bool {
    work.iter().any(|(one, _)| one == key)
}

fn network(name: &str) -> Key {
    Key::Network(Name::new("t", name))
}

#[test]
fn routed_networks_collide_with_each_other_nodes_and_services_overlays_apart() {
    let mut world = World::default();
    world.feed(News::Network(Event::Apply(net(
        "old",
        "t1",
        "routed",
        "10.1.0.0/16",
    ))));
    let work = world.feed(News::Network(Event::Apply(net(
        "young",
        "t2",
        "routed",
        "10.1.2.0/24",
    ))));
    assert!(has(&work, &network("old")) && has(&work, &network("young")));
    world.feed(News::Network(Event::Apply(net(
        "apart",
        "t3",
        "overlay",
        "10.1.0.0/16",
    ))));
    let work = world.feed(News::Node(Event::Apply(node(
        "n1",
        "10.244.0.0/24",
        "10.1.2.7",
    ))));
    assert!(
        has(&work, &network("old"))
            && has(&work, &network("young"))
            && has(&work, &network("apart"))
    );

    let rivals = |world: &World, name: &str| {
        let name = Name::new("t", name);
        let net = world.networks.get(&name).unwrap();
        world.rivals(&name, net, false)
    };
    let young = rivals(&world, "young");
    assert_eq!(young.len(), 2);
    assert!(must_wait(&young));
    // Of all those, it only hides the Node's address from its pods.
    let apart = rivals(&world, "apart");
    assert!(!must_wait(&apart) && apart.len() == 1, "{apart:?}");

    // Only the node is in the older one's way; and nothing is once it is gone.
    let work = world.feed(News::Node(Event::Delete(node(
        "n1",
        "10.244.0.0/24",
        "10.1.2.7",
    ))));
    assert!(has(&work, &network("old")));
    let old = rivals(&world, "old");
    assert!(!must_wait(&old) && old.len() == 1);

    let services = Services {
        id: id("s", "t"),
        cidrs: vec!["10.1.255.0/24".parse().unwrap()],
    };
    let work = world.feed(News::Services(Event::Apply((
        Name::new("", "kubernetes"),
        services,
    ))));
    assert!(has(&work, &network("old")) && !has(&work, &network("young")));

    let work = world.feed(News::Network(Event::Delete(net(
        "old",
        "t1",
        "routed",
        "10.1.0.0/16",
    ))));
    assert!(has(&work, &network("young")) && has(&work, &Key::Orphans("uid-old".into())));
}

#[test]
fn who_has_blocks_of_the_addresses_does_not_wait_for_one_that_was_edited_to_want_them() {
    let mut world = World::default();
    let active = |(name, mut net): (Name, Net)| {
        net.status.phase = Some(Phase::Active);
        (name, net)
    };
    let old = active(net("old", "t1", "routed", "10.9.0.0/16"));
    let young = active(net("young", "t2", "routed", "10.0.0.0/24"));
    let (mut elsewhere, here) = (block("b1", "n1", "uid-old"), block("b2", "n1", "uid-young"));
    elsewhere.1.cidr = "10.9.0.0/26".parse().ok();
    for network in [&old, &young] {
        world.feed(News::Network(Event::Apply(network.clone())));
    }
    world.feed(News::Block(Event::Apply(elsewhere)));
    world.feed(News::Block(Event::Apply(here)));
    let waits = |world: &World, name: &str| {
        let name = Name::new("t", name);
        must_wait(&world.rivals(&name, world.networks.get(&name).unwrap(), false))
    };
    assert!(!waits(&world, "old") && !waits(&world, "young"));

    let mut edited = old.clone();
    if let Ok(spec) = &mut edited.1.spec {
        let more = serde_json::from_value(json!({"cidr": "10.0.0.0/16"})).unwrap();
        spec.subnets.insert("b".into(), more);
    }
    let work = world.feed(News::Network(Event::Apply(edited.clone())));
    assert!(has(&work, &network("old")) && has(&work, &network("young")));
    assert!(waits(&world, "old") && !waits(&world, "young"));
    // That it waits gives nobody the addresses that its pods have.
    edited.1.status.phase = Some(Phase::Pending);
    world.feed(News::Network(Event::Apply(edited)));
    world.feed(News::Network(Event::Apply(net(
        "third",
        "t0",
        "routed",
        "10.9.0.0/24",
    ))));
    assert!(waits(&world, "old") && waits(&world, "third") && !waits(&world, "young"));
}

#[test]
fn addresses_are_held_by_nodes_that_are_there() {
    let mut world = World::default();
    world.feed(News::Block(Event::Apply(block("b1", "n1", "uid-x"))));
    assert_eq!(world.held("uid-x").addresses, 0);
    let (name, machine) = node("n1", "10.244.0.0/24", "192.0.2.1");
    world.feed(News::Node(Event::Apply((name, machine))));
    assert_eq!(world.held("uid-x").addresses, 1);
}

#[test]
fn users_are_found_by_identity_and_only_edges_make_work() {
    let mut world = World::default();
    world.feed(News::Node(Event::Apply(node(
        "n1",
        "10.244.0.0/24",
        "192.0.2.1",
    ))));
    world.feed(News::Network(Event::Apply(net(
        "x",
        "t1",
        "overlay",
        "10.1.0.0/16",
    ))));
    let work = world.feed(News::Record(Event::Apply(record("p0", "n1", "uid-x"))));
    assert!(has(&work, &network("x")));
    for i in 1..20 {
        let work = world.feed(News::Record(Event::Apply(record(
            &format!("p{i}"),
            "n1",
            "uid-x",
        ))));
        assert!(work.is_empty() || i < 2, "{work:?}");
    }
    let users = world.users("uid-x");
    assert_eq!((users.count, users.first.len()), (20, 10));
    assert!(users.first.contains(&"t/p0".to_owned()));
    let work = world.feed(News::Record(Event::Apply(record("q", "n2", "uid-y"))));
    assert_eq!(
        work,
        [
            (Key::Orphans("uid-y".into()), Duration::ZERO),
            (Key::Node("n2".into()), Duration::ZERO)
        ]
    );
}

#[test]
fn blocks_are_gathered_and_those_of_strangers_looked_at() {
    let mut world = World::default();
    world.feed(News::Node(Event::Apply(node(
        "n1",
        "10.244.0.0/24",
        "192.0.2.1",
    ))));
    world.feed(News::Network(Event::Apply(net(
        "x",
        "t1",
        "overlay",
        "10.1.0.0/16",
    ))));
    let work = world.feed(News::Block(Event::Apply(block("b1", "n1", "uid-x"))));
    assert_eq!(work, [(network("x"), GATHER)]);
    let work = world.feed(News::Block(Event::Apply(block("b2", "n9", "uid-z"))));
    assert!(has(&work, &Key::Node("n9".into())) && has(&work, &Key::Orphans("uid-z".into())));
    assert_eq!(world.blocks_of("uid-x").count(), 1);
    assert_eq!(world.blocks_on("n9").count(), 1);
    world.feed(News::Block(Event::Delete(block("b2", "n9", "uid-z"))));
    assert_eq!(world.blocks_on("n9").count(), 0);
}

#[test]
fn numbers_and_identities_that_two_have_are_noticed() {
    let mut world = World::default();
    let with = |name: &str, created: &str, vni: u32| {
        let (name, mut net) = net(name, created, "overlay", "10.0.0.0/8");
        net.status = NetworkStatus {
            vni: Some(vni),
            phase: Some(Phase::Active),
            ..NetworkStatus::default()
        };
        if let Ok(spec) = &mut net.spec {
            spec.uuid = Some("same".into());
        }
        (name, net)
    };
    world.feed(News::Network(Event::Apply(with("a", "t2", 5000))));
    let work = world.feed(News::Network(Event::Apply(with("b", "t1", 5000))));
    assert!(has(&work, &network("a")));
    assert_eq!(world.claims(5000).unwrap().len(), 2);
    let younger = world.networks.get(&Name::new("t", "a")).unwrap();
    assert_eq!(world.older_namesake(younger), Some(&Name::new("t", "b")));
    let older = world.networks.get(&Name::new("t", "b")).unwrap();
    assert_eq!(world.older_namesake(older), None);
    world.feed(News::Network(Event::Apply(with("c", "t0", 5000))));
    let younger = world.networks.get(&Name::new("t", "a")).unwrap();
    let oldest = world.older_namesake(younger);
    assert_eq!(oldest, Some(&Name::new("t", "c")), "not the first by name");
    world.feed(News::Network(Event::Delete(with("c", "t0", 5000))));
    // Of the same second, and not looked at yet: whoever is active is not overtaken.
    let (same, mut unseen) = with("0", "t1", 5000);
    unseen.status = NetworkStatus::default();
    world.feed(News::Network(Event::Apply((same.clone(), unseen.clone()))));
    let active = world.networks.get(&Name::new("t", "b")).unwrap();
    assert!(unseen.id.uid < active.id.uid);
    assert_eq!(world.older_namesake(active), None);
    assert_eq!(world.older_namesake(&unseen), Some(&Name::new("t", "b")));
    // Nor is it while it goes.
    let (name, mut going) = with("b", "t1", 5000);
    going.status.phase = Some(Phase::Terminating);
    world.feed(News::Network(Event::Apply((name, going.clone()))));
    assert_eq!(world.older_namesake(&going), None);
    world.feed(News::Network(Event::Delete((same, unseen))));
    world.feed(News::Network(Event::Delete(with("b", "t1", 5000))));
    assert_eq!(world.claims(5000).unwrap().len(), 1);
}

#[test]
fn a_part_of_which_others_have_parts_is_known_and_so_is_what_nobody_gave() {
    let mut world = World::default();
    let gift = |cidr: &str, node: &str| Gift {
        cidr: cidr.parse().unwrap(),
        node: node.to_owned(),
    };
    let (name, mut x) = net("x", "t", "overlay", "10.0.0.0/24");
    x.id.uid = "u".to_owned();
    world.feed(News::Network(Event::Apply((name, x.clone()))));
    let put = |world: &mut World, cidr: &str, node: &str, given: Vec<Gift>| {
        let cidr: IpNet = cidr.parse().unwrap();
        let (_, mut owned) = block("b", node, "u");
        owned.cidr = Some(cidr);
        owned.given = given;
        let name = Name::new("", BlockSpec::name("u", &cidr));
        world.feed(News::Block(Event::Apply((name, owned.clone()))));
        owned
    };
    for name in ["n1", "n2", "n3"] {
        let here = node(name, "10.9.0.0/24", "192.0.2.1");
        world.feed(News::Node(Event::Apply(here)));
    }
    // A whole one returns, whatever is in it.
    let whole = put(
        &mut world,
        "10.0.0.0/26",
        "n1",
        vec![gift("10.0.0.8/29", "n2")],
    );
    assert!(!world.parts_of_others(&whole));
    let part = |world: &mut World, given| put(world, "10.0.0.8/29", "n2", given);
    let alone = part(&mut world, Vec::new());
    assert!(!world.parts_of_others(&whole) && !world.parts_of_others(&alone));
    // Given to a node that is there and has not taken it; to one that is gone; taken back.
    for (to, kept) in [("n3", true), ("gone", false), ("n2", false)] {
        let gave = part(&mut world, vec![gift("10.0.0.8/32", to)]);
        assert_eq!(world.parts_of_others(&gave), kept, "{to}");
    }
    let gave = part(&mut world, vec![gift("10.0.0.8/32", "gone")]);
    put(&mut world, "10.0.0.8/32", "gone", Vec::new());
    assert!(world.parts_of_others(&gave), "its block is still there");

    let wrong = |world: &World| {
        let wrong = world.not_given(&x).into_iter();
        let wrong = wrong.map(|(_, block)| format!("{} {}", block.cidr.unwrap(), block.node));
        wrong.collect::<Vec<_>>()
    };
    assert!(wrong(&world).is_empty());
    // By itself; in another's; around another's part; larger than all.
    put(&mut world, "10.0.0.64/29", "n2", Vec::new());
    put(&mut world, "10.0.0.9/32", "n3", Vec::new());
    put(
        &mut world,
        "10.0.0.0/28",
        "n3",
        vec![gift("10.0.0.9/32", "n3")],
    );
    put(&mut world, "10.0.0.0/24", "n3", Vec::new());
    assert_eq!(wrong(&world), ["10.0.0.0/28 n3", "10.0.0.9/32 n3"]);
    // What nobody gave keeps nothing.
    let gave = part(&mut world, Vec::new());
    world.feed(News::Block(Event::Delete((
        Name::new("", BlockSpec::name("u", &"10.0.0.8/32".parse().unwrap())),
        gave.clone(),
    ))));
    assert!(!world.parts_of_others(&gave));
}

#[test]
fn an_overlay_must_not_hide_the_clusters_pods_and_services() {
    let mut world = World::default();
    let feed = |world: &mut World, net| world.feed(News::Network(Event::Apply(net)));
    feed(&mut world, net("pods", "t3", "overlay", "10.244.0.0/16"));
    feed(&mut world, net("services", "t3", "overlay", "10.96.0.0/12"));
    feed(&mut world, net("other", "t3", "overlay", "10.1.0.0/16"));
    let waits = |world: &World, name: &str| {
        let name = Name::new("t", name);
        must_wait(&world.rivals(&name, world.networks.get(&name).unwrap(), false))
    };
    for name in ["pods", "services", "other"] {
        assert!(!waits(&world, name), "{name}: the cluster has nothing yet");
    }
    let machine = node("n1", "10.244.3.0/24", "192.168.0.7");
    let work = world.feed(News::Node(Event::Apply(machine.clone())));
    assert!(has(&work, &network("pods")) && !has(&work, &network("other")));
    let services = Services {
        id: id("s", "t"),
        cidrs: vec!["10.96.0.0/16".parse().unwrap()],
    };
    let services = (Name::new("", "kubernetes"), services);
    let work = world.feed(News::Services(Event::Apply(services)));
    assert!(has(&work, &network("services")) && !has(&work, &network("pods")));
    assert!(waits(&world, "pods") && waits(&world, "services") && !waits(&world, "other"));
    let work = world.feed(News::Node(Event::Delete(machine.clone())));
    assert!(has(&work, &network("pods")) && !waits(&world, "pods"));

    // Index 0 has blocks instead: the podCIDRs are nobody's, and its network is the cluster's.
    world.own = Some(Name::new("t", "cluster-default"));
    world.feed(News::Node(Event::Apply(machine)));
    assert!(!waits(&world, "pods"));
    feed(&mut world, net("tenants", "t1", "routed", "10.1.0.0/16"));
    assert!(!waits(&world, "other"), "a routed network of somebody");
    let work = feed(
        &mut world,
        net("cluster-default", "t9", "routed", "10.244.0.0/16"),
    );
    assert!(has(&work, &network("pods")) && waits(&world, "pods"));
}
