//! From the creation of a real pod to Ready, with no further network and with three, in pairs. The kubelet
//! looks at its containers once a second, which hides small differences in noise: the same is also said
//! for the moment at which the container was started, by containerd's clock.

use crate::contest::{Ipam, Kind, Who};
use crate::lab::{BenchLab, NODE, pod};
use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams, WatchEvent, WatchParams};
use plexus_kubekit::cluster::is_ready;
use plexus_testkit::bench::{Report, Row, Samples};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

const PAIRS: usize = 100;
const QUICK_PAIRS: usize = 8;
/// Pairs that exist at the same time.
const AT_ONCE: usize = 15;

#[derive(Default)]
struct Timings {
    ready: Samples,
    started: Samples,
}

pub(crate) fn run(bench: &BenchLab, report: &mut Report) -> Result<()> {
    let pairs = if bench.quick { QUICK_PAIRS } else { PAIRS };
    let (mut none, mut three) = (Timings::default(), Timings::default());
    let mut difference = Timings::default();
    one(bench, 3).context("the first pod")?;
    for pair in 0..pairs {
        let order = if pair % 2 == 0 { [0, 3] } else { [3, 0] };
        let mut took = [Duration::ZERO; 2];
        let mut started = [0.0; 2];
        for networks in order {
            let index = usize::from(networks == 3);
            (took[index], started[index]) = one(bench, networks)?;
        }
        for (timings, index) in [(&mut none, 0), (&mut three, 1)] {
            timings.ready.push(took[index]);
            timings.started.value(started[index]);
        }
        let milliseconds = |took: Duration| took.as_secs_f64() * 1e3;
        difference
            .ready
            .value(milliseconds(took[1]) - milliseconds(took[0]));
        difference.started.value(started[1] - started[0]);
        if pair % AT_ONCE == AT_ONCE - 1 {
            rest(bench)?;
        }
    }
    rest(bench)?;
    report.push(Row::new("apply to Ready, no network").of("ours", &none.ready));
    report.push(Row::new("apply to Ready, 3 networks").of("ours", &three.ready));
    report.push(compared("apply to Ready, difference", &difference.ready));
    report.push(compared(
        "apply to container started, difference",
        &difference.started,
    ));
    Ok(())
}

fn compared(name: &str, difference: &Samples) -> Row {
    let (mean, half) = difference.mean();
    Row::new(name)
        .value("ours", mean)
        .aim("mean difference < 10 ms", mean < 10.0)
        .note(format!(
            "95 %: {:.1} to {:.1} ms, median {:.1}, n {}",
            mean - half,
            mean + half,
            difference.median(),
            difference.count()
        ))
}

/// What one pod took until it was Ready, and milliseconds until its container was started.
fn one(bench: &BenchLab, networks: usize) -> Result<(Duration, f64)> {
    let name = bench.fresh("ready");
    let annotations = Kind::new(Who::Plexus, Ipam::Local, networks).annotations();
    let object: Pod = serde_json::from_value(pod(bench.namespace.name(), &name, &annotations))?;
    let api = bench.kube.lab().api();
    let pods: Api<Pod> = Api::namespaced(api.client(), bench.namespace.name());
    let begun = now()?;
    let start = Instant::now();
    let watched = api.block_on(async {
        let made = pods.create(&PostParams::default(), &object).await?;
        let version = made.metadata.resource_version.unwrap_or_default();
        let only = WatchParams::default()
            .fields(&format!("metadata.name={name}"))
            .timeout(60);
        let mut events = pods.watch(&only, &version).await?.boxed();
        while let Some(event) = events.try_next().await? {
            if let WatchEvent::Modified(seen) = event
                && is_ready(&serde_json::to_value(&seen)?)
            {
                return anyhow::Ok(seen);
            }
        }
        bail!("not ready after a minute")
    });
    let took = start.elapsed();
    let seen = watched.with_context(|| format!("pod {name}"))?;
    let status = seen.status.context("a pod without status")?;
    let container = status
        .container_statuses
        .and_then(|all| all.into_iter().next()?.container_id)
        .context("a pod without container")?;
    Ok((took, started(bench, &container)? - begun))
}

/// When containerd started the container, in milliseconds since 1970.
fn started(bench: &BenchLab, container: &str) -> Result<f64> {
    let id = container.trim_start_matches("containerd://");
    let text = bench.kube.crictl(NODE, &["inspect", id])?.text()?;
    let value: Value = serde_json::from_str(&text).context("crictl printed no JSON")?;
    let at = value
        .pointer("/status/startedAt")
        .and_then(Value::as_str)
        .context("a container that was not started")?;
    clock(&["-d", at])
}

fn now() -> Result<f64> {
    clock(&[])
}

fn clock(arguments: &[&str]) -> Result<f64> {
    let output = Command::new("date")
        .args(arguments)
        .arg("+%s.%N")
        .output()
        .context("cannot start date")?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let seconds: f64 = text
        .parse()
        .with_context(|| format!("{text:?} is no time"))?;
    Ok(seconds * 1e3)
}

/// Removes the pods, and gives the node time to forget them.
fn rest(bench: &BenchLab) -> Result<()> {
    bench.remove_pods()?;
    std::thread::sleep(Duration::from_secs(3));
    Ok(())
}
