//! Mutated requests on the socket: `tests/corpus/<target>/` is replayed and changed. What is read does not depend on how
//! the bytes come in, is within the limits, and is answered by an error with bounds or understood.

use super::call::Call;
use super::http::{HttpError, Limits, Request, read};
use plexus_api::cni::{Command, Error, NetConf, Version};
use plexus_fuzz::{Kind, Target, bounded};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tracing::Span;

const fn target(name: &'static str, kind: Kind) -> Target {
    Target::new(env!("CARGO_PKG_NAME"), name, kind)
}

/// Someone who sends these bytes, some at a time, and then nothing more.
struct Peer<'a> {
    rest: &'a [u8],
    at_once: usize,
    told: usize,
    /// Timeouts are set on it; nobody reads it.
    socket: &'a UnixStream,
}

impl Read for Peer<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.at_once.min(buffer.len()).min(self.rest.len());
        let (now, later) = self.rest.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.rest = later;
        Ok(count)
    }
}

impl Write for Peer<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.told += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl AsFd for Peer<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

const LIMITS: Limits = Limits {
    head: 1024,
    body: 4096,
    time: Duration::from_secs(3600),
};
/// As much as a read takes at once.
const CHUNK: usize = 16 * 1024;

fn sent(input: &[u8], at_once: usize, socket: &UnixStream) -> Result<Request, HttpError> {
    let mut peer = Peer {
        rest: input,
        at_once,
        told: 0,
        socket,
    };
    let read = read(&mut peer, LIMITS);
    let taken = input.len() - peer.rest.len();
    assert!(
        taken < LIMITS.head + LIMITS.body + CHUNK,
        "{taken} bytes were taken"
    );
    assert!(
        peer.told <= 25,
        "{} bytes before the request was read",
        peer.told
    );
    read
}

#[test]
fn request() {
    const WORDS: &[&str] = &[
        "POST",
        "GET",
        "/cni/add",
        "HTTP/1.1",
        "HTTP/1.0",
        "Content-Length",
        "Content-Length: 3",
        "content-length: 2\r\n",
        "Transfer-Encoding: chunked",
        "Expect: 100-continue",
        "\r\n\r\n",
        "\r\n",
        "\n",
        ": ",
        " ",
        "?",
        "%2e",
    ];
    let (socket, _other) = UnixStream::pair().unwrap();
    target("request", Kind::Bytes)
        .words(WORDS)
        .most(24 << 10)
        .inputs(1_500)
        .run(|input| {
            let whole = sent(input, CHUNK, &socket);
            let parts = sent(
                input,
                [1, 5, 64, 1000][input.len() % 4].max(input.len() / 200),
                &socket,
            );
            match (whole, parts) {
                (Ok(whole), Ok(parts)) => {
                    assert_eq!(
                        (&whole.method, &whole.target),
                        (&parts.method, &parts.target)
                    );
                    assert_eq!(whole.body, parts.body);
                    understood(input, &whole)
                }
                (Err(whole), Err(parts)) => {
                    let why = whole.to_string();
                    bounded("an error", &why, 500);
                    assert_eq!(why, parts.to_string());
                    assert!((400..500).contains(&whole.status()));
                    why
                }
                (whole, parts) => panic!("it depends on how it comes in: {whole:?}, {parts:?}"),
            }
        });
}

/// The body is as long as all that the head says about it.
fn understood(input: &[u8], request: &Request) -> String {
    let (path, query) = request.path_and_query();
    assert!(request.method.len() + path.len() + query.len() < LIMITS.head);
    assert!(request.body.len() <= LIMITS.body);
    let head = String::from_utf8_lossy(input);
    let head = head.split("\r\n\r\n").next().unwrap_or_default();
    let head = head.split("\n\n").next().unwrap_or_default();
    let named = head.lines().filter_map(|line| line.split_once(':'));
    let lengths = named.filter(|(name, _)| name.trim().eq_ignore_ascii_case("content-length"));
    let lengths: Vec<&str> = lengths.map(|(_, value)| value.trim()).collect();
    for length in &lengths {
        assert_eq!(length.parse(), Ok(request.body.len()), "{lengths:?}");
        assert!(
            length.bytes().all(|byte| byte.is_ascii_digit()),
            "{lengths:?}"
        );
    }
    format!(
        "{} {} {}",
        request.method.len().min(9),
        query.is_empty(),
        request.body.len().min(2)
    )
}

#[test]
fn call() {
    const WORDS: &[&str] = &[
        "containerId",
        "netns",
        "ifname",
        "args",
        "path",
        "config",
        "cniVersion",
        "name",
        "type",
        "provider",
        "networks",
        "pod",
        "plexus-cni",
        "bridge",
        "macvlan",
        "runtimeConfig",
        "io.kubernetes.cri.pod-annotations",
        "k8s.v1.cni.cncf.io/networks",
        "/run/netns/x",
        "eth0",
        "K8S_POD_NAME=p;K8S_POD_NAMESPACE=n;IgnoreUnknown=1",
    ];
    target("call", Kind::Json)
        .words(WORDS)
        .inputs(1_000)
        .run(|input| {
            let mut came_to = Vec::new();
            for command in Command::ALL {
                let (mut version, mut span) = (Version::V1_1_0, Span::none());
                match Call::read(command, input, &mut version, &mut span) {
                    Ok(call) => came_to.push(served(&call)),
                    Err(error) => came_to.push(refused(&error)),
                }
            }
            came_to.sort();
            came_to.dedup();
            came_to.join("; ")
        });
}

/// What the journal keeps of a configuration means the same.
fn served(call: &Call<'_>) -> String {
    bounded("the name of whom it is about", &call.context(), 1_000);
    let Ok(conf) = call.conf() else {
        return "a DEL by what remains".to_owned();
    };
    let kept = call.config_to_keep();
    let again = NetConf::parse(kept.as_bytes(), &call.args);
    assert_eq!(again.as_ref(), Ok(conf), "another one is kept");
    let (target, networks) = (call.container().is_ok(), conf.body.networks().len());
    format!("{target} {} {}", networks.min(3), call.pod().is_some())
}

fn refused(error: &Error) -> String {
    bounded("a message", &error.msg, 12_000);
    bounded("the details", &error.details, 1_000);
    format!("{} {}", error.code.number(), error.msg)
}
