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

fn net(name: &str, created: &str, provider: &str, cidr: &str) -> (Name, NetworkView) {
    let spec: NetworkSpec =
        serde_json::from_value(json!({"provider": provider, "subnets": {"a": {"cidr": cidr}}}))
            .unwrap();
    let net = NetworkView {
        id: id(&format!("uid-{name}"), created),
        owner: None,
        spec: Ok(spec),
        status: NetworkStatus::default(),
    };
    (Name::new("t", name), net)
}

fn record(pod: &str, node: &str, network: &str) -> (Name, RecordView) {
    let record = RecordView {
        id: id(&format!("uid-{pod}"), "t"),
        pod: pod.to_owned(),
        pod_uid: format!("pod-{pod}"),
        node: node.to_owned(),
        networks: BTreeSet::from([network.to_owned()]),
    };
    (Name::new("t", format!("pod-{pod}")), record)
}

fn block(name: &str, node: &str, network: &str) -> (Name, BlockView) {
    let block = BlockView {
        id: id(name, "t"),
        network: network.to_owned(),
        of: Name::new("t", "x"),
        cidr: "10.0.0.0/26".parse().ok(),
        node: node.to_owned(),
        node_uid: format!("uid-{node}"),
        allocated: 1,
        given: Vec::new(),
        closed: false,
        untouched: false,
        nic: None,
    };
    (Name::new("", name), block)
}

fn node(name: &str, cidr: &str, address: &str) -> (Name, NodeView) {
    let view = NodeView {
        id: id(&format!("uid-{name}"), "t"),
        pod_cidrs: vec![cidr.parse().unwrap()],
        addresses: vec![address.parse().unwrap()],
    };
    (Name::new("", name), view)
}

fn has(work: &Work, key: &Key) -> bool {
    work.iter().any(|(one, _)| one == key)
}

fn network(name: &str) -> Key {
    Key::Network(Name::new("t", name))
}

#[test]
fn routed_networks_collide_with_each_other_nodes_and_services_overlays_apart() {
    let mut cache = Cache::default();
    cache.feed(Update::Network(Event::Apply(net(
        "old",
        "t1",
        "routed",
        "10.1.0.0/16",
    ))));
    let work = cache.feed(Update::Network(Event::Apply(net(
        "young",
        "t2",
        "routed",
        "10.1.2.0/24",
    ))));
    assert!(has(&work, &network("old")) && has(&work, &network("young")));
    cache.feed(Update::Network(Event::Apply(net(
        "apart",
        "t3",
        "overlay",
        "10.1.0.0/16",
    ))));
    let work = cache.feed(Update::Node(Event::Apply(node(
        "n1",
        "10.244.0.0/24",
        "10.1.2.7",
    ))));
    assert!(
        has(&work, &network("old"))
            && has(&work, &network("young"))
            && has(&work, &network("apart"))
    );

    let rivals = |cache: &Cache, name: &str| {
        let name = Name::new("t", name);
        let net = cache.networks.get(&name).unwrap();
        cache.rivals(&name, net, false)
    };
    let young = rivals(&cache, "young");
    assert_eq!(young.len(), 2);
    assert!(must_wait(&young));
    // Of all those, it only hides the Node's address from its pods.
    let apart = rivals(&cache, "apart");
    assert!(!must_wait(&apart) && apart.len() == 1, "{apart:?}");

    // Only the node is in the older one's way; and nothing is once it is gone.
    let work = cache.feed(Update::Node(Event::Delete(node(
        "n1",
        "10.244.0.0/24",
        "10.1.2.7",
    ))));
    assert!(has(&work, &network("old")));
    let old = rivals(&cache, "old");
    assert!(!must_wait(&old) && old.len() == 1);

    let services = ServiceCidrView {
        id: id("s", "t"),
        cidrs: vec!["10.1.255.0/24".parse().unwrap()],
    };
    let work = cache.feed(Update::Services(Event::Apply((
        Name::new("", "kubernetes"),
        services,
    ))));
    assert!(has(&work, &network("old")) && !has(&work, &network("young")));

    let work = cache.feed(Update::Network(Event::Delete(net(
        "old",
        "t1",
        "routed",
        "10.1.0.0/16",
    ))));
    assert!(has(&work, &network("young")) && has(&work, &Key::Orphans("uid-old".into())));
}

#[test]
fn who_has_blocks_of_the_addresses_does_not_wait_for_one_that_was_edited_to_want_them() {
    let mut cache = Cache::default();
    let active = |(name, mut net): (Name, NetworkView)| {
        net.status.phase = Some(Phase::Active);
        (name, net)
    };
    let old = active(net("old", "t1", "routed", "10.9.0.0/16"));
    let young = active(net("young", "t2", "routed", "10.0.0.0/24"));
    let (mut elsewhere, here) = (block("b1", "n1", "uid-old"), block("b2", "n1", "uid-young"));
    elsewhere.1.cidr = "10.9.0.0/26".parse().ok();
    for network in [&old, &young] {
        cache.feed(Update::Network(Event::Apply(network.clone())));
    }
    cache.feed(Update::Block(Event::Apply(elsewhere)));
    cache.feed(Update::Block(Event::Apply(here)));
    let waits = |cache: &Cache, name: &str| {
        let name = Name::new("t", name);
        must_wait(&cache.rivals(&name, cache.networks.get(&name).unwrap(), false))
    };
    assert!(!waits(&cache, "old") && !waits(&cache, "young"));

    let mut edited = old.clone();
    if let Ok(spec) = &mut edited.1.spec {
        let more = serde_json::from_value(json!({"cidr": "10.0.0.0/16"})).unwrap();
        spec.subnets.insert("b".into(), more);
    }
    let work = cache.feed(Update::Network(Event::Apply(edited.clone())));
    assert!(has(&work, &network("old")) && has(&work, &network("young")));
    assert!(waits(&cache, "old") && !waits(&cache, "young"));
    // That it waits gives nobody the addresses that its pods have.
    edited.1.status.phase = Some(Phase::Pending);
    cache.feed(Update::Network(Event::Apply(edited)));
    cache.feed(Update::Network(Event::Apply(net(
        "third",
        "t0",
        "routed",
        "10.9.0.0/24",
    ))));
    assert!(waits(&cache, "old") && waits(&cache, "third") && !waits(&cache, "young"));
}

#[test]
fn addresses_are_held_by_nodes_that_are_there() {
    let mut cache = Cache::default();
    cache.feed(Update::Block(Event::Apply(block("b1", "n1", "uid-x"))));
    assert_eq!(cache.in_use_addresses("uid-x").addresses, 0);
    let (name, view) = node("n1", "10.244.0.0/24", "192.0.2.1");
    cache.feed(Update::Node(Event::Apply((name, view))));
    assert_eq!(cache.in_use_addresses("uid-x").addresses, 1);
}

#[test]
fn users_are_found_by_identity_and_only_edges_make_work() {
    let mut cache = Cache::default();
    cache.feed(Update::Node(Event::Apply(node(
        "n1",
        "10.244.0.0/24",
        "192.0.2.1",
    ))));
    cache.feed(Update::Network(Event::Apply(net(
        "x",
        "t1",
        "overlay",
        "10.1.0.0/16",
    ))));
    let work = cache.feed(Update::Record(Event::Apply(record("p0", "n1", "uid-x"))));
    assert!(has(&work, &network("x")));
    for i in 1..20 {
        let work = cache.feed(Update::Record(Event::Apply(record(
            &format!("p{i}"),
            "n1",
            "uid-x",
        ))));
        assert!(work.is_empty() || i < 2, "{work:?}");
    }
    let users = cache.users("uid-x");
    assert_eq!((users.count, users.first.len()), (20, 10));
    assert!(users.first.contains(&"t/p0".to_owned()));
    let work = cache.feed(Update::Record(Event::Apply(record("q", "n2", "uid-y"))));
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
    let mut cache = Cache::default();
    cache.feed(Update::Node(Event::Apply(node(
        "n1",
        "10.244.0.0/24",
        "192.0.2.1",
    ))));
    cache.feed(Update::Network(Event::Apply(net(
        "x",
        "t1",
        "overlay",
        "10.1.0.0/16",
    ))));
    let work = cache.feed(Update::Block(Event::Apply(block("b1", "n1", "uid-x"))));
    assert_eq!(work, [(network("x"), USAGE_DELAY)]);
    let work = cache.feed(Update::Block(Event::Apply(block("b2", "n9", "uid-z"))));
    assert!(has(&work, &Key::Node("n9".into())) && has(&work, &Key::Orphans("uid-z".into())));
    assert_eq!(cache.blocks_of("uid-x").count(), 1);
    assert_eq!(cache.blocks_on("n9").count(), 1);
    cache.feed(Update::Block(Event::Delete(block("b2", "n9", "uid-z"))));
    assert_eq!(cache.blocks_on("n9").count(), 0);
}

#[test]
fn numbers_and_identities_that_two_have_are_noticed() {
    let mut cache = Cache::default();
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
    cache.feed(Update::Network(Event::Apply(with("a", "t2", 5000))));
    let work = cache.feed(Update::Network(Event::Apply(with("b", "t1", 5000))));
    assert!(has(&work, &network("a")));
    assert_eq!(cache.claims(5000).unwrap().len(), 2);
    let younger = cache.networks.get(&Name::new("t", "a")).unwrap();
    assert_eq!(
        cache.older_with_same_uuid(younger),
        Some(&Name::new("t", "b"))
    );
    let older = cache.networks.get(&Name::new("t", "b")).unwrap();
    assert_eq!(cache.older_with_same_uuid(older), None);
    cache.feed(Update::Network(Event::Apply(with("c", "t0", 5000))));
    let younger = cache.networks.get(&Name::new("t", "a")).unwrap();
    let oldest = cache.older_with_same_uuid(younger);
    assert_eq!(oldest, Some(&Name::new("t", "c")), "not the first by name");
    cache.feed(Update::Network(Event::Delete(with("c", "t0", 5000))));
    // Of the same second, and not looked at yet: whoever is active is not overtaken.
    let (same, mut unseen) = with("0", "t1", 5000);
    unseen.status = NetworkStatus::default();
    cache.feed(Update::Network(Event::Apply((
        same.clone(),
        unseen.clone(),
    ))));
    let active = cache.networks.get(&Name::new("t", "b")).unwrap();
    assert!(unseen.id.uid < active.id.uid);
    assert_eq!(cache.older_with_same_uuid(active), None);
    assert_eq!(
        cache.older_with_same_uuid(&unseen),
        Some(&Name::new("t", "b"))
    );
    // Nor is it while it goes.
    let (name, mut going) = with("b", "t1", 5000);
    going.status.phase = Some(Phase::Terminating);
    cache.feed(Update::Network(Event::Apply((name, going.clone()))));
    assert_eq!(cache.older_with_same_uuid(&going), None);
    cache.feed(Update::Network(Event::Delete((same, unseen))));
    cache.feed(Update::Network(Event::Delete(with("b", "t1", 5000))));
    assert_eq!(cache.claims(5000).unwrap().len(), 1);
}

#[test]
fn a_part_of_which_others_have_parts_is_known_and_so_is_what_nobody_gave() {
    let mut cache = Cache::default();
    let donation = |cidr: &str, node: &str| DonatedPart {
        cidr: cidr.parse().unwrap(),
        node: node.to_owned(),
    };
    let (name, mut x) = net("x", "t", "overlay", "10.0.0.0/24");
    x.id.uid = "u".to_owned();
    cache.feed(Update::Network(Event::Apply((name, x.clone()))));
    let put = |cache: &mut Cache, cidr: &str, node: &str, given: Vec<DonatedPart>| {
        let cidr: IpNet = cidr.parse().unwrap();
        let (_, mut owned) = block("b", node, "u");
        owned.cidr = Some(cidr);
        owned.given = given;
        let name = Name::new("", BlockSpec::name("u", &cidr));
        cache.feed(Update::Block(Event::Apply((name, owned.clone()))));
        owned
    };
    for name in ["n1", "n2", "n3"] {
        let here = node(name, "10.9.0.0/24", "192.0.2.1");
        cache.feed(Update::Node(Event::Apply(here)));
    }
    // A whole one returns, whatever is in it.
    let whole = put(
        &mut cache,
        "10.0.0.0/26",
        "n1",
        vec![donation("10.0.0.8/29", "n2")],
    );
    assert!(!cache.has_parts_of_others(&whole));
    let part = |cache: &mut Cache, given| put(cache, "10.0.0.8/29", "n2", given);
    let alone = part(&mut cache, Vec::new());
    assert!(!cache.has_parts_of_others(&whole) && !cache.has_parts_of_others(&alone));
    // Given to a node that is there and has not taken it; to one that is gone; taken back.
    for (to, kept) in [("n3", true), ("gone", false), ("n2", false)] {
        let gave = part(&mut cache, vec![donation("10.0.0.8/32", to)]);
        assert_eq!(cache.has_parts_of_others(&gave), kept, "{to}");
    }
    let gave = part(&mut cache, vec![donation("10.0.0.8/32", "gone")]);
    put(&mut cache, "10.0.0.8/32", "gone", Vec::new());
    assert!(cache.has_parts_of_others(&gave), "its block is still there");

    let wrong = |cache: &Cache| {
        let wrong = cache.undonated_parts(&x).into_iter();
        let wrong = wrong.map(|(_, block)| format!("{} {}", block.cidr.unwrap(), block.node));
        wrong.collect::<Vec<_>>()
    };
    assert!(wrong(&cache).is_empty());
    // By itself; in another's; around another's part; larger than all.
    put(&mut cache, "10.0.0.64/29", "n2", Vec::new());
    put(&mut cache, "10.0.0.9/32", "n3", Vec::new());
    put(
        &mut cache,
        "10.0.0.0/28",
        "n3",
        vec![donation("10.0.0.9/32", "n3")],
    );
    put(&mut cache, "10.0.0.0/24", "n3", Vec::new());
    assert_eq!(wrong(&cache), ["10.0.0.0/28 n3", "10.0.0.9/32 n3"]);
    // What nobody gave keeps nothing.
    let gave = part(&mut cache, Vec::new());
    cache.feed(Update::Block(Event::Delete((
        Name::new("", BlockSpec::name("u", &"10.0.0.8/32".parse().unwrap())),
        gave.clone(),
    ))));
    assert!(!cache.has_parts_of_others(&gave));
}

#[test]
fn an_overlay_must_not_hide_the_clusters_pods_and_services() {
    let mut cache = Cache::default();
    let feed = |cache: &mut Cache, net| cache.feed(Update::Network(Event::Apply(net)));
    feed(&mut cache, net("pods", "t3", "overlay", "10.244.0.0/16"));
    feed(&mut cache, net("services", "t3", "overlay", "10.96.0.0/12"));
    feed(&mut cache, net("other", "t3", "overlay", "10.1.0.0/16"));
    let waits = |cache: &Cache, name: &str| {
        let name = Name::new("t", name);
        must_wait(&cache.rivals(&name, cache.networks.get(&name).unwrap(), false))
    };
    for name in ["pods", "services", "other"] {
        assert!(!waits(&cache, name), "{name}: the cluster has nothing yet");
    }
    let view = node("n1", "10.244.3.0/24", "192.168.0.7");
    let work = cache.feed(Update::Node(Event::Apply(view.clone())));
    assert!(has(&work, &network("pods")) && !has(&work, &network("other")));
    let services = ServiceCidrView {
        id: id("s", "t"),
        cidrs: vec!["10.96.0.0/16".parse().unwrap()],
    };
    let services = (Name::new("", "kubernetes"), services);
    let work = cache.feed(Update::Services(Event::Apply(services)));
    assert!(has(&work, &network("services")) && !has(&work, &network("pods")));
    assert!(waits(&cache, "pods") && waits(&cache, "services") && !waits(&cache, "other"));
    let work = cache.feed(Update::Node(Event::Delete(view.clone())));
    assert!(has(&work, &network("pods")) && !waits(&cache, "pods"));

    // Index 0 has blocks instead: the podCIDRs are nobody's, and its network is the cluster's.
    cache.default_network = Some(Name::new("t", "cluster-default"));
    cache.feed(Update::Node(Event::Apply(view)));
    assert!(!waits(&cache, "pods"));
    feed(&mut cache, net("tenants", "t1", "routed", "10.1.0.0/16"));
    assert!(!waits(&cache, "other"), "a routed network of somebody");
    let work = feed(
        &mut cache,
        net("cluster-default", "t9", "routed", "10.244.0.0/16"),
    );
    assert!(has(&work, &network("pods")) && waits(&cache, "pods"));
}

#[test]
fn what_leads_to_the_api_server_is_nobody_elses() {
    let mut cache = Cache::default();
    let cidrs = [
        ("slice", "10.9.0.0/24"),
        ("reached", "10.8.0.0/16"),
        ("free", "10.7.0.0/16"),
    ];
    for (name, cidr) in cidrs {
        let (name, net) = net(name, "t", "routed", cidr);
        cache.feed(Update::Network(Event::Apply((name, net))));
    }
    cache.set_api_server(&["10.8.0.1".parse().unwrap()]);
    let slice = |service: &str, address: &str| {
        let slice = json!({"metadata": {"name": "kubernetes", "namespace": "default", "uid": service,
                "labels": {"kubernetes.io/service-name": service}}, "addressType": "IPv4",
            "endpoints": [{"addresses": [address]}]});
        let slice = ApiServerView::of(serde_json::from_value(slice).unwrap());
        (Name::new("default", service), slice)
    };
    let work = cache.feed(Update::ApiServers(Event::Apply(slice(
        "kubernetes",
        "10.9.0.7",
    ))));
    assert!(has(&work, &network("slice")), "it is looked at again");
    cache.feed(Update::ApiServers(Event::Apply(slice("other", "10.7.0.7"))));
    let rivals = |name: &str| {
        let name = Name::new("t", name);
        cache.rivals(&name, cache.networks.get(&name).unwrap(), false)
    };
    for name in ["slice", "reached"] {
        let rivals = rivals(name);
        assert!(must_wait(&rivals), "{name}: {rivals:?}");
        assert!(rivals[0].owner.to_string().starts_with("the API server"));
    }
    assert_eq!(rivals("free"), []);
}
