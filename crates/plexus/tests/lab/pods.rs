//! Pods on several nodes: the default network joins them, overlays stay apart, and a pod that cannot have
//! what it asks for does not start.

use crate::machine::Lab;
use serde_json::Value;

/// Two networks with the same addresses.
pub(crate) const NETWORKS: &str = "
apiVersion: plexus.dev/v1alpha1
kind: Network
metadata: {name: blue, namespace: default}
spec: {subnets: {a: {cidr: 10.1.0.0/16}, b: {cidr: 'fd00:1::/48'}}}
---
apiVersion: plexus.dev/v1alpha1
kind: Network
metadata: {name: red, namespace: default}
spec: {subnets: {a: {cidr: 10.1.0.0/16}}}
";

#[test]
fn members_reach_each_other_and_nobody_else_does() {
    let lab = Lab::up('p', 2);
    lab.apply(NETWORKS);
    for (name, node, network) in [
        ("b1", "n1", "blue"),
        ("b2", "n2", "blue"),
        ("r1", "n1", "red"),
        ("r2", "n2", "red"),
    ] {
        let printed = lab.ok(&["run", name, "--node", node, "--network", network]);
        assert!(printed.contains(&format!("ready on {node}")), "{printed}");
    }
    // The same again is the same pod; another one of that name is not.
    lab.ok(&["run", "b1", "--node", "n1", "--network", "blue"]);
    let error = lab.fails(&["run", "b1", "--node", "n2", "--network", "blue"]);
    assert!(error.contains("is another one"), "{error}");

    lab.all_reach();
    let matrix: Value = serde_json::from_str(&lab.ok(&["ping", "-o", "json"])).unwrap();
    let cells = matrix["cells"].as_array().unwrap();
    // Four pods with 4 + 4 + 3 + 3 addresses, each pinged by the three others.
    assert_eq!(cells.len(), 42, "{matrix:#}");
    let count = |expected: &str, seen: bool| {
        let is_it = |cell: &&Value| cell["expected"] == expected && cell["seen"] == seen;
        cells.iter().filter(is_it).count()
    };
    // On the default network 4 · 2 · 3; on blue 2 · 2, on red 2.
    assert_eq!(
        (count("yes", true), count("no", false)),
        (30, 12),
        "{matrix:#}"
    );
    let text = lab.ok(&["ping"]);
    assert!(text.ends_with("42 judged: all as expected\n"), "{text}");

    let listed = lab.ok(&["exec", "b1", "--", "ip", "-br", "addr", "show", "net1"]);
    assert!(listed.contains("10.1."), "{listed}");
    let route = lab.ok(&[
        "exec",
        "--node",
        "n2",
        "--",
        "ip",
        "route",
        "get",
        "10.200.0.1",
    ]);
    assert!(route.contains("dev eth0 src 10.200.0.2"), "{route}");
    assert!(reaches_api(&lab, "n2"));
    // A wire that is cut is a cell that differs, and a failure.
    lab.ok(&["cut", "n2"]);
    let cut = lab.run(&["ping"]);
    assert_eq!(cut.status.code(), Some(1));
    let text = String::from_utf8_lossy(&cut.stdout).into_owned();
    assert!(
        text.contains("no!") && text.contains("not as expected"),
        "{text}"
    );
    let error = lab.fails(&["status"]);
    assert_eq!(error, "", "the table says it");
    pods_come_and_go_on_a_node_that_is_cut_off(&lab);
    lab.ok(&["heal", "n2"]);
    lab.eventually("the records are true again", || {
        (recorded(&lab, "late"), recorded(&lab, "b2")) == (2, 0)
    });
    lab.all_reach();
    lab.ok(&["status"]);
}

/// Whether a program on the node gets a connection to the API.
fn reaches_api(lab: &Lab, node: &str) -> bool {
    let connect = "exec 3<>/dev/tcp/10.200.0.254/6443";
    let bash = ["timeout", "5", "bash", "-c", connect];
    let words = [&["exec", "--node", node, "--"][..], &bash].concat();
    lab.run(&words).status.success()
}

/// n2 is cut off; b2 is on it.
fn pods_come_and_go_on_a_node_that_is_cut_off(lab: &Lab) {
    assert!(!reaches_api(lab, "n2") && reaches_api(lab, "n1"));
    let printed = lab.ok(&["run", "late", "--node", "n2", "--network", "blue"]);
    assert!(printed.contains("ready on n2"), "{printed}");
    let listed = lab.ok(&["exec", "late", "--", "ip", "-br", "addr", "show", "net1"]);
    assert!(listed.contains("10.1."), "{listed}");
    lab.delete_pod("b2", 0);
    lab.eventually("b2 is gone", || {
        lab.get(&["pod", "b2"]).is_null()
            && !lab.run(&["exec", "b2", "--", "true"]).status.success()
    });
    // Its agent could tell nobody.
    assert_eq!((recorded(lab, "late"), recorded(lab, "b2")), (0, 2));
}

/// How many interfaces the API knows of a pod.
fn recorded(lab: &Lab, pod: &str) -> usize {
    let rows = lab.plexus(&["get", "attachments"]).output().unwrap();
    let rows = String::from_utf8_lossy(&rows.stdout).into_owned();
    let of_pod = |row: &&str| row.split_whitespace().next() == Some(pod);
    rows.lines().filter(of_pod).count()
}

#[test]
fn a_pod_without_a_network_that_it_asks_for_does_not_start() {
    let lab = Lab::up('w', 1);
    let error = lab.fails(&["run", "web", "--network", "nosuch", "--timeout", "15"]);
    assert!(
        error.contains("there is no Network default/nosuch"),
        "{error}"
    );
    let pod = lab.get(&["pod", "web"]);
    assert_eq!(pod["status"]["phase"], "Pending", "{pod:#}");
    let ping = lab.run(&["ping"]);
    let text = String::from_utf8_lossy(&ping.stdout).into_owned();
    assert!(
        !ping.status.success() && text.contains("! web: it has no sandbox"),
        "{text}"
    );
    let error = lab.fails(&["exec", "web", "--", "true"]);
    assert!(
        error.contains("no pod default/web has a sandbox"),
        "{error}"
    );
    // As soon as it is there, the pod is.
    lab.apply(&NETWORKS.replace("name: blue", "name: nosuch"));
    lab.ok(&["run", "web", "--network", "nosuch"]);
    assert_eq!(lab.get(&["pod", "web"])["status"]["phase"], "Running");
    // One that names no node gets one; one that wants a node that is not there waits.
    lab.ok(&["run", "free", "-n", "elsewhere"]);
    let error = lab.fails(&["run", "lost", "--node", "n9"]);
    assert!(error.contains("has no node n9: it has n1"), "{error}");
}

#[test]
fn rules_that_somebody_flushed_come_back() {
    let lab = Lab::up('h', 1);
    lab.apply(
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ported", "namespace": "default"},
            "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "none",
                "ports": [{"containerPort": 80, "hostPort": 30080}]}]}}"#,
    );
    lab.eventually("the pod runs", || {
        lab.get(&["pod", "ported"])["status"]["phase"] == "Running"
    });
    let on_node = |words: &[&str]| lab.ok(&[&["exec", "--node", "n1", "--"][..], words].concat());
    let rules = || {
        let listed = on_node(&["nft", "list", "ruleset"]);
        let mut lines: Vec<String> = listed.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let before = rules();
    for text in [
        "tcp . 30080 : ",
        "masquerade",
        "fib saddr . iif oif missing drop",
        "127.0.0.0/8 drop",
    ] {
        assert!(
            before.iter().any(|line| line.contains(text)),
            "{text} in {before:#?}"
        );
    }
    // As a reload of Debian's nftables.service does.
    on_node(&["nft", "flush", "ruleset"]);
    lab.eventually("all of it is back, without a call", || rules() == before);
}

/// Two interfaces on one network are two ways into it: what one of them carried, the other carries when it is cut.
#[test]
fn a_pod_that_is_on_a_network_twice_goes_on_by_the_other_interface() {
    let lab = Lab::up('d', 2);
    lab.apply(NETWORKS);
    let twice = ["--network", "blue", "--network", "blue"];
    lab.ok(&[&["run", "two", "--node", "n1"], &twice[..]].concat());
    lab.ok(&["run", "far", "--node", "n2", "--network", "blue"]);
    let address = |pod: &str, link: &str, family: &str| -> String {
        let script = format!("ip -o {family} addr show dev {link} scope global");
        let listed = lab.ok(&["exec", pod, "--", "sh", "-c", &script]);
        let address = listed.split_whitespace().nth(3).expect("an address");
        address.split('/').next().unwrap().to_owned()
    };
    let pings = |pod: &str, flags: &[&str], to: &str| {
        let ping = ["exec", pod, "--", "ping", "-c1", "-W1"];
        let words = [&ping[..], flags, &[to]].concat();
        lab.run(&words).status.success()
    };
    for family in ["-4", "-6"] {
        let far = address("far", "net1", family);
        for link in ["net1", "net2"] {
            let own = address("two", link, family);
            lab.eventually("both are there", || {
                pings("far", &[], &own) && pings("two", &["-I", &own], &far)
            });
        }
    }
    // The one that the pod takes if it is not told which.
    let script = format!("ip -o route get {}", address("far", "net1", "-4"));
    let route = lab.ok(&["exec", "two", "--", "sh", "-c", &script]);
    let mut words = route.split_whitespace().skip_while(|word| *word != "dev");
    let cut = words.nth(1).expect("a route");
    let other = match cut {
        "net1" => "net2",
        _ => "net1",
    };
    let was = ["-4", "-6"].map(|family| address("two", cut, family));
    lab.ok(&["exec", "two", "--", "ip", "link", "set", cut, "down"]);
    for (family, was) in ["-4", "-6"].into_iter().zip(was) {
        let (far, own) = (
            address("far", "net1", family),
            address("two", other, family),
        );
        lab.eventually("the other one carries it", || {
            pings("two", &[], &far) && pings("two", &["-I", &own], &far) && pings("far", &[], &own)
        });
        assert!(!pings("far", &[], &was), "{cut} is not cut");
    }
}
