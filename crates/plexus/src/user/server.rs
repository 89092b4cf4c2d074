//! The flags about the API server and the namespace, and the session that they choose.

use crate::value;
use clap::Args;
use plexus_cli::client::{ChosenServer, Need, ServerSources, Session, choose};
use plexus_cli::kinds::Kind;
use plexus_cli::snapshot::{CLUSTER_NAME, Snapshot};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Which server.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "API server")]
pub(crate) struct ServerFlags {
    /// The kubeconfig; default: KUBECONFIG, else ~/.kube/config. `plexus up` and `plexus lab up` put a context there.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Unix socket of an embedded API instead; root needs no credentials there.
    #[arg(long, value_name = "PATH", conflicts_with = "kubeconfig")]
    api_socket: Option<PathBuf>,
    /// The context in it; default: the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The namespace; default: the context's, else default.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
}

/// What agents were told of their cluster.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterFlags {
    /// The agents' --cluster-name, the first part of Contrail's names.
    #[arg(long, env = "PLEXUS_CLUSTER_NAME", value_name = "NAME", default_value = CLUSTER_NAME, value_parser = value::label)]
    pub(crate) cluster_name: String,
}

/// The same, with `-A`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScopedFlags {
    #[command(flatten)]
    pub(crate) server: ServerFlags,
    /// All namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
}

impl ServerFlags {
    /// Where the server that counts is named.
    pub(crate) fn chosen(&self) -> anyhow::Result<ChosenServer> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let sources = ServerSources {
            socket: self.api_socket.clone(),
            flag: self.kubeconfig.clone(),
            variable: std::env::var_os("KUBECONFIG"),
            home: home.map(|home| home.join(".kube/config")),
            in_pod: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
        };
        Ok(choose(&sources)?)
    }

    /// A session with it. A server that is not of `plexus up` or of a lab is named before it is asked.
    pub(crate) fn session(&self) -> anyhow::Result<Session> {
        let session = Session::open(&self.chosen()?, self.context.as_deref())?;
        if let Some(foreign) = &session.foreign {
            eprintln!("{foreign}");
        }
        Ok(session)
    }

    /// The namespace that counts.
    pub(crate) fn namespace(&self, session: &Session) -> String {
        let written = self.namespace.clone();
        written.unwrap_or_else(|| session.namespace.clone())
    }

    /// The namespace that is written, where no server is asked.
    pub(crate) fn written_namespace(&self) -> String {
        let written = self.namespace.clone();
        written.unwrap_or_else(|| "default".to_owned())
    }

    /// The namespace and the name of what was named `[namespace/]name`.
    pub(crate) fn namespace_and_name(
        &self,
        session: &Session,
        name: &str,
    ) -> anyhow::Result<(String, String)> {
        let (within, name) = self.written_place(name)?;
        let namespace = within.map(str::to_owned);
        Ok((
            namespace.unwrap_or_else(|| self.namespace(session)),
            name.to_owned(),
        ))
    }

    /// The same, without a namespace where none is written.
    pub(crate) fn written_place<'n>(
        &'n self,
        name: &'n str,
    ) -> anyhow::Result<(Option<&'n str>, &'n str)> {
        value::namespace_and_name(name, self.namespace.as_deref())
    }
}

/// What the server has.
pub(crate) fn snapshot(
    session: &Session,
    needs: &[Need],
    namespace: Option<&str>,
) -> anyhow::Result<Snapshot> {
    Ok(session.snapshot(needs, namespace, now())?)
}

/// What there is around one object: of a pod what it refers to, of others the cluster.
pub(crate) fn around(
    session: &Session,
    kind: &Kind,
    (namespace, name): &(String, String),
    cluster: &ClusterFlags,
) -> anyhow::Result<Snapshot> {
    let cluster_name = &cluster.cluster_name;
    if kind.kind == "Pod" {
        return Ok(session.snapshot_of_pod(namespace, name, cluster_name, now())?);
    }
    let mut snapshot = snapshot(session, &Need::ALL, Some(namespace))?;
    snapshot.cluster_name = Some(cluster_name.clone());
    Ok(snapshot)
}

/// Prints once what could not be read.
pub(crate) fn print_unknown<'w>(snapshots: impl IntoIterator<Item = &'w Snapshot>) {
    let snapshots = snapshots.into_iter();
    let reasons: BTreeSet<&String> = snapshots
        .flat_map(|snapshot| snapshot.unknown.values())
        .collect();
    for why in reasons {
        eprintln!("note: {why}");
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}
