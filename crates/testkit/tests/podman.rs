//! Podman with its CNI backend: containers on two networks of ours, stopped, started again and
//! removed while the agent comes and goes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod interop;

use interop::{attachments, links};
use plexus_testkit::{Agent, Node, Running, config, eventually, run};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// More than any call takes.
const LIMIT: Duration = Duration::from_secs(30);
const IMAGE: &str = "localhost/busybox";

/// Podman on a node, with everything of its own below the node's directory. Leaves no container
/// and no mount behind, whatever becomes of the test.
struct Podman<'n> {
    node: &'n Node,
}

impl<'n> Podman<'n> {
    fn on(node: &'n Node) -> Self {
        let text = format!(
            "[containers]\n\
             default_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n\
             [engine]\n\
             runtime = \"runc\"\n\
             cgroup_manager = \"cgroupfs\"\n\
             events_logger = \"file\"\n\
             lock_type = \"file\"\n\
             [network]\n\
             network_backend = \"cni\"\n\
             cni_plugin_dirs = [\"{}\"]\n\
             network_config_dir = \"{}\"\n",
            node.cni_bin().display(),
            node.cni_conf().display()
        );
        std::fs::write(node.file("containers.conf"), text).unwrap();
        let podman = Self { node };
        podman.run(&["import", &image(node).to_string_lossy(), IMAGE]);
        podman
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let dir = |name: &str| self.node.file(&format!("podman-{name}"));
        let mut command = Command::new("podman");
        command
            .arg("--root")
            .arg(dir("root"))
            .arg("--runroot")
            .arg(dir("run"))
            .arg("--tmpdir")
            .arg(dir("tmp"))
            .args(["--storage-driver", "vfs"])
            .args(arguments)
            .env("CONTAINERS_CONF", self.node.file("containers.conf"));
        let what = format!("podman {}", arguments.join(" "));
        Running::start(self.node.ns(), &what, command, Vec::new())
    }

    /// What it prints; panics if it fails.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        let output = self.start(arguments).wait(LIMIT);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        assert!(
            output.status.success(),
            "podman {}: {error}",
            arguments.join(" ")
        );
        out
    }

    /// A container that sleeps.
    fn container(&self, name: &str, network: &str) {
        let usual = ["run", "--detach", "--name", name, "--network", network];
        self.run(&[&usual[..], &[IMAGE, "/bin/sleep", "1000"]].concat());
    }

    /// The addresses that Podman believes a container to have on a network.
    fn address(&self, name: &str, network: &str) -> String {
        let text = self.run(&["inspect", name]);
        let inspected: Value = serde_json::from_str(&text).unwrap();
        let one = &inspected[0]["NetworkSettings"]["Networks"][network];
        one["IPAddress"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether a container reaches an address.
    fn pings(&self, name: &str, address: &str) -> bool {
        let script = format!("ping -c 1 -W 1 {address} || ping -c 1 -W 2 {address}");
        let ping = ["exec", name, "/bin/sh", "-c", &script];
        self.start(&ping).wait(LIMIT).status.success()
    }
}

impl Drop for Podman<'_> {
    fn drop(&mut self) {
        let all = self.start(&["rm", "--force", "--all", "--time", "0"]);
        if all.ended_within(LIMIT).is_none() {
            all.kill();
        }
    }
}

/// The root file system of a container, as an archive: busybox and nothing else.
fn image(node: &Node) -> PathBuf {
    let (root, archive) = (node.file("rootfs"), node.file("rootfs.tar"));
    std::fs::create_dir_all(root.join("bin")).unwrap();
    std::fs::copy("/bin/busybox", root.join("bin/busybox")).unwrap();
    for name in ["sh", "sleep", "ping", "ip"] {
        symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    let (root, file) = (root.to_string_lossy(), archive.to_string_lossy());
    run("tar", &["-C", &root, "-cf", &file, "."]);
    archive
}

/// Podman 4.3 knows nothing newer than 1.0.0, and ignores a list that begins with 1.1.0.
fn networks(node: &Node) {
    let write = |name: &str, version: &str, plugin: Value| {
        let list = json!({"cniVersion": version, "cniVersions": [version, "1.1.0"], "name": name,
            "plugins": [plugin]});
        std::fs::write(
            node.cni_conf().join(format!("{name}.conflist")),
            list.to_string(),
        )
        .unwrap();
    };
    let capable = json!({"ips": true, "mac": true});
    write(
        "a",
        "1.0.0",
        json!({"type": "plexus-cni", "provider": "bridge", "bridge": "pxa", "capabilities": capable,
            "isDefaultGateway": true, "ipMasq": true, "ipam": config::host_local(node, "10.51.0.0/24")}),
    );
    write(
        "b",
        "0.4.0",
        json!({"type": "plexus-cni", "provider": "macvlan", "master": "eth1",
            "ipam": config::host_local(node, "10.52.0.0/24")}),
    );
}

fn reserved(node: &Node) -> Vec<String> {
    let dump = node.dump(None);
    let lines = dump.lines().filter(|line| line.starts_with("pools "));
    lines.map(str::to_owned).collect()
}

/// Every container reaches the other on each network, and the outside.
#[track_caller]
fn assert_connected(podman: &Podman<'_>) {
    for (from, to) in [("one", "two"), ("two", "one")] {
        for network in ["a", "b"] {
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
fn containers_on_two_networks_while_the_agent_comes_and_goes() {
    let node = interop::node();
    networks(&node);
    let before = links(node.ns());
    let agent = Agent::start(&node);
    let podman = Podman::on(&node);
    for name in ["one", "two"] {
        podman.container(name, "a,b");
        let shown = podman.run(&["exec", name, "/bin/ip", "-o", "-4", "address"]);
        // Podman goes through the networks in no particular order.
        for text in [" eth0 ", " eth1 ", " 10.51.0.", " 10.52.0."] {
            assert!(shown.contains(text), "{shown}");
        }
    }
    assert_eq!((attachments(&agent).len(), reserved(&node).len()), (4, 4));
    assert_connected(&podman);

    // Stopped with an agent, started again by another.
    podman.run(&["stop", "--time", "0", "one"]);
    eventually("stop frees what one had", || attachments(&agent).len() == 2);
    assert_eq!(reserved(&node).len(), 2);
    agent.stop();
    let agent = Agent::start(&node);
    assert!(
        podman.pings("two", "192.0.2.1"),
        "two has lost its networks"
    );
    podman.run(&["start", "one"]);
    assert_connected(&podman);

    // Stopped without an agent: the next one does what was left undone.
    agent.kill();
    assert!(
        podman.pings("two", &podman.address("one", "a")),
        "pods need no agent to talk"
    );
    podman.run(&["stop", "--time", "0", "two"]);
    let agent = Agent::start(&node);
    eventually("the queue is worked off", || attachments(&agent).len() == 2);
    assert_eq!(reserved(&node).len(), 2);
    podman.run(&["start", "two"]);
    assert_connected(&podman);

    let namespaces: Vec<String> = attachments(&agent)
        .iter()
        .filter_map(|one| Some(one["netns"].as_str()?.to_owned()))
        .collect();
    podman.run(&["rm", "--force", "--time", "0", "one", "two"]);
    eventually("rm frees everything", || attachments(&agent).is_empty());
    assert_eq!(reserved(&node), [""; 0]);
    for path in namespaces {
        assert!(!PathBuf::from(&path).exists(), "{path} is left");
    }
    let left: Vec<String> = links(node.ns());
    let left: Vec<&String> = left.iter().filter(|name| !before.contains(name)).collect();
    assert_eq!(
        left,
        ["pxa"],
        "a network keeps its bridge, and nothing else"
    );
}

/// What a user asks for one container: an address and a MAC.
#[test]
fn an_address_and_a_mac_are_asked_for() {
    let node = interop::node();
    networks(&node);
    let agent = Agent::start(&node);
    let podman = Podman::on(&node);
    podman.container("one", "a:ip=10.51.0.77,mac=02:00:00:00:00:77");
    assert_eq!(podman.address("one", "a"), "10.51.0.77");
    let shown = podman.run(&["exec", "one", "/bin/ip", "address", "show", "dev", "eth0"]);
    assert!(
        shown.contains("10.51.0.77/24") && shown.contains("02:00:00:00:00:77"),
        "{shown}"
    );
    assert!(podman.pings("one", "192.0.2.1"));
    // Whoever wants the same address is told so, and gets nothing.
    let second = [
        "run",
        "--name",
        "two",
        "--network",
        "a:ip=10.51.0.77",
        IMAGE,
        "/bin/sleep",
        "9",
    ];
    let refused = podman.start(&second).wait(LIMIT);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && text.contains("10.51.0.77"),
        "{text}"
    );
    assert_eq!(attachments(&agent).len(), 1);
    podman.run(&["rm", "--force", "--time", "0", "one"]);
    eventually("rm frees everything", || attachments(&agent).is_empty());
    assert_eq!(reserved(&node), [""; 0]);
}
