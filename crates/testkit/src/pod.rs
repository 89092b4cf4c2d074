//! A container as CNI sees it, and the calls that a runtime makes for it.

use crate::process::Running;
use crate::{NetNs, Node, SHIM, bin};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Command, ExitStatus, Output};
use std::time::Duration;

/// Longer than the shim ever waits.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// A container: an id and a namespace.
#[derive(Debug)]
pub struct Pod<'n> {
    node: &'n Node,
    container: String,
    ns: NetNs,
}

impl<'n> Pod<'n> {
    pub(crate) fn new(node: &'n Node, container: &str) -> Self {
        let ns = NetNs::create(&format!("{}-{container}", node.name()));
        Self {
            node,
            container: container.to_owned(),
            ns,
        }
    }

    /// Its namespace.
    pub fn ns(&self) -> &NetNs {
        &self.ns
    }

    /// CNI_CONTAINERID.
    pub fn container(&self) -> &str {
        &self.container
    }

    /// CNI_NETNS.
    pub fn netns(&self) -> String {
        self.ns.path().to_string_lossy().into_owned()
    }

    /// A fresh namespace under the same path, as if the container were made anew.
    pub fn renew(&mut self) {
        self.ns.replace();
    }

    /// A call for `eth0`, yet to be changed and made.
    pub fn call(&self, verb: &str, config: &Value) -> Call<'n> {
        Call::new(self.node, verb, config)
            .env("CNI_CONTAINERID", &self.container)
            .env("CNI_NETNS", &self.netns())
            .env("CNI_IFNAME", "eth0")
    }

    /// Makes a call for `eth0`.
    pub fn cni(&self, verb: &str, config: &Value) -> CniOutput {
        self.call(verb, config).run()
    }

    /// ADD of `eth0` that must succeed.
    pub fn add(&self, config: &Value) -> Value {
        self.cni("ADD", config).ok()
    }

    /// DEL of `eth0` that must succeed.
    pub fn del(&self, config: &Value) {
        self.cni("DEL", config).done();
    }
}

/// One execution of the shim.
#[derive(Debug, Clone)]
pub struct Call<'n> {
    node: &'n Node,
    env: BTreeMap<String, String>,
    stdin: Vec<u8>,
}

impl<'n> Call<'n> {
    /// A call that names no container (GC, STATUS, VERSION).
    pub fn new(node: &'n Node, verb: &str, config: &Value) -> Self {
        let mut env = BTreeMap::new();
        let path = node.cni_bin().to_string_lossy().into_owned();
        let socket = node.socket().to_string_lossy().into_owned();
        env.insert("CNI_COMMAND".to_owned(), verb.to_owned());
        env.insert("CNI_PATH".to_owned(), path);
        env.insert("PLEXUS_AGENT_SOCKET".to_owned(), socket);
        env.insert("PATH".to_owned(), std::env::var("PATH").unwrap_or_default());
        Self {
            node,
            env,
            stdin: config.to_string().into_bytes(),
        }
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Leaves a variable out.
    pub fn without(mut self, name: &str) -> Self {
        self.env.remove(name);
        self
    }

    /// CNI_IFNAME.
    pub fn ifname(self, name: &str) -> Self {
        self.env("CNI_IFNAME", name)
    }

    /// CNI_ARGS.
    pub fn args(self, args: &str) -> Self {
        self.env("CNI_ARGS", args)
    }

    /// How long the shim may wait for an agent.
    pub fn timeout(self, limit: Duration) -> Self {
        self.env("PLEXUS_CNI_WAIT_MS", &limit.as_millis().to_string())
    }

    /// Standard input, as it is.
    pub fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = bytes;
        self
    }

    /// Starts it in the node's namespace.
    pub fn spawn(self) -> Running {
        let ns = self.node.ns();
        self.spawn_in(ns)
    }

    /// Starts it in some namespace.
    pub fn spawn_in(self, ns: &NetNs) -> Running {
        let mut command = Command::new(bin(SHIM));
        command.env_clear().envs(&self.env);
        let what = format!("{SHIM} {}", self.env["CNI_COMMAND"]);
        Running::start(ns, &what, command, self.stdin)
    }

    /// Runs it in the node's namespace.
    pub fn run(self) -> CniOutput {
        CniOutput::new(&self.spawn().wait(CALL_TIMEOUT))
    }

    /// Runs it in some namespace.
    pub fn run_in(self, ns: &NetNs) -> CniOutput {
        CniOutput::new(&self.spawn_in(ns).wait(CALL_TIMEOUT))
    }
}

/// What a runtime gets back.
#[derive(Debug, Clone)]
pub struct CniOutput {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl CniOutput {
    /// From what a process left.
    pub fn new(output: &Output) -> Self {
        Self {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Whether it succeeded.
    pub fn success(&self) -> bool {
        self.status.success()
    }

    /// Standard output as JSON; null if it is empty.
    pub fn json(&self) -> Value {
        if self.stdout.trim().is_empty() {
            return Value::Null;
        }
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("standard output is no JSON: {error}: {self:?}"))
    }

    /// The result; panics if there is none.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert!(self.success(), "the call failed: {self:?}");
        self.json()
    }

    /// Success without a result.
    #[track_caller]
    pub fn done(&self) {
        assert!(self.success(), "the call failed: {self:?}");
        assert_eq!(self.stdout.trim(), "", "an answer where none is due");
    }

    /// Code and text (message and details) of the error; panics if there is none.
    #[track_caller]
    pub fn error(&self) -> (u64, String) {
        assert!(!self.success(), "the call succeeded: {self:?}");
        let json = self.json();
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        let code = json["code"]
            .as_u64()
            .unwrap_or_else(|| panic!("no error code: {self:?}"));
        assert!(
            !text("msg").is_empty(),
            "an error without a message: {self:?}"
        );
        (code, format!("{}; {}", text("msg"), text("details")))
    }

    /// The addresses of the result, without prefix length.
    pub fn addresses(&self) -> Vec<String> {
        let result = self.ok();
        let ips = result["ips"].as_array().cloned().unwrap_or_default();
        let bare = |ip: &Value| Some(ip["address"].as_str()?.split('/').next()?.to_owned());
        ips.iter().filter_map(bare).collect()
    }
}
