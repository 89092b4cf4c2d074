//! One TCP stream between pods of two nodes, on a routed and on an overlay network, against the same
//! topology made by hand; in turn, many short streams.

use crate::HAND;
use crate::lab::{BenchLab, pod};
use crate::manual::{FAR, ManualSetup, NEAR, NetworkKind};
use anyhow::{Context, Result, anyhow};
use plexus_kubekit::{Cluster, Object, Output};
use plexus_testkit::bench::{Report, Row, Samples};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const ROUNDS: usize = 10;
const QUICK_ROUNDS: usize = 3;
const SECONDS: &str = "2";
const QUICK_SECONDS: &str = "0.7";
const PORT: u16 = 5201;

/// Two pods, and the far one's addresses.
struct Ours {
    near: Object,
    far: Object,
    addresses: BTreeMap<NetworkKind, String>,
}

pub(crate) fn run(bench: &BenchLab, report: &mut Report) -> Result<()> {
    let rounds = if bench.quick { QUICK_ROUNDS } else { ROUNDS };
    let ours = Ours::make(bench)?;
    let _standing = ManualSetup::make(bench.kube)?;
    let mut timings = BTreeMap::<(NetworkKind, bool), Samples>::new();
    for round in 0..rounds {
        for way in [NetworkKind::Routed, NetworkKind::Overlay] {
            for by_hand in [round % 2 == 0, round % 2 != 0] {
                let rate = one(bench, &ours, way, by_hand)
                    .with_context(|| format!("{way:?}, by hand: {by_hand}"))?;
                timings.entry((way, by_hand)).or_default().value(rate);
            }
        }
    }
    for (way, name, share) in [
        (NetworkKind::Routed, "TCP throughput, routed", 0.98),
        (NetworkKind::Overlay, "TCP throughput, overlay", 0.95),
    ] {
        let of = |by_hand| timings.get(&(way, by_hand)).cloned().unwrap_or_default();
        let row = Row::new(name).unit("Mbit/s");
        report.push(
            row.of("ours", &of(false))
                .of("hand", &of(true))
                .at_least(HAND, share),
        );
    }
    bench.remove_pods()
}

/// Megabits per second.
fn one(bench: &BenchLab, ours: &Ours, way: NetworkKind, by_hand: bool) -> Result<f64> {
    let program = std::env::current_exe().context("no path to this program")?;
    let program = program.to_string_lossy();
    let seconds = if bench.quick { QUICK_SECONDS } else { SECONDS };
    let address = if by_hand {
        way.far()
    } else {
        ours.addresses.get(&way).context("no address")?
    };
    let to = format!("{address}:{PORT}");
    let listen = format!("0.0.0.0:{PORT}");
    let side = |near: bool, argv: &[&str]| -> Result<Output> {
        if by_hand {
            let inside = ManualSetup::inside(way, argv);
            let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
            return bench.kube.on_node(if near { NEAR } else { FAR }, &inside);
        }
        bench
            .kube
            .in_netns(if near { &ours.near } else { &ours.far }, argv)
    };
    let (received, sent) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| side(false, &[&*program, "receive", &*listen]));
        let sent = side(true, &[&*program, "send", &*to, seconds]);
        (receiver.join(), sent)
    });
    sent?.text().context("the sender")?;
    let received = received.map_err(|_| anyhow!("the receiver panicked"))??;
    let text = received.text().context("the receiver")?;
    text.trim()
        .parse()
        .with_context(|| format!("{text:?} is no number"))
}

impl Ours {
    fn make(bench: &BenchLab) -> Result<Self> {
        let namespace = bench.namespace.name();
        let (near, far) = (bench.fresh("near"), bench.fresh("far"));
        let annotations = json!({"plexus.dev/networks": "overlay"});
        for (name, node) in [(&near, NEAR), (&far, FAR)] {
            let mut object = pod(namespace, name, &annotations);
            object["spec"]["nodeName"] = node.into();
            bench.kube.apply(&object.to_string())?;
        }
        let (near, far) = (bench.namespace.pod(&near), bench.namespace.pod(&far));
        for one in [&near, &far] {
            bench.kube.wait_ready(one, Duration::from_secs(60))?;
        }
        let status = "/metadata/annotations/k8s.v1.cni.cncf.io~1network-status";
        let seen = bench
            .kube
            .wait_for(&far, Duration::from_secs(20), &|seen| {
                seen.pointer(status).is_some()
            })?;
        let text = seen
            .pointer(status)
            .and_then(Value::as_str)
            .unwrap_or_default();
        let interfaces: Value = serde_json::from_str(text).context("no network-status")?;
        let address = |index: usize| -> Result<String> {
            let address = interfaces[index]["ips"][0].as_str();
            Ok(address.context("no address in network-status")?.to_owned())
        };
        let addresses = BTreeMap::from([
            (NetworkKind::Routed, address(0)?),
            (NetworkKind::Overlay, address(1)?),
        ]);
        Ok(Self {
            near,
            far,
            addresses,
        })
    }
}
