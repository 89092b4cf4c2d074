//! A containerd of the test's own.

use super::{TIMEOUT, eventually};
use plexus_kubekit::tools::Tools;
use plexus_testkit::{Node, Running, run};
use serde_json::json;
use std::fs::OpenOptions;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// What sandboxes and containers run.
pub(crate) const IMAGE: &str = "localhost/sleep:1";

/// A containerd on a node, with everything of its own below the node's directory.
pub(crate) struct Containerd<'n> {
    pub(crate) node: &'n Node,
    pub(crate) tools: Tools,
    child: Child,
}

impl<'n> Containerd<'n> {
    pub(crate) fn start(node: &'n Node) -> Self {
        let tools = Tools::find().expect("the tools of a cluster: make kube-tools");
        std::fs::write(node.file("containerd.toml"), config(node, &tools)).unwrap();
        let child = spawn(node, &tools);
        let containerd = Self { node, tools, child };
        containerd.wait();
        containerd.import();
        containerd
    }

    /// SIGKILL; sandboxes stay.
    pub(crate) fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(self.node, &self.tools);
        self.wait();
    }

    fn wait(&self) {
        eventually("containerd answers", || {
            self.tool("ctr", &["version"])
                .wait(TIMEOUT)
                .status
                .success()
        });
        eventually("its CRI answers", || {
            self.crictl(&["version"]).wait(TIMEOUT).status.success()
        });
    }

    /// An image that sleeps, and has little else.
    fn import(&self) {
        let root = self.node.file("image");
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::copy("/bin/busybox", root.join("bin/busybox")).unwrap();
        for name in ["sleep", "sh", "ping", "nc"] {
            symlink("busybox", root.join("bin").join(name)).unwrap();
        }
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
            json!([{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]);
        std::fs::write(self.node.file("manifest.json"), manifest.to_string()).unwrap();
        let archive = text(self.node.file("image.tar"));
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

    pub(crate) fn crictl(&self, arguments: &[&str]) -> Running {
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
    pub(crate) fn ok(&self, running: Running, what: &str) -> String {
        let output = running.wait(TIMEOUT);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{what}: {error}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for Containerd<'_> {
    fn drop(&mut self) {
        let _ = self
            .crictl(&["rmp", "--force", "--all"])
            .ended_within(TIMEOUT);
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Everything that runs in the node's namespace is this test's: shims, should any be left.
        let (ns, dir) = (self.node.ns().name(), self.node.file("containerd"));
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        let ours: Vec<&str> = places
            .filter(|path| dir.to_str().is_some_and(|dir| path.starts_with(dir)))
            .collect();
        let shims = format!(
            "for p in $(ip netns pids {ns}); do grep -q containerd-shim /proc/$p/cmdline && kill -9 $p; done; true"
        );
        let _ = Command::new("sh").args(["-c", &shims]).status();
        for path in ours.iter().rev() {
            let _ = Command::new("umount").args(["-l", path]).status();
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

pub(crate) fn socket(node: &Node) -> PathBuf {
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
    sandbox = '{IMAGE}'
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
