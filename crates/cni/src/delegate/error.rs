//! What can go wrong with a delegate, and what the runtime is told about it.

use plexus_api::cni::{self, Code, Executable};
use plexus_types::chain;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A plugin that could not be run, or that failed: which, doing what, for whom.
#[derive(Debug, thiserror::Error)]
#[error("network {network:?}: {verb} by {} {plugin:?}", role(*executable))]
pub struct Error {
    /// The network's name.
    pub network: String,
    /// The plugin's name; `?` if it has none.
    pub plugin: String,
    /// Where that name is written.
    pub executable: Executable,
    /// `ADD`, …
    pub verb: &'static str,
    /// Why.
    #[source]
    pub cause: Cause,
}

/// Why a plugin did not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// No `type` (or `ipam.type`), or not a string.
    #[error("the configuration has no {} that is a string", key(*.0))]
    NoType(Executable),
    /// A path, or worse.
    #[error("the configuration names a plugin that cannot be one")]
    Type(#[source] Box<plexus_types::Invalid>),
    /// The administrator does not allow it.
    #[error("plugin {plugin:?} is not one that the agent may run (allowed: {allowed})")]
    NotAllowed {
        /// The plugin, or the IPAM plugin that it would run.
        plugin: String,
        /// The list.
        allowed: String,
    },
    /// It is in none of the directories.
    #[error("no executable file {plugin:?} in {dirs}")]
    NotFound {
        /// The plugin, or the IPAM plugin that it would run.
        plugin: String,
        /// Where we looked.
        dirs: String,
    },
    /// It is our own binary.
    #[error("{0:?} is Plexus itself, which cannot be its own delegate")]
    Ourselves(PathBuf),
    /// It speaks nothing that we do.
    #[error("it speaks versions {theirs}, and none of ours: {ours}")]
    NoCommonVersion {
        /// Its list, as it answered VERSION.
        theirs: String,
        /// Ours.
        ours: String,
    },
    /// VERSION was not answered.
    #[error("it does not say which versions it speaks: {0}")]
    NoVersions(String),
    /// Too many run already.
    #[error("{at_once} plugins are running already, and none ended within {} s", waited.as_secs())]
    Busy {
        /// The limit.
        at_once: usize,
        /// How long we waited.
        waited: Duration,
    },
    /// Its configuration could not be written.
    #[error("cannot write its configuration to {0:?}")]
    Spool(PathBuf, #[source] io::Error),
    /// The kernel would not start it.
    #[error("cannot execute {0:?}")]
    Spawn(PathBuf, #[source] io::Error),
    /// It runs, and we cannot follow it.
    #[error("cannot follow the running plugin")]
    Watch(#[source] io::Error),
    /// It was killed.
    #[error("it was still running after {} s and was killed{}", limit.as_secs(), output_text(stderr))]
    TimedOut {
        /// How long it could.
        limit: Duration,
        /// What it wrote to standard error.
        stderr: String,
    },
    /// It was killed.
    #[error("it printed more than {0} bytes and was killed")]
    TooMuch(usize),
    /// It failed and said why as the specification asks.
    #[error("{}", .0.msg)]
    Told(Box<cni::Error>),
    /// It failed in its own way.
    #[error("it ended with {status} and no CNI error{}", output_text(stderr))]
    Broke {
        /// Exit code or signal.
        status: String,
        /// What it wrote to standard error, else to standard output.
        stderr: String,
    },
    /// It succeeded, and its answer cannot be read.
    #[error("its answer is not a CNI result: {why}{}", output_text(stdout))]
    Garbled {
        /// What is wrong with it.
        why: String,
        /// The beginning of it.
        stdout: String,
    },
}

impl Error {
    /// Whether the same call may succeed later without anybody doing anything.
    pub fn is_temporary(&self) -> bool {
        match &self.cause {
            Cause::Busy { .. } => true,
            Cause::Told(error) => error.code == Code::Delegate(Code::TryAgainLater.number()),
            _ => false,
        }
    }

    /// What the runtime is told: a plugin's own code and text are passed on.
    pub fn to_cni(&self) -> cni::Error {
        cni::Error::new(self.cause.code(), chain(self), self.cause.next_step())
    }
}

impl Cause {
    fn code(&self) -> Code {
        match self {
            Cause::NoType(_) | Cause::Type(_) | Cause::NotAllowed { .. } | Cause::Ourselves(_) => {
                Code::InvalidConfig
            }
            Cause::NoCommonVersion { .. } => Code::IncompatibleVersion,
            Cause::Busy { .. } => Code::TryAgainLater,
            Cause::Told(error) => error.code,
            _ => Code::Failed,
        }
    }

    fn next_step(&self) -> String {
        let text = match self {
            Cause::Told(error) => return error.details.clone(),
            Cause::NoType(_) | Cause::Type(_) => "name the plugin's file, without a path",
            Cause::NotAllowed { .. } => "use an allowed type, or extend the agent's list",
            Cause::NotFound { .. } => {
                "install the plugin there, or start the agent with the right --delegate-bin-dir"
            }
            Cause::Ourselves(_) => {
                "put the real plugins into a directory of their own and name it with --delegate-bin-dir"
            }
            Cause::NoCommonVersion { .. } | Cause::NoVersions(_) => "install a newer plugin",
            Cause::Busy { .. } => "try again later, or let the agent run more plugins at once",
            Cause::Spool(..) => "check the agent's state directory: is its disk full?",
            Cause::Spawn(..) => "is the file an executable for this machine?",
            _ => "run the plugin by hand with the same configuration, or see the agent's log",
        };
        text.to_owned()
    }
}

/// What a plugin is to the network, for messages.
pub(super) fn role(executable: Executable) -> &'static str {
    match executable {
        Executable::Type => "plugin",
        Executable::IpamType => "IPAM plugin",
    }
}

fn key(executable: Executable) -> &'static str {
    match executable {
        Executable::Type => "\"type\"",
        Executable::IpamType => "\"ipam.type\"",
    }
}

/// What a plugin printed, fit for one line of a message.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const LONGEST: usize = 500;
    let text = String::from_utf8_lossy(bytes);
    let mut line = String::new();
    for word in text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|w| !w.is_empty())
    {
        if line.chars().count() + word.chars().count() > LONGEST {
            line.extend(
                word.chars()
                    .take(LONGEST.saturating_sub(line.chars().count())),
            );
            line.push('…');
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

fn output_text(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("; it said: {text}")
    }
}
