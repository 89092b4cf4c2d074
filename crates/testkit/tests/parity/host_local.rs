//! One `host-local` directory, used by the real plugin and by us, at the same time.

use crate::interop::{self, addresses, attachments, execute};
use plexus_testkit::{Agent, CniOutput, Node, Pod};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Mutex;

/// Room for exactly so many.
const EACH: u8 = 20;

fn config(node: &Node, last: u8) -> Value {
    let range = json!({"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.1",
        "rangeEnd": format!("10.1.2.{last}")});
    json!({"cniVersion": "1.0.0", "name": "n1", "type": "macvlan", "master": "eth1",
        "ipam": {"type": "host-local", "dataDir": node.pools(), "ranges": [[range]]}})
}

/// The real plugin, for a container that exists only in its files.
fn theirs(node: &Node, verb: &str, container: &str, args: &str, config: &Value) -> CniOutput {
    execute(
        node,
        "host-local",
        verb,
        (container, "/run/netns/none", "net1"),
        args,
        config,
    )
}

fn ours(pod: &Pod<'_>, verb: &str, ifname: &str, config: &Value) -> CniOutput {
    pod.call(verb, config).ifname(ifname).run()
}

fn files(node: &Node) -> BTreeSet<String> {
    let entries = std::fs::read_dir(node.pools().join("n1"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Runs both at the same time, each for its own names, from four threads each.
fn in_parallel(node: &Node, pods: &[Pod<'_>], verb: &str, config: &Value) -> Vec<CniOutput> {
    let answers = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (number, pod) in pods.iter().enumerate() {
            let answers = &answers;
            scope.spawn(move || {
                for i in 0..EACH / 4 {
                    let answer = ours(pod, verb, &format!("net{i}"), config);
                    answers.lock().unwrap().push(answer);
                }
            });
            scope.spawn(move || {
                for i in 0..EACH / 4 {
                    let answer = theirs(node, verb, &format!("r{number}-{i}"), "", config);
                    answers.lock().unwrap().push(answer);
                }
            });
        }
    });
    answers.into_inner().unwrap()
}

#[test]
fn one_directory_serves_both_at_once() {
    let node = interop::node();
    let agent = Agent::start(&node);
    // The gateway, .1, is nobody's.
    let config = config(&node, 1 + 2 * EACH);
    let pods = ["c1", "c2", "c3", "c4"].map(|name| node.pod(name));
    let answers = in_parallel(&node, &pods, "ADD", &config);
    let given: Vec<IpAddr> = answers
        .iter()
        .flat_map(|answer| addresses(&answer.ok()))
        .collect();
    let distinct: BTreeSet<&IpAddr> = given.iter().collect();
    assert_eq!((given.len(), distinct.len()), (40, 40), "{given:?}");

    let (one_more, text) = (node.pod("c5"), "no IP addresses available");
    assert!(
        theirs(&node, "ADD", "r9", "", &config)
            .error()
            .1
            .contains(text)
    );
    let full = ours(&one_more, "ADD", "net1", &config).error().1;
    assert!(
        full.contains("10.1.2.1") && full.contains("10.1.2.41"),
        "{full}"
    );

    let answers = in_parallel(&node, &pods, "DEL", &config);
    answers.iter().for_each(CniOutput::done);
    assert_eq!(
        files(&node),
        ["last_reserved_ip.0", "lock"].map(str::to_owned).into()
    );
    assert!(attachments(&agent).is_empty());
}

#[test]
fn each_respects_what_the_other_reserved() {
    let node = interop::node();
    let _agent = Agent::start(&node);
    let config = config(&node, 250);
    let (pod, other) = (node.pod("c1"), node.pod("c2"));
    let take = |answer: CniOutput| addresses(&answer.ok())[0].to_string();

    // They take turns: each goes on where the other left off.
    assert_eq!(take(ours(&pod, "ADD", "net1", &config)), "10.1.2.2");
    assert_eq!(take(theirs(&node, "ADD", "r1", "", &config)), "10.1.2.3");
    assert_eq!(take(ours(&other, "ADD", "net1", &config)), "10.1.2.4");
    theirs(&node, "DEL", "r1", "", &config).done();
    assert_eq!(take(theirs(&node, "ADD", "r2", "", &config)), "10.1.2.5");

    // What one has, the other is refused.
    let refused = theirs(&node, "ADD", "r3", "IP=10.1.2.2", &config).error().1;
    assert!(refused.contains("10.1.2.2 is not available"), "{refused}");
    let third = node.pod("c3");
    let call = third
        .call("ADD", &config)
        .ifname("net1")
        .args("IgnoreUnknown=1;IP=10.1.2.5");
    let refused = call.run().error().1;
    assert!(refused.contains("10.1.2.5"), "{refused}");

    // The real plugin finds and removes our reservation as its own; so CHECK by us misses it.
    let mut check = config.clone();
    check["prevResult"] = ours(&pod, "ADD", "net1", &config).ok();
    theirs(&node, "CHECK", "c1", "", &check).done();
    ours(&pod, "CHECK", "net1", &check).done();
    theirs(&node, "DEL", "c1", "", &config).done();
    assert!(!files(&node).contains("10.1.2.2"), "{:?}", files(&node));
    let missing = ours(&pod, "CHECK", "net1", &check).error().1;
    assert!(missing.contains("10.1.2.2"), "{missing}");

    // Ours is removed all the same, and what somebody else has by now stays theirs.
    assert_eq!(
        take(theirs(&node, "ADD", "r4", "IP=10.1.2.2", &config)),
        "10.1.2.2"
    );
    ours(&pod, "DEL", "net1", &config).done();
    let kept = std::fs::read_to_string(node.pools().join("n1/10.1.2.2")).unwrap();
    assert_eq!(kept, "r4\r\nnet1");
}
