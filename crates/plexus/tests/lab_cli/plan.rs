//! `plexus plan` against the truth: its commands, run in namespaces of our own, make what a real ADD makes.

use crate::machine::Lab;
use crate::output::{example, ok, plexus};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Namespaces that are gone afterwards.
struct Scratch {
    names: Vec<String>,
}

impl Scratch {
    fn add(&mut self, name: &str) -> String {
        let full = format!("px-test-{}-{name}", std::process::id());
        sh(&format!("ip netns add {full}"));
        self.names.push(full.clone());
        full
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

#[track_caller]
fn sh(script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{script}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a pod has: links, addresses, routes, permanent neighbours, sysctls; its own addresses and all MACs by
/// what they are.
const INSPECT_SCRIPT: &str = "
ip -o -d link show | sed 's/.* \\(eth0\\|net1\\|net2\\)@/\\1@/; s/alias.*//; /LOOPBACK/d'
ip -o address show | awk '{print $2, $3, $4}' | grep -v '^lo'
ip route show table all; ip -6 route show table all
ip neighbour show nud permanent; ip -6 neighbour show nud permanent
for i in eth0 net1 net2; do for s in ipv6/conf/$i/accept_ra ipv6/conf/$i/accept_dad ipv4/conf/$i/arp_notify \
ipv6/conf/$i/ndisc_notify ipv4/conf/$i/rp_filter; do echo $s $(cat /proc/sys/net/$s); done; done";

/// The look, with what may differ by name.
fn normal(text: &str) -> Vec<String> {
    let mut own: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let [link, family @ ("inet" | "inet6"), address] = words[..] {
            let ip = address.split('/').next().unwrap().to_owned();
            let kind = if ip.starts_with("fe80") {
                "LOCAL"
            } else {
                family
            };
            own.insert(ip, format!("{kind}-of-{link}"));
        }
    }
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| {
            !line.contains("local ") && !line.contains("broadcast ") && !line.contains("multicast ")
        })
        .map(|line| {
            let words = line.split_whitespace().map(|word| {
                let (ip, length) = word.split_once('/').unwrap_or((word, ""));
                let mac = word.len() == 17 && word.split(':').count() == 6;
                match own.get(ip) {
                    Some(name) if length.is_empty() => name.clone(),
                    Some(name) => format!("{name}/{length}"),
                    None if mac => "MAC".to_owned(),
                    // Links are numbered from wherever they are made.
                    None => word.split("@if").next().unwrap_or(word).to_owned(),
                }
            });
            words.collect::<Vec<_>>().join(" ")
        })
        .map(|line| keep_facts(&line))
        .collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Of a link: name, MTU, group and kind. Other lines as they are.
fn keep_facts(line: &str) -> String {
    if !line.contains(" mtu ") {
        return line.to_owned();
    }
    let words: Vec<&str> = line.split(' ').collect();
    let after = |key: &str| {
        let at = words.iter().position(|word| *word == key);
        at.and_then(|at| words.get(at + 1)).copied().unwrap_or("-")
    };
    let kind = ["veth", "macvlan"]
        .into_iter()
        .find(|kind| words.contains(kind));
    let name = words[0].trim_end_matches(':');
    // Links have a mode of their own before that of their kind.
    let mode = words.iter().rposition(|word| *word == "mode");
    let mode = match (kind, mode.and_then(|at| words.get(at + 1))) {
        (Some("macvlan"), Some(mode)) => mode,
        _ => "-",
    };
    format!(
        "link {name} mtu {} group {} kind {} mode {mode}",
        after("mtu"),
        group_name(after("group")),
        kind.unwrap_or("-")
    )
}

/// The group of a pod's links is a hash of the container; others are the same everywhere.
fn group_name(group: &str) -> &str {
    const CHECKED: &str = "536891520";
    match group {
        "default" | "0" => "default",
        CHECKED => CHECKED,
        _ => "OF-THE-POD",
    }
}

/// What runs commands somewhere, and gives what they print.
type Shell<'a> = &'a dyn Fn(&str) -> String;

fn listed(shell: Shell<'_>, command: &str) -> Vec<Value> {
    serde_json::from_str(&shell(command)).unwrap_or_default()
}

/// The node's ends of the pod's links by what they are called in there: `end-of-<interface>`, and their names.
fn node_ends(shell: Shell<'_>) -> BTreeMap<String, String> {
    let ends = listed(shell, "ip -j -d link show type veth").into_iter();
    let ends = ends.filter_map(|link| {
        let mark = link["ifalias"].as_str()?;
        let inside = mark
            .split(' ')
            .nth(5)
            .filter(|_| mark.starts_with("plexus "))?;
        Some((
            format!("end-of-{inside}"),
            link["ifname"].as_str()?.to_owned(),
        ))
    });
    ends.collect()
}

/// What the node has for the pod: ends with their groups, bridges, routes, neighbours.
fn node_side(shell: Shell<'_>) -> Vec<String> {
    let ends = node_ends(shell);
    let called = |name: &str| {
        let mut all = ends.iter();
        all.find(|(_, one)| *one == name)
            .map(|(end, _)| end.clone())
    };
    let mut lines = Vec::new();
    for link in listed(shell, "ip -j -d link") {
        let name = link["ifname"].as_str().unwrap_or_default();
        let is_bridge = link["linkinfo"]["info_kind"] == "bridge";
        let Some(name) = called(name).or_else(|| is_bridge.then(|| name.to_owned())) else {
            continue;
        };
        let word = |key: &str| link[key].as_str().unwrap_or("-").to_owned();
        let port = &link["linkinfo"]["info_slave_data"]["hairpin"];
        let is_up = link["flags"].to_string().contains("\"UP\"");
        lines.push(format!(
            "link {name} mtu {} group {} txqueuelen {} master {} hairpin {port} promiscuous {} up {is_up}",
            link["mtu"],
            group_name(&word("group")),
            if is_bridge { &Value::Null } else { &link["txqlen"] },
            word("master"),
            link["flags"].to_string().contains("PROMISC"),
        ));
    }
    let ours = "proto 80";
    for (what, command) in [
        ("route", format!("ip -j route show {ours}")),
        ("route", format!("ip -j -6 route show {ours}")),
        ("neighbour", "ip -j neighbour show nud permanent".to_owned()),
        (
            "neighbour",
            "ip -j -6 neighbour show nud permanent".to_owned(),
        ),
    ] {
        let all = listed(shell, &command);
        let of_ends = all
            .iter()
            .filter_map(|one| Some((one, called(one["dev"].as_str()?)?)));
        lines.extend(of_ends.map(|(one, end)| {
            let (scope, metric) = (&one["scope"], &one["metric"]);
            let family = if one["dst"].to_string().contains(':') {
                6
            } else {
                4
            };
            format!("{what} ipv{family} dev {end} scope {scope} metric {metric}")
        }));
    }
    lines.sort();
    lines
}

/// The sysctls that the plan prints, each with where it is: the pod, or the node.
fn printed_sysctls(planned: &str) -> Vec<(bool, String, String)> {
    let written = planned.lines().filter_map(|line| {
        let (before, setting) = line.split_once("sysctl -w ")?;
        let in_pod = match before {
            "" => false,
            "ip netns exec pod " => true,
            // Of a router.
            _ => return None,
        };
        let (key, value) = setting.split_once('=')?;
        Some((in_pod, key.to_owned(), value.to_owned()))
    });
    written.collect()
}

/// Where a chain is, as `nft list chain` says.
fn hook(listed: &str) -> String {
    let mut lines = listed.lines().map(str::trim);
    let hook = lines.find(|line| line.starts_with("type "));
    hook.expect("a chain with a hook").to_owned()
}

/// The node's side is what an ADD makes.
#[track_caller]
fn compare_node(on_node: Shell<'_>, planned_node: Shell<'_>, planned: &str) {
    let (theirs, ours) = (node_side(on_node), node_side(planned_node));
    assert!(
        theirs.iter().any(|line| line.contains("end-of-eth0")),
        "{theirs:#?}"
    );
    assert_eq!(ours, theirs, "planned:\n{planned}");
}

/// Every sysctl that the plan prints has that value where an ADD was.
#[track_caller]
fn compare_sysctls(
    (on_node, in_pod): (Shell<'_>, Shell<'_>),
    planned_node: Shell<'_>,
    planned: &str,
) {
    let (real_ends, planned_ends) = (node_ends(on_node), node_ends(planned_node));
    let sysctls = printed_sysctls(planned);
    for whose in [true, false] {
        let some = sysctls
            .iter()
            .filter(|(in_pod, ..)| *in_pod == whose)
            .count();
        assert!(some > 2, "{sysctls:?}");
    }
    for (is_in_pod, key, value) in sysctls {
        let name = |(end, name): (&String, &String)| (name.clone(), real_ends[end].clone());
        let mut names = planned_ends.iter().map(name);
        let real_key = names
            .find(|(planned, _)| key.contains(planned.as_str()))
            .map_or(key.clone(), |(planned, real)| key.replace(&planned, &real));
        let read = format!("cat /proc/sys/{real_key}");
        let seen = if is_in_pod {
            in_pod(&read)
        } else {
            on_node(&read)
        };
        assert_eq!(seen.trim(), value, "{key}, planned:\n{planned}");
    }
}

#[test]
fn its_commands_make_what_a_real_add_makes() {
    let lab = Lab::named('k');
    lab.ok(&["up", "--nodes", "1", "--nics", "2"]);
    let networks = example("lab/10-networks.yaml");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: team-a, \
               annotations: {plexus.dev/networks: 'blue,default/storage'}}\n\
               spec: {nodeName: n1, containers: [{name: a, image: b, ports: [{containerPort: 80, hostPort: 8080}, \
               {containerPort: 81, hostPort: 8081, hostIP: 10.200.0.1}]}]}\n";
    let file = std::env::temp_dir().join(format!("plexus-plan-pod-{}.yaml", std::process::id()));
    fs::write(&file, pod).unwrap();
    let written = file.display().to_string();
    ok(&lab, &["apply", "-f", &networks, "-f", &written]);
    lab.eventually("the pod runs", || {
        plexus(&lab, &["get", "pods", "-n", "team-a"])
            .out
            .contains("Running")
    });
    let real = lab.ok(&[
        "exec",
        "web",
        "-n",
        "team-a",
        "--",
        "sh",
        "-ec",
        INSPECT_SCRIPT,
    ]);
    let uplink = lab.ok(&[
        "exec", "--node", "n1", "--", "ip", "-o", "link", "show", "eth0",
    ]);
    let mut words = uplink.split_whitespace().skip_while(|word| *word != "mtu");
    let mtu = words.nth(1).expect("a link has an MTU").to_owned();
    let planned = ok(
        &lab,
        &[
            "plan",
            "-f",
            &networks,
            "-f",
            &written,
            "--node-ip",
            "10.200.0.1",
            "--mtu",
            mtu.trim(),
            "--pod-cidrs",
            "10.244.0.0/16,fd00:244::/56",
            "--cluster-cidrs",
            "10.244.0.0/16",
        ],
    );
    fs::remove_file(&file).unwrap();

    let mut scratch = Scratch { names: Vec::new() };
    let (node, inside) = (scratch.add("node"), scratch.add("pod"));
    sh(&format!(
        "ip -n {node} link add eth0 mtu {0} type veth peer name far0\nip -n {node} link add eth1 mtu {0} type veth peer name far1\n\
         ip -n {node} address add 10.200.0.1/24 dev eth0\nfor i in eth0 eth1 far0 far1; do ip -n {node} link set $i up; done",
        mtu.trim()
    ));
    let router = scratch.add("router");
    let on_node = |script: &str| lab.ok(&["exec", "--node", "n1", "--", "sh", "-ec", script]);
    let in_pod = |script: &str| lab.ok(&["exec", "web", "-n", "team-a", "--", "sh", "-ec", script]);
    let named = planned
        .split_whitespace()
        .find(|word| word.starts_with("px-") && word.len() == 19)
        .expect("an overlay has a router");
    let mut commands = String::new();
    for line in planned.lines() {
        let made_above = line.starts_with("ip netns add");
        if line.is_empty() || line.starts_with('#') || made_above {
            continue;
        }
        let line = line
            .replace(" pod ", &format!(" {inside} "))
            .replace(named, &router)
            .replace(&format!("plexus 1 {inside} "), "plexus 1 pod ");
        commands.push_str(&line);
        commands.push('\n');
    }
    sh(&format!(
        "ip netns exec {node} sh -ec '{}'",
        commands.replace('\'', "'\\''")
    ));
    let made = sh(&format!(
        "ip netns exec {inside} sh -ec '{}'",
        INSPECT_SCRIPT.replace('\'', "'\\''")
    ));
    let rules = sh(&format!("ip netns exec {node} nft list table inet plexus"));
    for rule in [
        "masquerade comment",
        "fib daddr type local tcp dport 8080 dnat ip to 10.244.",
        "ip daddr 10.200.0.1 fib daddr type local tcp dport 8081 dnat ip to 10.244.",
        "ip daddr 127.0.0.1 tcp dport 8080 dnat ip to 10.244.",
    ] {
        assert!(rules.contains(rule), "no {rule:?} in {rules}\n{planned}");
    }
    // They are in chains that a node has.
    for chain in [
        "postrouting",
        "ports-guard",
        "ports-in",
        "ports-out",
        "ports-back",
    ] {
        let list = ["nft", "list", "chain", "inet", "plexus", chain];
        let words = [&["exec", "--node", "n1", "--"][..], &list].concat();
        let theirs = hook(&lab.ok(&words));
        let planned = hook(&sh(&format!("ip netns exec {node} {}", list.join(" "))));
        assert_eq!(planned, theirs, "{chain}");
    }
    // By one link of the node its loopback leads to the pod.
    let opened = "cat /proc/sys/net/ipv4/conf/px*/route_localnet | grep -c 1";
    let theirs = lab.ok(&["exec", "--node", "n1", "--", "sh", "-ec", opened]);
    let planned_too = sh(&format!("ip netns exec {node} sh -ec '{opened}'"));
    assert_eq!((theirs.trim(), planned_too.trim()), ("1", "1"));
    let planned_node = |script: &str| {
        let script = script.replace('\'', "'\\''");
        sh(&format!("ip netns exec {node} sh -ec '{script}'"))
    };
    compare_node(&on_node, &planned_node, &planned);
    compare_sysctls((&on_node, &in_pod), &planned_node, &planned);
    let (real, made) = (normal(&real), normal(&made));
    assert!(real.len() > 20, "{real:#?}");
    assert_eq!(made, real, "planned:\n{planned}");
}
