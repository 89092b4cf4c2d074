//! The agent as a process: started, waited for, killed, started again.

use crate::netns::NetNs;
use crate::process::{TIMEOUT, pid_of, within};
use crate::{Node, PLEXUS, Response, bin, get};
use rustix::process::{Signal, kill_process};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How to start an agent.
#[derive(Debug, Clone)]
pub struct Start<'n> {
    node: &'n Node,
    arguments: Vec<String>,
    env: BTreeMap<String, String>,
}

impl<'n> Start<'n> {
    /// With the node's directories.
    pub fn on(node: &'n Node) -> Self {
        let mut arguments = vec!["agent".to_owned()];
        let mut flag = |name: &str, value: std::path::PathBuf| {
            arguments.extend([name.to_owned(), value.to_string_lossy().into_owned()]);
        };
        flag("--node", node.name().into());
        flag("--socket", node.socket());
        flag("--state-dir", node.state_dir());
        flag("--cni-bin-dir", node.cni_bin());
        flag("--cni-conf-dir", node.cni_conf());
        flag("--delegate-bin-dir", node.delegate_bin());
        let mut env = BTreeMap::new();
        for name in ["PATH", "HOME", "RUST_BACKTRACE", "RUST_LOG"] {
            if let Ok(value) = std::env::var(name) {
                env.insert(name.to_owned(), value);
            }
        }
        Self {
            node,
            arguments,
            env,
        }
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: &[&str]) -> Self {
        self.arguments
            .extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    /// Dies at the k-th effect, and writes the names of effects to the node's `effects` file.
    pub fn die_at(self, k: usize) -> Self {
        self.logging_effects().env("PLEXUS_DIE_AT", &k.to_string())
    }

    /// Writes the names of effects to the node's `effects` file, from its beginning.
    pub fn logging_effects(self) -> Self {
        let log = self.node.file("effects");
        let _ = std::fs::remove_file(&log);
        self.env("PLEXUS_EFFECTS_LOG", &log.to_string_lossy())
    }

    /// Starts it, without waiting for anything.
    pub fn spawn(&self) -> Agent<'n> {
        self.spawn_in(self.node.ns())
    }

    /// Starts it in some namespace, without waiting for anything.
    pub fn spawn_in(&self, ns: &NetNs) -> Agent<'n> {
        let open = || {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(self.node.log())
        };
        let mut command = Command::new(bin(PLEXUS));
        command
            .args(&self.arguments)
            .env_clear()
            .envs(&self.env)
            .stdin(Stdio::null())
            .stdout(open().expect("opens the log"))
            .stderr(open().expect("opens the log"));
        let child = ns.enter(|| command.spawn()).expect("the agent starts");
        Agent {
            node: self.node,
            child,
        }
    }

    /// Starts it and waits until it is ready; panics if it does not get there.
    pub fn ready(&self) -> Agent<'n> {
        let mut agent = self.spawn();
        if let Err(why) = agent.wait_ready() {
            panic!("the agent is not ready: {why}");
        }
        agent
    }
}

/// A running agent; killed when dropped.
#[derive(Debug)]
pub struct Agent<'n> {
    node: &'n Node,
    child: Child,
}

impl<'n> Agent<'n> {
    /// Starts one on the node and waits until it is ready.
    pub fn start(node: &'n Node) -> Self {
        Start::on(node).ready()
    }

    /// Waits until `/readyz` says 200; an error if it exits or takes too long.
    pub fn wait_ready(&mut self) -> Result<(), String> {
        let mut last = String::from("no answer");
        let mut ended = None;
        let ready = within(TIMEOUT, || {
            ended = self.child.try_wait().ok().flatten();
            if ended.is_some() {
                return true;
            }
            match self.get("/readyz") {
                Some(Response { status: 200, .. }) => return true,
                Some(answer) => last = format!("{} {}", answer.status, answer.body),
                None => {}
            }
            false
        });
        match ended {
            Some(status) => Err(format!("it ended: {status}")),
            None if ready => Ok(()),
            None => Err(last),
        }
    }

    /// SIGKILL, and waits for it to be gone.
    pub fn kill(mut self) {
        self.end();
    }

    /// SIGTERM, and waits for it to be gone.
    pub fn stop(mut self) -> ExitStatus {
        let _ = kill_process(pid_of(&self.child), Signal::TERM);
        self.wait_exit(TIMEOUT).expect("it ends on SIGTERM")
    }

    /// How it ended, if it does within the limit.
    pub fn wait_exit(&mut self, limit: Duration) -> Option<ExitStatus> {
        let mut status = None;
        within(limit, || {
            status = self.child.try_wait().ok().flatten();
            status.is_some()
        });
        status
    }

    /// Whether it runs.
    pub fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A field of its `/proc/<pid>/status`, in kB.
    pub fn memory(&self, field: &str) -> u64 {
        let path = format!("/proc/{}/status", self.pid());
        let status = std::fs::read_to_string(path).expect("the agent runs");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .expect("has the field");
        let number = line.trim_start_matches(':').trim().trim_end_matches(" kB");
        number.parse().expect("a number")
    }

    /// `GET` on its socket, from the node's namespace.
    pub fn get(&self, path: &str) -> Option<Response> {
        get(&self.node.socket(), path)
    }

    /// The effects in the log, each as `<number> <name>`.
    pub fn effects(node: &Node) -> Vec<String> {
        let log = std::fs::read_to_string(node.file("effects")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
