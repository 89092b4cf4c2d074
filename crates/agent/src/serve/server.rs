//! The socket. Owns who may connect, the threads that serve them, and the way from a path to a
//! verb. Workers take turns at accepting: the one that accepts also serves, so a request changes
//! threads no more often than it must; a spare is started when the last idle one gets busy.

use crate::agent::{Agent, Handled};
use crate::failure;
use crate::options::beside;
use crate::serve::http::{self, Limits, Response};
use crate::serve::peer::{self, Peer};
use plexus_api::cni::Command;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tracing::Span;

/// Workers at first: one for whoever comes, one for whoever comes meanwhile.
const FIRST: usize = 2;
/// Idle workers that are kept, so that a runtime's usual burst starts none; more than these end when they have nothing
/// to do.
const SPARE: usize = 10;
/// Workers beyond the queue's bound: DELs, queries, and those who are told that it is full.
const BEYOND_QUEUE: usize = 256;
/// A worker's stack: small, since there may be hundreds.
const STACK: usize = 512 * 1024;

const LIMITS: Limits = Limits {
    head: 16 * 1024,
    body: plexus_cni::shim::MAX_BODY,
    time: Duration::from_secs(5),
};

/// The listening socket and its workers.
pub(crate) struct Server {
    listener: UnixListener,
    agent: Arc<Agent>,
    most: usize,
    workers: AtomicUsize,
    idle: AtomicUsize,
    busy: AtomicUsize,
    stopping: AtomicBool,
}

/// Why the socket cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {path}")]
pub struct ListenError {
    /// The socket.
    path: PathBuf,
    /// Why.
    #[source]
    source: std::io::Error,
}

impl Server {
    /// Binds under a temporary name and renames: whoever finds the socket finds it listening.
    pub(crate) fn bind(
        path: &Path,
        agent: Arc<Agent>,
        queue: usize,
    ) -> Result<Arc<Self>, ListenError> {
        let listener = listen(path).map_err(|source| ListenError {
            path: path.to_owned(),
            source,
        })?;
        Ok(Arc::new(Self {
            listener,
            agent,
            most: queue + BEYOND_QUEUE,
            workers: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        }))
    }

    /// Starts the first workers.
    pub(crate) fn start(self: &Arc<Self>) {
        for _ in 0..FIRST {
            self.start_worker();
        }
    }

    /// Takes no new requests; waits for those that it has.
    pub(crate) fn drain(&self, timeout: Duration) {
        self.stopping.store(true, SeqCst);
        let step = Duration::from_millis(10);
        for _ in 0..timeout.as_millis() / step.as_millis() {
            if self.busy.load(SeqCst) == 0 {
                return;
            }
            std::thread::sleep(step);
        }
    }

    fn start_worker(self: &Arc<Self>) {
        if self.workers.fetch_add(1, SeqCst) >= self.most {
            self.workers.fetch_sub(1, SeqCst);
            return;
        }
        let server = Arc::clone(self);
        let started = std::thread::Builder::new()
            .name("worker".to_owned())
            .stack_size(STACK)
            .spawn(move || server.work());
        if let Err(error) = started {
            self.workers.fetch_sub(1, SeqCst);
            tracing::error!(%error, "cannot start another worker");
        }
    }

    fn work(self: Arc<Self>) {
        let _leaving = Leaving(&self.workers);
        loop {
            self.idle.fetch_add(1, SeqCst);
            let accepted = self.listener.accept();
            let idle_left = self.idle.fetch_sub(1, SeqCst) - 1;
            if self.stopping.load(SeqCst) {
                return;
            }
            if idle_left == 0 {
                self.start_worker();
            }
            match accepted {
                Ok((stream, _)) => {
                    self.busy.fetch_add(1, SeqCst);
                    let _done = Leaving(&self.busy);
                    self.serve(stream);
                }
                Err(error) => {
                    tracing::error!(%error, "accepting a connection failed");
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
            if self.idle.load(SeqCst) >= SPARE {
                return;
            }
        }
    }

    fn serve(&self, mut stream: UnixStream) {
        let peer = match peer::identify(&stream) {
            Ok(peer) => peer,
            Err(refusal) => {
                tracing::warn!(%refusal, "refused a caller");
                Response::text(403, format!("{refusal}\n")).deliver(&mut stream);
                return;
            }
        };
        match http::read(&mut stream, LIMITS) {
            Ok(request) => self.route(&request, &peer, stream),
            Err(http::HttpError::Closed) => {}
            Err(error) => {
                tracing::debug!(%error, "refused a request");
                failure::unreadable(&error).deliver(&mut stream);
            }
        }
    }

    fn route(&self, request: &http::Request, peer: &Peer, mut stream: UnixStream) {
        let (path, query) = request.path_and_query();
        let verb = path.strip_prefix("/cni/").and_then(Command::from_path);
        let response = match (request.method.as_str(), verb) {
            ("POST", Some(command)) => match peer.same_namespace(self.agent.here) {
                Ok(()) => return self.cni(command, &request.body, stream),
                Err(refusal) => failure::foreign_caller(&refusal),
            },
            (_, Some(_)) => Response::text(405, "use POST\n"),
            ("GET", None) => self.agent.query(path, query),
            _ => Response::text(404, "no such path\n"),
        };
        response.deliver(&mut stream);
    }

    fn cni(&self, command: Command, body: &[u8], mut stream: UnixStream) {
        let mut span = Span::none();
        let Handled {
            response,
            undelivered,
            held,
            networks,
        } = self.agent.handle(
            command,
            body,
            &mut || http::peer_is_gone(&stream),
            &mut span,
        );
        let _entered = span.enter();
        let delivery = response.deliver(&mut stream);
        if let Some(networks) = networks {
            tracing::info!(networks, ?delivery, "done");
        }
        match undelivered {
            Some(undo) if delivery == http::Delivery::Lost => self.agent.undo_undelivered(&undo),
            Some(made) => self.agent.report_attached(&made),
            None => {}
        }
        drop(held);
    }
}

/// Counts one down when dropped, also if the thread unwinds.
struct Leaving<'a>(&'a AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

fn listen(path: &Path) -> std::io::Result<UnixListener> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    if let Some(directory) = path.parent() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(directory)?;
    }
    let temporary = beside(path, &format!(".{}", std::process::id()));
    let _ = std::fs::remove_file(&temporary);
    let listener = UnixListener::bind(&temporary)?;
    std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&temporary, path)?;
    Ok(listener)
}
