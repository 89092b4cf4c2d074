//! The queries on a TCP port of the loopback, for programs that ask Contrail's agent there. Only
//! what can be asked with GET; never `/cni`, and nobody from another machine.
//!
//! Any user of the node can connect, so that it is off unless asked for. A few threads serve it,
//! apart from those of the socket: whoever blocks them keeps no pod from being attached.

use crate::background::progress::EndsProcess;
use crate::serve::http::{self, HttpError, Limits, Response};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Requests served at a time.
const THREADS: usize = 4;
const STACK: usize = 512 * 1024;

const LIMITS: Limits = Limits {
    head: 8 * 1024,
    body: 0,
    time: Duration::from_secs(2),
};

/// Answers a GET: path and query.
pub(crate) type Answer = Arc<dyn Fn(&str, &str) -> Response + Send + Sync>;

/// Why the port is not served.
#[derive(Debug, thiserror::Error)]
pub enum QueryListenError {
    /// Others could ask.
    #[error(
        "--query-address {0} is not of the loopback: what pods have is nobody else's business; write 127.0.0.1 or [::1]"
    )]
    NotLoopback(SocketAddr),
    /// It cannot be had.
    #[error("cannot listen on {0} (--query-address): is another program using that port?")]
    Bind(SocketAddr, #[source] io::Error),
    /// There is no thread for it.
    #[error("cannot start a thread for {0}")]
    Thread(SocketAddr, #[source] io::Error),
}

/// Serves the queries until the process ends; says where.
pub(crate) fn serve(address: SocketAddr, answer: &Answer) -> Result<SocketAddr, QueryListenError> {
    if !address.ip().to_canonical().is_loopback() {
        return Err(QueryListenError::NotLoopback(address));
    }
    let failed = |error| QueryListenError::Bind(address, error);
    let listener = TcpListener::bind(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let listener = Arc::new(listener);
    for _ in 0..THREADS {
        let (listener, answer) = (Arc::clone(&listener), Arc::clone(answer));
        std::thread::Builder::new()
            .name("query".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                let _guard = EndsProcess::new("query");
                work(&listener, &answer);
            })
            .map_err(|error| QueryListenError::Thread(address, error))?;
    }
    Ok(bound)
}

fn work(listener: &TcpListener, answer: &Answer) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => one(stream, answer),
            Err(error) => {
                tracing::error!(%error, "accepting a query failed");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

fn one(mut stream: TcpStream, answer: &Answer) {
    let response = match http::read(&mut stream, LIMITS) {
        Ok(request) => {
            let (path, query) = request.path_and_query();
            if request.method != "GET" {
                Response::text(405, "only GET is served here\n")
            } else if path.starts_with("/cni/") {
                Response::text(404, "CNI is served on the agent's socket only\n")
            } else {
                answer(path, query)
            }
        }
        Err(HttpError::Closed) => return,
        Err(error) => Response::text(error.status(), format!("{error}\n")),
    };
    response.deliver(&mut stream);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::time::Instant;

    fn start() -> SocketAddr {
        let answer: Answer = Arc::new(|path, query| Response::text(200, format!("{path} {query}")));
        serve("127.0.0.1:0".parse().unwrap(), &answer).unwrap()
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn only_queries_are_answered() {
        let address = start();
        let got = ask(address, "GET /vm/x?a=b HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(
            got.starts_with("HTTP/1.1 200") && got.ends_with("/vm/x a=b"),
            "{got}"
        );
        for (request, status) in [
            ("POST /cni/add HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 405),
            ("POST /cni/add HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 413),
            ("DELETE /vm/x HTTP/1.1\r\n\r\n", 405),
            ("GET /cni/add HTTP/1.1\r\n\r\n", 404),
            ("\x16\x03\x01 garbage\r\n\r\n", 400),
        ] {
            let got = ask(address, request);
            assert!(
                got.starts_with(&format!("HTTP/1.1 {status}")),
                "{request}: {got}"
            );
        }
    }

    #[test]
    fn nobody_else_is_listened_to() {
        let answer: Answer = Arc::new(|_, _| Response::text(200, ""));
        for address in [
            "0.0.0.0:0",
            "[::]:0",
            "192.0.2.1:9091",
            "[::ffff:10.0.0.1]:1",
        ] {
            let error = serve(address.parse().unwrap(), &answer).unwrap_err();
            assert!(matches!(error, QueryListenError::NotLoopback(_)), "{error}");
        }
        let error = serve(start(), &answer).unwrap_err();
        assert!(error.to_string().contains("another program"), "{error}");
    }

    #[test]
    fn silent_peers_are_let_go() {
        let address = start();
        let silent: Vec<TcpStream> = (0..THREADS)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        let begun = Instant::now();
        let got = ask(address, "GET /x HTTP/1.1\r\n\r\n");
        assert!(got.contains("200"), "{got}");
        assert!(begun.elapsed() < Duration::from_secs(10));
        drop(silent);
    }

    #[test]
    fn a_thread_that_dies_ends_the_process() {
        const CHILD: &str = "PLEXUS_TEST_QUERY_DIES";
        if std::env::var_os(CHILD).is_some() {
            let answer: Answer = Arc::new(|_, _| panic!("by mistake"));
            let address = serve("127.0.0.1:0".parse().unwrap(), &answer).unwrap();
            ask(address, "GET /x HTTP/1.1\r\n\r\n");
            std::thread::sleep(Duration::from_secs(60));
            return;
        }
        let name = "serve::tcp::tests::a_thread_that_dies_ends_the_process";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        use std::os::unix::process::ExitStatusExt;
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(said.contains("by mistake"), "{said}");
        assert_eq!(child.status.signal(), Some(6), "{said}");
    }
}
