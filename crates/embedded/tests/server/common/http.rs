//! HTTP/1.1 by hand, over a socket or TLS.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What bytes go over.
pub(crate) trait Wire: Read + Write + Send {}
impl<T: Read + Write + Send> Wire for T {}

const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone)]
enum TestServer {
    Unix(PathBuf),
    Tls(SocketAddr, Arc<ClientConfig>),
}

/// A client; every request may have a connection of its own.
pub(crate) struct Client {
    test: TestServer,
    wire: Option<BufReader<Box<dyn Wire>>>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Answer {
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(
            (200..300).contains(&self.code),
            "{}: {}",
            self.code,
            self.body
        );
        self.body
    }

    #[track_caller]
    pub(crate) fn refused(self, code: u16) -> String {
        assert_eq!(self.code, code, "{}", self.body);
        assert_eq!(self.body["kind"], "Status");
        assert_eq!(self.body["code"], code);
        self.body["message"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Client {
    pub(crate) fn unix(path: &Path) -> Self {
        Self {
            test: TestServer::Unix(path.to_owned()),
            wire: None,
        }
    }

    /// As a kubeconfig says.
    pub(crate) fn tls(kubeconfig: &Path) -> Self {
        let text = std::fs::read_to_string(kubeconfig).unwrap();
        Self::of_config(&serde_json::from_str(&text).unwrap())
    }

    pub(crate) fn of_config(config: &Value) -> Self {
        let (cluster, user) = (
            &config["clusters"][0]["cluster"],
            &config["users"][0]["user"],
        );
        let url = cluster["server"].as_str().unwrap();
        let address = url.strip_prefix("https://").unwrap().parse().unwrap();
        let mut roots = RootCertStore::empty();
        let authority = pem(&cluster["certificate-authority-data"]);
        roots
            .add(CertificateDer::from_pem_slice(&authority).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = if user["client-certificate-data"].is_string() {
            let certificate = pem(&user["client-certificate-data"]);
            let certificate = CertificateDer::from_pem_slice(&certificate).unwrap();
            let key = PrivateKeyDer::from_pem_slice(&pem(&user["client-key-data"])).unwrap();
            builder
                .with_client_auth_cert(vec![certificate], key)
                .unwrap()
        } else {
            builder.with_no_client_auth()
        };
        Self {
            test: TestServer::Tls(address, Arc::new(config)),
            wire: None,
        }
    }

    pub(crate) fn connect(&self) -> io::Result<Box<dyn Wire>> {
        match &self.test {
            TestServer::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                Ok(Box::new(stream))
            }
            TestServer::Tls(address, config) => {
                let stream = TcpStream::connect(address)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_nodelay(true)?;
                let name = ServerName::from(address.ip());
                let connection = ClientConnection::new(Arc::clone(config), name);
                let connection = connection.map_err(io::Error::other)?;
                Ok(Box::new(StreamOwned::new(connection, stream)))
            }
        }
    }

    #[track_caller]
    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, "", None).unwrap()
    }

    #[track_caller]
    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, "application/json", Some(body))
            .unwrap()
    }

    #[track_caller]
    pub(crate) fn put(&mut self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, "application/json", Some(body))
            .unwrap()
    }

    #[track_caller]
    pub(crate) fn merge(&mut self, path: &str, body: &Value) -> Answer {
        let media = "application/merge-patch+json";
        self.send("PATCH", path, media, Some(body)).unwrap()
    }

    #[track_caller]
    pub(crate) fn delete(&mut self, path: &str) -> Answer {
        self.send("DELETE", path, "application/json", Some(&json!({})))
            .unwrap()
    }

    /// A request and its answer; the connection is kept.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        media: &str,
        body: Option<&Value>,
    ) -> io::Result<Answer> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => BufReader::new(self.connect()?),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nuser-agent: tests/1\r\ncontent-type: {media}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        wire.get_mut().write_all(request.as_bytes())?;
        wire.get_mut().flush()?;
        let answer = read(&mut wire)?;
        if answer.header("connection") != Some("close") {
            self.wire = Some(wire);
        }
        Ok(answer)
    }

    /// The body of an answer, as it came.
    #[track_caller]
    pub(crate) fn bytes(&mut self, path: &str) -> Vec<u8> {
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => BufReader::with_capacity(64 << 10, self.connect().unwrap()),
        };
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        wire.get_mut().write_all(request.as_bytes()).unwrap();
        wire.get_mut().flush().unwrap();
        let (code, headers) = head(&mut wire).unwrap();
        assert_eq!(code, 200, "{headers:?}");
        let body = body(&mut wire, &headers).unwrap();
        self.wire = Some(wire);
        body
    }

    /// The lines of an answer that does not end.
    #[track_caller]
    pub(crate) fn lines(&self, path: &str) -> Lines {
        let mut wire = BufReader::new(self.connect().unwrap());
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        wire.get_mut().write_all(request.as_bytes()).unwrap();
        wire.get_mut().flush().unwrap();
        let (code, headers) = head(&mut wire).unwrap();
        assert_eq!(code, 200, "{headers:?}");
        Lines {
            wire,
            left: Vec::new(),
        }
    }
}

/// The events of a watch.
pub(crate) struct Lines {
    wire: BufReader<Box<dyn Wire>>,
    left: Vec<u8>,
}

impl Lines {
    /// The next one; `None` at the end.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.left.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.left.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let piece = chunk(&mut self.wire).unwrap();
            if piece.is_empty() {
                return None;
            }
            self.left.extend(piece);
        }
    }

    /// How many have come, at least one; `None` at the end.
    pub(crate) fn count(&mut self) -> Option<usize> {
        let piece = chunk(&mut self.wire)
            .ok()
            .filter(|piece| !piece.is_empty())?;
        Some(piece.iter().filter(|byte| **byte == b'\n').count())
    }

    /// Type and name of the next one.
    #[track_caller]
    pub(crate) fn what(&mut self) -> (String, String) {
        let event = self.next().expect("the watch goes on");
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        (
            text(&event["type"]),
            text(&event["object"]["metadata"]["name"]),
        )
    }
}

/// Reads an answer from a wire.
pub(crate) fn read(wire: &mut BufReader<Box<dyn Wire>>) -> io::Result<Answer> {
    let (code, headers) = head(wire)?;
    let body = body(wire, &headers)?;
    let body = serde_json::from_slice(&body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
    Ok(Answer {
        code,
        headers,
        body,
    })
}

fn body(wire: &mut BufReader<Box<dyn Wire>>, headers: &[(String, String)]) -> io::Result<Vec<u8>> {
    let header = |name: &str| headers.iter().find(|(known, _)| known == name);
    let mut body = Vec::new();
    if let Some((_, length)) = header("content-length") {
        body = vec![0; length.parse().map_err(io::Error::other)?];
        wire.read_exact(&mut body)?;
    } else if header("transfer-encoding").is_some() {
        loop {
            let piece = chunk(wire)?;
            if piece.is_empty() {
                break;
            }
            body.extend(piece);
        }
    }
    Ok(body)
}

fn head(wire: &mut BufReader<Box<dyn Wire>>) -> io::Result<(u16, Vec<(String, String)>)> {
    let mut line = || {
        let mut line = String::new();
        match wire.read_line(&mut line)? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            _ => Ok(line.trim_end().to_owned()),
        }
    };
    let first = line()?;
    let code = first.split(' ').nth(1).and_then(|code| code.parse().ok());
    let mut headers = Vec::new();
    loop {
        let next = line()?;
        match next.split_once(':') {
            Some((name, value)) => {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            None => break,
        }
    }
    code.map(|code| (code, headers))
        .ok_or_else(|| io::Error::other(first))
}

fn chunk(wire: &mut BufReader<Box<dyn Wire>>) -> io::Result<Vec<u8>> {
    let mut size = String::new();
    let _ = wire.read_line(&mut size)?;
    let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
    let mut piece = vec![0; size + 2];
    wire.read_exact(&mut piece)?;
    piece.truncate(size);
    Ok(piece)
}

fn pem(encoded: &Value) -> Vec<u8> {
    use base64::Engine;
    let engine = base64::engine::general_purpose::STANDARD;
    engine.decode(encoded.as_str().unwrap()).unwrap()
}
