//! The server as a whole: brings the parts up in order, and down again.

use crate::http::{HttpContext, ListenSockets, listen};
use crate::options::Options;
use crate::socket::Socket;
use crate::stop::{Stop, Stopper};
use crate::store::{Store, StoreError};
use crate::tls::{self, Authority, Kubeconfig, TlsError};
use crate::verbs::Api;
use crate::{clock, collect, descriptors, directory, private, seed};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, UnixStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// Whom the server's own kubeconfig is for.
const ADMIN: &str = "admin";
const ADMINS: &str = "system:masters";

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A file or directory.
    #[error("cannot use {path}")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// An address or a socket.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address, or the path of the socket.
        address: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// No threads.
    #[error("cannot start the server's threads")]
    Threads(#[source] io::Error),
    /// The namespaces that every server has cannot be made.
    #[error("cannot write the first objects: {0}")]
    Seed(crate::status::Refused),
    /// The kinds that were handed in are not enough.
    #[error("a server needs the builtin kinds")]
    Kinds,
}

/// A server that runs, on threads of its own. Dropping it stops it.
pub struct Server {
    address: SocketAddr,
    directory: PathBuf,
    kubeconfig: PathBuf,
    url: String,
    authority: Authority,
    stop: Stopper,
    version: watch::Receiver<u64>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server; it answers when this returns.
    ///
    /// # Errors
    /// Something of it cannot be had; the error says what.
    pub fn start(mut options: Options) -> Result<Self, StartError> {
        options.limits = options.limits.within(descriptors::raise());
        let file = options.dir.join(directory::STORE);
        let unusable = |path: &Path| {
            let path = path.to_owned();
            move |source| StartError::File { path, source }
        };
        private::make_directory(&options.dir).map_err(unusable(&options.dir))?;
        private::close_to_others(&file).map_err(unusable(&file))?;
        let store = Store::open(&file, &options.kinds, clock::milliseconds())?;
        let version = store.follow_all();
        let authority = Authority::open(&options.dir)?;
        let listener = bind(options.listen)?;
        let address = listener.local_addr().map_err(|source| StartError::Listen {
            address: options.listen.to_string(),
            source,
        })?;
        let tls = tls::acceptor(&authority, &names(&options, address))?;
        options.listeners.push(listener);
        let (stop, stopped) = Stopper::new();
        let mut server = Self {
            address,
            // As whoever reads the kubeconfig elsewhere finds it.
            directory: std::path::absolute(&options.dir).map_err(unusable(&options.dir))?,
            kubeconfig: options.dir.join(directory::KUBECONFIG),
            url: url(address),
            authority,
            stop,
            version,
            thread: None,
        };
        let (sender, receiver) = mpsc::channel();
        let serving = Serving {
            options,
            store,
            tls,
            stopped,
        };
        // A thread of its own: whoever calls may be in the middle of another runtime.
        let thread = std::thread::Builder::new()
            .name("embedded-main".to_owned())
            .spawn(move || serving.run(&sender))
            .map_err(StartError::Threads)?;
        server.thread = Some(thread);
        let ended = |_| StartError::Threads(io::Error::other("the server ended as it began"));
        receiver.recv().map_err(ended)??;
        server.write_kubeconfig()?;
        tracing::info!(%address, kubeconfig = %server.kubeconfig.display(), "the embedded API is served");
        Ok(server)
    }

    /// Writes the kubeconfig of whoever may do everything, with the client that it had, if that is still good.
    fn write_kubeconfig(&self) -> Result<(), StartError> {
        let path = &self.kubeconfig;
        let text = match tls::reusable_client(path, &self.authority, ADMIN, ADMINS) {
            Some(client) => self.kubeconfig_with(ADMIN, &client),
            None => self.kubeconfig_for(ADMIN, ADMINS)?,
        };
        match private::write(path, &text) {
            // What was signed before is still good.
            Err(error) if path.exists() => {
                tracing::warn!(%error, path = %path.display(), "the kubeconfig stays as it was");
            }
            written => written.map_err(|source| StartError::File {
                path: path.clone(),
                source,
            })?,
        }
        Ok(())
    }

    /// Where TLS is spoken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The file with which clients may do everything; only its owner can read it.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The text of a kubeconfig for another client, with a certificate of its own, by the server's
    /// own address.
    ///
    /// # Errors
    /// The name cannot be in a certificate.
    pub fn kubeconfig_for(&self, user: &str, group: &str) -> Result<String, TlsError> {
        let client = self.authority.client(user, group)?;
        Ok(self.kubeconfig_with(user, &client))
    }

    fn kubeconfig_with(&self, user: &str, (certificate, key): &(String, String)) -> String {
        let kubeconfig = Kubeconfig {
            server: &self.url,
            authority: &self.authority.pem(),
            user,
            certificate,
            key,
            directory: &self.directory,
        };
        kubeconfig.text()
    }

    /// The newest version.
    pub fn version(&self) -> u64 {
        *self.version.borrow()
    }

    /// Stops: requests that are being answered are given a moment, watches end, everything that was
    /// answered is on the disk.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the server's main thread has.
struct Serving {
    options: Options,
    store: Store,
    tls: TlsAcceptor,
    stopped: Stop,
}

impl Serving {
    /// Runs until told to stop; it sends on `sender` when it answers, or why it does not.
    fn run(self, sender: &mpsc::Sender<Result<(), StartError>>) {
        let runtime = match runtime(self.options.threads) {
            Ok(runtime) => runtime,
            Err(error) => return drop(sender.send(Err(StartError::Threads(error)))),
        };
        let ended = runtime.block_on(self.serve(sender));
        if let Err(error) = ended {
            let _ = sender.send(Err(error));
        }
        runtime.shutdown_timeout(Duration::from_secs(1));
    }

    async fn serve(self, sender: &mpsc::Sender<Result<(), StartError>>) -> Result<(), StartError> {
        let options = self.options;
        let own_uid = own_uid()?;
        let api = Api::new(self.store, &options, self.stopped.clone());
        let api = Arc::new(api.ok_or(StartError::Kinds)?);
        seed::create_initial(&api, options.namespaces)
            .await
            .map_err(StartError::Seed)?;
        let tcp: Result<Vec<_>, _> = options.listeners.into_iter().map(adopt).collect();
        let unix = match &options.unix {
            Some(path) => {
                let bound = Socket::bind(path).await;
                let bound = bound.map_err(|source| StartError::Listen {
                    address: path.display().to_string(),
                    source,
                });
                Some(bound?)
            }
            None => None,
        };
        let listening = ListenSockets {
            tcp: tcp?,
            tls: self.tls,
            unix,
        };
        let context = Arc::new(HttpContext {
            api: Arc::clone(&api),
            limits: options.limits,
            own_uid,
        });
        let _ = sender.send(Ok(()));
        let collector = tokio::spawn(collect::run(Arc::clone(&api)));
        let unix = listen(listening, context, self.stopped).await;
        let _ = collector.await;
        api.store.close();
        drop(unix);
        Ok(())
    }
}

fn runtime(threads: usize) -> io::Result<Runtime> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 {
        processors.min(4)
    } else {
        threads
    };
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("embedded")
        .enable_all()
        .build()
}

/// Who we are, as a peer of ours would see it.
fn own_uid() -> Result<u32, StartError> {
    let uid = UnixStream::pair().and_then(|(one, _other)| Ok(one.peer_cred()?.uid()));
    uid.map_err(StartError::Threads)
}

fn bind(address: SocketAddr) -> Result<std::net::TcpListener, StartError> {
    std::net::TcpListener::bind(address).map_err(|source| StartError::Listen {
        address: address.to_string(),
        source,
    })
}

fn adopt(listener: std::net::TcpListener) -> Result<TcpListener, StartError> {
    let adopted = listener
        .set_nonblocking(true)
        .and_then(|()| TcpListener::from_std(listener));
    adopted.map_err(|source| StartError::Listen {
        address: "a socket that was handed in".to_owned(),
        source,
    })
}

/// By what names clients may call the server.
fn names(options: &Options, address: SocketAddr) -> Vec<String> {
    let usual = ["localhost", "127.0.0.1", "::1", "plexus"].map(str::to_owned);
    let mut names: Vec<String> = usual.into();
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    names.extend(options.names.iter().cloned());
    names.sort();
    names.dedup();
    names
}

/// What is everywhere is here too.
fn url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        ip => ip,
    };
    format!("https://{}", SocketAddr::new(ip, address.port()))
}
