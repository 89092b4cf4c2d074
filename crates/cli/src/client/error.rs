//! What goes wrong between us and an API server, and what to do about it.

use std::path::PathBuf;

/// Why the API server gave no answer, or not the one that was wanted.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody said where it is.
    #[error(
        "there is no API server to ask: start one (plexus up, plexus lab up), or name a cluster's with --kubeconfig or KUBECONFIG"
    )]
    Nowhere,
    /// Several labs run.
    #[error("several labs run: name one (PLEXUS_LAB=NAME, or its kubeconfig with --kubeconfig): {}", list(.0))]
    Several(Vec<PathBuf>),
    /// A kubeconfig cannot be used.
    #[error("cannot use the kubeconfig {from}: does it exist, and has it that context?")]
    Kubeconfig {
        /// Where it is from.
        from: String,
        /// Why.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// Inside of a pod without an account.
    #[error("this is a pod, and its service account cannot be used")]
    InCluster(#[source] Box<kube::config::InClusterError>),
    /// A client cannot be made of it.
    #[error("the credentials of {from} cannot be used")]
    Client {
        /// Where they are from.
        from: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// No runtime for the client.
    #[error("cannot start the client: is the process out of files or threads?")]
    Runtime(#[source] std::io::Error),
    /// The server cannot be reached, or does not answer.
    #[error("cannot {what}: the API server at {server} does not answer")]
    Silent {
        /// What was wanted.
        what: String,
        /// Where.
        server: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The server says no.
    #[error("cannot {what}: {message}{}", hint(*code, reason))]
    Refused {
        /// What was wanted.
        what: String,
        /// HTTP code.
        code: u16,
        /// The server's word.
        reason: String,
        /// The server's text.
        message: String,
    },
    /// The server has no such kind.
    #[error(
        "cannot {what}: the API server knows no {kind} of {api_version}{}",
        definition(api_version)
    )]
    NoKind {
        /// What was wanted.
        what: String,
        /// The kind.
        kind: String,
        /// Its group and version.
        api_version: String,
    },
}

impl ClientError {
    /// An error of a request.
    pub(super) fn of(what: impl Into<String>, server: &str, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused {
                what: what.into(),
                code: status.code,
                reason: status.reason.clone(),
                message: status.message.clone(),
            },
            error => Self::Silent {
                what: what.into(),
                server: server.to_owned(),
                source: Box::new(error),
            },
        }
    }

    /// Whether the server said that there is no such object or kind.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { code: 404, .. } | Self::NoKind { .. })
    }

    /// Whether the server would not let us.
    pub fn is_forbidden(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                code: 401 | 403,
                ..
            }
        )
    }
}

fn hint(code: u16, reason: &str) -> &'static str {
    match (code, reason) {
        (401, _) => "; log in again, or use another context (--context)",
        (403, _) => "; ask for that right, or use another context (--context)",
        (409, "AlreadyExists") => "; plexus apply changes what is there",
        (409, _) => "; --force-conflicts takes those fields over",
        _ => "",
    }
}

fn definition(api_version: &str) -> &'static str {
    match api_version.split('/').next() {
        Some("plexus.dev" | "k8s.cni.cncf.io") => {
            ": is Plexus installed there? (deploy/install.yaml; its controller makes the definitions)"
        }
        Some("net.cogadvisor.io" | "cni.networking.x-k8s.io") => {
            ": apply its definition first; the embedded API (plexus up, plexus lab) has it"
        }
        _ => ": apply its definition first",
    }
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    paths.join(", ")
}
