//! What goes wrong between us and an API server, and what to do about it.

/// Why the API server gave no answer, or not the one that was wanted.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody said where it is.
    #[error(
        "there is no API server to ask: start one (plexus up, plexus lab up), or name a cluster's with --kubeconfig or KUBECONFIG"
    )]
    Nowhere,
    /// The kubeconfig has no such context, or none that is current.
    #[error("{}: {}", context_problem(name, from), context_remedy(has))]
    NoContext {
        /// The one that is named or current; empty: none is.
        name: String,
        /// Where it is looked for.
        from: String,
        /// Those that there are.
        has: Vec<String>,
    },
    /// A kubeconfig cannot be used.
    #[error("cannot use the kubeconfig {from}: does it exist, and is it complete?")]
    Kubeconfig {
        /// Where it is from.
        from: String,
        /// The cause.
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
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// No runtime for the client.
    #[error("cannot start the client: is the process out of files or threads?")]
    Runtime(#[source] std::io::Error),
    /// The server cannot be reached, or does not answer.
    #[error(
        "cannot {what}: the API server at {server} does not answer{}",
        in_brackets(context)
    )]
    Silent {
        /// The operation that failed.
        what: String,
        /// The server.
        server: String,
        /// The context that names it.
        context: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// The request cannot be made: the server was not asked.
    #[error("cannot {what}: the request cannot be made")]
    Request {
        /// The operation that failed.
        what: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// The answer is not what a Kubernetes API says.
    #[error(
        "cannot {what}: the answer of the API server at {server} cannot be read: is it a Kubernetes API?"
    )]
    Answer {
        /// The operation that failed.
        what: String,
        /// The server.
        server: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// The server says no.
    #[error("cannot {what}: {message}{}", hint(*code, reason))]
    Refused {
        /// The operation that failed.
        what: String,
        /// HTTP code.
        code: u16,
        /// The server's word.
        reason: String,
        /// The server's text.
        message: String,
    },
    /// A list without an end.
    #[error(
        "cannot {what}: after {objects} objects the API server at {server} still has more: select by --selector or -n"
    )]
    Endless {
        /// The operation that failed.
        what: String,
        /// The server.
        server: String,
        /// What it has sent.
        objects: usize,
    },
    /// The server ended a watch, or did not begin one.
    #[error("cannot watch {plural} of the API server at {server} any longer")]
    Watch {
        /// The kind.
        plural: &'static str,
        /// The server.
        server: String,
        /// The cause.
        #[source]
        source: Box<plexus_client::WatchError>,
    },
    /// The server has no such kind.
    #[error(
        "cannot {what}: the API server knows no {kind} of {api_version}{}",
        definition(api_version)
    )]
    NoKind {
        /// The operation that failed.
        what: String,
        /// The kind.
        kind: String,
        /// Its group and version.
        api_version: String,
    },
}

impl ClientError {
    /// An error of a request to a server, and the context that names it.
    pub(super) fn of(
        what: impl Into<String>,
        server: &str,
        context: &str,
        error: kube::Error,
    ) -> Self {
        let (what, server) = (what.into(), server.to_owned());
        match error {
            kube::Error::Api(status) => Self::Refused {
                what,
                code: status.code,
                reason: status.reason.clone(),
                message: status.message.clone(),
            },
            kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => {
                Self::Silent {
                    what,
                    server,
                    context: context.to_owned(),
                    source: Box::new(error),
                }
            }
            kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => Self::Answer {
                what,
                server,
                source: Box::new(error),
            },
            error => Self::Request {
                what,
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

fn in_brackets(context: &str) -> String {
    match context {
        "" => String::new(),
        context => format!(" ({context})"),
    }
}

fn context_problem(name: &str, from: &str) -> String {
    match name {
        "" => format!("no context is current in the kubeconfig {from}"),
        name => format!("there is no context {name} in the kubeconfig {from}"),
    }
}

fn context_remedy(has: &[String]) -> String {
    match has {
        [] => "start a server (plexus up, plexus lab up), or name a cluster's with --kubeconfig or KUBECONFIG".to_owned(),
        has => format!(
            "name one with --context, or make it current (kubectl config use-context): {}",
            has.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_was_asked_can_be_silent() {
        let of = |error| ClientError::of("apply pod/", "s", "", error).to_string();
        let nameless = kube::core::request::Error::Validation("a name is required".to_owned());
        let message = of(kube::Error::BuildRequest(nameless));
        assert_eq!(message, "cannot apply pod/: the request cannot be made");
        let odd = serde_json::from_str::<u8>("<html>").unwrap_err();
        let message = of(kube::Error::SerdeError(odd));
        assert!(message.contains("cannot be read"), "{message}");
        let message = of(kube::Error::Service("refused".into()));
        assert!(message.ends_with("does not answer"), "{message}");
    }
}
