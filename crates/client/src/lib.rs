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
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::time::timeout;

/// How long the name of an API server may take to be looked up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);

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
            server => server.config().await?,
        };
        config.connect_timeout = Some(timeouts.connect);
        if let Some(send) = timeouts.send {
            config.write_timeout = Some(send);
        }
        Client::try_from(config).map_err(|error| ClientError::Unusable(error.into()))
    }

    /// The addresses that a client of it connects to, as far as they are known within a few seconds; none over a socket.
    pub async fn addresses(&self) -> Result<Vec<IpAddr>, ClientError> {
        if let Self::Socket(_) = self {
            return Ok(Vec::new());
        }
        let config = self.config().await?;
        let host = config.cluster_url.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        let found = timeout(LOOKUP_TIMEOUT, lookup_host((host, 0))).await;
        match found {
            Ok(Ok(found)) => Ok(found.map(|address| address.ip()).collect()),
            _ => {
                tracing::warn!(host, "the API server's name cannot be looked up");
                Ok(Vec::new())
            }
        }
    }

    /// How it is reached, if not over a socket.
    async fn config(&self) -> Result<Config, ClientError> {
        match self {
            Self::Kubeconfig(path) => by_kubeconfig(path).await,
            Self::Account => {
                Config::incluster().map_err(|error| ClientError::Account(error.into()))
            }
            Self::Inferred | Self::Socket(_) => Config::infer()
                .await
                .map_err(|error| ClientError::Nowhere(error.into())),
        }
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
    async fn the_addresses_of_a_server_are_those_that_are_connected_to() {
        let path = std::env::temp_dir().join(format!("plexus-addresses-{}", std::process::id()));
        for (url, expected) in [
            ("https://192.0.2.7:6443", "192.0.2.7"),
            ("https://[2001:db8::7]:6443", "2001:db8::7"),
            ("https://localhost:6443", "127.0.0.1"),
        ] {
            let text = format!(
                "{{apiVersion: v1, kind: Config, current-context: a, clusters: [{{name: a, cluster: {{server: '{url}'}}}}], \
                 contexts: [{{name: a, context: {{cluster: a, user: a}}}}], users: [{{name: a, user: {{}}}}]}}"
            );
            std::fs::write(&path, text).unwrap();
            let found = Server::Kubeconfig(path.clone()).addresses().await.unwrap();
            assert!(
                found.contains(&expected.parse().unwrap()),
                "{url}: {found:?}"
            );
        }
        std::fs::remove_file(&path).unwrap();
        let socket = Server::Socket("/nonexistent".into());
        assert!(socket.addresses().await.unwrap().is_empty());
    }

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
