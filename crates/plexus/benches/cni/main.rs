//! `make bench-cni`: what an ADD and a DEL cost, against the reference plugins and against the
//! kernel itself. Uses the product as installed: the release agent, the static shim, the journal
//! and the reading back of what was made.
//!
//! Ours, the peer and the floor take turns within every round, so that what disturbs the machine
//! disturbs all three. Figures are in milliseconds from before the process is started until its
//! output has ended and it is waited for. Everything happens in namespaces that are gone afterwards.
//!
//! `PLEXUS_BENCH_ROUNDS` (200) shortens a run. A missed aim is no failure; a call that fails is,
//! and so is a link that stays.
#![allow(clippy::print_stdout, reason = "the table is for a terminal")]

mod call;
mod config;
mod contest;
mod crew;
mod drain;
mod floor;
mod flush;
mod lab;
mod memory;
mod mixed;
mod parallel;
mod steady;
mod wire;

use anyhow::{Context, Result};
use lab::Lab;
use plexus_testkit::bench::{Ratio, Reading, Report};
use plexus_testkit::{Agent, Node};
use std::process::ExitCode;

/// The reference plugins, and the kernel by itself.
const PEER: Ratio = Ratio("peer", "ours");
const FLOOR: Ratio = Ratio("ours", "floor");

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-cni: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let rounds = rounds()?;
    let node = Node::new();
    let agent = Agent::start(&node);
    let mut report = Report::new("cni", &["ours", "peer", "floor"], &[PEER, FLOOR]);
    memory::fresh(&agent, &mut report);
    let lab = Lab::new(&node, &agent)?;
    // The driver's own thread lives on the node: what it starts is there too, without a fork.
    let on_node = lab.node_netns().clone();
    on_node.enter(|| -> Result<()> {
        let blocks: [(&str, Block); 6] = [
            ("one after another", steady::run),
            ("8 clients", parallel::run),
            ("ADD beside DEL", mixed::run),
            ("100 DELs", drain::run),
            ("disk flush", flush::run),
            ("memory", memory::full),
        ];
        for (name, block) in blocks {
            let before = Reading::now()?;
            block(&lab, rounds, &mut report).with_context(|| format!("block {name:?}"))?;
            report.end_block(name, Reading::now()?.since(before));
        }
        lab.check_node()
    })??;
    print!("{}", report.table());
    let path = report.write(false)?;
    println!("written to {}", path.display());
    Ok(())
}

type Block = fn(&Lab<'_>, usize, &mut Report) -> Result<()>;

fn rounds() -> Result<usize> {
    match std::env::var("PLEXUS_BENCH_ROUNDS") {
        Ok(text) => text
            .parse()
            .ok()
            .filter(|rounds| (1..=100_000).contains(rounds))
            .with_context(|| format!("PLEXUS_BENCH_ROUNDS {text:?} is not from 1 to 100000")),
        Err(_) => Ok(200),
    }
}
