//! `plexus plan` against the truth: its commands, run in namespaces of our own, make what a real ADD makes.

use crate::machine::Lab;
use crate::output::{example, ok, plexus};
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

/// Of a link: name, MTU, state, group and kind. Other lines as they are.
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
        "link {name} mtu {} kind {} mode {mode}",
        after("mtu"),
        kind.unwrap_or("-")
    )
}

/// Where a chain is, as `nft list chain` says.
fn hook(listed: &str) -> String {
    let mut lines = listed.lines().map(str::trim);
    let hook = lines.find(|line| line.starts_with("type "));
    hook.expect("a chain with a hook").to_owned()
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
    let (real, made) = (normal(&real), normal(&made));
    assert!(real.len() > 20, "{real:#?}");
    assert_eq!(made, real, "planned:\n{planned}");
}
