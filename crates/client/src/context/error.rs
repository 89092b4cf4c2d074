//! Why a context could not be put into a kubeconfig, or removed from it.

use std::io;
use std::path::PathBuf;

/// What went wrong, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// A file or its lock.
    #[error("cannot {what} the kubeconfig {}: name another with --kubeconfig", path.display())]
    File {
        /// A verb.
        what: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Somebody has the lock, or died with it.
    #[error(
        "the kubeconfig {0} is being changed by another program for {seconds} s: repeat this; if no program changes it, remove {0}.lock",
        path.display()
    )]
    Locked {
        /// The path of the file.
        path: PathBuf,
        /// How long it was waited for.
        seconds: u64,
    },
    /// Not YAML.
    #[error("{} is no YAML, so that no context can be put into it: correct it, or name another with --kubeconfig", path.display())]
    Yaml {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: serde_yaml_ng::Error,
    },
    /// YAML of something else.
    #[error("{} is no kubeconfig: correct it, or name another with --kubeconfig", path.display())]
    NoKubeconfig {
        /// The path of the file.
        path: PathBuf,
    },
    /// Not what a server of ours writes.
    #[error("{} is not what a server of ours has written", path.display())]
    NotOurs {
        /// The path of the file.
        path: PathBuf,
    },
    /// The name is another's.
    #[error(
        "the kubeconfig {} has a {what} {name:?} already, of {of}: rename that one, or name another file with --kubeconfig",
        path.display()
    )]
    Taken {
        /// The path of the file.
        path: PathBuf,
        /// Cluster, user or context.
        what: &'static str,
        /// Its name.
        name: String,
        /// Whose it is.
        of: String,
    },
}
