//! `make demo`: a cluster of three virtual nodes on this machine, two teams whose networks have the same addresses, and an agent
//! that is killed while pods are being attached. Shows what every pod got, who reaches whom and who must not, and that nothing is
//! left. Exits non-zero if any of it is not as expected.
//!
//! Everything is done by the commands that it shows: `plexus` as users have it.

/// A line for whoever watches; nobody may: a terminal can be closed, and the lab must go all the same.
macro_rules! tell {
    ($($text:tt)*) => {{
        let line = format!("{}\n", format_args!($($text)*));
        let _ = std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes());
    }};
}

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

/// Pings among them: each pings the five addresses of the three others.
const CELLS: usize = 60;

fn main() -> Result<()> {
    let signals = plexus_kernel::Signals::block().context("cannot watch for Ctrl-C")?;
    std::thread::spawn(move || {
        if signals.wait().is_ok() {
            STOPPED.store(true, SeqCst);
            tell!("\nstopping: cleaning up");
        }
    });
    let started = Instant::now();
    let lab = Lab::new("demo")?;
    let listed = demo(&lab);
    say("And away again");
    let left = lab.remove();
    listed?;
    left?;
    tell!(
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
    all_judged(&lab.show(&["lab", "ping"])?)?;

    say("The agent of n2 is killed (-9) while pods are being attached there");
    burst::kill_in_the_middle(lab)?;
    let text = lab.run(&["lab", "ping"])?;
    all_judged(&text)?;
    let verdict = text.lines().last().unwrap_or_default();
    tell!("  $ plexus lab ping | tail -1\n    {verdict}");
    if stopped() {
        bail!("stopped");
    }
    Ok(())
}

/// A cell that is not judged says nothing of who must not reach whom: `60 pings, 36 answered, 60 judged: …`.
fn all_judged(text: &str) -> Result<()> {
    let summary = text.lines().last().unwrap_or_default();
    let count = |word: &str| {
        let mut parts = summary.split([',', ':']).map(str::trim);
        let number = parts.find_map(|part| part.strip_suffix(word));
        number.and_then(|number| number.trim().parse::<usize>().ok())
    };
    match (count("pings"), count("judged")) {
        (Some(pings), Some(judged)) if pings >= CELLS && pings == judged => Ok(()),
        _ => bail!("of the {CELLS} pings or more between the pods some were not judged: {summary}"),
    }
}

fn go_on(lab: &Lab) {
    tell!("\nTo go on by hand:\n");
    tell!("  export PATH={}:$PATH", lab.directory().display());
    if let Some(shim) = std::env::var_os("PLEXUS_CNI_BIN") {
        tell!("  export PLEXUS_CNI_BIN={}", shim.to_string_lossy());
    }
    for (command, what) in [
        (
            "plexus lab up",
            "the same cluster, as a context for plexus and kubectl",
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
            "plexus lab cut n2; plexus lab ping",
            "break it, and see what breaks",
        ),
    ] {
        tell!("  {command:<50} # {what}");
    }
}

fn say(text: &str) {
    tell!("\n== {text}");
}

fn stopped() -> bool {
    STOPPED.load(SeqCst)
}
