//! Providers whose links this machine's kernel may lack, on Debian's kernel in a virtual machine: as the reference plugins
//! make them, with traffic, with agents that die, and what must be refused. The same program is host and guest: it starts
//! itself in the machine (`tools/vm/run`), once for all cases. A new case is a line in [`CASES`].
//!
//! Alone: `cargo test -p plexus --features plexus/scenarios,plexus-cni/faults --test debian_kernel -- <part of a name>`.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test, with modules of other tests of which it uses a part"
)]

#[path = "../../../testkit/tests/crash/case.rs"]
mod case;
mod death;
#[path = "../../../testkit/tests/parity/deliberate.rs"]
mod deliberate;
mod executed_ipam;
#[path = "../../../testkit/tests/parity/facts.rs"]
mod facts;
#[path = "../../../testkit/tests/crash/harness.rs"]
mod harness;
#[path = "../../../testkit/tests/interop/mod.rs"]
mod interop;
#[path = "../../../testkit/tests/parity/pairs.rs"]
mod pairs;
mod parity;
mod refusals;
mod talk;
#[path = "../../../testkit/tests/parity/traffic.rs"]
mod traffic;
#[path = "../../../testkit/tests/parity/twins.rs"]
mod twins;

use plexus_testkit::{PLEXUS, SHIM, bin};
use std::panic::{UnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// What is tried in the machine; each panics if something is wrong.
const CASES: &[(&str, fn())] = &[
    ("ipvlan is as the reference makes it", parity::ipvlan),
    ("vlan is as the reference makes it", parity::vlan),
    ("pods talk over ipvlan", talk::ipvlan),
    ("a pod talks over its vlan", talk::vlan),
    (
        "an IPAM plugin is executed below ipvlan and vlan",
        executed_ipam::below_each,
    ),
    (
        "a second mode on a master is refused",
        refusals::second_mode,
    ),
    ("macvlan beside ipvlan is refused", refusals::beside_ipvlan),
    ("ipvlan beside macvlan is refused", refusals::beside_macvlan),
    ("a vlan that another has is refused", refusals::second_vlan),
    ("an agent dies", death::all_at_once),
];

/// Longer than all of them take where the machine is emulated.
const LIMIT: &str = "900";
/// Set in the machine.
const GUEST: &str = "PLEXUS_DEBIAN_KERNEL_GUEST";

fn main() -> ExitCode {
    let filters: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
    let filters: Vec<&str> = filters
        .into_iter()
        .filter(|f| !f.starts_with('-'))
        .collect();
    let chosen = |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f));
    if std::env::var_os(GUEST).is_none() {
        return host(&filters);
    }
    // Reads the program once, before anybody waits for it.
    let _ = Command::new(bin(PLEXUS)).arg("--version").output();
    let cases = CASES.iter().filter(|(name, _)| chosen(name));
    let failed = cases.filter(|(name, case)| !passes(name, *case)).count();
    match failed {
        0 => ExitCode::SUCCESS,
        failed => {
            println!("{failed} failed");
            ExitCode::FAILURE
        }
    }
}

fn passes(name: &str, case: impl FnOnce() + UnwindSafe) -> bool {
    let start = Instant::now();
    let passed = catch_unwind(case).is_ok();
    let word = if passed { "ok" } else { "FAILED" };
    println!("{name} ... {word} after {:.1?}", start.elapsed());
    passed
}

fn host(filters: &[&str]) -> ExitCode {
    let installed = |name: &str| {
        let found = std::env::var_os(name).map(PathBuf::from);
        let found = found.filter(|path| path.exists());
        found.unwrap_or_else(|| {
            panic!("no {name}: cargo xtask vm true; eval \"$(cargo xtask env)\"")
        })
    };
    let _ = installed("PLEXUS_VM_KERNEL");
    let mut machine = Command::new(installed("PLEXUS_VM"));
    machine.args(["--limit", LIMIT]).env(GUEST, "1");
    let small = std::env::temp_dir().join(format!("plexus-debian-kernel-{}", std::process::id()));
    std::fs::create_dir(&small).unwrap();
    for (name, variable) in [(PLEXUS, "PLEXUS_BIN"), (SHIM, "PLEXUS_CNI_BIN")] {
        // The machine reads slowly, and what debuggers need is most of a program.
        let (from, to) = (bin(name), small.join(name));
        let stripped = Command::new("strip").arg("-o").args([&to, &from]).status();
        assert!(stripped.unwrap().success(), "strip {}", from.display());
        machine.env(variable, &to);
    }
    machine.arg(std::env::current_exe().unwrap()).args(filters);
    let status = machine.status();
    let _ = std::fs::remove_dir_all(&small);
    match status.unwrap().success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
