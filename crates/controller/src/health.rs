//! `/healthz`, `/readyz` and `/metrics` over plain HTTP: just enough of it for a kubelet and for
//! Prometheus. Never reads a body and closes after each answer.

use crate::Error;
use crate::metrics::Metrics;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

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

/// Serves until it is dropped.
pub(crate) async fn serve(
    address: SocketAddr,
    readiness: Readiness,
    metrics: Arc<Metrics>,
) -> Result<(), Error> {
    let failed = |source| Error::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    tracing::info!(%address, "serving /healthz, /readyz and /metrics");
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else {
            return Ok(());
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: give others the time to close some.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (readiness, metrics) = (readiness.clone(), metrics.clone());
        tokio::spawn(async move {
            let _ =
                tokio::time::timeout(REQUEST_TIMEOUT, converse(stream, &readiness, &metrics)).await;
            drop(slot);
        });
    }
}

async fn converse(
    mut stream: TcpStream,
    readiness: &Readiness,
    metrics: &Metrics,
) -> std::io::Result<()> {
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
