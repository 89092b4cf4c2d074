//! The processes of a lab, one by one: killed, held, started with a fault in them.

use crate::machine::Lab;
use crate::objects::within;
use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SIGABRT: i32 = 6;
const SEARCH_TIMEOUT: Duration = Duration::from_secs(60);

/// An agent that the test itself has started.
pub(crate) struct Agent {
    child: Child,
    node: String,
}

impl Lab {
    /// The process of a part, as the keeper's report has it: `/server/pid`, `/nodes/n1/pid`, …
    pub(crate) fn process(&self, pointer: &str) -> Option<i64> {
        let text = fs::read(self.file("keeper.json")).ok()?;
        let report: Value = serde_json::from_slice(&text).ok()?;
        report.pointer(pointer).and_then(Value::as_i64)
    }

    /// SIGKILL to a part, if it runs. Whether it was hit.
    pub(crate) fn shoot(&self, pointer: &str) -> bool {
        let Some(pid) = self.process(pointer) else {
            return false;
        };
        // The number may be another's by now: only a process of this lab is hit.
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        if !environment.contains(&format!(
            "PLEXUS_LAB_PART={}",
            self.file("").trim_end_matches('/')
        )) {
            return false;
        }
        let killed = Command::new("kill").args(["-9", &pid.to_string()]).output();
        killed.unwrap().status.success()
    }

    /// Replaces a node's agent by one with further variables. The keeper starts none until `start`.
    #[track_caller]
    pub(crate) fn agent_with(&self, node: &str, variables: &[(&str, &str)]) -> Agent {
        let pointer = format!("/nodes/{node}/pid");
        let runs = within(SEARCH_TIMEOUT, || self.process(&pointer).is_some());
        assert!(runs, "no agent on {node}");
        let pid = self.process(&pointer).unwrap();
        let words = |file: &str| -> Vec<String> {
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap();
            let parts = bytes
                .split(|byte| *byte == 0)
                .filter(|part| !part.is_empty());
            parts
                .map(|part| String::from_utf8_lossy(part).into_owned())
                .collect()
        };
        let (line, environment) = (words("cmdline"), words("environ"));
        let mark = environment
            .iter()
            .find_map(|entry| entry.strip_prefix("PLEXUS_LAB_PART="));
        let log = self.file(&format!("log/{node}-agent.log"));
        let log = || fs::OpenOptions::new().append(true).open(&log).unwrap();
        self.ok(&["kill", node, "--hold"]);
        let mut command = Command::new("nsenter");
        // What the test was told is not the agent's, but the mistake that it is to make.
        for (name, _) in std::env::vars() {
            if name.starts_with("PLEXUS_") && name != "PLEXUS_MISTAKE" {
                command.env_remove(name);
            }
        }
        let child = command
            .arg(format!("--net=/run/netns/px-{}-{node}", self.name()))
            .args(&line)
            .env("PLEXUS_LAB_PART", mark.unwrap())
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(log())
            .stderr(log())
            .spawn()
            .unwrap();
        let agent = Agent {
            child,
            node: node.to_owned(),
        };
        let socket = self.file(&format!("{node}/agent.sock"));
        self.eventually(
            &format!("the agent of {node} is ready, or has died of it"),
            || {
                let answer = plexus_testkit::get(socket.as_ref(), "/readyz");
                answer.is_some_and(|answer| answer.status == 200) || agent.has_ended()
            },
        );
        agent
    }
}

impl Agent {
    /// Waits until it has died of its fault. The keeper is not told: see `start`.
    #[track_caller]
    pub(crate) fn dies(mut self) {
        let mut ended = None;
        within(SEARCH_TIMEOUT, || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        let Some(status) = ended else {
            panic!(
                "the agent of {} does not come to where it should die",
                self.node
            );
        };
        assert_eq!(status.signal(), Some(SIGABRT), "{}: {status}", self.node);
    }

    fn has_ended(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        stat.map_or(true, |stat| stat.contains(") Z "))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
