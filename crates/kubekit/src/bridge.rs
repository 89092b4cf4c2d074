//! The reference plugins as the cluster's CNI: a `bridge` with `host-local` on each node, and routes
//! between the nodes. To try the lab itself, and to have another CNI in front of which Plexus works.

use crate::cluster::Object;
use crate::command::feed;
use crate::lab::Lab;
use crate::layout::{index_of, node_v4, node_v6};
use crate::node;
use crate::spec::{PodCidrs, Spec};
use crate::wait;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Where the configuration is: after any of Plexus.
pub const CONFLIST: &str = "/etc/cni/net.d/10-bridge.conflist";

/// Writes the configuration of every node that is up, and the routes to all others. May be repeated.
pub(crate) fn configure(lab: &Lab, spec: &Spec) -> Result<()> {
    let mut ranges = BTreeMap::new();
    for name in &spec.nodes {
        ranges.insert(name.as_str(), ranges_of(lab, spec, name)?);
    }
    for (name, own) in &ranges {
        if !node::is_up(lab.layout(), name) {
            continue;
        }
        let mut routes = String::new();
        for (other, there) in ranges.iter().filter(|(other, _)| *other != name) {
            let index = index_of(other)?;
            for range in there {
                let via = if range.contains(':') {
                    node_v6(index)
                } else {
                    node_v4(index)
                };
                routes.push_str(&format!("route replace {range} via {via}\n"));
            }
        }
        feed(&lab.inside(name, &["ip", "-batch", "-"])?, &routes)?;
        node::write(lab.layout(), name, CONFLIST, &conflist(own).to_string())?;
    }
    Ok(())
}

/// What the cluster gave the node; if nobody gives, what its number says.
fn ranges_of(lab: &Lab, spec: &Spec, name: &str) -> Result<Vec<String>> {
    if spec.pod_cidrs == PodCidrs::None {
        let index = index_of(name)?;
        return Ok(vec![
            format!("10.244.{index}.0/24"),
            format!("fd00:244:0:{index}::/64"),
        ]);
    }
    let object = Object::new("v1", "Node", "", name);
    wait::until(
        &format!("podCIDRs of {name}"),
        Duration::from_secs(60),
        || {
            let node = lab.api().get(&object)?;
            let given = node
                .as_ref()
                .and_then(|node| node.pointer("/spec/podCIDRs")?.as_array());
            Ok(given.map(|given| {
                given
                    .iter()
                    .filter_map(|cidr| Some(cidr.as_str()?.to_owned()))
                    .collect()
            }))
        },
    )
}

fn conflist(ranges: &[String]) -> Value {
    let ranges: Vec<Value> = ranges
        .iter()
        .map(|range| json!([{"subnet": range}]))
        .collect();
    json!({
        "cniVersion": "1.0.0",
        "name": "bridge",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isDefaultGateway": true,
                "hairpinMode": true,
                "ipMasq": true,
                "ipam": {"type": "host-local", "ranges": ranges},
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}
