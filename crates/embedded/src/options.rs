//! What a server is started with.

use crate::http::Limits;
use crate::kinds::Kinds;
use crate::validator::{Anything, Validator};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a server is started with.
pub struct Options {
    /// Where everything is kept: the store, the key of the authority, the kubeconfig.
    pub dir: PathBuf,
    /// Where TLS is spoken; port 0: any that is free.
    pub listen: SocketAddr,
    /// Further sockets on which TLS is spoken; they may be of another network namespace.
    pub listeners: Vec<TcpListener>,
    /// A socket for root and for whoever runs the server.
    pub unix: Option<PathBuf>,
    /// The kinds that are served.
    pub kinds: Kinds,
    /// Checks what the schemas cannot say.
    pub validator: Arc<dyn Validator>,
    /// Names and addresses by which clients call the server, besides localhost and `listen`.
    pub names: Vec<String>,
    /// Namespaces that are made if they are not there, besides those that every server has; nobody can
    /// delete them.
    pub namespaces: Vec<String>,
    /// Whether a pod that is on a node stays, when it is deleted, until somebody deletes it without
    /// grace: who runs pods does that, when the pod has ended.
    pub pods_wait: bool,
    /// How often a quiet watch says how new it is.
    pub bookmarks: Duration,
    /// What peers may cost.
    pub limits: Limits,
    /// Threads that answer; 0: as many as there are processors, at most four.
    pub threads: usize,
}

impl Options {
    /// On a free port of this machine, with everything else as usual.
    pub fn new(dir: impl Into<PathBuf>, kinds: Kinds) -> Self {
        Self {
            dir: dir.into(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            listeners: Vec::new(),
            unix: None,
            kinds,
            validator: Arc::new(Anything),
            names: Vec::new(),
            namespaces: Vec::new(),
            pods_wait: true,
            bookmarks: Duration::from_secs(60),
            limits: Limits::default(),
            threads: 0,
        }
    }
}
