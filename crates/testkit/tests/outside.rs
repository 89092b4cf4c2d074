//! Steps outside the kernel: a call to somebody else, and a link that is waited for.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use plexus_testkit::{Agent, Node, StandIn, Start, TIMEOUT, config, eventually};
use serde_json::{Value, json};

/// An interface of our own, and one on a link that comes from outside; one address each.
fn both(node: &Node) -> Value {
    let entries = [
        config::macvlan_entry(node),
        StandIn::entry(
            node,
            "far",
            json!({"type": "plexus", "subnets": ["10.30.0.0/24"]}),
        ),
    ];
    config::one_address(&config::standalone("all", &entries))
}

fn paths(stand_in: &StandIn) -> Vec<String> {
    let requests = stand_in.requests().into_iter();
    requests.map(|(path, _)| path).collect()
}

#[test]
fn a_link_that_comes_from_outside_carries_the_pod() {
    let node = Node::new();
    let stand_in = StandIn::serve(&node);
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let config = both(&node);
    let mut check = config.clone();
    check["prevResult"] = pod.add(&config);
    let addresses = pod.ns().run("ip", &["-4", "-o", "address", "show", "net1"]);
    assert!(addresses.contains("10.30.0."), "{addresses}");
    let (path, asked) = stand_in.requests().remove(0);
    assert_eq!(
        (path.as_str(), &asked["id"]),
        ("/setup", &json!("c1/eth0/net1"))
    );
    assert_eq!(asked["request"]["network"], "far");
    let address = asked["request"]["addresses"][0].as_str().unwrap();
    assert!(
        addresses.contains(address),
        "{address} is not in {addresses}"
    );
    pod.cni("CHECK", &check).done();
    pod.del(&config);
    let (path, told) = stand_in.requests().pop().unwrap();
    assert_eq!(path, "/teardown");
    assert!(
        told["answer"]["mac"].is_string(),
        "it is told its answer: {told}"
    );
    assert_eq!(stand_in.links(), 0);
    assert_eq!(node.journal().records().len(), 0);
}

#[test]
fn what_is_refused_outside_undoes_the_add() {
    let node = Node::new();
    let stand_in = StandIn::serve(&node);
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let never = node.dump(Some(&pod));
    for (status, code) in [(503, 11), (500, 999)] {
        stand_in.answer_with("/setup", status);
        let (refused, text) = pod.cni("ADD", &both(&node)).error();
        assert!(text.contains("network far, interface net1"), "{text}");
        assert!(text.contains("not now"), "its own words: {text}");
        assert_eq!(refused == 11, code == 11, "{refused}: {text}");
        never.assert_same(&node.dump(Some(&pod)), "a refused ADD leaves something");
    }
    assert_eq!(
        paths(&stand_in),
        ["/setup", "/teardown", "/setup", "/teardown"]
    );
}

#[test]
fn a_link_that_does_not_appear_ends_the_add() {
    let node = Node::new();
    let stand_in = StandIn::serve(&node);
    stand_in.withhold(true);
    let _agent = Start::on(&node).env("PLEXUS_HASTE", "1").ready();
    let pod = node.pod("c1");
    let never = node.dump(Some(&pod));
    let (_, text) = pod.cni("ADD", &both(&node)).error();
    assert!(text.contains("no link with MAC 02:0d:"), "{text}");
    assert!(text.contains("hot-plug"), "the next step: {text}");
    assert_eq!(paths(&stand_in), ["/setup", "/teardown"]);
    never.assert_same(&node.dump(Some(&pod)), "a failed ADD leaves something");
}

/// One that cannot be undone outside keeps its own row and address, nobody else's, and is tried again.
#[test]
fn what_cannot_be_undone_outside_holds_only_its_own() {
    let node = Node::new();
    let stand_in = StandIn::serve(&node);
    let _agent = Agent::start(&node);
    let (first, second) = (node.pod("c1"), node.pod("c2"));
    let config = both(&node);
    first.add(&config);
    stand_in.answer_with("/teardown", 500);
    let (_, text) = first.cni("DEL", &config).error();
    assert!(text.contains("network far, interface net1"), "{text}");
    let tables = node.journal().tables();
    assert_eq!(tables["attachment"].len(), 1, "{tables:?}");
    let alone = config::standalone("all", &[config::macvlan_entry(&node)]);
    second.add(&config::one_address(&alone));
    second.del(&config::one_address(&alone));
    stand_in.answer_with("/teardown", 200);
    eventually("the agent tears it down by itself", || {
        stand_in.links() == 0 && node.journal().records().is_empty()
    });
    second.add(&config);
    second.del(&config);
}

/// With one slot: while one ADD waits for a link, another that waits for nothing is served, and a third that would
/// wait too is told to try again.
#[test]
fn slow_adds_keep_no_fast_one_out() {
    let node = Node::new();
    let stand_in = StandIn::serve(&node);
    stand_in.withhold(true);
    let _agent = Start::on(&node).args(&["--queue=1"]).ready();
    let (slow, fast, third) = (node.pod("slow"), node.pod("fast"), node.pod("third"));
    let far = |subnet: &str| {
        let ipam = json!({"type": "plexus", "subnets": [subnet]});
        config::standalone("all", &[StandIn::entry(&node, "far", ipam)])
    };
    let waiting = slow.call("ADD", &far("10.30.0.0/24")).spawn();
    eventually("it is asked for", || paths(&stand_in) == ["/setup"]);
    // Between the call and the wait it has its slot for a moment.
    eventually("a fast ADD is served", || {
        fast.cni("ADD", &config::routed()).success()
    });
    eventually("another slow one is refused for that reason", || {
        let (code, text) = third.cni("ADD", &far("10.30.0.0/24")).error();
        assert_eq!(code, 11, "{text}");
        text.contains("ADDs wait for links or services")
    });
    stand_in.withhold(false);
    let output = waiting.wait(TIMEOUT);
    assert!(output.status.success(), "{output:?}");
    slow.del(&far("10.30.0.0/24"));
    fast.del(&config::routed());
}
