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
    /// Nobody says how to reach an API server.
    #[error(transparent)]
    Client(#[from] plexus_client::ClientError),
    /// The health address is taken or not ours.
    #[error("cannot listen on {address} for /healthz, /readyz and /metrics: is it in use?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What is wrong.
        #[source]
        source: std::io::Error,
    },
    /// The health socket cannot be made.
    #[error("cannot listen on {path} for /healthz, /readyz and /metrics: may we write there?")]
    Socket {
        /// The socket.
        path: PathBuf,
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
        /// The option.
        what: &'static str,
        /// Its value.
        value: String,
        /// The legal values.
        why: &'static str,
    },
}
