//! One TCP stream between pods of two nodes, on a routed and on an overlay network, against the same
//! topology made by hand; in turn, many short streams.

use crate::HAND;
use crate::hand::{FAR, Hand, NEAR, Way};
use crate::place::{Place, pod};
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
    addresses: BTreeMap<Way, String>,
}

pub(crate) fn run(place: &Place, report: &mut Report) -> Result<()> {
    let rounds = if place.quick { QUICK_ROUNDS } else { ROUNDS };
    let ours = Ours::make(place)?;
    let _standing = Hand::make(place.kube)?;
    let mut taken = BTreeMap::<(Way, bool), Samples>::new();
    for round in 0..rounds {
        for way in [Way::Routed, Way::Overlay] {
            for by_hand in [round % 2 == 0, round % 2 != 0] {
                let rate = one(place, &ours, way, by_hand)
                    .with_context(|| format!("{way:?}, by hand: {by_hand}"))?;
                taken.entry((way, by_hand)).or_default().value(rate);
            }
        }
    }
    for (way, name, share) in [
        (Way::Routed, "TCP throughput, routed", 0.98),
        (Way::Overlay, "TCP throughput, overlay", 0.95),
    ] {
        let of = |by_hand| taken.get(&(way, by_hand)).cloned().unwrap_or_default();
        let row = Row::new(name).unit("Mbit/s");
        report.push(
            row.of("ours", &of(false))
                .of("hand", &of(true))
                .at_least(HAND, share),
        );
    }
    place.remove_pods()
}

/// Megabits per second.
fn one(place: &Place, ours: &Ours, way: Way, by_hand: bool) -> Result<f64> {
    let program = std::env::current_exe().context("no path to this program")?;
    let program = program.to_string_lossy();
    let seconds = if place.quick { QUICK_SECONDS } else { SECONDS };
    let address = if by_hand {
        way.far()
    } else {
        ours.addresses.get(&way).context("no address")?
    };
    let to = format!("{address}:{PORT}");
    let listen = format!("0.0.0.0:{PORT}");
    let side = |near: bool, argv: &[&str]| -> Result<Output> {
        if by_hand {
            let inside = Hand::inside(way, argv);
            let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
            return place.kube.on_node(if near { NEAR } else { FAR }, &inside);
        }
        place
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
    fn make(place: &Place) -> Result<Self> {
        let namespace = place.namespace.name();
        let (near, far) = (place.fresh("near"), place.fresh("far"));
        let annotations = json!({"plexus.dev/networks": "overlay"});
        for (name, node) in [(&near, NEAR), (&far, FAR)] {
            let mut object = pod(namespace, name, &annotations);
            object["spec"]["nodeName"] = node.into();
            place.kube.apply(&object.to_string())?;
        }
        let (near, far) = (place.namespace.pod(&near), place.namespace.pod(&far));
        for one in [&near, &far] {
            place.kube.wait_ready(one, Duration::from_secs(60))?;
        }
        let status = "/metadata/annotations/k8s.v1.cni.cncf.io~1network-status";
        let seen = place
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
        let addresses = BTreeMap::from([(Way::Routed, address(0)?), (Way::Overlay, address(1)?)]);
        Ok(Self {
            near,
            far,
            addresses,
        })
    }
}
