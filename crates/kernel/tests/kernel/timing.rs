//! How long it takes. Printed, not asserted: other tests run at the same time.

use crate::fabric_lab::{Fabric, Network};
use crate::lab::{Lab, bridge, net, node_plan, plan, port, routed};
use plexus_core::plan::{Link, LinkKind, Route};
use plexus_kernel::{node, pod};
use std::time::{Duration, Instant};

const ROUNDS: usize = 30;

#[test]
fn apply_and_remove() {
    let lab = Lab::new();
    node::ensure(&node_plan(vec![bridge("br0", &["10.1.0.1/24"])]), &lab.side).unwrap();
    let gateway = Some("192.0.2.1".parse().unwrap());
    let macvlans = |count: usize| -> Vec<Link> {
        let mut links: Vec<_> = (0..count)
            .map(|i| {
                lab.macvlan(
                    "c1",
                    &format!("net{i}"),
                    &[&format!("192.0.2.{}/24", 20 + i)],
                )
            })
            .collect();
        links[0].routes.push(Route::new(net("0.0.0.0/0"), gateway));
        links
    };
    measure(&lab, "1 macvlan", &macvlans(1));
    measure(&lab, "4 macvlans", &macvlans(4));
    measure(
        &lab,
        "1 bridge port",
        &[port("c1", "eth0", "br0", &["10.1.0.2/24"])],
    );
    let mut checked = routed("c1", "eth0", &["10.7.0.2/32"]);
    measure(&lab, "1 routed", std::slice::from_ref(&checked));
    if let LinkKind::Veth(end) = &mut checked.kind {
        end.source_check = true;
    }
    measure(&lab, "1 routed, source checked", &[checked]);
    let ensured: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            node::ensure(&node_plan(vec![bridge("br0", &["10.1.0.1/24"])]), &lab.side).unwrap();
            start.elapsed()
        })
        .collect();
    println!("ensure, nothing to do: {:?}", median(ensured));
}

#[test]
fn overlay() {
    let fabric = Fabric::new();
    let node = &fabric.nodes[0];
    let mut blue = Network::new("blue", 5301);
    blue.snat = true;
    let router = blue.router(node);
    let start = Instant::now();
    node.ensure(&router);
    println!("router made: {:?}", start.elapsed());
    let plan = blue.plan("t", &["10.7.0.2/32", "fd00:7::2/128"]);
    let (mut ensured, mut applied, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let pod = node.pod(&format!("t{round}"));
        let start = Instant::now();
        assert_eq!(node.ensure(&router).len(), 0);
        ensured.push(start.elapsed());
        let start = Instant::now();
        pod::apply(&plan, &pod.netns, &node.side).unwrap();
        applied.push(start.elapsed());
        let start = Instant::now();
        pod::remove(&plan, Some(&pod.netns), &node.side).unwrap();
        removed.push(start.elapsed());
    }
    println!(
        "1 overlay: ensure, nothing to do {:?}, apply {:?}, remove {:?}",
        median(ensured),
        median(applied),
        median(removed)
    );
}

fn measure(lab: &Lab, what: &str, links: &[Link]) {
    let plan = plan(7, links.to_vec());
    let (mut applied, mut removed) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let pod = lab.pod(&format!("t{round}"));
        let start = Instant::now();
        lab.apply(&plan, &pod);
        applied.push(start.elapsed());
        let start = Instant::now();
        pod::remove(&plan, Some(&pod.netns), &lab.side).unwrap();
        removed.push(start.elapsed());
    }
    println!(
        "{what}: apply {:?}, remove {:?}",
        median(applied),
        median(removed)
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
