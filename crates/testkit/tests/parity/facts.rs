//! Everything that an ADD left in both namespaces, on disk and in its result, as lines of text
//! that do not depend on who did it: what may differ in name, MAC and index is masked.

use crate::pairs::Pair;
use plexus_testkit::{Look, NetNs, Node, Pod};
use serde_json::Value;
use std::collections::BTreeSet;

/// Of a link, beyond what a dump has: settled by the time that both are compared.
const SETTLED: &[&str] = &[
    "operstate",
    "qdisc",
    "inet6_addr_gen_mode",
    "num_tx_queues",
    "num_rx_queues",
    "promiscuity",
    "allmulti",
];

/// Facts, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) lines: BTreeSet<String>,
}

impl Facts {
    /// Looks at a node and a container after an ADD with that result.
    pub(crate) fn of(node: &Node, pod: &Pod<'_>, result: &Value, pair: &Pair) -> Self {
        let dump = Look::new()
            .namespace("node", node.ns())
            .namespace("pod", pod.ns())
            .directory("pools", &node.pools())
            .take();
        let mut lines: Vec<String> = dump.lines().map(str::to_owned).collect();
        lines.extend(result_lines(result));
        let mut masks = vec![(node.name().to_owned(), "NODE".to_owned())];
        for (label, ns) in [("node", node.ns()), ("pod", pod.ns())] {
            let links = links(ns);
            lines.extend(settled(label, &links));
            masks.extend(macs(label, &links, pair));
        }
        masks.extend(host_end(result, pair));
        let lines = lines.iter().map(|line| {
            masks
                .iter()
                .fold(line.clone(), |line, (text, mask)| line.replace(text, mask))
        });
        Self {
            lines: lines.collect(),
        }
    }

    pub(crate) fn diff(&self, other: &Facts) -> String {
        let mut text = String::new();
        for line in self.lines.difference(&other.lines) {
            text.push_str(&format!("  - {line}\n"));
        }
        for line in other.lines.difference(&self.lines) {
            text.push_str(&format!("  + {line}\n"));
        }
        text
    }
}

fn links(ns: &NetNs) -> Vec<Value> {
    let text = ns.run("ip", &["-d", "-j", "link"]);
    serde_json::from_str(&text).unwrap()
}

fn settled(label: &str, links: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    for link in links {
        let name = link["ifname"].as_str().unwrap_or_default();
        for key in SETTLED {
            lines.push(format!("{label} link {name} {key}={}", link[key]));
        }
        let state = &link["linkinfo"]["info_slave_data"]["state"];
        lines.push(format!("{label} link {name} port state={state}"));
    }
    lines
}

/// MACs that nobody asked for.
fn macs(label: &str, links: &[Value], pair: &Pair) -> Vec<(String, String)> {
    let made = |link: &&Value| {
        let name = link["ifname"].as_str().unwrap_or_default();
        !["lo", "eth1"].contains(&name) && !(pair.mac && label == "pod")
    };
    let mac = |link: &Value| {
        link["address"]
            .as_str()
            .map(|mac| (mac.to_owned(), "MAC".to_owned()))
    };
    links.iter().filter(made).filter_map(mac).collect()
}

/// The name of the node's end, which the result tells.
fn host_end(result: &Value, pair: &Pair) -> Option<(String, String)> {
    let bridge = pair.bridge()?;
    let interfaces = result["interfaces"].as_array()?;
    let end = interfaces
        .iter()
        .find(|i| i.get("sandbox").is_none() && i["name"] != bridge)?;
    Some((end["name"].as_str()?.to_owned(), "HOSTEND".to_owned()))
}

fn result_lines(result: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, value) in result.as_object().into_iter().flatten() {
        match value {
            Value::Array(items) => {
                let numbered = items.iter().enumerate();
                lines.extend(numbered.map(|(i, item)| format!("result {key}[{i}] {item}")));
            }
            other => lines.push(format!("result {key} {other}")),
        }
    }
    lines
}
