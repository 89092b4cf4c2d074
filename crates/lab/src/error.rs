//! Why a lab could not be made, changed, looked at or removed. One variant per kind of operation; the text
//! says what, the likely cause and the next step.

pub(crate) use plexus_types::chain;

use crate::layout::Layout;
use crate::name::MAX_NODES;
use plexus_kernel::echo::EchoError;
use plexus_kernel::named::NamedError;
use plexus_kernel::sysctl::SysctlError;
use plexus_kernel::{NetlinkError, NetnsError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a lab could not be made, changed, looked at or removed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Not a name of a lab.
    #[error("{0:?} cannot name a lab: 1 to 10 lower-case letters and digits, a letter first")]
    Name(String),
    /// Not a name of a node.
    #[error("{0:?} is no node of a lab: they are called n1 to n{MAX_NODES}")]
    NodeName(String),
    /// Not a process of a lab.
    #[error(
        "{0:?} is no process of a lab: write server, controller, or a node such as n1 for its agent"
    )]
    Part(String),
    /// Only root makes namespaces.
    #[error("a lab needs root: it makes network namespaces and links; repeat this with sudo")]
    NotRoot,
    /// There is none.
    #[error(
        "there is no lab {name}: `plexus lab up` makes one, and `--lab` names another{}",
        others(has)
    )]
    NoLab {
        /// The one that was named.
        name: String,
        /// Those that there are.
        has: Vec<String>,
    },
    /// The lab has no such node.
    #[error("lab {lab} has no node {node}: it has {has}")]
    NoNode {
        /// The lab.
        lab: String,
        /// What was asked for.
        node: String,
        /// Its nodes.
        has: String,
    },
    /// No such pod, or one without a sandbox.
    #[error("{0}")]
    NoPod(String),
    /// Nobody is there to be killed.
    #[error("{part} does not run; its log is {}", log.display())]
    DoesNotRun {
        /// Which part of the lab.
        part: String,
        /// Where it may have said why.
        log: PathBuf,
    },
    /// What is asked for does not fit.
    #[error("{0}")]
    Refused(String),
    /// A file of nodes and NICs.
    #[error("{file} cannot be used: {}\n  {}", count(problems.len(), "problem"), problems.join("\n  "))]
    Topology {
        /// The file.
        file: String,
        /// What is wrong with it, by line and field.
        problems: Vec<String>,
    },
    /// A file or directory.
    #[error("cannot {what} {}", path.display())]
    File {
        /// A verb.
        what: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A named namespace.
    #[error(transparent)]
    Named(#[from] NamedError),
    /// A namespace that cannot be used.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The virtual wires.
    #[error("cannot {what}")]
    Wires {
        /// The operation that failed.
        what: String,
        /// What the kernel said.
        #[source]
        source: NetlinkError,
    },
    /// Pings cannot be sent.
    #[error("cannot ping")]
    Echo(#[from] EchoError),
    /// A process cannot be started.
    #[error("cannot start {what}")]
    Start {
        /// The program.
        what: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A setting of a namespace.
    #[error(transparent)]
    Setting(#[from] SysctlError),
    /// The API's kubeconfig.
    #[error("cannot use the lab's API: does its server run? see `plexus lab status`")]
    Client(#[from] plexus_client::ClientError),
    /// The API says no.
    #[error("cannot {what}: {message}")]
    RefusedByApi {
        /// The operation that failed.
        what: String,
        /// Its words.
        message: String,
    },
    /// A request to the API.
    #[error("cannot {what}")]
    Api {
        /// The operation that failed.
        what: String,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// Something did not happen in time.
    #[error("waited {} s in vain for {what}{}", limit.as_secs(), reason_suffix(last))]
    NotYet {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
        /// What was seen last.
        last: String,
    },
    /// What could not be removed.
    #[error("the lab is not gone completely: {}; repeat `plexus lab down`", .0.join("; "))]
    NotRemoved(Vec<String>),
}

impl LabError {
    /// There is no lab there; names those that are.
    pub(crate) fn no_lab(layout: &Layout) -> Self {
        let entries = std::fs::read_dir(layout.root()).into_iter().flatten();
        let mut has: Vec<String> = entries
            .flatten()
            .filter(|entry| entry.path().is_dir())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        has.sort();
        let name = layout.name().to_string();
        Self::NoLab { name, has }
    }

    /// For `map_err` of what files refuse.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { what, path, source }
    }

    /// For `map_err` of what the kernel refuses.
    pub(crate) fn wires(what: impl Into<String>) -> impl FnOnce(NetlinkError) -> Self {
        let what = what.into();
        move |source| Self::Wires { what, source }
    }

    /// For `map_err` of what the API refuses.
    pub(crate) fn api(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| match source {
            kube::Error::Api(status) => Self::RefusedByApi {
                what,
                message: status.message,
            },
            source => Self::Api {
                what,
                source: Box::new(source),
            },
        }
    }
}

fn others(has: &[String]) -> String {
    match has {
        [] => String::new(),
        has => format!(" ({})", has.join(", ")),
    }
}

fn count(number: usize, what: &str) -> String {
    let more = if number == 1 { "" } else { "s" };
    format!("{number} {what}{more}")
}

fn reason_suffix(last: &str) -> String {
    if last.is_empty() {
        String::new()
    } else {
        format!("; {last}")
    }
}
