//! How our programs reach an API server (over the unix socket of an embedded API, by a kubeconfig, or as the
//! pod that they are), how an embedded API's context comes into a kubeconfig, and how objects are followed. Owns how a client is made, how long it waits, and how
//! watches are made; never decides what is asked for.

pub mod context;
mod socket;
mod watch;

pub use socket::over_socket;
pub use watch::{WatchError, Watchable, Watches};

use kube::config::{
    InClusterError, InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError,
};
use kube::{Client, Config};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the API server is, and by what it knows us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// The socket of an embedded API on this machine: root needs no credentials there.
    Socket(PathBuf),
    /// The current context of a kubeconfig.
    Kubeconfig(PathBuf),
    /// That of the pod that we are, by its service account.
    Account,
    /// As kubectl would find it, else that of the pod that we are.
    Inferred,
}

impl Server {
    /// A client of it. Reads credentials; asks nobody yet. Must be called inside of a runtime, which is the
    /// client's as well.
    pub async fn client(&self, timeouts: Timeouts) -> Result<Client, ClientError> {
        let mut config = match self {
            Self::Socket(path) => return Ok(over_socket(path, timeouts.answer)),
            Self::Kubeconfig(path) => by_kubeconfig(path).await?,
            Self::Account => {
                Config::incluster().map_err(|error| ClientError::Account(error.into()))?
            }
            Self::Inferred => Config::infer()
                .await
                .map_err(|error| ClientError::Nowhere(error.into()))?,
        };
        config.connect_timeout = Some(timeouts.connect);
        if let Some(send) = timeouts.send {
            config.write_timeout = Some(send);
        }
        Client::try_from(config).map_err(|error| ClientError::Unusable(error.into()))
    }
}

/// The timeouts of a client.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For a connection over the network.
    pub connect: Duration,
    /// For a request to be sent there; none: as long as kube's clients wait.
    pub send: Option<Duration>,
    /// For an answer to begin, over a socket. A watch goes on for longer.
    pub answer: Duration,
}

async fn by_kubeconfig(path: &Path) -> Result<Config, ClientError> {
    let failed = |source: KubeconfigError| ClientError::Kubeconfig {
        path: path.to_owned(),
        source: source.into(),
    };
    let read = Kubeconfig::read_from(path).map_err(failed)?;
    Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
        .await
        .map_err(failed)
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file does not say how to reach an API server.
    #[error(
        "cannot use the kubeconfig {path}: does it exist, and is its current context complete?"
    )]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: Box<KubeconfigError>,
    },
    /// Not in a pod, or without a service account.
    #[error("no --kubeconfig is given, and this is no pod with a service account")]
    Account(#[source] Box<InClusterError>),
    /// Neither a service account nor a kubeconfig.
    #[error("cannot find an API server: give --kubeconfig outside of a cluster")]
    Nowhere(#[source] Box<InferConfigError>),
    /// No client can be made of what it says.
    #[error("cannot set up the client of the API server: are certificate and key readable?")]
    Unusable(#[source] Box<kube::Error>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_kubeconfig_that_is_not_there_is_named() {
        let timeouts = Timeouts {
            connect: Duration::from_secs(1),
            send: None,
            answer: Duration::from_secs(1),
        };
        let server = Server::Kubeconfig("/nonexistent/kubeconfig".into());
        let Err(error) = server.client(timeouts).await else {
            panic!("there is a client");
        };
        assert!(error.to_string().contains("/nonexistent/kubeconfig"));
    }
}
