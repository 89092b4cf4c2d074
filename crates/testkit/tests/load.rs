//! Many at once: the default bound takes 200 ADDs, a bound of 16 turns the rest away at once, and
//! memory does not grow with rounds.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use plexus_testkit::{Agent, CniOutput, Node, Pod, Running, Start, config, eventually};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const MANY: usize = 200;

fn pods(node: &Node, count: usize) -> Vec<Pod<'_>> {
    (0..count)
        .map(|number| node.pod(&format!("c{number}")))
        .collect()
}

/// All processes are there before the first is waited for.
fn all_at_once(pods: &[Pod<'_>], verb: &str, config: &Value) -> Vec<CniOutput> {
    let running: Vec<Running> = pods
        .iter()
        .map(|pod| pod.call(verb, config).spawn())
        .collect();
    let wait = |running: Running| CniOutput::new(&running.wait(Duration::from_secs(60)));
    running.into_iter().map(wait).collect()
}

#[test]
fn two_hundred_at_once_and_memory() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let config = config::standalone(
        "pair",
        &[config::bridge_entry(), config::macvlan_entry(&node)],
    );
    let pods = pods(&node, MANY);
    pods[0].add(&config);
    pods[0].del(&config);
    let empty = node.dump(None);
    let mut after_two = 0;
    for round in 1..=10 {
        let count = if round == 1 { MANY } else { 40 };
        let pods = &pods[..count];
        let start = Instant::now();
        let answers = all_at_once(pods, "ADD", &config);
        println!("round {round}: {count} ADDs in {:?}", start.elapsed());
        let given: BTreeSet<String> = answers.iter().flat_map(CniOutput::addresses).collect();
        assert_eq!(
            given.len(),
            2 * count,
            "each has its own address of each family"
        );
        all_at_once(pods, "DEL", &config)
            .iter()
            .for_each(CniOutput::done);
        if round == 2 {
            after_two = agent.memory("VmRSS");
        }
    }
    let after_ten = agent.memory("VmRSS");
    println!("VmRSS after two rounds {after_two} kB, after ten {after_ten} kB");
    assert!(
        after_ten * 10 <= after_two * 11,
        "{after_two} kB became {after_ten} kB"
    );
    empty.assert_same(&node.dump(None), "after ten rounds");
}

#[test]
fn who_does_not_fit_is_told_at_once() {
    const BOUND: usize = 16;
    const ASKING: usize = 48;
    let node = Node::new();
    let _agent = Start::on(&node).args(&["--queue", "16"]).ready();
    let (slow, hang) = (config::fake_entry(&node), node.file("hang"));
    std::fs::write(&hang, "").unwrap();
    let wait = format!(
        "while [ \"$CNI_COMMAND\" = ADD ] && [ -e {} ]; do sleep 0.1; done; get sleep;",
        hang.display()
    );
    node.edit_delegate("get sleep;", &wait);
    let config = config::standalone("slow", &[config::macvlan_entry(&node), slow]);
    let pods = pods(&node, ASKING);
    let before = node.dump(None);
    let running: Vec<_> = pods
        .iter()
        .map(|pod| pod.call("ADD", &config).spawn())
        .collect();
    let mut admitted: Vec<_> = running.into_iter().zip(&pods).collect();
    // While those in the house are at work.
    eventually("the others are told", || {
        admitted.retain(|(running, pod)| {
            let Some(output) = running.ended_within(Duration::ZERO) else {
                return true;
            };
            let (code, text) = CniOutput::new(&output).error();
            assert_eq!(code, 11, "{text}");
            assert!(
                text.contains("--queue") && text.contains("try again later"),
                "{text}"
            );
            let links = pod.ns().run("ip", &["-o", "link"]);
            assert_eq!(links.lines().count(), 1, "{links}");
            false
        });
        admitted.len() <= BOUND
    });
    assert_eq!(admitted.len(), BOUND);
    eventually("those in the house are journaled", || {
        node.journal().records().len() >= BOUND
    });
    assert_eq!(
        node.journal().records().len(),
        BOUND,
        "only those in the house are journaled"
    );
    std::fs::remove_file(&hang).unwrap();
    for (running, pod) in admitted {
        CniOutput::new(&running.wait(Duration::from_secs(60))).ok();
        pod.del(&json!({
            "cniVersion": "1.1.0", "name": "slow", "type": "plexus-cni", "networks": config["networks"],
        }));
    }
    before.assert_same(&node.dump(None), "after the last DEL");
}
