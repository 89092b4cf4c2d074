//! Containers, made with `nerdctl`: it finds networks by name, two per container.

use super::containerd::{Containerd, IMAGE, socket};
use super::{TIMEOUT, eventually, networks};
use plexus_testkit::{Node, Running, Up};
use serde_json::Value;
use std::process::Command;

/// nerdctl and its containerd, with everything of their own below the node's directory.
struct Nerdctl<'n> {
    containerd: Containerd<'n>,
}

impl<'n> Nerdctl<'n> {
    fn on(node: &'n Node) -> Self {
        let containerd = Containerd::start(node);
        // It insists on a network of its own, of the plugin `bridge`, whatever a container names.
        let (from, to) = (&containerd.tools.cni_plugins, node.cni_bin());
        for plugin in ["bridge", "host-local", "portmap", "firewall", "tuning"] {
            std::fs::copy(from.join(plugin), to.join(plugin)).unwrap();
        }
        let nerdctl = Self { containerd };
        let archive = node.file("image.tar");
        nerdctl.run(&["load", "--input", &archive.display().to_string()]);
        nerdctl
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let (node, tools) = (self.containerd.node, &self.containerd.tools);
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(tools.nerdctl.join("nerdctl"));
        command
            .arg("--address")
            .arg(socket(node))
            .arg("--cni-path")
            .arg(node.cni_bin())
            .arg("--cni-netconfpath")
            .arg(node.cni_conf())
            .arg("--data-root")
            .arg(node.file("containerd/nerdctl"))
            .args(["--snapshotter", "native", "--cgroup-manager", "cgroupfs"])
            .args(arguments)
            // Its hooks look for programs too.
            .env(
                "PATH",
                format!("{}:{path}:/usr/sbin", tools.containerd.display()),
            );
        let what = format!("nerdctl {}", arguments.join(" "));
        Running::start(node.ns(), &what, command, Vec::new())
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        self.containerd.ok(
            self.start(arguments),
            &format!("nerdctl {}", arguments.join(" ")),
        )
    }

    /// A container on two networks, with more flags; its id.
    #[track_caller]
    fn container(&self, name: &str, flags: &[&str]) -> String {
        let parent = format!("/{}", self.containerd.node.name());
        let usual = [
            "run",
            "--detach",
            "--name",
            name,
            "--cgroup-parent",
            &parent,
        ];
        let nets = ["--net", "fabric", "--net", "blue"];
        self.run(&[&usual[..], &nets, flags, &[IMAGE]].concat())
    }

    fn pings(&self, name: &str, address: &str) -> bool {
        let script = format!("ping -c 1 -W 2 {address} || ping -c 1 -W 5 {address}");
        let ping = ["exec", name, "/bin/sh", "-c", &script];
        self.start(&ping).wait(TIMEOUT).status.success()
    }
}

impl Drop for Nerdctl<'_> {
    fn drop(&mut self) {
        for name in ["one", "two"] {
            let _ = self.start(&["rm", "--force", name]).ended_within(TIMEOUT);
        }
    }
}

/// The record of the container whose id nerdctl shows: its name is as much of it as people read.
fn record(id: &str) -> String {
    format!("default/{}: 0/2 eth0 fabric, 1/2 eth1 blue", &id[..12])
}

/// The address of a container on a network, as the agent has it.
#[track_caller]
fn address(up: &Up<'_>, id: &str, interface: &str) -> String {
    let all = up.attachments();
    let is_it = |one: &&Value| {
        let container = one["container"].as_str().unwrap_or_default();
        container.ends_with(id) && one["interface"] == interface
    };
    let found = all.iter().find(is_it);
    let found = found.unwrap_or_else(|| panic!("no {interface} of {id}: {all:?}"));
    let ip = found["ips"][0].as_str().unwrap();
    ip.split('/').next().unwrap().to_owned()
}

#[track_caller]
fn assert_connected(nerdctl: &Nerdctl<'_>, up: &Up<'_>, two: &str) {
    for interface in ["eth0", "eth1"] {
        let there = address(up, two, interface);
        assert!(nerdctl.pings("one", &there), "{interface}: {there}");
    }
}

#[track_caller]
fn assert_recorded(up: &Up<'_>, ids: &[&str]) {
    let mut expected: Vec<String> = ids.iter().map(|id| record(id)).collect();
    expected.sort();
    eventually("each container has its record, and nobody else", || {
        let mut records = up.records();
        records.sort();
        records == expected
    });
}

#[test]
fn containers_on_two_networks_while_everything_comes_and_goes() {
    let node = Node::new();
    let up = Up::start(&node);
    networks(&up);
    let mut nerdctl = Nerdctl::on(&node);
    let known = nerdctl.run(&["network", "ls", "--format", "{{.Name}}"]);
    for network in ["plexus", "fabric", "blue"] {
        assert!(known.lines().any(|name| name == network), "{known}");
    }
    let one = nerdctl.container("one", &[]);
    let two = nerdctl.container("two", &["--publish", "8080:80"]);
    assert_connected(&nerdctl, &up, &two);
    assert_recorded(&up, &[&one, &two]);
    let serve = ["exec", "--detach", "two", "/bin/sh", "-c"];
    nerdctl.run(&[&serve[..], &["while :; do echo hello | nc -l -p 80; done"]].concat());
    eventually("the published port answers", || {
        let ask = "exec 3<>/dev/tcp/192.0.2.2/8080 && timeout 2 head -n 1 <&3 | grep -q hello";
        node.ns().try_sh(&format!("bash -c '{ask}'"))
    });

    // Everything killed; one container goes while nobody serves it.
    up.kill();
    nerdctl.containerd.restart();
    nerdctl.run(&["rm", "--force", "two"]);
    let up = Up::start(&node);
    assert_recorded(&up, &[&one]);
    let two = nerdctl.container("two", &[]);
    assert_connected(&nerdctl, &up, &two);

    // A container that starts again is attached again.
    nerdctl.run(&["stop", "--time", "0", "one"]);
    assert_recorded(&up, &[&two]);
    nerdctl.run(&["start", "one"]);
    assert_connected(&nerdctl, &up, &two);
    assert_recorded(&up, &[&one, &two]);
    nerdctl.run(&["rm", "--force", "one", "two"]);
    eventually("nothing is left", || {
        up.records().is_empty() && up.attachments().is_empty()
    });
}
