//! Podman with its CNI backend on a node, and a container image of busybox alone.

use plexus_testkit::{Node, Running, run};
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// More than any call takes.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const IMAGE: &str = "localhost/busybox";

/// Podman on a node, with everything of its own below the node's directory. Leaves no container
/// and no mount behind, whatever becomes of the test.
pub(crate) struct Podman<'n> {
    node: &'n Node,
}

impl<'n> Podman<'n> {
    pub(crate) fn on(node: &'n Node) -> Self {
        settings(node, &node.cni_bin(), &node.cni_conf());
        let podman = Self { node };
        podman.run(&["import", &image(node).to_string_lossy(), IMAGE]);
        podman
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
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
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.start(arguments).wait(COMMAND_TIMEOUT);
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
    pub(crate) fn container(&self, name: &str, network: &str) {
        let usual = ["run", "--detach", "--name", name, "--network", network];
        self.run(&[&usual[..], &[IMAGE, "/bin/sleep", "1000"]].concat());
    }

    /// The addresses that Podman believes a container to have on a network.
    pub(crate) fn address(&self, name: &str, network: &str) -> String {
        let text = self.run(&["inspect", name]);
        let inspected: Value = serde_json::from_str(&text).unwrap();
        let one = &inspected[0]["NetworkSettings"]["Networks"][network];
        one["IPAddress"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether a container reaches an address.
    /// Whether `address` answers a ping from inside within some seconds: a neighbour may have to be found first.
    pub(crate) fn pings(&self, name: &str, address: &str) -> bool {
        let script = format!(
            "for i in 1 2 3 4 5 6 7 8; do ping -c 1 -W 1 {address} && exit; sleep 0.2; done; exit 1"
        );
        let ping = ["exec", name, "/bin/sh", "-c", &script];
        self.start(&ping).wait(COMMAND_TIMEOUT).status.success()
    }

    /// Whether `address` answers none of two pings from inside.
    pub(crate) fn silent(&self, name: &str, address: &str) -> bool {
        let script = format!("! ping -c 1 -W 1 {address} && ! ping -c 1 -W 1 {address}");
        let ping = ["exec", name, "/bin/sh", "-c", &script];
        self.start(&ping).wait(COMMAND_TIMEOUT).status.success()
    }
}

impl Drop for Podman<'_> {
    fn drop(&mut self) {
        let all = self.start(&["rm", "--force", "--all", "--time", "0"]);
        if all.ended_within(COMMAND_TIMEOUT).is_none() {
            all.kill();
        }
    }
}

/// Writes what Podman must know on any machine into the node's `containers.conf`.
pub(crate) fn settings(node: &Node, plugins: &Path, networks: &Path) {
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
        plugins.display(),
        networks.display()
    );
    std::fs::write(node.file("containers.conf"), text).unwrap();
}

/// The root file system of a container, as an archive: busybox and nothing else.
pub(crate) fn image(node: &Node) -> PathBuf {
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
