//! `make demo`: a cluster of three virtual nodes on this machine, two teams whose networks have the same addresses, and an agent
//! that is killed while pods are being attached. Shows what every pod got, who reaches whom and who must not, and that nothing is
//! left. Exits non-zero if any of it is not as expected.
//!
//! Everything is done by the commands that it shows: `plexus` as users have it.

#![allow(clippy::print_stdout, reason = "a demonstration talks")]

mod burst;
mod lab;

use anyhow::{Context, Result, bail};
use lab::Lab;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Instant;

static STOPPED: AtomicBool = AtomicBool::new(false);

/// The pods of `examples/lab`.
const PODS: [(&str, &str); 4] = [
    ("team-a", "web"),
    ("team-a", "db"),
    ("team-b", "web"),
    ("team-b", "db"),
];

fn main() -> Result<()> {
    let signals = plexus_kernel::Signals::block().context("cannot watch for Ctrl-C")?;
    std::thread::spawn(move || {
        if signals.wait().is_ok() {
            println!("\nstopping: cleaning up");
            STOPPED.store(true, SeqCst);
        }
    });
    let started = Instant::now();
    let lab = Lab::new("demo")?;
    let shown = demo(&lab);
    say("And away again");
    let left = lab.remove();
    shown?;
    left?;
    println!(
        "\nEverything was as expected, and nothing was left behind ({:.1} s).",
        started.elapsed().as_secs_f64()
    );
    go_on(&lab);
    Ok(())
}

fn demo(lab: &Lab) -> Result<()> {
    say("Three nodes: network namespaces with three NICs each, a real agent on every one");
    lab.show(&["lab", "up", "--nodes", "3", "--nics", "2"])?;

    say(
        "Two teams whose networks have the same addresses, a network on the second NIC for all, four pods",
    );
    lab.show(&["apply", "-f", "examples/lab/"])?;
    burst::wait_ready(lab, &PODS)?;
    lab.show(&["get", "networks", "--all-namespaces"])?;
    lab.show(&["get", "pods", "--all-namespaces"])?;

    say("What the pods got");
    for (namespace, name) in PODS {
        lab.show(&[
            "lab", "exec", name, "-n", namespace, "--", "ip", "-brief", "address",
        ])?;
    }

    say("Who reaches whom, and who must not");
    lab.show(&["lab", "ping", "--all"])?;

    say("The agent of n2 is killed (-9) while pods are being attached there");
    burst::kill_in_the_middle(lab)?;
    let text = lab.run(&["lab", "ping", "--all"])?;
    let verdict = text.lines().last().unwrap_or_default();
    println!("  $ plexus lab ping --all | tail -1\n    {verdict}");
    if stopped() {
        bail!("stopped");
    }
    Ok(())
}

fn go_on(lab: &Lab) {
    println!("\nTo go on by hand:\n");
    println!("  export PATH={}:$PATH", lab.directory().display());
    if let Some(shim) = std::env::var_os("PLEXUS_CNI_BIN") {
        println!("  export PLEXUS_CNI_BIN={}", shim.to_string_lossy());
    }
    for (command, what) in [
        ("plexus lab up", "the same cluster, until `plexus lab down`"),
        (
            "export KUBECONFIG=$(plexus lab kubeconfig)",
            "for kubectl; `plexus` finds it by itself",
        ),
        ("plexus apply -f examples/lab/", "or any other of examples/"),
        (
            "plexus lab run me --node n2 --network team-a/blue",
            "a pod of your own",
        ),
        (
            "plexus lab exec me -- ip route",
            "any program of this machine, in that pod",
        ),
        (
            "plexus describe pod me",
            "every interface, address and route, and where it came from",
        ),
        (
            "plexus lab partition n2; plexus lab ping --all",
            "break it, and see what breaks",
        ),
    ] {
        println!("  {command:<50} # {what}");
    }
}

fn say(text: &str) {
    println!("\n== {text}");
}

fn stopped() -> bool {
    STOPPED.load(SeqCst)
}
