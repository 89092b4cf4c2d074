//! How many requests to the API server an ADD makes, by the number of networks. Counted in the audit log by
//! account: the agent's, Multus's, and whereabouts's beside it. Watches are not counted: they last.

use crate::contest::{Ipam, Kind, Who, calls};
use crate::driver::{self, Batch, Timings};
use crate::lab::{BenchLab, NODE};
use anyhow::{Context, Result};
use plexus_kubekit::{Part, Spec};
use plexus_testkit::bench::{Report, Row};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PODS: usize = 10;
/// What is written behind the answer is written by then.
const PAUSE: Duration = Duration::from_secs(4);

/// Whose requests are counted.
const ACCOUNTS: [&str; 3] = [
    "system:serviceaccount:plexus-system:plexus-agent",
    "system:serviceaccount:kube-system:multus",
    "system:serviceaccount:kube-system:whereabouts",
];

pub(crate) fn run(bench: &BenchLab, report: &mut Report) -> Result<()> {
    let log = begin(bench)?;
    let mut counted = BTreeMap::<Kind, f64>::new();
    for ipam in [Ipam::Local, Ipam::Wide] {
        for who in [Who::Plexus, Who::Thin, Who::Thick] {
            for networks in [0, 1, 3] {
                let kind = Kind::new(who, ipam, networks);
                let timings = starts(bench, kind).with_context(|| format!("{kind:?}"))?;
                let requests = count(&log, who, &timings)?;
                counted.insert(kind, requests as f64 / PODS as f64);
            }
        }
    }
    for (ipam, addresses) in [
        (Ipam::Local, "host-local"),
        (Ipam::Wide, "blocks | whereabouts"),
    ] {
        let of = |who, networks| counted.get(&Kind::new(who, ipam, networks)).copied();
        for networks in [0, 1, 3] {
            let ours = of(Who::Plexus, networks).unwrap_or(f64::NAN);
            let least = of(Who::Plexus, 0).unwrap_or(f64::NAN);
            let row = Row::new(format!("API requests, {networks} networks, {addresses}"))
                .unit("per ADD")
                .value("ours", ours)
                .value("thin", of(Who::Thin, networks))
                .value("thick", of(Who::Thick, networks));
            report.push(if networks == 3 {
                row.aim("not growing with networks", ours <= least + 0.5)
            } else {
                row
            });
        }
    }
    Ok(())
}

fn starts(bench: &BenchLab, kind: Kind) -> Result<Timings> {
    let batch = Batch {
        clients: 1,
        pause: PAUSE,
        calls: calls(bench, &[kind; PODS])?,
    };
    let mut timings = driver::on_node(bench.kube, NODE, &[batch])?;
    bench.remove_pods()?;
    timings.pop().context("nothing was measured")
}

/// Requests of a contender's accounts within the time.
fn count(log: &Path, who: Who, timings: &Timings) -> Result<usize> {
    let text =
        std::fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
    let lines = text.lines().filter_map(|line| {
        let value: Value = serde_json::from_str(line).ok()?;
        let printed = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
        let at = printed("/requestReceivedTimestamp")?;
        let agent = printed("/user/username")?.ends_with(":plexus-agent");
        let kept =
            printed("/verb")? != "watch" && agent == (who == Who::Plexus) && our_node(&value);
        // Written alike, so that the order of the texts is that of the times.
        (kept && at >= timings.from.as_str() && at <= timings.to.as_str()).then_some(())
    });
    Ok(lines.count())
}

/// Other nodes' agents have their own work.
fn our_node(value: &Value) -> bool {
    let node = value.pointer("/user/extra/authentication.kubernetes.io~1node-name/0");
    node.is_none_or(|node| node == NODE)
}

/// Starts the API server anew with an audit log.
fn begin(bench: &BenchLab) -> Result<PathBuf> {
    let lab = bench.kube.lab();
    let state = lab.layout().state();
    let (policy, log) = (state.join("audit-policy.yaml"), state.join("audit.log"));
    let text = json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": ACCOUNTS}, {"level": "None"}],
    });
    std::fs::write(&policy, text.to_string())
        .with_context(|| format!("cannot write {}", policy.display()))?;
    let mut spec: Spec = lab.spec()?;
    let flags = [
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", log.display()),
        "--audit-log-mode=blocking".to_owned(),
    ];
    for flag in flags {
        if !spec.api_flags.contains(&flag) {
            spec.api_flags.push(flag);
        }
    }
    let record = lab.layout().record();
    std::fs::write(&record, serde_json::to_vec_pretty(&spec)?)
        .with_context(|| format!("cannot write {}", record.display()))?;
    lab.kill(&Part::ApiServer)?;
    lab.start(&Part::ApiServer)?;
    lab.wait_api()?;
    // Until everybody's watches are back.
    std::thread::sleep(Duration::from_secs(10));
    Ok(log)
}
