//! Labs whose nodes and NICs a file says: what nodes have then, what may change, and the hosts of seed 002.

use crate::machine::Lab;
use crate::nics::{NICS, ask, ip, nic, routes};
use plexus_testkit::example;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Output, Stdio};

/// `plexus lab up` with a topology on standard input.
fn up(lab: &Lab, topology: &str) -> Output {
    let mut up = lab.command(&["up", "--node-grace", "2", "-f", "-"]);
    let mut child = up
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(topology.as_bytes()).unwrap();
    drop(pipe);
    child.wait_with_output().unwrap()
}

#[track_caller]
fn up_ok(lab: &Lab, topology: &str) -> String {
    let output = up(lab, topology);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{topology}\n{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What one that must fail complains about.
#[track_caller]
fn up_fails(lab: &Lab, topology: &str) -> String {
    let output = up(lab, topology);
    assert!(!output.status.success(), "{topology}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Two NICs in one subnet, one that n3 alone has, and that is down.
const RAILS: &str = "\
nodes: [n1, n3]
nics:
- {name: eth1, subnets: [10.0.1.0/24, 'fd00:10:1::/64']}
- {name: rail2, subnets: [10.0.1.0/24], offset: 100, mtu: 9000}
- {name: eth3, nodes: [n3], subnets: [172.30.5.0/28], addresses: {n3: [172.30.5.9]}, down: [n3]}
";

#[test]
fn nodes_have_the_nics_of_the_file() {
    let lab = Lab::named('t');
    let printed = up_ok(&lab, RAILS);
    let words = "2 nodes with eth0 and 2 to 3 further NICs";
    assert!(printed.contains(words), "{printed}");
    let shown = |node: &str, name: &str| {
        let seen = nic(&lab, node, name);
        json!([
            seen["addresses"],
            seen["netAddress"],
            seen["mtu"],
            seen["state"]
        ])
    };
    let wanted = [
        (
            "n1",
            "eth1",
            json!([
                ["10.0.1.1/24", "fd00:10:1::1/64"],
                "10.0.1.0/24",
                1500,
                "up"
            ]),
        ),
        (
            "n3",
            "rail2",
            json!([["10.0.1.103/24"], "10.0.1.0/24", 9000, "up"]),
        ),
        (
            "n3",
            "eth3",
            json!([["172.30.5.9/28"], "172.30.5.0/28", 1500, "down"]),
        ),
    ];
    for (node, name, wanted) in &wanted {
        lab.eventually(&format!("{node} tells of {name}: {wanted}"), || {
            shown(node, name) == *wanted
        });
    }
    assert_eq!(nic(&lab, "n1", "eth3"), Value::Null);
    let reaches = || {
        let ping = ["ping", "-c1", "-W1", "-I", "eth1", "fd00:10:1::3"];
        let words = [&["exec", "--node", "n1", "--"], &ping[..]].concat();
        lab.run(&words).status.success()
    };
    lab.eventually("n1 reaches n3 by eth1", reaches);

    // The uplink is that of every lab; what acts on all wires of a node acts on these.
    assert_eq!(lab.status()["nodes"][1]["addresses"][0], "10.200.0.3");
    lab.ok(&["cut", "n3"]);
    assert_eq!(lab.status()["nodes"][1]["joined"], false);
    assert!(!reaches());
    lab.ok(&["heal", "n3"]);
    lab.eventually("n1 reaches n3 again", reaches);

    // A node that comes has what all have.
    assert!(lab.ok(&["add-node"]).contains("n4 ready"));
    lab.eventually("n4 tells of its NICs", || {
        shown("n4", "rail2")[0] == json!(["10.0.1.104/24"])
    });
    assert_eq!(nic(&lab, "n4", "eth3"), Value::Null);

    // Again: nothing changes, also not what was done by hand.
    ip(&lab, "n3", "link set eth3 up");
    let printed = up_ok(&lab, RAILS);
    assert!(
        printed.contains("it has had more nodes before"),
        "{printed}"
    );
    lab.eventually("the cluster hears of it", || shown("n3", "eth3")[3] == "up");
    let error = up_fails(&lab, &RAILS.replace("10.0.1.0/24]", "10.0.7.0/24]"));
    assert!(
        error.contains("the nodes' NICs cannot be changed"),
        "{error}"
    );
    let error = lab.fails(&["up", "--nics", "3"]);
    assert!(error.contains("--nics cannot be changed"), "{error}");
    lab.ok(&["remove-node", "n3"]);
    lab.ok(&["up", "--nodes", "2"]);
    lab.ok(&["status"]);
    lab.ok(&["down"]);
    assert_eq!(lab.traces(), Vec::<String>::new());
}

#[test]
fn what_is_wrong_with_a_file_is_said_and_nothing_is_made() {
    let lab = Lab::named('u');
    let wrong = RAILS
        .replace("offset: 100", "offset: 300")
        .replace("name: eth3", "name: eth0");
    let error = up_fails(&lab, &wrong.replace("mtu", "mut"));
    for line in [
        "standard input cannot be used: 2 problems",
        "standard input:4: nics[1].mut: is not a known key: did you mean \"mtu\"?",
        "standard input:5: nics[2].name: \"eth0\": every node has it",
    ] {
        assert!(error.contains(line), "no {line:?} in {error}");
    }
    let error = lab.fails(&["up", "-f", "/nonexistent/t.yaml"]);
    assert!(error.contains("cannot read /nonexistent/t.yaml"), "{error}");
    let error = lab.fails(&["up", "-f", "-", "--nodes", "2"]);
    assert!(error.contains("cannot be used with"), "{error}");
    assert_eq!(lab.traces(), Vec::<String>::new());
}

/// Lines 103-106 and 119-122 of the document.
const SEED_CIDRS: &str = "\
the pod CIDR for Host1 with network addresss 10.0.1.0/24 is 192.168.0.0/24.
the pod CIDR for Host1 with network addresss 10.0.2.0/24 is 192.168.64.0/24.
the pod CIDR for Host2 with network addresss 10.0.1.0/24 is 192.168.1.0/24.
the pod CIDR for Host2 with network addresss 10.0.2.0/24 is 192.168.65.0/24.
";
const SEED_ROUTES_OF_HOST1: &str = "\
192.168.1.0/24 via 10.0.1.2 dev eth1
192.168.65.0/24 via 10.0.2.2 dev eth2
";
/// What the same says of Host2.
const ROUTES_OF_HOST2: &str = "\
192.168.0.0/24 via 10.0.1.1 dev eth1
192.168.64.0/24 via 10.0.2.1 dev eth2
";
/// Host1 as the topology has it.
const HOST1: &str = "\
nodes: [n1]
nics:
- {name: eth1, subnets: [10.0.1.0/24]}
- {name: eth2, subnets: [10.0.2.0/24]}
";

/// The blocks of a CIDR object in the document's words.
fn cidrs(object: &Value) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines: Vec<String> = Vec::new();
    for entry in list(&object["spec"]["cidr"]) {
        for host in list(&entry["hosts"]) {
            lines.push(format!(
                "the pod CIDR for {} with network addresss {} is {}.\n",
                text(&host["hostName"]).replacen('n', "Host", 1),
                text(&entry["netAddress"]),
                text(&host["podCIDR"])
            ));
        }
    }
    lines.sort();
    lines.concat()
}

#[test]
fn the_seeds_hosts_have_the_seeds_blocks_and_routes() {
    let lab = Lab::named('s');
    // Host1 is the first: indices are given by age.
    up_ok(&lab, HOST1);
    let file = example("seed-002/hosts.topology").display().to_string();
    let printed = lab.ok(&["up", "-f", &file]);
    let words = "4 nodes with eth0 and 2 further NICs";
    assert!(printed.contains(words), "{printed}");
    lab.eventually("all nodes say which NICs they have", || {
        let seen = ["n1", "n2", "n3", "n4"].map(|node| nic(&lab, node, "eth2")["hostIP"].clone());
        seen == ["10.0.2.1", "10.0.2.2", "10.0.12.3", "10.0.12.4"]
    });
    let network = example("seed-002/10-multi-nic-network.yaml");
    lab.apply(&std::fs::read_to_string(network).unwrap());
    let path = "/apis/net.cogadvisor.io/v1/cidrs/multi-nic-sample";
    let mut shown = String::new();
    lab.eventually("the CIDR has blocks", || {
        shown = cidrs(&ask(&lab, "GET", path, &Value::Null).1);
        shown.lines().count() >= 4
    });
    assert_eq!(shown, SEED_CIDRS);
    let of = |node: &str| {
        let routes = routes(&lab, node);
        routes
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    for (node, wanted) in [
        ("n1", SEED_ROUTES_OF_HOST1),
        ("n2", ROUTES_OF_HOST2),
        ("n3", ""),
        ("n4", ""),
    ] {
        lab.eventually(&format!("{node} has these routes: {wanted}"), || {
            of(node) == wanted
        });
    }
    assert_eq!(
        cidrs(&ask(&lab, "GET", path, &Value::Null).1),
        SEED_CIDRS,
        "still"
    );
    let (status, _) = ask(&lab, "GET", &format!("{NICS}/n4"), &Value::Null);
    assert_eq!(status, 200);
}
