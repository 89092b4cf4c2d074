//! Listeners and connections: who may connect, how many at a time, how they end.

use super::log_limit::LogLimit;
use super::serve::{HttpContext, handle};
use super::unauthenticated::{UnauthenticatedPeer, UnauthenticatedPeers};
use super::write_timeout::WriteTimeout;
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
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// A connection that cannot be accepted (no descriptors left) is tried again after this.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Between two tries to get the name of the socket back.
const BIND_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The sockets to listen on: TLS for clients with a certificate, a unix socket for root.
pub(crate) struct ListenSockets {
    pub(crate) tcp: Vec<TcpListener>,
    pub(crate) tls: TlsAcceptor,
    pub(crate) unix: Option<Socket>,
}

/// Serves until told to stop, and then until all connections are gone. Gives the socket back, with its name.
pub(crate) async fn listen(
    listening: ListenSockets,
    context: Arc<HttpContext>,
    stop: Stop,
) -> Option<Socket> {
    let acceptor = Acceptor::new(&context, &stop);
    // Peers of the unix socket have an acceptor of their own: many TCP connections do not keep them out.
    let unix_acceptor = Acceptor::new(&context, &stop);
    let ListenSockets { tcp, tls, unix } = listening;
    let unix = unix.map(|unix| tokio::spawn(Arc::clone(&unix_acceptor).accept_unix(unix)));
    let mut all = JoinSet::new();
    for listener in tcp {
        let _ = all.spawn(Arc::clone(&acceptor).accept_tcp(listener, tls.clone()));
    }
    acceptor.stop.requested().await;
    while all.join_next().await.is_some() {}
    let unix = match unix {
        Some(unix) => unix.await.ok(),
        None => None,
    };
    let gone = async {
        acceptor.empty().await;
        unix_acceptor.empty().await;
    };
    let _ = timeout(2 * SHUTDOWN_TIMEOUT, gone).await;
    unix
}

/// What every connection needs.
struct Acceptor {
    context: Arc<HttpContext>,
    slots: Arc<Semaphore>,
    unauthenticated: Arc<UnauthenticatedPeers>,
    stop: Stop,
    full: LogLimit,
    failing: LogLimit,
}

impl Acceptor {
    fn new(context: &Arc<HttpContext>, stop: &Stop) -> Arc<Self> {
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(context.limits.connections)),
            unauthenticated: UnauthenticatedPeers::new(context.limits.unauthenticated),
            full: LogLimit::default(),
            failing: LogLimit::default(),
            context: Arc::clone(context),
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
                    () = sleep(BIND_RETRY_INTERVAL) => {}
                    () = self.stop.requested() => {}
                }
            }
        }
    }

    /// The same, for peers that have yet to say who they are.
    async fn accept_tcp(self: Arc<Self>, listener: TcpListener, tls: TlsAcceptor) {
        while let Some((stream, _)) = self.next(|| listener.accept()).await {
            if let Some(peer) = self.unauthenticated.admit().await {
                drop(tokio::spawn(Arc::clone(&self).tcp(
                    stream,
                    tls.clone(),
                    peer,
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
                () = self.stop.requested() => return None,
            };
            match accepted {
                Ok(accepted) => return Some(accepted),
                Err(error) => {
                    if let Some(unsaid) = self.failing.now() {
                        tracing::warn!(%error, unsaid, "cannot accept a connection");
                    }
                    sleep(ACCEPT_RETRY_DELAY).await;
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
        let all = u32::try_from(self.context.limits.connections).unwrap_or(u32::MAX);
        drop(self.slots.acquire_many(all).await);
    }

    async fn tcp(
        self: Arc<Self>,
        stream: TcpStream,
        tls: TlsAcceptor,
        mut peer: UnauthenticatedPeer,
    ) {
        let _ = stream.set_nodelay(true);
        let limits = &self.context.limits;
        let stream = WriteTimeout::new(stream, limits.stalled);
        let handshake = timeout(limits.handshake, tls.accept(stream));
        let stream = match peer.during(handshake).await {
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
                drop(peer);
                self.serve(stream, Some(Arc::new(user))).await;
            }
            None => {
                let _ = peer.during(self.serve(stream, None)).await;
            }
        }
    }

    async fn unix(self: Arc<Self>, stream: UnixStream, _slot: OwnedSemaphorePermit) {
        let uid = stream.peer_cred().map(|peer| peer.uid());
        let user = match uid {
            Ok(uid) if uid == 0 || uid == self.context.own_uid => User {
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
        let stream = WriteTimeout::new(stream, self.context.limits.stalled);
        self.serve(stream, Some(Arc::new(user))).await;
    }

    async fn serve<S>(self: Arc<Self>, stream: S, user: Option<Arc<User>>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let limits = &self.context.limits;
        let idle = match user {
            Some(_) => limits.idle,
            None => limits.idle_stranger,
        };
        let known = user.is_some();
        let context = Arc::clone(&self.context);
        let service = service_fn(move |request| {
            let (context, user) = (Arc::clone(&context), user.clone());
            async move { Ok::<_, Infallible>(handle(&context, user, request).await) }
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
            () = self.stop.requested() => {
                connection.as_mut().graceful_shutdown();
                timeout(SHUTDOWN_TIMEOUT, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        }
    }
}
