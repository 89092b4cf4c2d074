//! An ADD by the name of a Network, on `plexus up`, against one whose configuration is inline: the same agent,
//! provider and kind of addresses; in turn.

use crate::call::Call;
use anyhow::{Context, Result};
use plexus_kernel::Netns;
use plexus_testkit::bench::{Ratio, Report, Row, Samples};
use plexus_testkit::{Node, SHIM, Up};
use serde_json::{Value, json};
use std::time::Duration;

/// In a round, of each.
const CALLS: usize = 10;
/// How many times the one may take what the other takes.
const AIM: f64 = 1.1;

#[derive(Default)]
struct Side {
    add: Samples,
    del: Samples,
}

pub(crate) fn run(rounds: usize, report: &mut Report) -> Result<()> {
    let node = Node::new();
    let up = Up::start(&node);
    let spec = json!({"provider": "bridge", "config": {"isGateway": true},
        "subnets": {"a": {"cidr": "10.81.0.0/16"}}});
    up.network("default/pods", &spec, "pods");
    let configs = [by_name(&node)?, inline()];
    let mut sides = [Side::default(), Side::default()];
    let on_node = Netns::open(node.ns().path())?;
    on_node.enter(|| -> Result<()> {
        // The first of each makes the bridge.
        for (number, config) in configs.iter().enumerate() {
            pair(&node, &format!("first{number}"), config)?;
        }
        for round in 0..rounds * CALLS {
            for turn in 0..2 {
                let which = (round + turn) % 2;
                let (add, del) = pair(&node, &format!("c{round}-{which}"), &configs[which])?;
                sides[which].add.push(add);
                sides[which].del.push(del);
            }
        }
        Ok(())
    })??;
    drop(up);
    let [objects, inline] = &sides;
    let row = |name: &str, objects: &Samples, inline: &Samples| {
        Row::new(name).of("ours", objects).of("other", inline)
    };
    let add = row("ADD by name, other: inline", &objects.add, &inline.add);
    report.push(add.at_most(Ratio("ours", "other"), AIM));
    report.push(row("DEL by name, other: inline", &objects.del, &inline.del));
    Ok(())
}

/// One container's ADD and DEL.
fn pair(node: &Node, container: &str, config: &Value) -> Result<(Duration, Duration)> {
    let pod = node.pod(container);
    let (program, netns, socket) = (node.cni_bin().join(SHIM), pod.ns().path(), node.socket());
    let call = |verb| Call {
        program: &program,
        verb,
        container,
        netns: &netns,
        ifname: "eth0",
        socket: &socket,
    };
    let (add, result) = call("ADD").run(config)?;
    let mut after = config.clone();
    after["prevResult"] = result;
    Ok((add, call("DEL").run(&after)?.0))
}

/// What a runtime makes of the file that `plexus up` has written.
fn by_name(node: &Node) -> Result<Value> {
    let path = node.cni_conf().join("plexus-pods.conflist");
    let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let list: Value = serde_json::from_slice(&text)?;
    let mut config = list["plugins"][0].clone();
    config["name"] = list["name"].clone();
    config["cniVersion"] = list["cniVersion"].clone();
    Ok(config)
}

fn inline() -> Value {
    json!({
        "cniVersion": "1.0.0", "name": "inline", "type": SHIM, "provider": "bridge", "bridge": "inline0",
        "isGateway": true, "ipam": {"type": "plexus", "subnets": ["10.82.0.0/16"]},
    })
}
