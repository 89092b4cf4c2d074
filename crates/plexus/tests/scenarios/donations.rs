//! No block is free: a node asks, and the owner of one gives up a part of it. Whoever dies at whatever step, the part has one
//! owner, and no address two.

use crate::machine::{Lab, TIMEOUT};
use crate::objects::within;
use crate::runtime::Sandbox;
use plexus_testkit::Journal;
use serde_json::Value;

/// What a donor does, in order; it dies before or after.
const DONOR: [&str; 4] = ["journal.give<", "journal.give>", "api.given<", "api.given>"];
/// What a requester does.
const REQUESTER: [&str; 8] = [
    "api.request<",
    "api.request>",
    "api.block<",
    "api.block>",
    "cache.block<",
    "cache.block>",
    "api.withdraw<",
    "api.withdraw>",
];

/// A network of one block: whoever comes first has it all.
fn network(lab: &Lab, number: usize) -> String {
    let name = format!("g{number}");
    lab.apply(&format!(
        "
apiVersion: plexus.dev/v1alpha1
kind: Network
metadata: {{name: {name}, namespace: default}}
spec: {{subnets: {{a: {{cidr: 10.70.{number}.0/28}}}}, blockSize: {{ipv4: 28}}}}
"
    ));
    name
}

/// A part of the donor's block is the requester's, each says so, and every address is of its node's own.
#[track_caller]
fn shared_out(lab: &Lab, network: &str, donor: &str, requester: &str) {
    let mut seen = Default::default();
    let shared = within(TIMEOUT, || {
        let (blocks, given) = (lab.blocks_of(network), lab.given_of(network));
        let parts = blocks.iter().filter(|(_, node)| node == requester);
        let parts: Vec<&String> = parts.map(|(cidr, _)| cidr).collect();
        let donated = |part: &&String| given.contains(&((*part).clone(), requester.to_owned()));
        let whole = blocks
            .iter()
            .any(|(cidr, node)| node == donor && cidr.ends_with("/28"));
        let shared = whole && !parts.is_empty() && parts.iter().all(donated);
        seen = (blocks, given);
        shared
    });
    assert!(shared, "{network}: blocks and gifts are {seen:?}");
}

#[track_caller]
fn none_twice(lab: &Lab) {
    let twice = lab.duplicates();
    assert_eq!(twice, Vec::<String>::new());
}

#[test]
fn a_part_has_one_owner_whoever_dies_at_whatever_step() {
    let lab = Lab::up('g', 3);
    for node in ["n1", "n2", "n3"] {
        lab.pod_on(&format!("first-{node}"), node, "");
    }
    let deaths = DONOR.iter().map(|at| (Some(*at), None));
    let deaths = deaths.chain(REQUESTER.iter().map(|at| (None, Some(*at))));
    let both = [
        ("journal.give>", "api.request>"),
        ("api.given>", "api.block<"),
        ("api.given>", "api.block>"),
    ];
    let both = both.map(|(donor, requester)| (Some(donor), Some(requester)));
    for (number, (donor, requester)) in deaths.chain(both).enumerate() {
        println!("n1 dies at {donor:?}, n3 at {requester:?}");
        let network = network(&lab, number);
        lab.pod_on(&format!("a{number}"), "n1", &network);
        let faulty = [("n1", donor), ("n3", requester)];
        let faulty = faulty
            .into_iter()
            .filter_map(|(node, at)| Some((node, at?)));
        let faulty: Vec<_> = faulty
            .map(|(node, at)| (node, lab.agent_with(node, &[("PLEXUS_DIE_AT", at)])))
            .collect();
        lab.make_pod(&format!("b{number}"), "n3", &network);
        for (node, agent) in faulty {
            agent.dies();
            lab.ok(&["start", node]);
        }
        lab.ready_pod(&format!("b{number}"));
        // Both go on issuing from what is theirs.
        lab.pod_on(&format!("c{number}"), "n1", &network);
        lab.pod_on(&format!("d{number}"), "n3", &network);
        shared_out(&lab, &network, "n1", "n3");
        none_twice(&lab);
    }
    lab.all_is_true();
    lab.all_reach();
}

#[test]
fn a_giver_that_comes_back_without_the_api_knows_what_it_gave() {
    let lab = Lab::up('j', 3);
    let own = comes_back(&lab, |_| ());
    none_twice(&lab);
    for sandbox in own {
        sandbox.end().unwrap();
    }
    lab.ok(&["start", "server"]);
    lab.all_is_true();
}

/// Proves that the one before would notice, and that what finds addresses twice is not blind.
#[test]
fn a_giver_that_forgot_what_it_gave_would_be_noticed() {
    let lab = Lab::up('k', 3);
    let _own = comes_back(&lab, |journal| journal.alter("DELETE FROM gift"));
    assert_ne!(lab.duplicates(), Vec::<String>::new());
}

/// A donor dies when it has told the API and nobody else, and comes back after the API went; gives sandboxes with everything
/// that it then thinks is its own.
fn comes_back<'a>(lab: &'a Lab, meanwhile: impl Fn(&Journal)) -> Vec<Sandbox<'a>> {
    let network = network(lab, 0);
    lab.pod_on("giver", "n1", &network);
    // Neither its cache nor anything in memory outlives this: only its journal knows.
    let agent = lab.agent_with("n1", &[("PLEXUS_DIE_AT", "api.given>")]);
    lab.make_pod("asker", "n3", &network);
    agent.dies();
    lab.ready_pod("asker");
    lab.pod_on("asker-2", "n3", &network);
    lab.ok(&["kill", "server", "--hold"]);
    meanwhile(&Journal::at(lab.file("n1/state/journal.db").as_ref()));
    lab.ok(&["start", "n1"]);
    let mut own = Vec::new();
    let refused = (0..16).find_map(|number| {
        let sandbox = Sandbox::new(lab, "n1", &format!("own{number}"), &network);
        let added = sandbox.add();
        own.push(sandbox);
        added.err()
    });
    let refused = refused.expect("a block has an end");
    println!("{} were issued, then: {refused}", own.len() - 1);
    assert!(own.len() > 3, "{refused}");
    own
}

#[test]
fn when_everything_is_used_a_pod_waits_and_says_why() {
    let lab = Lab::up('f', 3);
    let network = network(&lab, 0);
    // Of sixteen addresses the first, the last and the gateway are nobody's.
    let nodes = ["n1", "n2", "n3"];
    for number in 0..13 {
        let node = nodes[number % nodes.len()];
        lab.pod_on(&format!("p{number}"), node, &network);
    }
    none_twice(&lab);
    let error = lab.fails(&[
        "run",
        "late",
        "--node",
        "n2",
        "--network",
        &network,
        "--timeout",
        "15",
    ]);
    println!("{error}");
    for word in ["no free", &network] {
        assert!(error.contains(word), "{word:?} is not in {error}");
    }
    let pod = lab.pod("late");
    assert_eq!(pod["status"]["phase"], "Pending", "{pod:#}");
    none_twice(&lab);
    // Whoever leaves makes room, also for a pod of another node.
    lab.end_pod("p0", 0);
    lab.ready_pod("late");
    none_twice(&lab);
    lab.all_is_true();
    lab.all_reach();

    // With the network goes everything that was given of it, on both sides.
    let path = format!("/apis/plexus.dev/v1alpha1/namespaces/default/networks/{network}");
    lab.ask("DELETE", &path, &Value::Null).unwrap();
    for number in 1..13 {
        lab.end_pod(&format!("p{number}"), 0);
    }
    assert!(!lab.object(&path).is_null(), "late uses it");
    lab.end_pod("late", 0);
    lab.eventually("the network is gone", || lab.object(&path).is_null());
    lab.eventually("its blocks are", || lab.blocks_of(&network).is_empty());
    lab.eventually("and nobody remembers gifts", || {
        nodes.iter().all(|node| donations(&lab, node) == 0)
    });
    lab.all_is_true();
}

/// How many donations a node's journal has.
fn donations(lab: &Lab, node: &str) -> usize {
    let file = lab.file(&format!("{node}/state/journal.db"));
    let tables = Journal::at(file.as_ref()).tables();
    tables.get("gift").map_or(0, Vec::len)
}
