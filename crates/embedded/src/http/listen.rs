//! Listeners and connections: who may connect, how many at a time, how they end.

use super::crowd::{Crowd, Stranger};
use super::patient::Patient;
use super::rarely::Rarely;
use super::serve::{Front, handle};
use crate::reviews::User;
use crate::socket::Socket;
use crate::stop::Stop;
use crate::tls;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// How long requests may go on when the server ends.
const FAREWELL: Duration = Duration::from_secs(3);
/// A connection that cannot be accepted (no descriptors left) is tried again after this.
const AGAIN: Duration = Duration::from_millis(100);

/// Between two tries to get the name of the socket back.
const LOST: Duration = Duration::from_secs(1);

/// The two doors: TLS for clients with a certificate, a socket for root.
pub(crate) struct Listening {
    pub(crate) tcp: Vec<TcpListener>,
    pub(crate) tls: TlsAcceptor,
    pub(crate) unix: Option<Socket>,
}

/// Serves until told to stop, and then until all connections are gone. Gives the socket back, with its name.
pub(crate) async fn listen(listening: Listening, front: Arc<Front>, stop: Stop) -> Option<Socket> {
    let door = Door::new(&front, &stop);
    // Whoever may use the socket is not kept out by a crowd at the other door.
    let unix_door = Door::new(&front, &stop);
    let Listening { tcp, tls, unix } = listening;
    let unix = unix.map(|unix| tokio::spawn(Arc::clone(&unix_door).accept_unix(unix)));
    let mut all = JoinSet::new();
    for listener in tcp {
        let _ = all.spawn(Arc::clone(&door).accept_tcp(listener, tls.clone()));
    }
    door.stop.said().await;
    while all.join_next().await.is_some() {}
    let unix = match unix {
        Some(unix) => unix.await.ok(),
        None => None,
    };
    let gone = async {
        door.empty().await;
        unix_door.empty().await;
    };
    let _ = timeout(2 * FAREWELL, gone).await;
    unix
}

/// What every connection needs.
struct Door {
    front: Arc<Front>,
    slots: Arc<Semaphore>,
    strangers: Arc<Crowd>,
    stop: Stop,
    full: Rarely,
    failing: Rarely,
}

impl Door {
    fn new(front: &Arc<Front>, stop: &Stop) -> Arc<Self> {
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(front.limits.connections)),
            strangers: Crowd::new(front.limits.strangers),
            full: Rarely::default(),
            failing: Rarely::default(),
            front: Arc::clone(front),
            stop: stop.clone(),
        })
    }

    /// Takes connections until told to stop; each is a task of its own, if there is a place for it.
    async fn accept_unix(self: Arc<Self>, mut socket: Socket) -> Socket {
        loop {
            let accepted = tokio::select! {
                accepted = self.next(|| socket.accept()) => accepted,
                () = socket.lost() => {
                    self.find_again(&mut socket).await;
                    continue;
                }
            };
            let Some(stream) = accepted else {
                return socket;
            };
            if let Some(slot) = self.slot() {
                drop(tokio::spawn(Arc::clone(&self).unix(stream, slot)));
            }
        }
    }

    /// Somebody removed the name of the socket, or took it: whoever comes would not find us.
    async fn find_again(&self, socket: &mut Socket) {
        match socket.bind_again().await {
            Ok(()) => tracing::warn!("the socket's file was gone: it is there again"),
            Err(error) => {
                if let Some(unsaid) = self.failing.now() {
                    tracing::warn!(%error, unsaid, "the socket's file is gone, and cannot be made");
                }
                tokio::select! {
                    () = sleep(LOST) => {}
                    () = self.stop.said() => {}
                }
            }
        }
    }

    /// The same, for peers that have yet to say who they are.
    async fn accept_tcp(self: Arc<Self>, listener: TcpListener, tls: TlsAcceptor) {
        while let Some((stream, _)) = self.next(|| listener.accept()).await {
            if let Some(stranger) = self.strangers.enter().await {
                drop(tokio::spawn(Arc::clone(&self).tcp(
                    stream,
                    tls.clone(),
                    stranger,
                )));
            }
        }
    }

    /// The next connection; `None` when the server is to end.
    async fn next<S, F>(&self, accept: impl Fn() -> F) -> Option<S>
    where
        F: Future<Output = std::io::Result<S>>,
    {
        loop {
            let accepted = tokio::select! {
                accepted = accept() => accepted,
                () = self.stop.said() => return None,
            };
            match accepted {
                Ok(accepted) => return Some(accepted),
                Err(error) => {
                    if let Some(unsaid) = self.failing.now() {
                        tracing::warn!(%error, unsaid, "cannot accept a connection");
                    }
                    sleep(AGAIN).await;
                }
            }
        }
    }

    /// A place for somebody whom we know.
    fn slot(&self) -> Option<OwnedSemaphorePermit> {
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok();
        if slot.is_none()
            && let Some(unsaid) = self.full.now()
        {
            tracing::warn!(unsaid, "too many connections: one is closed");
        }
        slot
    }

    /// Returns when nobody whom we know is connected.
    async fn empty(&self) {
        let all = u32::try_from(self.front.limits.connections).unwrap_or(u32::MAX);
        drop(self.slots.acquire_many(all).await);
    }

    async fn tcp(self: Arc<Self>, stream: TcpStream, tls: TlsAcceptor, mut stranger: Stranger) {
        let _ = stream.set_nodelay(true);
        let limits = &self.front.limits;
        let stream = Patient::new(stream, limits.stalled);
        let handshake = timeout(limits.handshake, tls.accept(stream));
        let stream = match stranger.during(handshake).await {
            Some(Ok(Ok(stream))) => stream,
            Some(Ok(Err(error))) => {
                tracing::debug!(%error, "a TLS handshake failed");
                return;
            }
            Some(Err(_)) | None => {
                tracing::debug!("a TLS handshake took too long");
                return;
            }
        };
        let certificates = stream.get_ref().1.peer_certificates();
        match certificates.and_then(|chain| tls::user(chain.first()?)) {
            Some(user) => {
                let Some(_slot) = self.slot() else { return };
                drop(stranger);
                self.serve(stream, Some(Arc::new(user))).await;
            }
            None => {
                let _ = stranger.during(self.serve(stream, None)).await;
            }
        }
    }

    async fn unix(self: Arc<Self>, stream: UnixStream, _slot: OwnedSemaphorePermit) {
        let uid = stream.peer_cred().map(|peer| peer.uid());
        let user = match uid {
            Ok(uid) if uid == 0 || uid == self.front.own_uid => User {
                name: format!("unix:{uid}"),
                groups: vec![
                    "system:masters".to_owned(),
                    "system:authenticated".to_owned(),
                ],
                uid: uid.to_string(),
            },
            Ok(uid) => {
                if let Some(unsaid) = self.failing.now() {
                    tracing::warn!(uid, unsaid, "somebody else on the socket is sent away");
                }
                return self.serve(stream, None).await;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot see who is on the socket");
                return;
            }
        };
        let stream = Patient::new(stream, self.front.limits.stalled);
        self.serve(stream, Some(Arc::new(user))).await;
    }

    async fn serve<S>(self: Arc<Self>, stream: S, user: Option<Arc<User>>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let limits = &self.front.limits;
        let idle = match user {
            Some(_) => limits.idle,
            None => limits.idle_stranger,
        };
        let known = user.is_some();
        let front = Arc::clone(&self.front);
        let service = service_fn(move |request| {
            let (front, user) = (Arc::clone(&front), user.clone());
            async move { Ok::<_, Infallible>(handle(&front, user, request).await) }
        });
        let connection = http1::Builder::new()
            // A stranger has one question.
            .keep_alive(known)
            .timer(TokioTimer::new())
            .header_read_timeout(idle)
            .max_buf_size(limits.head)
            .max_headers(64)
            .half_close(false)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stop.said() => {
                connection.as_mut().graceful_shutdown();
                timeout(FAREWELL, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        }
    }
}
