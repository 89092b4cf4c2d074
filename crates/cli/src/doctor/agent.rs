//! The agent: its socket, whether it answers, whether it is ready, and what was queued for it.

use super::{Check, Subject};
use crate::agent as ask;
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How the names of queued DELs end, and of those that the agent could not read.
const QUEUED: &str = ".json";
const REFUSED: &str = ".json.bad";

/// What could be learnt of the agent.
#[derive(Debug)]
pub(super) struct Agent {
    socket: Socket,
    /// Status and text of `/readyz`.
    ready: Option<io::Result<(u16, String)>>,
    /// What it knows; none if it does not answer.
    pub(super) attachments: Option<Vec<Value>>,
    /// DELs that wait for it.
    queued: usize,
    /// DELs that it could not read, and has set aside.
    refused: usize,
}

#[derive(Debug)]
enum Socket {
    Absent,
    Unreadable(io::Error),
    SomethingElse,
    There(u32),
}

/// Looks at the socket, and asks.
pub(super) fn look(path: &Path) -> Agent {
    let socket = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Socket::Absent,
        Err(error) => Socket::Unreadable(error),
        Ok(found) if !found.file_type().is_socket() => Socket::SomethingElse,
        Ok(found) => Socket::There(found.mode() & 0o777),
    };
    let there = matches!(socket, Socket::There(_));
    let ready = there.then(|| ask::get(path, "/readyz"));
    let answers = matches!(ready, Some(Ok(_)));
    let attachments = answers.then(|| ask::attachments(path).ok()).flatten();
    let files = fs::read_dir(queue(path)).into_iter().flatten().flatten();
    let names: Vec<_> = files.map(|file| file.file_name()).collect();
    let (queued, refused) = (named(&names, QUEUED), named(&names, REFUSED));
    Agent {
        socket,
        ready,
        attachments,
        queued,
        refused,
    }
}

/// How many have that ending; those that a shim has not finished begin with a dot.
fn named(names: &[OsString], ending: &str) -> usize {
    let names = names.iter().map(|name| name.to_string_lossy());
    let fit = names.filter(|name| !name.starts_with('.') && name.ends_with(ending));
    fit.count()
}

fn queue(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".queue");
    name.into()
}

pub(super) fn judge(agent: &Agent, path: &Path) -> Vec<Check> {
    let display = path.display();
    let mut checks = Vec::new();
    let start = "start the agent: systemctl start plexus-agent, plexus agent, or plexus up; else say \
                 where its socket is with --socket";
    match &agent.socket {
        Socket::Absent => {
            let found = format!("{display} is not there: no agent runs");
            checks.push(Check::fail(Subject::AgentSocket, found, start));
        }
        Socket::Unreadable(error) => {
            let found = format!("cannot look at {display}: {error}");
            checks.push(Check::fail(Subject::AgentSocket, found, "run as root"));
        }
        Socket::SomethingElse => checks.push(Check::fail(
            Subject::AgentSocket,
            format!("{display} is not a socket"),
            "move it away and start the agent",
        )),
        Socket::There(mode) if mode & 0o077 != 0 => checks.push(Check::warn(
            Subject::AgentSocket,
            format!("{display} is open to others than root (mode {mode:o})"),
            "chmod 600; the agent makes it so when it starts",
        )),
        Socket::There(_) => checks.push(Check::pass(
            Subject::AgentSocket,
            format!("{display} is there"),
        )),
    }
    checks.extend(agent.ready.as_ref().map(|ready| readiness(ready, path)));
    if let Some(Ok((_, text))) = &agent.ready {
        let warnings = text
            .lines()
            .filter_map(|line| line.strip_prefix("warning: "));
        checks.extend(warnings.map(|warning| {
            let next = match warning.starts_with("the journal") {
                true => "restart the pod: its DEL works without these rows, and removes them",
                false => "rename or remove that file",
            };
            Check::warn(Subject::AgentWarning, warning, next)
        }));
    }
    if agent.refused > 0 {
        let (count, queue_dir) = (agent.refused, queue(path));
        checks.push(Check::warn(
            Subject::AgentQueue,
            format!("{count} DELs could not be read and were set aside: {}/*.bad", queue_dir.display()),
            "the agent's log says why; once the containers in their names are gone, remove the files",
        ));
    }
    let answers = matches!(agent.ready, Some(Ok(_)));
    checks.push(match (agent.queued, answers) {
        (0, _) => Check::pass(Subject::AgentQueue, "no DEL waits"),
        (count, true) => Check::warn(
            Subject::AgentQueue,
            format!("{count} queued DELs wait although the agent answers"),
            "it tries them again; its log says why they fail",
        ),
        (count, false) => Check::warn(
            Subject::AgentQueue,
            format!("{count} DELs wait for the agent"),
            "they are done when it starts: start it",
        ),
    });
    checks
}

fn readiness(ready: &io::Result<(u16, String)>, path: &Path) -> Check {
    let name = Subject::AgentReady;
    let display = path.display();
    match ready {
        Ok((200, _)) => Check::pass(name, "the agent is ready"),
        Ok((_, text)) => {
            let why = text.lines().next().unwrap_or("it does not say why");
            Check::fail(
                name,
                why,
                "see the agent's log: journalctl -u plexus-agent, kubectl logs",
            )
        }
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Check::fail(
            name,
            format!("nobody listens on {display}: an agent has died"),
            "start it again; pods keep their interfaces meanwhile",
        ),
        Err(error) => Check::fail(
            name,
            format!("the agent on {display} does not answer: {error}"),
            "see its log; if it hangs, restart it: pods keep their interfaces",
        ),
    }
}
