//! Links, addresses, routes, rules and permanent neighbours of the thread's namespace, by `ip`.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What differs between two equal namespaces, or changes by itself.
const LINK_VOLATILE: &[&str] = &[
    "ifindex",
    "link_index",
    "link_netnsid",
    "operstate",
    "addr_info",
    "qdisc",
    "linkmode",
    "inet6_addr_gen_mode",
    "num_tx_queues",
    "num_rx_queues",
    "gso_max_size",
    "gso_max_segs",
    "tso_max_size",
    "tso_max_segs",
    "gro_max_size",
    "min_mtu",
    "max_mtu",
    "parentbus",
];
/// Timers and states of bridges and their ports.
const DETAIL_VOLATILE: &[&str] = &[
    "hello_timer",
    "tcn_timer",
    "topology_change_timer",
    "gc_timer",
    "root_id",
    "bridge_id",
    "state",
    "designated_root",
    "designated_bridge",
    "designated_port",
    "port_id",
    "no",
    "message_age_timer",
    "forward_delay_timer",
    "hold_timer",
    "topology_change",
    "topology_change_ack",
    "config_pending",
    "id",
    "root_port",
];
/// Come and go with the other end's carrier.
const FLAGS_VOLATILE: &[&str] = &["LOWER_UP", "NO-CARRIER", "M-DOWN"];

/// One line per fact; links are taken apart, so that a difference shows what differs.
pub(super) fn lines() -> Vec<String> {
    let [links, routes, rules, neighbours] = &answers();
    let rules6 = ip(&["-6", "-d", "-j", "rule", "show"], "");
    let mut lines = Vec::new();
    let mut groups = BTreeMap::new();
    for link in list(links) {
        link_lines(link, &mut groups, &mut lines);
    }
    lines.extend(list(routes).iter().filter_map(route_line));
    lines.extend(list(rules).iter().map(|rule| format!("rule4 {rule}")));
    lines.extend(
        rules6
            .iter()
            .flat_map(list)
            .map(|rule| format!("rule6 {rule}")),
    );
    lines.extend(
        list(neighbours)
            .iter()
            .map(|neighbour| format!("neighbour {neighbour}")),
    );
    lines
}

/// Links with addresses, routes, rules and neighbours, once the kernel has done what follows from the addresses.
fn answers() -> [Value; 4] {
    const LOOKS: u32 = 50;
    let objects = "address show\nroute show table all\nrule show\nneigh show nud permanent\n";
    for look in 1.. {
        let answers: Result<[Value; 4], _> = ip(&["-d", "-j", "-batch", "-"], objects).try_into();
        let answers = answers.expect("ip answers each question once");
        if look == LOOKS || has_own_routes(&answers[0], &answers[1]) {
            return answers;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    unreachable!("the last look returns")
}

/// Whether the kernel has made its local route for each IPv6 address of links with a carrier: a worker makes it.
fn has_own_routes(links: &Value, routes: &Value) -> bool {
    let is_local = |route: &&Value| route["type"] == "local" && route["table"] == "local";
    let local: BTreeSet<&str> = list(routes)
        .iter()
        .filter(is_local)
        .filter_map(|route| route["dst"].as_str())
        .collect();
    let has_carrier = |link: &&Value| list(&link["flags"]).iter().any(|flag| flag == "LOWER_UP");
    let mut addresses = list(links)
        .iter()
        .filter(has_carrier)
        .flat_map(|link| list(&link["addr_info"]))
        .filter(|address| address["family"] == "inet6" && address["tentative"] != true);
    addresses.all(|address| {
        let address = address["local"].as_str();
        address.is_none_or(|address| local.contains(address))
    })
}

fn ip(arguments: &[&str], stdin: &str) -> Vec<Value> {
    let mut child = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("ip runs");
    let _ = child
        .stdin
        .take()
        .map(|mut pipe| pipe.write_all(stdin.as_bytes()));
    let output = child.wait_with_output().expect("ip ends");
    let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    answers
        .map(|answer| answer.expect("ip prints JSON"))
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn link_lines(link: &Value, groups: &mut BTreeMap<String, usize>, lines: &mut Vec<String>) {
    // A batch prints empty objects for links that a filter left out.
    let (Some(fields), Some(name)) = (link.as_object(), link["ifname"].as_str()) else {
        return;
    };
    let mut kept: Map<String, Value> = fields
        .iter()
        .filter(|(key, _)| !LINK_VOLATILE.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if let Some(group) = kept
        .get("group")
        .and_then(Value::as_str)
        .filter(|&g| g != "default")
    {
        let next = groups.len() + 1;
        let number = *groups.entry(group.to_owned()).or_insert(next);
        kept.insert("group".to_owned(), format!("group {number}").into());
    }
    if let Some(flags) = kept.get_mut("flags").and_then(Value::as_array_mut) {
        flags.retain(|flag| !FLAGS_VOLATILE.contains(&flag.as_str().unwrap_or_default()));
    }
    lines.push(format!("link {name}"));
    flatten(&format!("link {name} "), &Value::Object(kept), lines);
    for address in list(&link["addr_info"]) {
        lines.extend(address_line(name, &link["address"], address));
    }
}

/// One line per leaf: `link eth0 linkinfo.info_kind="macvlan"`.
fn flatten(prefix: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map
                .iter()
                .filter(|(key, _)| !DETAIL_VOLATILE.contains(&key.as_str()))
            {
                let separator = if prefix.ends_with(' ') { "" } else { "." };
                flatten(&format!("{prefix}{separator}{key}"), value, lines);
            }
        }
        leaf => lines.push(format!("{prefix}={leaf}")),
    }
}

fn address_line(link: &str, mac: &Value, address: &Value) -> Option<String> {
    let local = address["local"].as_str()?;
    if made_from(mac.as_str().unwrap_or_default()).is_some_and(|made| made == local) {
        return None;
    }
    let mut kept = address.as_object()?.clone();
    for key in [
        "local",
        "prefixlen",
        "valid_life_time",
        "preferred_life_time",
        "tentative",
    ] {
        kept.remove(key);
    }
    Some(format!(
        "address {link} {local}/{} {}",
        address["prefixlen"],
        Value::Object(kept)
    ))
}

/// The link-local address that the kernel derives from a MAC.
fn made_from(mac: &str) -> Option<String> {
    let bytes: Result<Vec<u8>, _> = mac.split(':').map(|b| u8::from_str_radix(b, 16)).collect();
    let b: [u8; 6] = bytes.ok()?.try_into().ok()?;
    let pair = |high: u8, low: u8| u16::from_be_bytes([high, low]);
    let address = std::net::Ipv6Addr::new(
        0xfe80,
        0,
        0,
        0,
        pair(b[0] ^ 2, b[1]),
        pair(b[2], 0xff),
        pair(0xfe, b[3]),
        pair(b[4], b[5]),
    );
    Some(address.to_string())
}

fn route_line(route: &Value) -> Option<String> {
    let text = |key: &str| route[key].as_str().unwrap_or_default();
    let (dst, by_kernel) = (text("dst"), text("protocol") == "kernel");
    // What the kernel makes for link-local and multicast addresses comes after a carrier does.
    if by_kernel && (dst.starts_with("fe80:") || text("type") == "multicast") {
        return None;
    }
    let mut kept = route.as_object()?.clone();
    kept.remove("expires");
    if let Some(flags) = kept.get_mut("flags").and_then(Value::as_array_mut) {
        flags.retain(|flag| flag != "linkdown");
    }
    Some(format!("route {dst} {}", Value::Object(kept)))
}
