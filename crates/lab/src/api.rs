//! The lab's API server, as a client sees it. Owns how a client is made and the few calls that several use;
//! judges nothing.

use crate::address;
use crate::error::LabError;
use crate::layout::Layout;
use kube::Client;
use plexus_client::{Server, Timeouts};
use serde_json::Value;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Who writes, for the objects' managed fields.
pub(crate) const MANAGER: &str = "plexus-lab";

/// How long the server may take.
const API_TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(2),
    send: None,
    answer: Duration::from_secs(60),
};

/// A client by a kubeconfig.
pub(crate) async fn client(kubeconfig: &Path) -> Result<Client, LabError> {
    let server = Server::Kubeconfig(kubeconfig.to_owned());
    Ok(server.client(API_TIMEOUTS).await?)
}

/// The kubeconfig of a lab that is there.
pub fn kubeconfig(layout: &Layout) -> Result<PathBuf, LabError> {
    match crate::Spec::read(layout)? {
        Some(_) => Ok(layout.kubeconfig()),
        None => Err(LabError::no_lab(layout)),
    }
}

/// Runs calls to the API from the command line, to the end.
pub(crate) fn block_on<T, F>(work: impl FnOnce(Client) -> F, layout: &Layout) -> Result<T, LabError>
where
    F: Future<Output = Result<T, LabError>>,
{
    let kubeconfig = kubeconfig(layout)?;
    runtime()?.block_on(async { work(client(&kubeconfig).await?).await })
}

/// One thread, for whoever calls.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, LabError> {
    let built = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    built.map_err(|source| LabError::Start {
        what: "a runtime".to_owned(),
        source,
    })
}

/// The server's kubeconfig for those inside the lab: the same, but for where the server is.
pub(crate) fn inner_kubeconfig(text: &str) -> Result<String, io::Error> {
    let mut kubeconfig: Value = serde_json::from_str(text)?;
    let clusters = kubeconfig.get_mut("clusters").and_then(Value::as_array_mut);
    let servers = clusters
        .into_iter()
        .flatten()
        .filter_map(|cluster| cluster.pointer_mut("/cluster/server"));
    let mut found = false;
    for server in servers {
        *server = format!("https://{}", address::api_server()).into();
        found = true;
    }
    if !found {
        return Err(io::Error::other("it names no server"));
    }
    Ok(format!("{kubeconfig:#}\n"))
}

/// Whether the API says that there is no such object.
pub(crate) fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether the API says that there is one already, or that it is another one by now.
pub(crate) fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_server_is_another() {
        let text = json!({"apiVersion": "v1", "users": [{"name": "admin"}], "clusters": [
            {"name": "plexus", "cluster": {"certificate-authority-data": "QUJD", "server": "https://127.0.0.1:7001"}}]});
        let inner = inner_kubeconfig(&text.to_string()).unwrap();
        let inner: Value = serde_json::from_str(&inner).unwrap();
        let mut expected = text;
        expected["clusters"][0]["cluster"]["server"] = "https://10.200.0.254:6443".into();
        assert_eq!(inner, expected);
        assert!(inner_kubeconfig("{}").is_err());
        assert!(inner_kubeconfig("").is_err());
    }
}
