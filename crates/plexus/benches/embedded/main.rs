//! `make bench-embedded`: the embedded API against a kube-apiserver with etcd; an ADD by the name of a Network
//! against one with its configuration inline; and how long a lab of 20 nodes takes.
//!
//! Both servers are processes of their own on loopback, speak TLS with client certificates and flush to the same
//! disk. They take turns within every round, so that what disturbs the machine disturbs both. The clients are threads
//! of this process and the same for both: HTTP/1.1 by hand, no decoding of what is not asked for.
//!
//! `PLEXUS_BENCH_ROUNDS` (20) shortens a run, which is then written to another place. `PLEXUS_ETCD` and
//! `PLEXUS_KUBE_APISERVER` name the programs. A missed aim is no failure; a request or a call that fails is.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement that cannot go on ends; the table is for a terminal"
)]

mod add;
#[path = "../cni/call.rs"]
mod call;
mod contest;
#[path = "../../../embedded/tests/server/common/http.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod http;
mod lab;
mod load;
mod ours;
mod real;

use anyhow::{Context, Result};
use plexus_testkit::bench::{Ratio, Reading, Report};
use std::process::ExitCode;

/// How many times the other takes what ours takes.
const AHEAD: Ratio = Ratio("other", "ours");
/// A whole run.
const ROUNDS: usize = 20;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-embedded: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let rounds = rounds()?;
    let mut report = Report::new("embedded", &["ours", "other"], &[AHEAD]);
    let blocks: [(&str, Block); 3] = [
        ("the API", contest::run),
        ("an ADD", add::run),
        ("a lab", lab::run),
    ];
    for (name, block) in blocks {
        let before = Reading::now()?;
        block(rounds, &mut report).with_context(|| format!("block {name:?}"))?;
        report.end_block(name, Reading::now()?.since(before));
    }
    print!("{}", report.table());
    let path = report.write(rounds < ROUNDS)?;
    println!("written to {}", path.display());
    Ok(())
}

type Block = fn(usize, &mut Report) -> Result<()>;

fn rounds() -> Result<usize> {
    match std::env::var("PLEXUS_BENCH_ROUNDS") {
        Ok(text) => text
            .parse()
            .ok()
            .filter(|rounds| (1..=1000).contains(rounds))
            .with_context(|| format!("PLEXUS_BENCH_ROUNDS {text:?} is not from 1 to 1000")),
        Err(_) => Ok(ROUNDS),
    }
}

/// A directory of this run's, on the disk that build output is on: a temporary directory may be memory.
fn directory(name: &str) -> Result<std::path::PathBuf> {
    let program = std::env::current_exe().context("this program has no path")?;
    let beside = program.parent().context("this program is nowhere")?;
    let dir = beside.join(format!("bench-embedded-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    Ok(dir)
}

/// What processes have in memory, in megabytes.
fn megabytes(pids: &[u32]) -> Result<f64> {
    let mut kilobytes = 0.0;
    for pid in pids {
        let path = format!("/proc/{pid}/status");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number =
            line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
        kilobytes += number.with_context(|| format!("{path} has no VmRSS"))?;
    }
    Ok(kilobytes / 1024.0)
}
