//! `make demo`: one node, three containers, four interfaces each, and an agent that is killed in
//! the middle. Shows what every container got, who reaches whom and who must not, and that
//! nothing is left. Exits non-zero if any cell differs from what is expected.
//!
//! The node is a network namespace with an uplink; the agent and `plexus-cni` are the real ones,
//! called as a runtime calls them.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a demonstration talks, and may give up"
)]

mod matrix;
mod networks;

use anyhow::{Context, Result, bail};
use plexus_testkit::{Agent, CniOutput, Node, Pod, Running, Start};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

static STOPPED: AtomicBool = AtomicBool::new(false);

fn main() -> Result<()> {
    let signals = plexus_kernel::Signals::block().context("cannot watch for Ctrl-C")?;
    std::thread::spawn(move || {
        if signals.wait().is_ok() {
            println!("\nstopping: cleaning up");
            STOPPED.store(true, SeqCst);
        }
    });
    let started = Instant::now();
    demo()?;
    println!(
        "\nEverything was as expected, and nothing was left behind ({:.1} s).",
        started.elapsed().as_secs_f64()
    );
    println!("Next: README.md shows how to put plexus-cni behind cnitool, Podman or containerd.");
    Ok(())
}

fn demo() -> Result<()> {
    let node = Node::new();
    say("A node: a network namespace with an uplink eth1, and an agent that serves it");
    let agent = Agent::start(&node);
    let config = networks::config(&node.pools());
    networks::forward(&node);
    let before = node.dump_kernel(None);
    println!("    plexus agent --node n1 --socket … --state-dir …");
    println!("    networks of each container: {}", networks::summary());

    let [alpha, beta, gamma] = ["alpha", "beta", "gamma"].map(|name| node.pod(name));
    for pod in [&alpha, &beta] {
        pause()?;
        let took = Instant::now();
        pod.add(&config);
        println!(
            "    plexus-cni ADD {:<5}  4 interfaces in {:.1} ms",
            pod.container(),
            millis(took)
        );
    }
    let agent = kill_in_the_middle(&node, agent, &gamma, &config)?;

    say("What each container got");
    for pod in [&alpha, &beta, &gamma] {
        println!("  {}", pod.container());
        for line in pod.ns().run("ip", &["-brief", "address"]).lines() {
            println!(
                "    {}",
                line.split_whitespace().collect::<Vec<_>>().join("  ")
            );
        }
    }
    pause()?;
    say("Who reaches whom (yes/no as measured; ! where it should be different)");
    let wrong = matrix::show(&[&alpha, &beta, &gamma]);

    say("And away again");
    for pod in [&alpha, &beta, &gamma] {
        let took = Instant::now();
        pod.del(&config);
        println!(
            "    plexus-cni DEL {:<5}  4 interfaces in {:.1} ms",
            pod.container(),
            millis(took)
        );
    }
    let left = agent
        .get("/attachments")
        .map(|response| response.body)
        .unwrap_or_default();
    agent.stop();
    if left.trim() != "[]" {
        bail!("the agent still has attachments: {left}");
    }
    networks::remove_what_stays(&node);
    let after = node.dump_kernel(None);
    let differences = before.diff(&after);
    if !differences.is_empty() {
        bail!("left behind on the node:\n{differences}");
    }
    if wrong > 0 {
        bail!("{wrong} cells of the matrix differ from what is expected");
    }
    Ok(())
}

/// kill -9 between the intent and the end of an ADD: the shim waits for the next agent, which
/// reads the journal, settles what it finds, and answers. An ADD takes about a millisecond, so it
/// may take a few tries to hit one.
fn kill_in_the_middle<'n>(
    node: &'n Node,
    mut agent: Agent<'n>,
    gamma: &Pod<'n>,
    config: &serde_json::Value,
) -> Result<Agent<'n>> {
    say("The agent is killed (-9) in the middle of the third ADD");
    for attempt in 1..=40_u64 {
        pause()?;
        let adding: Running = gamma.call("ADD", config).spawn();
        std::thread::sleep(Duration::from_micros(700 + 97 * (attempt % 20)));
        agent.kill();
        let took = Instant::now();
        let open = node.journal().open_intents().contains_key("intent");
        agent = Start::on(node).ready();
        CniOutput::new(&adding.wait(Duration::from_secs(20))).ok();
        if open {
            println!("    killed with the journal saying: intent (try {attempt})");
            println!(
                "    plexus-cni ADD gamma waited, the next agent settled the journal and answered {:.0} ms later",
                millis(took)
            );
            return Ok(agent);
        }
        gamma.del(config);
    }
    bail!("no kill in 40 met an ADD in the middle")
}

fn say(text: &str) {
    println!("\n== {text}");
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn pause() -> Result<()> {
    if STOPPED.load(SeqCst) {
        bail!("stopped");
    }
    Ok(())
}
