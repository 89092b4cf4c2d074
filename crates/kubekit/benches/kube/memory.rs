//! How much memory the agent has after the calls; beside it Multus's daemon on the same node.

use crate::lab::{BenchLab, NODE, without_haste};
use anyhow::{Context, Result};
use plexus_kubekit::{Kube, multus};
use plexus_testkit::bench::{Report, Row};

pub(crate) fn run(bench: &BenchLab, report: &mut Report) -> Result<()> {
    let (resident, anonymous) = agent(bench.kube, NODE)?;
    let peer = multus::daemon_pid(bench.kube.lab(), NODE)
        .and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/status")).ok())
        .and_then(|status| field(&status, "VmRSS"));
    let row = Row::new("agent RSS after the calls")
        .unit("MB")
        .value("ours", resident)
        .value("thick", peer);
    report.push(
        row.aim("<= 20 MB", resident <= 20.0)
            .note(format!("{anonymous:.1} MB of it anonymous")),
    );
    Ok(())
}

/// Megabytes of the agent of a node: resident, and anonymous of it.
fn agent(kube: &Kube, node: &str) -> Result<(f64, f64)> {
    let script = "for p in /proc/[0-9]*; do \
                  case \"$(tr '\\0' ' ' < $p/cmdline 2>/dev/null)\" in \
                  '/bin/plexus agent --'*) cat $p/status;; esac; done";
    let status = without_haste(kube, node, &["sh", "-c", script])?;
    let read = |name| field(&status, name).with_context(|| format!("no {name} of an agent"));
    Ok((read("VmRSS")?, read("RssAnon")?))
}

fn field(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}
