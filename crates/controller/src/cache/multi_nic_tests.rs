//! Which change concerns which multi-NIC network, and who had addresses first.

use super::*;
use crate::cache::{Identity, NodeView, Update};
use crate::decide::conflict::must_wait;
use kube::runtime::watcher::Event;
use plexus_api::objects::{BlockNic, MultiNicNetworkSpec, MultiNicNetworkStatus, Phase};
use plexus_core::multinic::Nic;
use serde_json::json;

fn id(uid: &str, created: &str) -> Identity {
    Identity {
        uid: uid.to_owned(),
        created: created.to_owned(),
        ..Identity::default()
    }
}

fn network(name: &str, created: &str, subnet: &str) -> (Name, MultiNicView) {
    let spec =
        json!({"subnet": subnet, "ipam": "{\"type\": \"multi-nic-ipam\", \"hostBlock\": 6}"});
    let spec: MultiNicNetworkSpec = serde_json::from_value(spec).unwrap();
    let view = MultiNicView {
        id: id(&format!("uid-{name}"), created),
        spec: Ok(spec),
        status: MultiNicNetworkStatus::default(),
    };
    (Name::new("", name), view)
}

fn block(node: &str, network: &str) -> (Name, BlockView) {
    let view = BlockView {
        id: id("b", "t"),
        network: network.to_owned(),
        of: Name::new("", "x"),
        cidr: "10.0.0.0/24".parse().ok(),
        node: node.to_owned(),
        node_uid: format!("uid-{node}"),
        allocated: 0,
        closed: false,
        given: Vec::new(),
        untouched: true,
        nic: Some(BlockNic {
            interface: "eth1".to_owned(),
            net_address: "10.0.1.0/24".parse().unwrap(),
            interface_index: 0,
            host_index: 0,
            via: None,
            retired: false,
        }),
    };
    (Name::new("", "b"), view)
}

fn node(name: &str) -> (Name, NodeView) {
    let view = NodeView {
        id: id(&format!("uid-{name}"), "t"),
        pod_cidrs: Vec::new(),
        addresses: Vec::new(),
    };
    (Name::new("", name), view)
}

fn host(name: &str, nics: &[&str]) -> (Name, HostNicsView) {
    let nic = |name: &&str| Nic {
        name: (*name).to_owned(),
        addresses: Vec::new(),
    };
    let view = HostNicsView {
        id: id("h", "t"),
        nics: nics.iter().map(nic).collect(),
    };
    (Name::new("", name), view)
}

/// The multi-NIC keys of a change.
fn keys(cache: &mut Cache, update: Update) -> Vec<String> {
    let mut keys: Vec<String> = cache
        .feed(update)
        .into_iter()
        .filter_map(|(key, _)| match key {
            Key::MultiNic(name) => Some(name.name),
            Key::MultiNicOrphans(uid) => Some(format!("orphans of {uid}")),
            Key::Orphans(uid) => Some(format!("networks' orphans of {uid}")),
            _ => None,
        })
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

#[test]
fn a_block_of_a_nic_concerns_its_multi_nic_network_alone() {
    let mut cache = Cache::default();
    keys(&mut cache, Update::Node(Event::Apply(node("n1"))));
    let before = keys(
        &mut cache,
        Update::Block(Event::Apply(block("n1", "uid-a"))),
    );
    assert_eq!(before, ["orphans of uid-a"]);
    keys(
        &mut cache,
        Update::MultiNic(Event::Apply(network("a", "t1", "10.0.0.0/16"))),
    );
    let (name, mut changed) = block("n1", "uid-a");
    changed.allocated = 3;
    assert_eq!(
        keys(&mut cache, Update::Block(Event::Apply((name, changed)))),
        ["a"]
    );
    let gone = keys(
        &mut cache,
        Update::MultiNic(Event::Delete(network("a", "t1", "10.0.0.0/16"))),
    );
    assert_eq!(gone, ["a", "orphans of uid-a"]);
}

#[test]
fn hosts_nodes_and_namespaces_concern_all() {
    let mut cache = Cache::default();
    for (name, subnet) in [("a", "10.1.0.0/16"), ("b", "10.2.0.0/16")] {
        keys(
            &mut cache,
            Update::MultiNic(Event::Apply(network(name, "t", subnet))),
        );
    }
    assert_eq!(
        keys(
            &mut cache,
            Update::HostNics(Event::Apply(host("n1", &["eth1"])))
        ),
        ["a", "b"]
    );
    assert!(cache.hosts(false).is_empty(), "its Node is not there");
    assert_eq!(
        keys(&mut cache, Update::Node(Event::Apply(node("n1")))),
        ["a", "b"]
    );
    assert_eq!(
        keys(&mut cache, Update::Node(Event::Apply(node("n2")))),
        ["a", "b"]
    );
    let hosts = |going| -> Vec<(String, usize)> {
        let hosts = cache.hosts(going).into_iter();
        hosts.map(|host| (host.name, host.nics.len())).collect()
    };
    assert_eq!(hosts(false), [("n1".to_owned(), 1)]);
    assert_eq!(hosts(true), [("n1".to_owned(), 0), ("n2".to_owned(), 0)]);
    let namespace = NamespaceView { id: id("n", "t") };
    let event = Event::Apply((Name::new("", "team-a"), namespace));
    assert_eq!(keys(&mut cache, Update::Namespace(event)), ["a", "b"]);
    let (_, view) = network("a", "t", "10.1.0.0/16");
    assert_eq!(cache.namespaces_of(&view), ["team-a"]);
}

#[test]
fn of_two_that_overlap_the_older_one_has_the_addresses() {
    let mut cache = Cache::default();
    let (old, new) = (
        network("z", "t1", "10.0.0.0/8"),
        network("a", "t2", "10.1.0.0/16"),
    );
    for one in [&old, &new, &network("apart", "t0", "172.16.0.0/16")] {
        keys(&mut cache, Update::MultiNic(Event::Apply(one.clone())));
    }
    let rivals = |(name, view): &(Name, MultiNicView)| {
        let meaning = view.spec.as_ref().unwrap().meaning().unwrap();
        cache.multi_nic_rivals(name, view, &meaning)
    };
    assert_eq!(rivals(&old), [""; 0]);
    assert_eq!(rivals(&new), ["10.0.0.0/8 of MultiNicNetwork z"]);
}

fn routed(name: &str, created: &str, cidr: &str) -> (Name, NetworkView) {
    let spec = json!({"provider": "routed", "subnets": {"a": {"cidr": cidr}}});
    let view = NetworkView {
        id: id(name, created),
        owner: None,
        spec: Ok(serde_json::from_value(spec).unwrap()),
        status: Default::default(),
    };
    (Name::new("t", name), view)
}

/// Who has the addresses before `rails`, and whether each of these Networks must wait.
fn conflicts(cache: &Cache, names: &[&str]) -> (Vec<String>, Vec<bool>) {
    let rails = Name::new("", "rails");
    let view = cache.multi_nics.get(&rails).unwrap();
    let meaning = view.spec.as_ref().unwrap().meaning().unwrap();
    let waits = names.iter().map(|name| {
        let name = Name::new("t", *name);
        let net = cache.networks.get(&name).unwrap();
        must_wait(&cache.rivals(&name, net, false))
    });
    (
        cache.multi_nic_rivals(&rails, view, &meaning),
        waits.collect(),
    )
}

#[test]
fn of_networks_that_overlap_only_older_ones_count() {
    let mut cache = Cache::default();
    let rails = network("rails", "t2", "10.0.0.0/8");
    keys(&mut cache, Update::MultiNic(Event::Apply(rails)));
    for (name, created, cidr) in [("old", "t1", "10.1.0.0/16"), ("young", "t3", "10.2.0.0/16")] {
        let net = routed(name, created, cidr);
        cache.feed(Update::Network(Event::Apply(net)));
    }
    let (rivals, waits) = conflicts(&cache, &["old", "young"]);
    assert_eq!(rivals, ["10.1.0.0/16 (Network t/old)"]);
    // The younger one waits for the addresses, and says for whose.
    assert_eq!(waits, [false, true]);
    let young = Name::new("t", "young");
    let rivals = cache.rivals(&young, cache.networks.get(&young).unwrap(), false);
    assert_eq!(rivals[0].owner.to_string(), "MultiNicNetwork rails");
}

#[test]
fn of_two_kinds_exactly_one_has_the_addresses_and_one_that_is_used_keeps_them() {
    for (of_multi, of_network) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut cache = Cache::default();
        let rails = network("rails", "t1", "10.0.0.0/16");
        keys(&mut cache, Update::MultiNic(Event::Apply(rails)));
        let mut net = routed("net", "t2", "10.0.0.0/8");
        net.1.status.phase = Some(Phase::Active);
        cache.feed(Update::Network(Event::Apply(net)));
        let (_, on_nic) = block("n1", "uid-rails");
        let mut of_net = on_nic.clone();
        (of_net.network, of_net.nic) = ("net".to_owned(), None);
        for (view, there) in [(on_nic, of_multi), (of_net, of_network)] {
            let name = Name::new("", &view.network);
            let event = Event::Apply((name, view));
            if there {
                cache.feed(Update::Block(event));
            }
        }
        let (rivals, waits) = conflicts(&cache, &["net"]);
        let is_newer_only_one = of_network && !of_multi;
        assert_eq!(
            rivals.is_empty(),
            !is_newer_only_one,
            "{of_multi} {of_network}"
        );
        assert_eq!(waits, [!is_newer_only_one], "{of_multi} {of_network}");
    }
}

#[test]
fn whoever_waits_for_addresses_is_looked_at_once_they_are_free() {
    let mut cache = Cache::default();
    let old = routed("old", "t1", "10.1.0.0/16");
    cache.feed(Update::Network(Event::Apply(old.clone())));
    let rails = network("rails", "t2", "10.0.0.0/8");
    keys(&mut cache, Update::MultiNic(Event::Apply(rails.clone())));
    assert_eq!(conflicts(&cache, &[]).0.len(), 1);
    let gone = keys(&mut cache, Update::Network(Event::Delete(old.clone())));
    assert_eq!(gone, ["networks' orphans of old", "rails"]);
    assert_eq!(conflicts(&cache, &[]).0.len(), 0);
    // … and the other way.
    cache.feed(Update::Network(Event::Apply(routed(
        "young",
        "t3",
        "10.2.0.0/16",
    ))));
    assert_eq!(conflicts(&cache, &["young"]).1, [true]);
    let work = cache.feed(Update::MultiNic(Event::Delete(rails)));
    let young = Key::Network(Name::new("t", "young"));
    assert!(work.iter().any(|(key, _)| *key == young), "{work:?}");
    assert!(
        cache
            .prefixes
            .overlapping("10.0.0.0/8".parse().unwrap())
            .len()
            == 1
    );
}

#[test]
fn overlay_networks_are_apart_from_it() {
    let mut cache = Cache::default();
    let rails = network("rails", "t1", "10.0.0.0/8");
    keys(&mut cache, Update::MultiNic(Event::Apply(rails)));
    let mut net = routed("net", "t2", "10.1.0.0/16");
    let spec = json!({"provider": "overlay", "subnets": {"a": {"cidr": "10.1.0.0/16"}}});
    net.1.spec = Ok(serde_json::from_value(spec).unwrap());
    cache.feed(Update::Network(Event::Apply(net)));
    assert_eq!(conflicts(&cache, &["net"]), (vec![], vec![false]));
}
