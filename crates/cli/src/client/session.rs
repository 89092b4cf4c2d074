//! A connection to an API server, for a command that does one thing and ends.

use super::{ChosenServer, ClientError};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use plexus_client::context::MARK;
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
    /// The context that names it, for errors; empty if none does.
    context: String,
    /// Which context that is, if its server is not one of `plexus up` or of a lab.
    pub foreign: Option<String>,
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
        if let Some(path) = chosen.socket() {
            let client = {
                let _inside = runtime.enter();
                plexus_client::over_socket(path, ANSWER_TIMEOUT)
            };
            return Ok(Self {
                runtime,
                client,
                server: path.display().to_string(),
                context: String::new(),
                foreign: None,
                namespace: "default".to_owned(),
            });
        }
        let from = chosen.to_string();
        let named = NamedContext::of(chosen, context)?;
        let mut config = runtime.block_on(named.config(&from))?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(ANSWER_TIMEOUT);
        config.write_timeout = Some(ANSWER_TIMEOUT);
        let (server, namespace) = (
            config
                .cluster_url
                .to_string()
                .trim_end_matches('/')
                .to_owned(),
            config.default_namespace.clone(),
        );
        // The client's own queue is a task of the runtime.
        let client = {
            let _inside = runtime.enter();
            Client::try_from(config).map_err(|source| ClientError::Client {
                from: from.clone(),
                source: Box::new(source),
            })?
        };
        Ok(Self {
            runtime,
            client,
            foreign: named.foreign(&from, &server),
            server,
            context: named.words(&from),
            namespace,
        })
    }

    /// Waits for something.
    pub(super) fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// The error of a request.
    pub(super) fn failed(&self, what: impl Into<String>, error: kube::Error) -> ClientError {
        ClientError::of(what, &self.server, &self.context, error)
    }

    /// What the server says of itself, and whether it answers at all.
    pub fn version(&self) -> Result<Value, ClientError> {
        let asked = self.wait(self.client.apiserver_version());
        let info = asked.map_err(|error| self.failed("ask for its version", error))?;
        Ok(serde_json::to_value(&info).unwrap_or_default())
    }
}

/// A context of a kubeconfig; or the account of this pod, which has none.
enum NamedContext {
    Of {
        name: String,
        is_ours: bool,
        kubeconfig: Box<Kubeconfig>,
    },
    Account,
}

impl NamedContext {
    /// The one that is named, or the current one.
    fn of(chosen: &ChosenServer, named: Option<&str>) -> Result<Self, ClientError> {
        let Some(kubeconfig) = chosen.contexts()? else {
            return Ok(Self::Account);
        };
        let current = kubeconfig.current_context.as_deref();
        let name = named.or(current).unwrap_or_default().to_owned();
        let found = kubeconfig.contexts.iter().find(|one| one.name == name);
        let context = found.and_then(|one| one.context.as_ref());
        let Some(context) = context else {
            return Err(ClientError::NoContext {
                name,
                from: chosen.to_string(),
                has: kubeconfig
                    .contexts
                    .into_iter()
                    .map(|one| one.name)
                    .collect(),
            });
        };
        let mut extensions = context.extensions.iter().flatten();
        let is_ours = extensions.any(|one| one.name == MARK);
        Ok(Self::Of {
            name,
            is_ours,
            kubeconfig: Box::new(kubeconfig),
        })
    }

    async fn config(&self, from: &str) -> Result<Config, ClientError> {
        let Self::Of {
            name, kubeconfig, ..
        } = self
        else {
            return Config::incluster().map_err(|error| ClientError::InCluster(Box::new(error)));
        };
        let options = KubeConfigOptions {
            context: Some(name.clone()),
            ..KubeConfigOptions::default()
        };
        Config::from_custom_kubeconfig((**kubeconfig).clone(), &options)
            .await
            .map_err(|source| ClientError::Kubeconfig {
                from: from.to_owned(),
                source: Box::new(source),
            })
    }

    /// `context NAME of FILE`; nothing if it has no name.
    fn words(&self, from: &str) -> String {
        match self {
            Self::Of { name, .. } => format!("context {name} of {from}"),
            Self::Account => String::new(),
        }
    }

    /// What is said before anything is asked of a server that is not ours.
    fn foreign(&self, from: &str, server: &str) -> Option<String> {
        match self {
            Self::Of { is_ours: false, .. } => Some(format!("{}: {server}", self.words(from))),
            Self::Of { .. } | Self::Account => None,
        }
    }
}
