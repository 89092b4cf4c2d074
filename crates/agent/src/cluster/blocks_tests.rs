//! Which blocks are issued from, and which are forgotten. The API server is one that never answers.

use super::*;
use crate::cluster::cached::{self, CachedBlock};
use crate::cluster::report::NodeFacts;
use crate::cluster::restore::{YOUNG, restore};
use crate::cluster::tests::fake_hooks::{FakeHooks, shared};
use plexus_api::objects::{DonatedPart, NetworkRef};
use plexus_core::resolve::NetworkObject;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// Node `n1` whose Node object has the UID `now`.
struct Fixture {
    runtime: tokio::runtime::Runtime,
    shared: Shared,
    hooks: Arc<FakeHooks>,
    directory: PathBuf,
}

impl Fixture {
    fn new(name: &str) -> Self {
        let name = format!("plexus-own-blocks-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        // What a test that was killed has left.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let hooks = Arc::new(FakeHooks::default());
        // It does not know.
        *hooks.in_use.lock().unwrap() = Some(None);
        let shared = shared(&runtime, &directory, &hooks);
        let node = NodeFacts {
            uid: "now".to_owned(),
            pod_cidrs: Vec::new(),
            addresses: Vec::new(),
        };
        {
            let mut state = shared.state_mut();
            state.nodes.put("n1", Arc::new(node));
            state.networks.put("a/blue", Arc::new(blue()));
            state.nodes.live = true;
            state.blocks.live = true;
            state.networks.live = true;
        }
        Self {
            runtime,
            shared,
            hooks,
            directory,
        }
    }

    fn own(&self, spec: &BlockSpec) {
        self.shared.blocks.add(&self.shared, &name(spec), spec);
        self.shared.blocks.settled(&self.shared, &name(spec), "o");
    }

    fn issued(&self) -> Vec<String> {
        let of = self.shared.blocks.of(&self.shared.state(), "n1", "u");
        of.iter().map(ToString::to_string).collect()
    }

    fn there(&self, spec: &BlockSpec) {
        let block = seen(spec, false);
        let mut state = self.shared.state_mut();
        state.blocks.put(&name(spec), Arc::new(block));
    }

    fn restore(&self) -> bool {
        self.runtime.block_on(restore(&self.shared))
    }

    fn is_own(&self, spec: &BlockSpec) -> bool {
        self.shared.blocks.known().own.contains_key(&name(spec))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // What is left is in the directory for what is temporary.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn blue_object() -> Value {
    json!({"metadata": {"namespace": "a", "name": "blue", "uid": "u"},
        "spec": {"subnets": {"a": {"cidr": "10.0.0.0/16"}}}})
}

fn blue() -> NetworkObject {
    cached::network(&serde_json::from_value(blue_object()).unwrap()).unwrap()
}

fn spec(cidr: &str, node: &str, node_uid: &str) -> BlockSpec {
    BlockSpec {
        network: NetworkRef {
            namespace: "a".to_owned(),
            name: "blue".to_owned(),
            uuid: "u".to_owned(),
        },
        cidr: cidr.parse().unwrap(),
        node: node.to_owned(),
        node_uid: node_uid.to_owned(),
        nic: None,
    }
}

fn name(spec: &BlockSpec) -> String {
    BlockSpec::name(&spec.network.uuid, &spec.cidr)
}

fn seen(spec: &BlockSpec, unreadable: bool) -> CachedBlock {
    CachedBlock {
        spec: spec.clone(),
        uid: "o".to_owned(),
        allocated: 0,
        given: Vec::new(),
        untouched: false,
        made: None,
        is_part: false,
        closed: false,
        unreadable,
    }
}

#[test]
fn a_part_is_issued_from_only_if_the_block_around_it_says_so() {
    let fixture = Fixture::new("part");
    let part = spec("10.0.0.8/29", "n1", "now");
    fixture.own(&part);
    let put = |spec: &BlockSpec, given: &[(&str, &str)], is_part: bool| {
        let donated = |(cidr, node): &(&str, &str)| DonatedPart {
            cidr: cidr.parse().unwrap(),
            node: (*node).to_owned(),
        };
        let block = CachedBlock {
            given: given.iter().map(donated).collect(),
            is_part,
            ..seen(spec, false)
        };
        let mut state = fixture.shared.state_mut();
        state.blocks.put(&name(spec), Arc::new(block));
    };
    put(&part, &[], true);
    assert_eq!(fixture.issued(), ["10.0.0.8/29"], "nobody else has it");
    let whole = spec("10.0.0.0/26", "n2", "other");
    put(&whole, &[], false);
    assert!(fixture.issued().is_empty());
    put(&whole, &[("10.0.0.8/29", "n3")], false);
    assert!(fixture.issued().is_empty());
    put(
        &whole,
        &[("10.0.0.16/32", "n3"), ("10.0.0.8/29", "n1")],
        false,
    );
    assert_eq!(fixture.issued(), ["10.0.0.8/29"]);
    // Of which it gave something away in turn, and of which something is a block already.
    let gave = [("10.0.0.9/32", "n3"), ("10.0.0.10/31", "n3")];
    put(&part, &gave, true);
    put(&spec("10.0.0.10/31", "n3", "other"), &[], true);
    // Nobody gave it that, nor these.
    put(&spec("10.0.0.12/31", "n3", "other"), &[], true);
    let others = ["10.0.0.16/32", "10.0.0.7/32", "10.0.0.0/24"];
    for cidr in others {
        put(&spec(cidr, "n3", "other"), &[], true);
    }
    let apart = fixture.shared.blocks.apart(&fixture.shared.state(), "u");
    let apart: Vec<String> = apart.iter().map(ToString::to_string).collect();
    assert_eq!(apart, ["10.0.0.9/32", "10.0.0.10/31"]);
    assert!(
        fixture
            .shared
            .blocks
            .apart(&fixture.shared.state(), "other")
            .is_empty()
    );
    let state = fixture.shared.state();
    let enclosing_block = |cidr: &str| {
        let enclosing_block = state.enclosing_block("u", &cidr.parse().unwrap());
        enclosing_block.map(|enclosing_block| enclosing_block.cidr.to_string())
    };
    assert_eq!(
        enclosing_block("10.0.0.10/32").as_deref(),
        Some("10.0.0.10/31")
    );
    assert_eq!(
        enclosing_block("10.0.0.12/32").as_deref(),
        Some("10.0.0.8/29")
    );
    assert_eq!(enclosing_block("10.0.0.0/26"), None);
}

#[test]
fn blocks_inside_are_found_by_their_names_in_both_families() {
    let fixture = Fixture::new("inside");
    for cidr in [
        "fd00::/122",
        "fd00::3f/128",
        "fd00::40/128",
        "10.0.0.63/32",
        "10.0.0.64/32",
    ] {
        fixture.there(&spec(cidr, "n2", "other"));
    }
    let inside = |cidr: &str| {
        let (state, cidr) = (fixture.shared.state(), cidr.parse().unwrap());
        let inside = state
            .inside("u", &cidr)
            .map(|block| block.spec.cidr.to_string());
        inside.collect::<Vec<_>>()
    };
    assert_eq!(inside("fd00::/122"), ["fd00::3f/128"]);
    assert_eq!(inside("10.0.0.0/26"), ["10.0.0.63/32"]);
    assert_eq!(inside("10.0.0.0/8").len(), 2);
    assert_eq!(inside("0.0.0.0/0").len(), 2);
    assert_eq!(inside("::/0").len(), 3);
    assert!(inside("10.0.0.63/32").is_empty());
}

#[test]
fn only_what_the_api_says_is_this_very_nodes_is_issued_from() {
    let fixture = Fixture::new("of");
    let mine = spec("10.0.0.0/26", "n1", "now");
    let older = spec("10.0.0.64/26", "n1", "before");
    let taken = spec("10.0.0.128/26", "n1", "now");
    let missing = spec("10.0.0.192/26", "n1", "now");
    let odd = spec("10.0.1.0/26", "n1", "now");
    for one in [&mine, &older, &taken, &missing, &odd] {
        fixture.own(one);
    }
    fixture.there(&mine);
    fixture.there(&older);
    fixture.there(&spec("10.0.0.128/26", "n2", "other"));
    let unreadable = Arc::new(seen(&odd, true));
    fixture
        .shared
        .state_mut()
        .blocks
        .put(&name(&odd), unreadable);
    assert_eq!(fixture.issued(), ["10.0.0.0/26"]);
    // All of them may have addresses in use.
    let all = fixture.shared.blocks.all(&fixture.shared.state(), "n1");
    assert_eq!(all.len(), 5);
    // Its Node is registered anew: none is this one's.
    let node = NodeFacts {
        uid: "later".to_owned(),
        pod_cidrs: Vec::new(),
        addresses: Vec::new(),
    };
    fixture.shared.state_mut().nodes.put("n1", Arc::new(node));
    assert!(fixture.issued().is_empty());
}

#[test]
fn a_lost_block_is_lost_after_a_restart_too_before_the_api_answers() {
    let fixture = Fixture::new("lost");
    let mine = spec("10.0.0.0/26", "n1", "now");
    fixture.own(&mine);
    let object = |spec: &BlockSpec| {
        let meta = json!({"name": name(spec), "uid": spec.node});
        Some(json!({"metadata": meta, "spec": spec}).to_string())
    };
    let node = json!({"metadata": {"name": "n1", "uid": "now"}});
    fixture
        .shared
        .blocks
        .settled(&fixture.shared, &name(&mine), "n1");
    let again = |block: &BlockSpec| {
        let disk = &fixture.shared.disk;
        disk.put("node", "n1", Some(node.to_string()));
        disk.put("network", "a/blue", Some(blue_object().to_string()));
        disk.put("block", &name(block), object(block));
        disk.flush();
        let shared = shared(&fixture.runtime, &fixture.directory, &fixture.hooks);
        shared.blocks.of(&shared.state(), "n1", "u")
    };
    assert_eq!(again(&mine), [mine.cidr]);
    assert!(again(&spec("10.0.0.0/26", "n2", "other")).is_empty());
    assert!(again(&spec("10.0.0.0/26", "n1", "before")).is_empty());
}

#[test]
fn a_block_that_vanished_is_forgotten_only_when_it_surely_is_not_used() {
    let fixture = Fixture::new("vanished");
    let mine = spec("10.0.0.0/26", "n1", "before");
    fixture.own(&mine);
    let network = json!({"metadata": {"namespace": "a", "name": "blue", "uid": "u"}, "spec": {}});
    let network = cached::network(&serde_json::from_value(network).unwrap()).unwrap();
    let networks = |put: bool| {
        let mut state = fixture.shared.state_mut();
        match put {
            true => state.networks.put("a/blue", Arc::new(network.clone())),
            false => state.networks.remove("a/blue"),
        }
    };
    // Nobody knows yet, or it is used: it must be made again, and that fails here.
    networks(true);
    for known in [None, Some(true)] {
        *fixture.hooks.in_use.lock().unwrap() = Some(known);
        assert!(!fixture.restore());
        assert!(fixture.is_own(&mine));
    }
    // Nor is it forgotten without its network.
    networks(false);
    assert!(fixture.restore() && fixture.is_own(&mine));
    // Not used: but an ADD may be about to take an address.
    *fixture.hooks.in_use.lock().unwrap() = Some(Some(false));
    assert!(!fixture.restore() && fixture.is_own(&mine));
    let long_ago = Instant::now().checked_sub(YOUNG).unwrap();
    let since = |at: Instant| fixture.shared.blocks.known().unused.insert(name(&mine), at);
    since(long_ago);
    *fixture.hooks.in_use.lock().unwrap() = Some(Some(true));
    assert!(fixture.restore() && fixture.is_own(&mine));
    *fixture.hooks.in_use.lock().unwrap() = Some(Some(false));
    assert!(!fixture.restore() && fixture.is_own(&mine));
    since(long_ago);
    assert!(fixture.restore() && !fixture.is_own(&mine));
}

#[test]
fn a_block_of_another_node_is_lost_while_it_is_used_here() {
    let fixture = Fixture::new("theirs");
    let mine = spec("10.0.0.0/26", "n1", "now");
    fixture.own(&mine);
    fixture.there(&spec("10.0.0.0/26", "n2", "other"));
    // Not knowing is use.
    assert!(fixture.restore() && fixture.is_own(&mine));
    let lost = || fixture.shared.blocks.known().lost.clone();
    assert_eq!(lost(), [(name(&mine), "n2".to_owned())].into());
    *fixture.hooks.in_use.lock().unwrap() = Some(Some(false));
    assert!(fixture.restore() && !fixture.is_own(&mine));
    assert!(lost().is_empty());
}
