//! The same configurations given to the CNI project's plugins and to ours, each on a fresh node
//! with a fresh container, and everything that both left behind compared.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod facts;
#[path = "../interop/mod.rs"]
mod interop;
mod pairs;

use facts::Facts;
use interop::execute;
use pairs::{How, Pair};
use plexus_testkit::{Agent, CniOutput, Node, Pod};
use serde_json::{Value, json};

struct Side {
    node: Node,
    config: Value,
}

#[test]
fn explore() {
    let filter = std::env::var("PAIR").unwrap_or_default();
    for pair in pairs::all().iter().filter(|p| p.name.contains(&filter)) {
        println!("=== {}", pair.name);
        let (a, b) = (side(pair), side(pair));
        let (pa, pb) = (a.node.pod("c1"), b.node.pod("c1"));
        for p in [&pa, &pb] {
            p.ns().ip("link set lo up\n");
            if !pair.in_pod.is_empty() {
                p.ns().sh(pair.in_pod);
            }
        }
        let _agent = Agent::start(&b.node);
        let t = std::time::Instant::now();
        let ra = execute(
            &a.node,
            pair.plugin,
            "ADD",
            ("c1", &pa.netns(), "net1"),
            pair.args,
            &a.config,
        );
        let ta = t.elapsed();
        let rb = pb
            .call("ADD", &b.config)
            .ifname("net1")
            .args(pair.args)
            .run();
        println!("  {ta:?} {:?}", t.elapsed() - ta);
        if !ra.success() || !rb.success() {
            println!(
                "  ref {} {}\n  our {} {}",
                ra.status, ra.stdout, rb.status, rb.stdout
            );
            continue;
        }
        println!("  how {}", _agent.get("/attachments").unwrap().json());
        std::thread::sleep(std::time::Duration::from_millis(2000));
        let fa = Facts::of(&a.node, &pa, &ra.json(), pair);
        let fb = Facts::of(&b.node, &pb, &rb.json(), pair);
        println!("{}", fa.diff(&fb));
    }
}

fn side(pair: &Pair) -> Side {
    let node = interop::node();
    let config = pair.config(&node);
    std::fs::write(node.file("resolv.conf"), pairs::RESOLV_CONF).unwrap();
    if !pair.on_node.is_empty() {
        node.ns().sh(pair.on_node);
    }
    Side { node, config }
}
