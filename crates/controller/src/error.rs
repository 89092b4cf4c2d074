//! Why the controller ends.

use std::net::SocketAddr;
use std::path::PathBuf;

/// A reason to end. Everything else is tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No event loop.
    #[error("cannot start the event loop: is the limit of open files too low?")]
    Runtime(#[source] std::io::Error),
    /// No signal handler.
    #[error("cannot listen for SIGTERM")]
    Signal(#[source] std::io::Error),
    /// The file does not say how to reach an API server.
    #[error(
        "cannot use the kubeconfig {file}: does it exist, and is its current context complete?"
    )]
    Kubeconfig {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// Neither a service account nor a kubeconfig.
    #[error("cannot find an API server: give --kubeconfig outside of a cluster")]
    NoCluster(#[source] Box<kube::config::InferConfigError>),
    /// The configuration cannot be used.
    #[error("cannot set up the client of the API server: are certificate and key readable?")]
    Client(#[source] Box<kube::Error>),
    /// The health address is taken or not ours.
    #[error("cannot listen on {address} for /healthz, /readyz and /metrics: is it in use?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What is wrong.
        #[source]
        source: std::io::Error,
    },
    /// A watch ended for good.
    #[error("the watch of {0} ended: the controller must start again")]
    WatchEnded(&'static str),
    /// A value that cannot be an object's name.
    #[error("{what} {value:?} is not usable: {why}")]
    Option {
        /// Which.
        what: &'static str,
        /// As given.
        value: String,
        /// What is legal.
        why: &'static str,
    },
}
