//! A connection to an API server, for a command that does one thing and ends.

use super::{ChosenServer, ClientError};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use std::future::Future;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A client, and what its kubeconfig says.
pub struct Session {
    runtime: Runtime,
    pub(super) client: Client,
    /// Where the server is.
    pub server: String,
    /// What chose it, if nobody named it.
    unnamed: String,
    /// The namespace of the context.
    pub namespace: String,
}

impl Session {
    /// Reads the credentials; asks nobody yet.
    pub fn open(chosen: &ChosenServer, context: Option<&str>) -> Result<Self, ClientError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ClientError::Runtime)?;
        let unnamed = chosen.unnamed();
        if let Some(path) = chosen.socket() {
            let client = {
                let _inside = runtime.enter();
                plexus_client::over_socket(path, ANSWER_TIMEOUT)
            };
            return Ok(Self {
                runtime,
                client,
                server: path.display().to_string(),
                unnamed,
                namespace: "default".to_owned(),
            });
        }
        let from = match chosen {
            ChosenServer::Variable => "that KUBECONFIG names".to_owned(),
            ChosenServer::InCluster => "of this pod's account".to_owned(),
            ChosenServer::File(path)
            | ChosenServer::Up(path)
            | ChosenServer::NamedLab(path)
            | ChosenServer::Lab(path)
            | ChosenServer::Home(path)
            | ChosenServer::Socket(path)
            | ChosenServer::UpSocket(path) => path.display().to_string(),
        };
        let mut config = runtime.block_on(config(chosen, context, &from))?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(ANSWER_TIMEOUT);
        config.write_timeout = Some(ANSWER_TIMEOUT);
        let (server, namespace) = (
            config.cluster_url.to_string(),
            config.default_namespace.clone(),
        );
        // The client's own queue is a task of the runtime.
        let client = {
            let _inside = runtime.enter();
            Client::try_from(config).map_err(|source| ClientError::Client {
                from,
                source: Box::new(source),
            })?
        };
        Ok(Self {
            runtime,
            client,
            server: server.trim_end_matches('/').to_owned(),
            unnamed,
            namespace,
        })
    }

    /// Waits for something.
    pub(super) fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// The error of a request.
    pub(super) fn failed(&self, what: impl Into<String>, error: kube::Error) -> ClientError {
        ClientError::of(what, &self.server, &self.unnamed, error)
    }

    /// What the server says of itself, and whether it answers at all.
    pub fn version(&self) -> Result<Value, ClientError> {
        let asked = self.wait(self.client.apiserver_version());
        let info = asked.map_err(|error| self.failed("ask for its version", error))?;
        Ok(serde_json::to_value(&info).unwrap_or_default())
    }
}

async fn config(
    chosen: &ChosenServer,
    context: Option<&str>,
    from: &str,
) -> Result<Config, ClientError> {
    let failed = |source| ClientError::Kubeconfig {
        from: from.to_owned(),
        unnamed: chosen.unnamed(),
        source: Box::new(source),
    };
    let read = match chosen {
        ChosenServer::InCluster | ChosenServer::Socket(_) | ChosenServer::UpSocket(_) => {
            return Config::incluster().map_err(|error| ClientError::InCluster(Box::new(error)));
        }
        ChosenServer::File(path)
        | ChosenServer::Up(path)
        | ChosenServer::NamedLab(path)
        | ChosenServer::Lab(path)
        | ChosenServer::Home(path) => Kubeconfig::read_from(path).map_err(failed)?,
        ChosenServer::Variable => Kubeconfig::from_env()
            .map_err(failed)?
            .ok_or(ClientError::Nowhere)?,
    };
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    Config::from_custom_kubeconfig(read, &options)
        .await
        .map_err(failed)
}
