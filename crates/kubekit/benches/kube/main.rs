//! `make bench-kube`: what Plexus costs on a real cluster, against Multus thin and thick on the same
//! cluster. Takes the lab that `PLEXUS_KUBE_STATE` names; what is measured is installed there by its own
//! manifest, from the release build.
//!
//! ADD and DEL are timed by this program as it runs in the namespaces of a node, from before the
//! process is started until it is waited for, alike for all: the same pods, the same NADs, the same
//! environment, one after another in turn. The pods are real objects bound to the node, whose kubelet
//! is stopped meanwhile. etcd does not flush here, which favours whoever writes to it: Multus.
//!
//! `--quick` (or `PLEXUS_BENCH_QUICK=1`) is a short run that shows that everything works; its file goes to the
//! directory for temporary ones. `--only NAME` runs one block. A missed aim is no failure; a call that
//! fails is, and so is a link that stays.
#![allow(clippy::print_stdout, reason = "the table is for a terminal")]

mod call;
mod contest;
mod crowd;
mod driver;
mod lab;
mod manual;
mod memory;
mod ready;
mod requests;
mod steady;
mod stream;
mod throughput;

use anyhow::{Context, Result, bail};
use lab::BenchLab;
use plexus_testkit::bench::{Ratio, Reading, Report};
use std::process::ExitCode;

/// Multus, and the same topology made by hand.
const THIN: Ratio = Ratio("thin", "ours");
const THICK: Ratio = Ratio("thick", "ours");
const HAND: Ratio = Ratio("ours", "hand");

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["driver", job] => driver::run(job),
        ["receive", address] => stream::receive(address),
        ["send", address, seconds] => stream::send(address, seconds),
        _ => run(&words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-kube: {error:#}");
            ExitCode::FAILURE
        }
    }
}

type Block = fn(&BenchLab, &mut Report) -> Result<()>;

const BLOCKS: [(&str, Block); 6] = [
    ("calls", steady::run),
    ("crowd", crowd::run),
    ("memory", memory::run),
    ("throughput", throughput::run),
    ("ready", ready::run),
    // Last: the API server writes an audit log from then on.
    ("requests", requests::run),
];

/// Blocks whose pods no kubelet must start.
const WITHOUT_KUBELET: [&str; 3] = ["calls", "crowd", "requests"];

fn run(words: &[&str]) -> Result<()> {
    let mut quick = std::env::var_os("PLEXUS_BENCH_QUICK").is_some_and(|value| !value.is_empty());
    let mut only = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            // cargo says it.
            "--bench" => {}
            "--quick" => quick = true,
            "--only" => only = Some(*words.next().context("--only wants the name of a block")?),
            other => bail!("{other:?}: there are --quick and --only NAME"),
        }
    }
    if let Some(name) = only
        && !BLOCKS.iter().any(|(known, _)| *known == name)
    {
        bail!("no block {name:?}: {:?}", BLOCKS.map(|(known, _)| known));
    }
    let bench = BenchLab::new(quick)?;
    let mut report = Report::new(
        "kube",
        &["ours", "thin", "thick", "hand"],
        &[THIN, THICK, HAND],
    );
    for (name, block) in BLOCKS {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let before = Reading::now()?;
        let done = if WITHOUT_KUBELET.contains(&name) {
            bench.without_kubelet(|| block(&bench, &mut report))
        } else {
            block(&bench, &mut report)
        };
        done.with_context(|| format!("block {name:?}"))?;
        report.end_block(name, Reading::now()?.since(before));
    }
    print!("{}", report.table());
    let path = report.write(quick || only.is_some())?;
    println!("written to {}", path.display());
    Ok(())
}
