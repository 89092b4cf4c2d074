//! A client that speaks over a unix socket: that of an embedded API, which lets root in without
//! credentials.

use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::client::legacy::Client as Http;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Client;
use kube::client::Body;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::UnixStream;
use tower::service_fn;

/// Asks nobody yet.
pub(super) fn client(path: &Path) -> Client {
    let path: Arc<PathBuf> = Arc::new(path.to_owned());
    let connect = service_fn(move |_: Uri| {
        let path = Arc::clone(&path);
        Box::pin(async move { UnixStream::connect(path.as_ref()).await.map(TokioIo::new) })
    });
    let http: Http<_, Body> = Http::builder(TokioExecutor::new()).build(connect);
    let ask = service_fn(move |mut request: http::Request<Body>| {
        let written = request.uri().path_and_query().cloned();
        *request.uri_mut() = here(written);
        http.request(request)
    });
    Client::new(ask, "default")
}

/// HTTP wants to name a host; who it is does not matter on a socket.
fn here(path: Option<PathAndQuery>) -> Uri {
    let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
    let parts = Uri::builder().scheme("http").authority("localhost");
    parts.path_and_query(path).build().unwrap_or_default()
}
