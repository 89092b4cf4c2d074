//! A client that speaks over a unix socket: that of an embedded API, which lets root in without
//! credentials. The server is found anew for every connection: it may end and be there again.

use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::client::legacy::Client as Http;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Client;
use kube::client::Body;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tower::{BoxError, service_fn};

/// A client whose answers begin within a limit. Asks nobody yet; must be called inside of a runtime.
pub fn over_socket(path: &Path, limit: Duration) -> Client {
    let path: Arc<PathBuf> = Arc::new(path.to_owned());
    let connect = service_fn(move |_: Uri| {
        let path = Arc::clone(&path);
        Box::pin(async move {
            let connected = connect(&path).await;
            let named = |error: io::Error| {
                let text = format!("{}: {error}", path.display());
                io::Error::new(error.kind(), text)
            };
            connected.map(TokioIo::new).map_err(named)
        })
    });
    let http: Http<_, Body> = Http::builder(TokioExecutor::new()).build(connect);
    let ask = service_fn(move |mut request: http::Request<Body>| {
        let written = request.uri().path_and_query().cloned();
        *request.uri_mut() = local_uri(written);
        let answer = http.request(request);
        async move {
            match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer.map_err(BoxError::from),
                Err(_) => Err(format!("no answer within {} s", limit.as_secs_f32()).into()),
            }
        }
    });
    Client::new(ask, "default")
}

/// Whoever listens is root or we: nobody else is believed.
async fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path).await?;
    let uid = stream.peer_cred()?.uid();
    if uid != 0 && uid != rustix::process::geteuid().as_raw() {
        let text = format!("user {uid} listens there: it is not asked");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(stream)
}

/// HTTP wants to name a host; who it is does not matter on a socket.
fn local_uri(path: Option<PathAndQuery>) -> Uri {
    let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
    let parts = Uri::builder().scheme("http").authority("localhost");
    parts.path_and_query(path).build().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_that_never_answers_is_not_waited_for() {
        let path = std::env::temp_dir().join(format!("px-silent-{}", std::process::id()));
        let _silent = tokio::net::UnixListener::bind(&path).unwrap();
        let client = over_socket(&path, Duration::from_millis(100));
        let asked = tokio::time::timeout(Duration::from_secs(60), client.apiserver_version()).await;
        let _ = std::fs::remove_file(&path);
        let error = asked.expect("it ends by itself").unwrap_err();
        let message = format!("{error} {error:?}");
        assert!(message.contains("no answer within 0.1 s"), "{message}");
    }

    #[tokio::test]
    async fn one_that_is_not_there_is_named() {
        let client = over_socket(Path::new("/nonexistent/api.sock"), Duration::from_secs(1));
        let error = client.apiserver_version().await.unwrap_err();
        let message = format!("{error:?}");
        assert!(message.contains("/nonexistent/api.sock"), "{message}");
    }
}
