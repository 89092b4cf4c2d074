//! What is the same for all requests to the API server: who writes, how long an answer is waited for, how objects are
//! made and changed, and what an error says.

use k8s_openapi::NamespaceResourceScope;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::io;
use std::time::Duration;

/// Who writes, as the API server sees it.
pub(super) const MANAGER: &str = "plexus-agent";
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// The objects of a kind, in all namespaces or in none.
pub(super) fn all<W: Resource<DynamicType = ()>>(client: &Client) -> Api<W> {
    Api::all(client.clone())
}

pub(super) fn namespaced<W>(client: &Client, namespace: &str) -> Api<W>
where
    W: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), namespace)
}

/// An object as it is sent.
pub(super) fn object<W: Resource<DynamicType = ()>>(
    metadata: Value,
    spec: impl Serialize,
) -> Value {
    json!({
        "apiVersion": W::api_version(&()),
        "kind": W::kind(&()),
        "metadata": metadata,
        "spec": spec,
    })
}

/// Creates an object that is in no namespace.
pub(super) async fn create<W>(client: &Client, object: &Value) -> kube::Result<W>
where
    W: Resource<DynamicType = ()> + DeserializeOwned,
{
    let params = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    let request = Request::new(W::url_path(&(), None)).create(&params, body);
    client
        .request(request.map_err(kube::Error::BuildRequest)?)
        .await
}

pub(super) async fn merge<W>(api: &Api<W>, name: &str, patch: Value) -> kube::Result<W>
where
    W: Clone + DeserializeOwned + Debug,
{
    api.patch(name, &merging(), &Patch::Merge(patch)).await
}

pub(super) async fn merge_status<W>(api: &Api<W>, name: &str, patch: Value) -> kube::Result<W>
where
    W: Clone + DeserializeOwned + Debug,
{
    api.patch_status(name, &merging(), &Patch::Merge(patch))
        .await
}

fn merging() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// Waits for an answer, but not for ever: a server that took the request may be gone.
pub(super) async fn within<T>(request: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    let late = |_| {
        let text = format!("no answer within {} s", ANSWER_TIMEOUT.as_secs());
        kube::Error::Service(io::Error::new(io::ErrorKind::TimedOut, text).into())
    };
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, request).await;
    answer.map_err(late)?
}

/// What the API said, without the client's own words around it.
pub(super) fn error_text(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => crate::failure::chain(error),
    }
}

/// The HTTP code of an answer; none: there was no answer.
pub(super) fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}
