//! Networks with an interface per NIC: what nodes say of their NICs, and the routes to each other's blocks.

use crate::machine::Lab;
use plexus_api::objects::BlockSpec;
use plexus_testkit::{exchange, run};
use serde_json::{Value, json};
use std::path::Path;

const BLOCKS: &str = "/apis/plexus.dev/v1alpha1/blocks";
const NICS: &str = "/apis/net.cogadvisor.io/v1/hostinterfaces";
const NETWORKS: &str = "/apis/net.cogadvisor.io/v1/multinicnetworks";

fn ask(lab: &Lab, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = exchange(Path::new(&lab.file("server.sock")), request.as_bytes());
    let answer = answer.expect("the server answers");
    (
        answer.status,
        serde_json::from_str(&answer.body).unwrap_or_default(),
    )
}

/// Runs `ip` in a node's namespace.
fn ip(lab: &Lab, node: &str, words: &str) -> String {
    let namespace = format!("px-{}-{node}", lab.name());
    let all: Vec<&str> = ["-n", &namespace]
        .into_iter()
        .chain(words.split(' '))
        .collect();
    run("ip", &all)
}

/// What a node says of a NIC.
fn nic(lab: &Lab, node: &str, name: &str) -> Value {
    let (_, object) = ask(lab, "GET", &format!("{NICS}/{node}"), &Value::Null);
    let all = object["spec"]["interfaces"]
        .as_array()
        .into_iter()
        .flatten();
    let mut of_name = all.filter(|nic| nic["interfaceName"] == name);
    of_name.next().cloned().unwrap_or_default()
}

/// A node's routes through next hops, as `ip` shows them, without what is ours alone to know.
fn routes(lab: &Lab, node: &str) -> Vec<String> {
    let shown = ip(lab, node, "route show table all proto 80");
    let lines = shown.lines().filter(|line| line.contains("nhid"));
    let mut lines: Vec<String> = lines
        .map(|line| {
            let mut words = line.split_whitespace();
            let mut kept = Vec::new();
            while let Some(word) = words.next() {
                match word {
                    "nhid" | "table" => drop(words.next()),
                    word => kept.push(word),
                }
            }
            kept.join(" ")
        })
        .collect();
    lines.sort();
    lines
}

/// The block of a node on a NIC, as the arithmetic gives it: two bits for the interface, six for the host.
fn block(uid: &str, node: (&str, u8), index: u8) -> Value {
    let (name, number) = node;
    let cidr = format!("192.168.{}.0/24", index * 64 + number - 1);
    let object = BlockSpec::name(uid, &cidr.parse().unwrap());
    let nic = index + 1;
    json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Block",
        "metadata": {"name": object, "labels": {"plexus.dev/node": name, "plexus.dev/network": uid}},
        "spec": {"network": {"namespace": "", "name": "rails", "uid": uid}, "cidr": cidr, "node": name,
            "nodeUID": "", "nic": {"interface": format!("eth{nic}"), "netAddress": format!("10.200.{nic}.0/24"),
                "interfaceIndex": index, "hostIndex": number - 1, "via": format!("10.200.{nic}.{number}")}}})
}

#[test]
fn nodes_tell_of_their_nics_and_route_to_each_others_blocks() {
    let lab = Lab::named('i');
    lab.ok(&["up", "--nodes", "2", "--nics", "2", "--node-grace", "2"]);
    lab.eventually("both nodes say which NICs they have", || {
        let seen = ["n1", "n2"].map(|node| nic(&lab, node, "eth2")["hostIP"].clone());
        seen == ["10.200.2.1", "10.200.2.2"]
    });
    assert_eq!(
        nic(&lab, "n1", "eth0"),
        Value::Null,
        "the default route's is not for pods"
    );
    let first = nic(&lab, "n1", "eth1");
    assert_eq!(
        first["addresses"],
        json!(["10.200.1.1/24", "fd00:200:1::1/64"])
    );
    assert_eq!(
        (&first["state"], &first["mtu"]),
        (&json!("up"), &json!(1500))
    );

    let controller = Stopped::new(lab.pid("/controller/pid").unwrap());
    let network = json!({"apiVersion": "net.cogadvisor.io/v1", "kind": "MultiNicNetwork",
        "metadata": {"name": "rails"}, "spec": {"subnet": "192.168.0.0/16", "multiNICIPAM": true,
            "masterNets": ["10.200.1.0/24", "10.200.2.0/24"], "plugin": {"type": "ipvlan"},
            "ipam": r#"{"type": "multi-nic-ipam", "hostBlock": 6, "interfaceBlock": 2, "vlanMode": "l3"}"#}});
    let (status, network) = ask(&lab, "POST", NETWORKS, &network);
    assert_eq!(status, 201, "{network}");
    let uid = network["metadata"]["uid"].as_str().unwrap();
    for node in [("n1", 1), ("n2", 2)] {
        for index in [0, 1] {
            let (status, answer) = ask(&lab, "POST", BLOCKS, &block(uid, node, index));
            assert_eq!(status, 201, "{answer}");
        }
    }
    let of_n1 = [
        "192.168.1.0/24 via 10.200.1.2 dev eth1",
        "192.168.65.0/24 via 10.200.2.2 dev eth2",
    ];
    let of_n2 = [
        "192.168.0.0/24 via 10.200.1.1 dev eth1",
        "192.168.64.0/24 via 10.200.2.1 dev eth2",
    ];
    let whole = || routes(&lab, "n1") == of_n1 && routes(&lab, "n2") == of_n2;
    lab.eventually("each node has the way to the other's blocks", whole);
    let rules = ip(&lab, "n1", "rule");
    assert_eq!(rules.matches("from 192.168.0.0/16").count(), 1, "{rules}");

    // Whatever somebody removes comes back, also what was removed while no agent ran.
    ip(&lab, "n1", "nexthop flush proto 80");
    lab.eventually("next hops come back", whole);
    ip(&lab, "n1", "rule del priority 5080");
    lab.eventually("the rule comes back", || {
        ip(&lab, "n1", "rule").contains("from 192.168.0.0/16")
    });
    lab.kill("/nodes/0/agent/pid");
    ip(&lab, "n1", "nexthop flush proto 80");
    lab.eventually("the next agent brings them back", whole);

    // A NIC that is down has no routes, and the other one those that it had.
    ip(&lab, "n1", "link set eth1 down");
    lab.eventually("the cluster hears of it", || {
        nic(&lab, "n1", "eth1")["state"] == "down"
    });
    assert_eq!(routes(&lab, "n1"), [of_n1[1]]);
    ip(&lab, "n1", "link set eth1 up");
    lab.eventually("the way is back", whole);
    lab.eventually("the cluster hears of it", || {
        nic(&lab, "n1", "eth1")["state"] == "up"
    });
    ip(&lab, "n1", "link set eth2 down");
    ip(&lab, "n1", "link set eth2 name rail2");
    lab.eventually("a NIC that is renamed to what is none vanishes", || {
        nic(&lab, "n1", "eth2").is_null()
    });

    // With the network everything goes.
    for node in [("n1", 1), ("n2", 2)] {
        for index in [0, 1] {
            let name = block(uid, node, index)["metadata"]["name"].clone();
            let path = format!("{BLOCKS}/{}", name.as_str().unwrap());
            ask(&lab, "DELETE", &path, &Value::Null);
        }
    }
    ask(&lab, "DELETE", &format!("{NETWORKS}/rails"), &Value::Null);
    lab.eventually("nothing is left", || {
        let left = ["n1", "n2"].map(|node| {
            ip(&lab, node, "rule").contains("192.168.") || !ip(&lab, node, "nexthop").is_empty()
        });
        left == [false, false]
    });
    drop(controller);
}

/// The controller decides who has which block. While it is stopped, the test does.
struct Stopped(String);

impl Stopped {
    fn new(pid: i64) -> Self {
        run("kill", &["-STOP", &pid.to_string()]);
        Self(pid.to_string())
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = std::process::Command::new("kill")
            .args(["-CONT", &self.0])
            .status();
    }
}
