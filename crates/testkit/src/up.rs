//! `plexus up` as a process: started on a node, asked through its API, killed, started again.

use crate::process::{pid_of, within};
use crate::{Node, PLEXUS, Response, SHIM, bin, get, send};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

/// Longer than a start or a stop ever takes.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Where our own kinds are.
const GROUP: &str = "/apis/plexus.dev/v1alpha1";

/// A running `plexus up`; killed when dropped.
#[derive(Debug)]
pub struct Up<'n> {
    node: &'n Node,
    child: Child,
}

impl<'n> Up<'n> {
    /// Starts one on the node and waits until containers can be attached.
    pub fn start(node: &'n Node) -> Self {
        let mut command = Self::command(node, "up");
        command.args(["--node", node.name(), "--shim-source"]);
        command.arg(bin(SHIM));
        Self::spawn(node, command)
    }

    /// The same on a host of this name, which is all that it is told about its Node.
    pub fn start_on_host(node: &'n Node, hostname: &str) -> Self {
        let usual = Self::command(node, "up");
        let mut command = Command::new("unshare");
        command.args([
            "--uts",
            "sh",
            "-c",
            "hostname \"$0\" && exec \"$@\"",
            hostname,
        ]);
        command.arg(usual.get_program()).args(usual.get_args());
        command.env("KUBECONFIG", Self::kubeconfig(node));
        command.arg("--shim-source").arg(bin(SHIM));
        Self::spawn(node, command)
    }

    fn spawn(node: &'n Node, mut command: Command) -> Self {
        let open = || {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(node.log())
        };
        command
            .stdin(Stdio::null())
            .stdout(open().expect("opens the log"))
            .stderr(open().expect("opens the log"));
        let child = node.ns().enter(|| command.spawn()).expect("up starts");
        let mut up = Self { node, child };
        let first = node.cni_conf().join("00-plexus.conflist");
        let ready = within(START_TIMEOUT, || {
            let ended = up.child.try_wait().ok().flatten();
            assert!(ended.is_none(), "plexus up has ended: {ended:?}");
            let answer = get(&node.socket(), "/readyz");
            answer.is_some_and(|answer| answer.status == 200) && first.exists()
        });
        assert!(ready, "plexus up is not ready");
        up
    }

    /// `plexus up` or `down` with the node's places.
    pub fn command(node: &Node, verb: &str) -> Command {
        let mut command = Command::new(bin(PLEXUS));
        command.arg(verb);
        for (flag, network) in [
            ("--root", node.file("root")),
            ("--socket", node.socket()),
            ("--state-dir", node.state_dir()),
            ("--cni-bin-dir", node.cni_bin()),
            ("--cni-conf-dir", node.cni_conf()),
        ] {
            command.arg(flag).arg(network);
        }
        command.env_clear();
        command.env("KUBECONFIG", Self::kubeconfig(node));
        for name in ["PATH", "HOME", "RUST_BACKTRACE"] {
            if let Ok(value) = std::env::var(name) {
                command.env(name, value);
            }
        }
        command
    }

    /// `plexus down` with the node's places and further flags; what it says.
    pub fn down(node: &Node, flags: &[&str]) -> Output {
        let mut command = Self::command(node, "down");
        command.args(flags).stdin(Stdio::null());
        node.ns().enter(|| command.output()).expect("down runs")
    }

    /// The API's socket.
    pub fn api_socket(node: &Node) -> PathBuf {
        node.file("root/run/plexus/api.sock")
    }

    /// The kubeconfig that gets its context.
    pub fn kubeconfig(node: &Node) -> PathBuf {
        node.file("root/kubeconfig")
    }

    /// Asks the API; panics if nobody answers.
    pub fn api(&self, method: &str, path: &str, body: Option<&Value>) -> Response {
        let socket = Self::api_socket(self.node);
        let text = body.map(ToString::to_string).unwrap_or_default();
        send(&socket, method, path, text.as_bytes()).expect("the API answers")
    }

    /// Makes an object; panics if it is refused.
    pub fn create(&self, path: &str, object: &Value) -> Value {
        let answer = self.api("POST", path, Some(object));
        assert_eq!(answer.status, 201, "{path}: {}", answer.body);
        answer.json()
    }

    /// The objects of a list.
    pub fn list(&self, path: &str) -> Vec<Value> {
        let answer = self.api("GET", path, None);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let list = answer.json();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Makes a Network, `namespace/name`, and waits until it can be used and runtimes find it as
    /// `runtime_name`.
    #[track_caller]
    pub fn network(&self, network: &str, spec: &Value, runtime_name: &str) {
        let (namespace, name) = network.split_once('/').expect("namespace/name");
        let all = format!("{GROUP}/namespaces/{namespace}/networks");
        let object = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Network",
            "metadata": {"name": name}, "spec": spec});
        self.create(&all, &object);
        let file = format!("plexus-{runtime_name}.conflist");
        let file = self.node.cni_conf().join(file);
        let usable = within(START_TIMEOUT, || {
            let now = self.api("GET", &format!("{all}/{name}"), None).json();
            now["status"]["phase"] == "Active" && file.exists()
        });
        assert!(
            usable,
            "{network} is not active, or has no file for runtimes"
        );
    }

    /// What the records in the API say, each as `namespace/name: index/total interface network, …`.
    /// Panics if one is not that of a container: named by it, and owned by nobody.
    #[track_caller]
    pub fn records(&self) -> Vec<String> {
        let all = self.list(&format!("{GROUP}/podattachments"));
        let mut record_text: Vec<String> = all.iter().map(record_text).collect();
        record_text.sort();
        record_text
    }

    /// What the agent has attached.
    pub fn attachments(&self) -> Vec<Value> {
        let answer = get(&self.node.socket(), "/attachments");
        let answer = answer.expect("the agent answers").json();
        answer.as_array().cloned().unwrap_or_default()
    }

    /// SIGKILL, and waits for it to be gone.
    pub fn kill(mut self) {
        self.end();
    }

    /// SIGTERM, and waits for it to be gone.
    pub fn stop(self) -> ExitStatus {
        self.stop_by(Signal::TERM)
    }

    /// Ctrl-C, and waits for it to be gone.
    pub fn interrupt(self) -> ExitStatus {
        self.stop_by(Signal::INT)
    }

    fn stop_by(mut self, signal: Signal) -> ExitStatus {
        let _ = kill_process(pid_of(&self.child), signal);
        self.wait_exit().expect("it ends when it is asked to")
    }

    /// How it ended, if it does in time.
    pub fn wait_exit(&mut self) -> Option<ExitStatus> {
        let mut status = None;
        within(START_TIMEOUT, || {
            status = self.child.try_wait().ok().flatten();
            status.is_some()
        });
        status
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn record_text(record: &Value) -> String {
    let text = |path: &str| {
        let text = record.pointer(path).and_then(Value::as_str);
        text.unwrap_or("?").to_owned()
    };
    assert!(record["metadata"]["ownerReferences"].is_null(), "{record}");
    if record["status"].is_null() {
        return format!("{}: no status yet", text("/metadata/name"));
    }
    assert_eq!(text("/metadata/name"), text("/status/sandbox"), "{record}");
    let attachments = record["status"]["attachments"].as_array();
    let each: Vec<String> = attachments
        .into_iter()
        .flatten()
        .map(|one| {
            let (number, total) = (&one["index"], &one["total"]);
            let interface = one["interface"].as_str().unwrap_or("?");
            let network = one["network"]["name"].as_str().unwrap_or("?");
            format!("{number}/{total} {interface} {network}")
        })
        .collect();
    let (namespace, name) = (text("/metadata/namespace"), text("/spec/pod/name"));
    format!("{namespace}/{name}: {}", each.join(", "))
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
