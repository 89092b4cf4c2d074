//! Networks with an interface per NIC: what nodes say of their NICs, and the routes to each other's blocks.

use crate::machine::Lab;
use plexus_api::objects::BlockSpec;
use plexus_testkit::{exchange, run};
use serde_json::{Value, json};
use std::path::Path;

const BLOCKS: &str = "/apis/plexus.dev/v1alpha1/blocks";
pub(crate) const NICS: &str = "/apis/net.cogadvisor.io/v1/hostinterfaces";
const NETWORKS: &str = "/apis/net.cogadvisor.io/v1/multinicnetworks";

pub(crate) fn ask(lab: &Lab, method: &str, path: &str, body: &Value) -> (u16, Value) {
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
pub(crate) fn ip(lab: &Lab, node: &str, words: &str) -> String {
    let namespace = format!("px-{}-{node}", lab.name());
    let all: Vec<&str> = ["-n", &namespace]
        .into_iter()
        .chain(words.split(' '))
        .collect();
    run("ip", &all)
}

/// What a node says of a NIC.
pub(crate) fn nic(lab: &Lab, node: &str, name: &str) -> Value {
    let (_, object) = ask(lab, "GET", &format!("{NICS}/{node}"), &Value::Null);
    let all = object["spec"]["interfaces"]
        .as_array()
        .into_iter()
        .flatten();
    let mut of_name = all.filter(|nic| nic["interfaceName"] == name);
    of_name.next().cloned().unwrap_or_default()
}

/// A node's routes through next hops, as `ip` shows them, without what is ours alone to know.
pub(crate) fn routes(lab: &Lab, node: &str) -> Vec<String> {
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

/// The lab's kernel may have no ipvlan: macvlan, on NICs that are on one wire.
const RAILS: &str = r#"
apiVersion: net.cogadvisor.io/v1
kind: MultiNicNetwork
metadata: {name: rails}
spec:
  subnet: 192.168.0.0/16
  ipam: |
    {"type": "multi-nic-ipam", "hostBlock": 6, "interfaceBlock": 2, "vlanMode": "l2"}
  multiNICIPAM: true
  masterNets: [10.200.1.0/24, 10.200.2.0/24]
  namespaces: [default]
  plugin: {cniVersion: "0.3.0", type: macvlan, args: {mode: bridge}}
"#;

/// The addresses of a pod's interface, as the pod sees them.
fn addresses(lab: &Lab, pod: &str, interface: &str) -> String {
    let shown = lab.run(&[
        "exec", pod, "--", "ip", "-4", "-o", "addr", "show", "dev", interface,
    ]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let mut words = shown.split_whitespace().skip_while(|word| *word != "inet");
    words.nth(1).unwrap_or_default().to_owned()
}

#[test]
fn pods_have_an_interface_on_each_nic_and_reach_each_other_by_every_one() {
    let lab = Lab::named('j');
    lab.ok(&["up", "--nodes", "2", "--nics", "2", "--node-grace", "2"]);
    lab.apply(RAILS);
    lab.eventually("the definition is there", || {
        !lab.get(&["nads", "rails"]).is_null()
    });
    let asks = |name: &str, node: &str, element: &str| {
        let annotation = format!("[{element}]");
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default",
            "annotations": {"k8s.v1.cni.cncf.io/networks": annotation}},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "busybox"}]}})
        .to_string()
    };
    lab.apply(&asks("one", "n1", r#"{"name": "rails"}"#));
    lab.apply(&asks("two", "n2", r#"{"name": "rails"}"#));
    lab.apply(&asks(
        "half",
        "n2",
        r#"{"name": "rails", "cni-args": {"masters": ["eth2"]}}"#,
    ));
    for pod in ["one", "two", "half"] {
        lab.eventually("the pod is ready", || is_ready(&lab, pod));
    }
    let of = |pod: &str| ["net1-0", "net1-1"].map(|interface| addresses(&lab, pod, interface));
    let (one, two) = (of("one"), of("two"));
    let hosts = |address: &str| address.rsplit_once('.').map(|(net, _)| net.to_owned());
    let nets = [&one, &two].map(|pod| pod.each_ref().map(|address| hosts(address).unwrap()));
    let mut rails: Vec<&String> = nets.iter().flatten().collect();
    rails.sort();
    assert_eq!(
        rails,
        ["192.168.0", "192.168.1", "192.168.64", "192.168.65"],
        "{one:?} {two:?}"
    );
    assert!(
        one.iter().all(|address| address.ends_with("/18")),
        "{one:?}"
    );
    for (rail, address) in two.iter().enumerate() {
        let (address, _) = address.split_once('/').unwrap();
        let interface = format!("net1-{rail}");
        lab.eventually("one reaches the other by this NIC", || {
            let ping = [
                "exec", "one", "--", "ping", "-c1", "-W1", "-I", &interface, address,
            ];
            lab.run(&ping).status.success()
        });
    }
    // A pod that names a NIC has that one.
    assert!(
        addresses(&lab, "half", "net1-0").starts_with("192.168.6"),
        "{:?}",
        of("half")
    );
    assert_eq!(addresses(&lab, "half", "net1-1"), "");
    let record = lab.get(&["attachments"]);
    let text = record.to_string();
    assert!(
        text.contains("net1-1") && text.contains("\"ordinal\":1"),
        "{text}"
    );

    // All interfaces, or none: a NIC that is down.
    ip(&lab, "n1", "link set eth2 down");
    lab.eventually("the cluster hears of it", || {
        nic(&lab, "n1", "eth2")["state"] == "down"
    });
    lab.apply(&asks("late", "n1", r#"{"name": "rails"}"#));
    lab.eventually("the pod is told which NIC is down", || {
        let said = lab.plexus(&["diagnose", "pod", "late"]).output().unwrap();
        String::from_utf8_lossy(&said.stdout).contains("eth2 is down")
    });
    assert!(!is_ready(&lab, "late"));
    ip(&lab, "n1", "link set eth2 up");
    lab.eventually("it starts once the NIC is up", || is_ready(&lab, "late"));

    // What a node has given out stays over the death of its agent, and is free again after the pod.
    lab.kill("/nodes/0/agent/pid");
    lab.delete_pod("one", 0);
    lab.apply(&asks("next", "n1", r#"{"name": "rails"}"#));
    lab.eventually("the pod is ready", || is_ready(&lab, "next"));
    let late = of("late");
    assert!(
        of("next").iter().all(|address| !late.contains(address)),
        "{late:?}"
    );
}

fn is_ready(lab: &Lab, pod: &str) -> bool {
    let object = lab.get(&["pod", pod]);
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
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
