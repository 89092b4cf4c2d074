//! Everything that is in both namespaces, on disk and in a result, as lines of text that do not
//! depend on who made it: what differs by nature (names on the node, MACs that nobody asked for,
//! and the link-local addresses made of them, indices) is masked.

use crate::deliberate;
use crate::pairs::Pair;
use plexus_testkit::{DumpBuilder, NetNs, Node, Pod};
use serde_json::Value;
use std::collections::BTreeSet;

/// Of a link, beyond what a dump has: it has settled by the time that both are compared.
const SETTLED: [&str; 7] = [
    "operstate",
    "qdisc",
    "inet6_addr_gen_mode",
    "num_tx_queues",
    "num_rx_queues",
    "promiscuity",
    "allmulti",
];

/// Lines, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    lines: BTreeSet<String>,
}

impl Facts {
    /// Looks at a node and a container. With the result of an ADD the name of the node's end is
    /// known, and the result itself is a fact.
    pub(crate) fn of(node: &Node, pod: &Pod<'_>, result: &Value, pair: &Pair) -> Self {
        let dump = DumpBuilder::new()
            .namespace("node", node.ns())
            .namespace("pod", pod.ns())
            .directory("pools", &node.pools())
            .take();
        let mut lines: Vec<String> = dump.lines().map(str::to_owned).collect();
        lines.extend(result_lines(result));
        lines.extend(memories(node));
        let mut masks = vec![(node.name().to_owned(), "NODE")];
        for (label, ns) in [("node", node.ns()), ("pod", pod.ns())] {
            let links = links(ns);
            lines.extend(settled(label, &links));
            masks.extend(macs(label, &links, pair));
        }
        masks.extend(host_end(result, pair));
        let masked = |line: String| {
            // A bridge without a port has no MAC unless somebody gave it one.
            let line = line.replace(r#"br0 address="00:00:00:00:00:00""#, r#"br0 address="MAC""#);
            let line = line.replace(
                r#"cni0 address="00:00:00:00:00:00""#,
                r#"cni0 address="MAC""#,
            );
            let mask = |line: String, (text, mask): &(String, &str)| line.replace(text, mask);
            masks.iter().fold(line, mask)
        };
        let firewall = |line: &String| line.starts_with("node nft") && pair.masquerades();
        let own = |line: &String| line.contains(" address ") && line.contains(" fe80::");
        let otherwise = |line: &String| pair.otherwise.is_some_and(|text| line.contains(text));
        lines.retain(|line| !firewall(line) && !own(line) && !otherwise(line));
        Self {
            lines: lines.into_iter().map(masked).collect(),
        }
    }

    /// As the reference would have it, but for what is meant to differ.
    pub(crate) fn as_reference(&self) -> Self {
        let lines = self.lines.iter();
        Self {
            lines: lines
                .filter_map(|line| deliberate::as_reference(line))
                .collect(),
        }
    }

    /// Without what host-local keeps for ever.
    pub(crate) fn without_memories(&self) -> Self {
        let kept = |line: &&String| !line.contains("/lock ") && !line.contains("/last_reserved_ip");
        Self {
            lines: self.lines.iter().filter(kept).cloned().collect(),
        }
    }

    /// The lines that only one of the two has.
    pub(crate) fn diff(&self, other: &Self) -> String {
        let mine = self
            .lines
            .difference(&other.lines)
            .map(|line| format!("\n  - {line}"));
        let others = other
            .lines
            .difference(&self.lines)
            .map(|line| format!("\n  + {line}"));
        mine.chain(others).collect()
    }
}

fn links(ns: &NetNs) -> Vec<Value> {
    serde_json::from_str(&ns.run("ip", &["-d", "-j", "link"])).unwrap()
}

fn settled(label: &str, links: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    for link in links {
        let name = link["ifname"].as_str().unwrap_or_default();
        let fact = |key: &str, value: &Value| format!("{label} link {name} {key}={value}");
        lines.extend(SETTLED.iter().map(|key| fact(key, &link[key])));
        let port = &link["linkinfo"]["info_slave_data"]["state"];
        lines.push(fact("port", port));
    }
    lines
}

/// MACs that nobody asked for.
fn macs(label: &str, links: &[Value], pair: &Pair) -> Vec<(String, &'static str)> {
    let made = |link: &&Value| {
        let name = link["ifname"].as_str().unwrap_or_default();
        let asked = pair.mac.is_some() && label == "pod";
        !["lo", "eth1"].contains(&name) && !asked && pair.options["mode"] != "passthru"
    };
    let mac = |link: &Value| Some((link["address"].as_str()?.to_owned(), "MAC"));
    let macs = links.iter().filter(made).filter_map(mac);
    let has_one = |(mac, _): &(String, &str)| mac != "00:00:00:00:00:00";
    macs.filter(has_one).collect()
}

/// The name of the node's end, which the result tells.
fn host_end(result: &Value, pair: &Pair) -> Option<(String, &'static str)> {
    let bridge = pair.bridge()?;
    let interfaces = result["interfaces"].as_array()?;
    let end = interfaces
        .iter()
        .find(|i| i.get("sandbox").is_none() && i["name"] != bridge)?;
    Some((end["name"].as_str()?.to_owned(), "HOSTEND"))
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

/// What host-local keeps for ever, which a dump leaves out.
fn memories(node: &Node) -> Vec<String> {
    let dir = node.pools().join("n1");
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        use std::os::unix::fs::MetadataExt;
        let name = entry.file_name().to_string_lossy().into_owned();
        let mode = entry
            .metadata()
            .map(|m| m.mode() & 0o7777)
            .unwrap_or_default();
        lines.push(format!("pools n1/{name} mode {mode:o}"));
        if name.starts_with("last_reserved_ip") {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            lines.push(format!("pools n1/{name} {text:?}"));
        }
    }
    lines
}
