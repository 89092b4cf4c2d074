//! `/healthz`, `/readyz` and `/metrics` over plain HTTP, on a port and on a socket: just enough of it for a kubelet's
//! probes and for Prometheus. Never reads a body and closes after each answer.

use crate::metrics::Metrics;
use crate::{Error, Options};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a request and its answer may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request's head may be.
const MAX_HEAD_BYTES: usize = 8192;
/// How many are served at a time; more wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 32;

/// Why this replica is not ready, by who says so; ready if nobody does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readiness(Arc<Mutex<BTreeMap<&'static str, String>>>);

impl Readiness {
    /// Not ready, for this reason of `who`.
    pub(crate) fn not_yet(&self, who: &'static str, why: impl Into<String>) {
        if let Ok(mut reasons) = self.0.lock() {
            reasons.insert(who, why.into());
        }
    }

    /// `who` is content.
    pub(crate) fn ready(&self, who: &'static str) {
        if let Ok(mut reasons) = self.0.lock() {
            reasons.remove(who);
        }
    }

    /// Empty if ready, else a line a reason.
    fn reasons(&self) -> String {
        self.0.lock().map_or_else(
            |_| "poisoned\n".to_owned(),
            |reasons| {
                reasons
                    .iter()
                    .map(|(who, why)| format!("{who}: {why}\n"))
                    .collect()
            },
        )
    }
}

/// Serves where the options say, until it is dropped.
pub(crate) async fn serve(
    options: &Options,
    readiness: &Readiness,
    metrics: &Arc<Metrics>,
) -> Result<(), Error> {
    let served = Served {
        readiness: readiness.clone(),
        metrics: Arc::clone(metrics),
        slots: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
    };
    let on_port = async {
        match options.health {
            Some(address) => served.on_port(address).await,
            None => std::future::pending().await,
        }
    };
    let on_socket = async {
        match &options.health_socket {
            Some(path) => served.on_socket(path).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = on_port => ended,
        ended = on_socket => ended,
    }
}

/// What is said, and how many may ask.
struct Served {
    readiness: Readiness,
    metrics: Arc<Metrics>,
    slots: Arc<Semaphore>,
}

impl Served {
    async fn on_port(&self, address: SocketAddr) -> Result<(), Error> {
        let failed = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        tracing::info!(%address, "serving /healthz, /readyz and /metrics");
        loop {
            let slot = self.slots.clone().acquire_owned().await;
            let stream = listener.accept().await.map(|(stream, _)| stream);
            self.converse(slot.ok(), stream).await;
        }
    }

    /// For the kubelet's probes: a port of the node may lead to a pod.
    async fn on_socket(&self, path: &Path) -> Result<(), Error> {
        let listener = bind(path).map_err(|source| Error::Socket {
            path: path.to_owned(),
            source,
        })?;
        tracing::info!(socket = %path.display(), "serving /healthz, /readyz and /metrics");
        loop {
            let slot = self.slots.clone().acquire_owned().await;
            let stream = listener.accept().await.map(|(stream, _)| stream);
            self.converse(slot.ok(), stream).await;
        }
    }

    /// In a task of its own, which gives the slot back.
    async fn converse<S>(&self, slot: Option<OwnedSemaphorePermit>, stream: io::Result<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Ok(stream) = stream else {
            // Out of descriptors, most likely: give others the time to close some.
            tokio::time::sleep(Duration::from_millis(100)).await;
            return;
        };
        let (readiness, metrics) = (self.readiness.clone(), Arc::clone(&self.metrics));
        tokio::spawn(async move {
            let _ =
                tokio::time::timeout(REQUEST_TIMEOUT, converse(stream, &readiness, &metrics)).await;
            drop(slot);
        });
    }
}

/// An earlier process of the same pod may have left its own.
fn bind(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    readiness: &Readiness,
    metrics: &Metrics,
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let mut part = [0; 1024];
        let read = stream.read(&mut part).await?;
        head.extend(part.get(..read).unwrap_or_default());
        if read == 0 || head.len() > MAX_HEAD_BYTES {
            break;
        }
    }
    stream
        .write_all(answer(&head, readiness, metrics).as_bytes())
        .await?;
    stream.shutdown().await
}

fn answer(head: &[u8], readiness: &Readiness, metrics: &Metrics) -> String {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = target.split('?').next().unwrap_or("");
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/healthz") => ("200 OK", "ok\n".to_owned()),
        ("GET" | "HEAD", "/readyz") => match readiness.reasons() {
            none if none.is_empty() => ("200 OK", "ok\n".to_owned()),
            reasons => ("503 Service Unavailable", reasons),
        },
        ("GET" | "HEAD", "/metrics") => ("200 OK", metrics.render()),
        ("GET" | "HEAD", _) => (
            "404 Not Found",
            "there are /healthz, /readyz, /metrics\n".to_owned(),
        ),
        _ => ("405 Method Not Allowed", "only GET\n".to_owned()),
    };
    let length = body.len();
    let body = if method == "HEAD" { "" } else { &body };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(head: &[u8], readiness: &Readiness) -> String {
        answer(head, readiness, &Metrics::default())
    }

    #[test]
    fn readiness_says_every_reason() {
        let readiness = Readiness::default();
        assert!(ask(b"GET /readyz HTTP/1.1\r\n\r\n", &readiness).starts_with("HTTP/1.1 200"));
        readiness.not_yet("crds", "no networks.plexus.dev");
        readiness.not_yet("sync", "nodes");
        let response = ask(b"GET /readyz?verbose HTTP/1.1\r\n\r\n", &readiness);
        assert!(response.starts_with("HTTP/1.1 503"));
        assert!(
            response.ends_with("crds: no networks.plexus.dev\nsync: nodes\n"),
            "{response}"
        );
        readiness.ready("crds");
        readiness.ready("sync");
        assert!(ask(b"GET /readyz HTTP/1.1\r\n\r\n", &readiness).ends_with("\r\n\r\nok\n"));
    }

    /// The kubelet asks by the socket: whoever has the port of that number answers nothing.
    #[tokio::test]
    async fn the_socket_answers_whoever_has_the_port() {
        let directory = std::env::temp_dir().join(format!("plexus-health-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("controller.sock");
        std::fs::write(&path, "left by the process before").unwrap();
        let options = Options {
            health_socket: Some(path.clone()),
            ..Options::new("one")
        };
        let readiness = Readiness::default();
        readiness.not_yet("sync", "nodes");
        let metrics = Arc::default();
        let ask = async {
            let mut stream = loop {
                match tokio::net::UnixStream::connect(&path).await {
                    Ok(stream) => break stream,
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            };
            let request = b"GET /readyz HTTP/1.1\r\n\r\n";
            stream.write_all(request).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer = tokio::select! {
            ended = serve(&options, &readiness, &metrics) => panic!("{ended:?}"),
            answer = ask => answer,
        };
        assert!(answer.ends_with("\r\n\r\nsync: nodes\n"), "{answer}");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn hostile_requests() {
        let readiness = Readiness::default();
        for head in [
            &b""[..],
            b"\xff\xfe",
            b"GET",
            b"POST /healthz HTTP/1.1\r\n\r\n",
            b"\r\n\r\n",
        ] {
            assert!(ask(head, &readiness).starts_with("HTTP/1.1 40"), "{head:?}");
        }
        let head = ask(b"HEAD /healthz HTTP/1.1\r\n\r\n", &readiness);
        assert!(head.ends_with("\r\n\r\n"), "{head}");
    }
}
