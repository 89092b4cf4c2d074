//! `plexus up` with Podman: networks by name, two per container, while everything comes and goes;
//! and that nothing stays behind after `plexus down`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod common;
mod interop;

use common::{TIMEOUT, eventually, plexus};
use interop::podman::Podman;
use plexus_testkit::{Dump, DumpBuilder, Node, Up, config};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const GROUP: &str = "/apis/plexus.dev/v1alpha1";

fn networks(up: &Up<'_>) {
    let routed = json!({"provider": "routed", "snat": true,
        "subnets": {"a": {"cidr": "10.62.0.0/24"}}});
    up.network("default/fabric", &routed, "fabric");
    let overlay = |cidr: &str| json!({"subnets": {"a": {"cidr": cidr}}});
    up.network("default/blue", &overlay("10.61.0.0/24"), "blue");
    let team = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}});
    up.create("/api/v1/namespaces", &team);
    // The same addresses, in another namespace.
    up.network("team-a/blue", &overlay("10.61.0.0/24"), "team-a.blue");
}

fn both(name: &str) -> String {
    format!("default/{name}: 0/2 eth0 fabric, 1/2 eth1 blue")
}

/// A container on two networks, the first of which has the way out.
fn container(podman: &Podman<'_>, name: &str) {
    let usual = ["run", "--detach", "--name", name];
    let nets = [
        "--network",
        "fabric:interface_name=eth0",
        "--network",
        "blue:interface_name=eth1",
    ];
    let sleep = [interop::podman::IMAGE, "/bin/sleep", "1000"];
    podman.run(&[&usual[..], &nets[..], &sleep[..]].concat());
}

#[track_caller]
fn assert_connected(podman: &Podman<'_>) {
    for (from, to) in [("one", "two"), ("two", "one")] {
        for network in ["fabric", "blue"] {
            let address = podman.address(to, network);
            assert!(
                podman.pings(from, &address),
                "{from} to {to} on {network}: {address}"
            );
        }
    }
    assert!(podman.pings("one", "192.0.2.1"), "the outside");
}

#[test]
fn networks_by_name_while_everything_comes_and_goes() {
    let node = Node::new();
    // These every machine has.
    for directory in ["root/run", "root/etc"] {
        std::fs::create_dir_all(node.file(directory)).unwrap();
    }
    let before = Traces::of(&node);
    let up = Up::start(&node);
    networks(&up);
    let podman = Podman::on(&node);
    for name in ["one", "two"] {
        container(&podman, name);
    }
    podman.container("other", "team-a.blue");
    assert_connected(&podman);
    let theirs = podman.address("two", "blue");
    assert_ne!(theirs, podman.address("other", "team-a.blue"));
    assert!(
        podman.silent("other", &theirs),
        "networks of two namespaces are apart"
    );
    let other = "team-a/other: 0/1 eth0 blue".to_owned();
    eventually("each container has its record", || {
        up.records() == [both("one"), both("two"), other.clone()]
    });
    // By its name and by its id, which nobody types whole.
    let id = podman.run(&["inspect", "--format", "{{.Id}}", "one"]);
    for (verb, named, expected) in [
        ("diagnose", "one", "Container default/one on node"),
        ("diagnose", "one", "eth1 on default/blue"),
        ("describe", &id[..12], "Container default/one\n"),
        ("describe", &id[..12], "Network default/blue, identity "),
    ] {
        let listed = plexus(&node, &[verb, "pod", named]);
        let printed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(printed.contains(expected), "{verb} {named}: {printed}");
    }
    let second = Up::command(&node, "up").output().unwrap();
    let printed = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        !second.status.success() && printed.contains("plexus up runs already"),
        "{printed}"
    );

    // Killed: containers need nobody to talk. Stopped meanwhile: the next one does what was left.
    up.kill();
    assert!(podman.pings("one", &podman.address("two", "blue")));
    podman.run(&["stop", "--time", "0", "two"]);
    let up = Up::start(&node);
    eventually("the record of what went meanwhile is released", || {
        up.records() == [both("one"), other.clone()]
    });
    podman.run(&["start", "two"]);
    assert_connected(&podman);

    // Stopped in order, and everything stopped with it.
    podman.run(&["stop", "--time", "0", "one"]);
    assert!(up.stop().success());
    let up = Up::start(&node);
    podman.run(&["start", "one"]);
    assert_connected(&podman);
    eventually("all records are true again", || {
        up.records() == [both("one"), both("two"), other.clone()]
    });

    // Its namespace is another one afterwards.
    podman.run(&["restart", "--time", "0", "two"]);
    assert_connected(&podman);
    eventually("its record is that of the restarted one", || {
        up.records() == [both("one"), both("two"), other.clone()]
    });

    let refused = Up::down(&node, &[]);
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && printed.contains("--force"),
        "{printed}"
    );
    assert!(
        podman.pings("one", "192.0.2.1"),
        "a refused down takes nothing away"
    );
    podman.run(&["rm", "--force", "--time", "0", "one", "two", "other"]);
    eventually("rm releases every record", || up.records().is_empty());
    up.api(
        "DELETE",
        &format!("{GROUP}/namespaces/team-a/networks/blue"),
        None,
    );
    let file = node.cni_conf().join("plexus-team-a.blue.conflist");
    eventually("a Network's file goes with it", || !file.exists());
    drop(podman);
    assert_gone_after_down(&node, up, &before);
}

/// Bridges, rules for ports, host-local's files.
#[test]
fn nothing_stays_of_what_networks_keep_on_the_node() {
    let node = Node::new();
    for directory in ["root/run", "root/etc"] {
        std::fs::create_dir_all(node.file(directory)).unwrap();
    }
    let before = Traces::of(&node);
    let up = Up::start(&node);
    networks(&up);
    let config = json!({"bridge": "px-lan", "isGateway": true, "ipMasq": true});
    let lan = json!({"provider": "bridge", "config": config,
        "subnets": {"a": {"cidr": "10.63.0.0/24"}}});
    up.network("default/lan", &lan, "lan");
    let podman = Podman::on(&node);
    let usual = ["run", "--detach", "--name", "web", "--network", "lan"];
    let serves = ["/bin/busybox", "httpd", "-f", "-p", "80", "-h", "/bin"];
    let ports = ["-p", "8080:80", interop::podman::IMAGE];
    podman.run(&[&usual[..], &ports[..], &serves[..]].concat());
    podman.container("overlay", "blue");
    let ask =
        "curl -s -o /dev/null -w '%{http_code}' --max-time 10 http://192.0.2.2:8080/sh || true";
    eventually("the port leads to the container", || {
        node.outside().sh(ask).contains("200")
    });
    let (macvlan, config) = (node.pod("c1"), config::macvlan(&node));
    macvlan.add(&config);
    let files = node.pools().join("blue");
    assert!(files.join("lock").exists() && files.join("last_reserved_ip.0").exists());
    let refused = Up::down(&node, &[]);
    assert!(!refused.status.success(), "containers run");
    assert!(
        files.join("lock").exists(),
        "a refused down takes nothing away"
    );
    macvlan.del(&config);
    podman.run(&["rm", "--force", "--time", "0", "web", "overlay"]);
    eventually("rm releases every record", || up.records().is_empty());
    drop(podman);
    assert_gone_after_down(&node, up, &before);
}

/// A container whose namespace vanished while nobody served it.
#[test]
fn a_container_that_died_unseen_is_released() {
    let node = Node::new();
    let up = Up::start(&node);
    networks(&up);
    let text = std::fs::read_to_string(node.cni_conf().join("plexus-fabric.conflist")).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    let mut config = list["plugins"][0].clone();
    config["name"] = list["name"].clone();
    config["cniVersion"] = "1.1.0".into();
    let pod = node.pod("c1");
    let result = pod.add(&config);
    let address = result["ips"][0]["address"].as_str().unwrap().to_owned();
    assert!(
        address.starts_with("10.62.0.") && address.ends_with("/32"),
        "{result}"
    );
    let fabric = "default/c1: 0/1 eth0 fabric";
    eventually("it has a record", || up.records() == [fabric]);
    // The whole network for pods, for a container that is none.
    let plexus = std::fs::read_to_string(node.cni_conf().join("00-plexus.conflist")).unwrap();
    let plexus: Value = serde_json::from_str(&plexus).unwrap();
    let mut for_pods = plexus["plugins"][0].clone();
    for_pods["name"] = "plexus".into();
    for_pods["cniVersion"] = "1.1.0".into();
    let plain = node.pod("c2");
    let result = plain.add(&for_pods);
    let address = result["ips"][0]["address"].as_str().unwrap();
    assert!(address.starts_with("10.245."), "{result}");
    assert!(
        plain.ns().pings("192.0.2.1"),
        "the default network leads out"
    );
    let default = "default/c2: 0/1 eth0 cluster-default";
    eventually("it has a record too", || up.records() == [fabric, default]);
    up.kill();
    drop(pod);
    let up = Up::start(&node);
    eventually("the dead one's record is released", || {
        up.records() == [default]
    });
    plain.del(&for_pods);
    eventually("the other one's on DEL", || up.records().is_empty());
}

/// What the runtime asks for one container: ports, addresses, MACs, the default network.
#[test]
fn what_is_asked_for_one_container() {
    let node = Node::new();
    let up = Up::start(&node);
    networks(&up);
    let podman = Podman::on(&node);
    let words = |name: &'static str, network: &'static str, flags: &[&'static str]| {
        let usual = ["run", "--detach", "--name", name, "--network", network];
        [&usual[..], flags, &[interop::podman::IMAGE]].concat()
    };
    let run_on = |name, network, flags: &[&'static str], command: &[&'static str]| {
        podman.run(&[&words(name, network, flags)[..], command].concat());
    };
    let refused_on = |name, network, flags: &[&'static str]| {
        let command = ["/bin/sleep", "1000"];
        let running = podman.start(&[&words(name, network, flags)[..], &command].concat());
        let output = running.wait(TIMEOUT);
        assert!(!output.status.success(), "{name} runs");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let sleep = ["/bin/sleep", "1000"];
    let inside =
        |name: &str| podman.run(&["exec", name, "/bin/ip", "address", "show", "dev", "eth0"]);

    let fixed = ["--ip", "10.62.0.77", "--mac-address", "02:00:00:00:00:77"];
    run_on("fixed", "fabric", &fixed, &sleep);
    let seen = inside("fixed");
    assert!(
        seen.contains("10.62.0.77/32") && seen.contains("02:00:00:00:00:77"),
        "{seen}"
    );
    assert!(podman.pings("fixed", "192.0.2.1"), "the outside");
    let fixed = ["--ip", "10.61.0.77"];
    run_on("overlay", "blue", &fixed, &sleep);
    let seen = inside("overlay");
    assert!(seen.contains("10.61.0.77/"), "{seen}");
    let printed = refused_on("second", "blue", &fixed);
    assert!(printed.contains("10.61.0.77"), "{printed}");

    run_on("plain", "plexus", &[], &sleep);
    let seen = inside("plain");
    assert!(seen.contains("inet 10.245."), "{seen}");
    assert!(
        podman.pings("plain", "192.0.2.1"),
        "the default network leads out"
    );

    let serves = ["/bin/busybox", "httpd", "-f", "-p", "80", "-h", "/bin"];
    run_on("web", "fabric", &["-p", "8080:80"], &serves);
    let from_outside =
        "curl -s -o /dev/null -w '%{http_code}' --max-time 10 http://192.0.2.2:8080/sh || true";
    eventually("the port leads to the container", || {
        node.outside().sh(from_outside).contains("200")
    });
    let on_the_host = from_outside.replace("192.0.2.2", "127.0.0.1");
    assert_eq!(node.ns().sh(&on_the_host).trim(), "200");
    node.ns().sh("nft flush ruleset");
    eventually("the port is back after somebody flushed the rules", || {
        node.ns().sh(&on_the_host).contains("200")
    });
    let printed = refused_on("hidden", "blue", &["-p", "8081:80"]);
    assert!(printed.contains("port"), "{printed}");
}

/// Everything that could be left behind: of the kernel the node's links, addresses, routes, rules, firewall
/// and settings; files, directories and mounts.
struct Traces {
    kernel: Dump,
    paths: BTreeSet<String>,
    mounts: Vec<String>,
}

impl Traces {
    fn of(node: &Node) -> Self {
        let kernel = DumpBuilder::new().namespace("node", node.ns()).take();
        let directory = node.file("");
        let directory = directory.to_string_lossy().into_owned();
        let mut paths = BTreeSet::new();
        paths_below(Path::new(&directory), &mut paths);
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let mounts = mounts.lines().filter(|line| line.contains(&directory));
        Self {
            // Others may rely on forwarding by now, and nobody can ask them. With it the kernel itself
            // no longer takes redirects.
            kernel: kernel.without(|line| {
                let words = [
                    "ip_forward",
                    "/forwarding",
                    "ipv4/conf/all/accept_redirects",
                ];
                words.iter().any(|word| line.contains(word))
            }),
            paths,
            mounts: mounts.map(str::to_owned).collect(),
        }
    }
}

/// All files and directories below one, but for the test's and Podman's own.
fn paths_below(directory: &Path, paths: &mut BTreeSet<String>) {
    const THEIRS: [&str; 5] = [
        "podman-",
        "rootfs",
        "containers.conf",
        "cni.lock",
        "agent.log",
    ];
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if THEIRS.iter().any(|theirs| name.starts_with(theirs)) {
            continue;
        }
        paths.insert(entry.path().display().to_string());
        if entry.file_type().unwrap().is_dir() {
            paths_below(&entry.path(), paths);
        }
    }
}

/// `plexus down` leaves nothing behind that was not there before.
fn assert_gone_after_down(node: &Node, mut up: Up<'_>, before: &Traces) {
    let served = Traces::of(node);
    assert!(
        served.kernel.has("plexus") && !served.mounts.is_empty(),
        "a test that sees nothing"
    );
    let down = Up::down(node, &[]);
    let printed = String::from_utf8_lossy(&down.stderr).into_owned();
    assert!(down.status.success(), "{printed}");
    assert!(
        up.wait_exit().is_some_and(|status| status.success()),
        "down stops it"
    );
    let after = Traces::of(node);
    before.kernel.assert_same(&after.kernel, "of the kernel");
    let left: Vec<&String> = after.paths.difference(&before.paths).collect();
    assert_eq!(left, [""; 0], "files and directories");
    assert_eq!(after.mounts, before.mounts, "mounts");
    let again = Up::down(node, &[]);
    assert!(again.status.success(), "it may be repeated");
}
