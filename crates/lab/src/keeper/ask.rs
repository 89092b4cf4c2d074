//! Whether a process does its work, as it says itself: `/readyz` over its socket.

use crate::cni::List;
use crate::error::chain;
use crate::layout::Layout;
use crate::name::NodeName;
use crate::part::CONTROLLER_HEALTH;
use crate::underlay;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// The controller, in the fabric's namespace.
pub(super) async fn controller(layout: &Layout) -> Result<(), String> {
    let fabric = layout.name().fabric();
    let connect = move || -> Result<std::net::TcpStream, String> {
        let fabric = underlay::open(&fabric).map_err(|error| chain(&error))?;
        let connected = fabric.enter(|| std::net::TcpStream::connect(CONTROLLER_HEALTH));
        let connected = connected.map_err(|error| chain(&error))?;
        connected.map_err(|error| format!("no answer yet: {error}"))
    };
    let asked = async {
        let connected = tokio::task::spawn_blocking(connect).await;
        let stream = connected.map_err(|error| error.to_string())??;
        let prepared = stream.set_nonblocking(true);
        let stream = prepared.and_then(|()| TcpStream::from_std(stream));
        readyz(stream.map_err(|error| error.to_string())?).await
    };
    within(asked).await
}

/// An agent, by its socket; and a runtime must find its configuration.
pub(super) async fn agent(layout: &Layout, node: NodeName) -> Result<(), String> {
    let socket = layout.agent_socket(node);
    let asked = async {
        let stream = UnixStream::connect(&socket).await;
        readyz(stream.map_err(|error| format!("no answer yet: {error}"))?).await
    };
    within(asked).await?;
    List::first_of(&layout.cni_conf(node))
        .map(drop)
        .map_err(|error| error.to_string())
}

async fn within(asked: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    tokio::time::timeout(REQUEST_TIMEOUT, asked)
        .await
        .unwrap_or_else(|_| Err("it does not answer".to_owned()))
}

async fn readyz(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("it does not answer: {error}");
    let request = b"GET /readyz HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.map_err(failed)?;
    let mut answer = Vec::new();
    let mut bounded = stream.take(64 * 1024);
    bounded.read_to_end(&mut answer).await.map_err(failed)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.split(' ').nth(1) == Some("200") {
        return Ok(());
    }
    Err(body.trim().replace('\n', "; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answered(answer: &str) -> Result<(), String> {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        theirs.write_all(answer.as_bytes()).await.unwrap();
        let other = tokio::spawn(async move {
            let mut request = [0; 8];
            theirs.read_exact(&mut request).await.unwrap();
            theirs.shutdown().await.unwrap();
        });
        let answer = readyz(ours).await;
        other.await.unwrap();
        answer
    }

    #[tokio::test]
    async fn the_reasons_are_said() {
        assert_eq!(answered("HTTP/1.1 200 OK\r\n\r\nok\n").await, Ok(()));
        let not = "HTTP/1.1 503 Service Unavailable\r\n\r\nno block\nno peer\n";
        assert_eq!(answered(not).await, Err("no block; no peer".to_owned()));
        assert!(answered("").await.is_err());
    }
}
