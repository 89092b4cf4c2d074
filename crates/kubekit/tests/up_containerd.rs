//! `plexus up` with containerd: pod sandboxes that no Kubernetes knows, made with `crictl`, on
//! networks that their annotations name, while everything comes and goes.
#![cfg(feature = "e2e")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use plexus_kubekit::tools::Tools;
use plexus_testkit::{Node, Running, Up, run, within};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// More than any call takes.
const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: &str = "localhost/pause:1";

#[track_caller]
fn soon(what: &str, question: impl FnMut() -> bool) {
    assert!(within(LIMIT, question), "not within {LIMIT:?}: {what}");
}

/// A containerd on a node, with everything of its own below the node's directory.
struct Containerd<'n> {
    node: &'n Node,
    tools: Tools,
    child: Child,
}

impl<'n> Containerd<'n> {
    fn start(node: &'n Node) -> Self {
        let tools = Tools::find().expect("the tools of a cluster: make kube-tools");
        std::fs::write(node.file("containerd.toml"), config(node, &tools)).unwrap();
        let child = spawn(node, &tools);
        let containerd = Self { node, tools, child };
        containerd.wait();
        containerd.import();
        containerd
    }

    /// SIGKILL; sandboxes stay.
    fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(self.node, &self.tools);
        self.wait();
    }

    fn wait(&self) {
        soon("containerd answers", || {
            self.tool("ctr", &["version"]).wait(LIMIT).status.success()
        });
        soon("its CRI answers", || {
            self.crictl(&["version"]).wait(LIMIT).status.success()
        });
    }

    /// An image that sleeps: for sandboxes, whose process does nothing else.
    fn import(&self) {
        let root = self.node.file("pause");
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::copy("/bin/busybox", root.join("bin/busybox")).unwrap();
        symlink("busybox", root.join("bin/sleep")).unwrap();
        let text = |path: PathBuf| path.display().to_string();
        let layer = text(self.node.file("layer.tar"));
        run("tar", &["-C", &text(root), "-cf", &layer, "."]);
        let sum = |file: &str| {
            run("sha256sum", &[file])
                .split(' ')
                .next()
                .unwrap()
                .to_owned()
        };
        let config = json!({"architecture": "amd64", "os": "linux",
            "config": {"Entrypoint": ["/bin/sleep", "100000"]},
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sum(&layer))]}});
        std::fs::write(self.node.file("config.json"), config.to_string()).unwrap();
        let manifest =
            json!([{"Config": "config.json", "RepoTags": [PAUSE], "Layers": ["layer.tar"]}]);
        std::fs::write(self.node.file("manifest.json"), manifest.to_string()).unwrap();
        let archive = text(self.node.file("pause-image.tar"));
        let dir = text(self.node.file(""));
        let parts = ["manifest.json", "config.json", "layer.tar"];
        run(
            "tar",
            &[&["-C", &dir, "-cf", &archive][..], &parts[..]].concat(),
        );
        let import = ["-n", "k8s.io", "images", "import", "--local", &archive];
        self.ok(self.tool("ctr", &import), "the image");
    }

    fn tool(&self, name: &str, arguments: &[&str]) -> Running {
        let mut command = Command::new(self.tools.containerd.join(name));
        command
            .arg("--address")
            .arg(socket(self.node))
            .args(arguments);
        let what = format!("{name} {}", arguments.join(" "));
        Running::start(self.node.ns(), &what, command, Vec::new())
    }

    fn crictl(&self, arguments: &[&str]) -> Running {
        let endpoint = format!("unix://{}", socket(self.node).display());
        let mut command = Command::new(self.tools.crictl.join("crictl"));
        command
            .args([
                "--runtime-endpoint",
                &endpoint,
                "--image-endpoint",
                &endpoint,
            ])
            .args(["--timeout", "30s"])
            .args(arguments);
        let what = format!("crictl {}", arguments.join(" "));
        Running::start(self.node.ns(), &what, command, Vec::new())
    }

    #[track_caller]
    fn ok(&self, running: Running, what: &str) -> String {
        let output = running.wait(LIMIT);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{what}: {error}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A sandbox on two networks; its id.
    #[track_caller]
    fn sandbox(&self, name: &str) -> String {
        let config = json!({
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "attempt": 1},
            "log_directory": self.node.file("logs"),
            "annotations": {"plexus.dev/networks": "fabric,blue"},
            "linux": {"cgroup_parent": format!("/{}", self.node.name())},
        });
        let file = self.node.file(&format!("sandbox-{name}.json"));
        std::fs::write(&file, config.to_string()).unwrap();
        self.ok(self.crictl(&["runp", &file.display().to_string()]), name)
    }
}

impl Drop for Containerd<'_> {
    fn drop(&mut self) {
        let _ = self
            .crictl(&["rmp", "--force", "--all"])
            .ended_within(LIMIT);
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Everything that runs in the node's namespace is this test's: shims, should any be left.
        let (ns, dir) = (self.node.ns().name(), self.node.file("containerd"));
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        let ours: Vec<&str> = places
            .filter(|place| dir.to_str().is_some_and(|dir| place.starts_with(dir)))
            .collect();
        let shims = format!(
            "for p in $(ip netns pids {ns}); do grep -q containerd-shim /proc/$p/cmdline && kill -9 $p; done; true"
        );
        let _ = Command::new("sh").args(["-c", &shims]).status();
        for place in ours.iter().rev() {
            let _ = Command::new("umount").args(["-l", place]).status();
        }
        let cgroups = format!("rmdir /sys/fs/cgroup/*/{ns} /sys/fs/cgroup/{ns} 2>/dev/null");
        let _ = Command::new("sh").args(["-c", &cgroups]).status();
    }
}

fn spawn(node: &Node, tools: &Tools) -> Child {
    let log = || {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(node.file("containerd.log"))
    };
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(tools.containerd.join("containerd"));
    command
        .arg("--config")
        .arg(node.file("containerd.toml"))
        .env("PATH", format!("{}:{path}", tools.containerd.display()))
        .stdin(Stdio::null())
        .stdout(log().unwrap())
        .stderr(log().unwrap());
    node.ns().enter(|| command.spawn()).unwrap()
}

fn socket(node: &Node) -> PathBuf {
    node.file("containerd/c.sock")
}

fn config(node: &Node, tools: &Tools) -> String {
    let dir = node.file("containerd");
    let (bin, conf) = (node.cni_bin(), node.cni_conf());
    format!(
        r#"version = 4
root = '{dir}/root'
state = '{dir}/state'

[plugins.'io.containerd.server.v1.grpc']
  address = '{socket}'
[plugins.'io.containerd.server.v1.ttrpc']
  address = '{socket}.ttrpc'
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'native'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '{PAUSE}'
[plugins.'io.containerd.cri.v1.runtime']
  enable_unprivileged_ports = false
  enable_unprivileged_icmp = false
  restrict_oom_score_adj = true
  enable_cdi = false
  netns_mounts_under_state_dir = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['{bin}']
    conf_dir = '{conf}'
    use_internal_loopback = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = '{runc}'
      SystemdCgroup = false
[plugins.'io.containerd.nri.v1.nri']
  disable = true
"#,
        dir = dir.display(),
        socket = socket(node).display(),
        bin = bin.display(),
        conf = conf.display(),
        runc = tools.runc.display(),
    )
}

/// Address and namespace of a sandbox's interface, as the agent has it.
#[track_caller]
fn address(up: &Up<'_>, sandbox: &str, interface: &str) -> (String, String) {
    let all = up.attachments();
    let is_it = |one: &&Value| one["container"] == sandbox && one["interface"] == interface;
    let found = all
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {interface}: {all:?}"));
    let ip = found["ips"][0].as_str().unwrap().split('/').next().unwrap();
    (ip.to_owned(), found["netns"].as_str().unwrap().to_owned())
}

#[track_caller]
fn assert_connected(node: &Node, up: &Up<'_>, one: &str, two: &str) {
    for interface in ["eth0", "net1", "net2"] {
        let (_, netns) = address(up, one, interface);
        let (there, _) = address(up, two, interface);
        let ping = format!("nsenter --net={netns} ping -c 1 -W 2 {there}");
        assert!(
            node.ns().try_sh(&format!("{ping} || {ping}")),
            "{one} to {two} on {interface}: {there}"
        );
    }
}

fn record(name: &str) -> String {
    format!("default/{name}: 0/3 eth0 cluster-default, 1/3 net1 fabric, 2/3 net2 blue")
}

#[test]
fn sandboxes_on_two_networks_while_everything_comes_and_goes() {
    let node = Node::new();
    let up = Up::start(&node);
    let routed = json!({"provider": "routed", "subnets": {"a": {"cidr": "10.62.0.0/24"}}});
    up.network("default/fabric", &routed, "fabric");
    up.network(
        "default/blue",
        &json!({"subnets": {"a": {"cidr": "10.61.0.0/24"}}}),
        "blue",
    );
    let mut containerd = Containerd::start(&node);
    let (one, two) = (containerd.sandbox("one"), containerd.sandbox("two"));
    assert_connected(&node, &up, &one, &two);
    soon("each sandbox has its record", || {
        up.records() == [record("one"), record("two")]
    });

    // Everything killed; one sandbox goes while nobody serves it.
    up.kill();
    containerd.restart();
    containerd.ok(
        containerd.crictl(&["stopp", &two]),
        "stopped without an agent",
    );
    let up = Up::start(&node);
    soon("what went meanwhile is released", || {
        up.records() == [record("one")]
    });
    containerd.ok(containerd.crictl(&["rmp", &two]), "removed");
    let two = containerd.sandbox("two");
    assert_connected(&node, &up, &one, &two);
    assert_connected(&node, &up, &two, &one);

    // Stopped in order, and the sandboxes with it.
    assert!(up.stop().success());
    let up = Up::start(&node);
    assert_connected(&node, &up, &one, &two);
    soon("records are as before", || {
        up.records() == [record("one"), record("two")]
    });
    containerd.ok(
        containerd.crictl(&["rmp", "--force", "--all"]),
        "all removed",
    );
    soon("nothing is left", || {
        up.records().is_empty() && up.attachments().is_empty()
    });
}
