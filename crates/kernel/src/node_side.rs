//! The node's own side: its namespace and those of its routers, with a few open sockets in each,
//! one per thread that works at the same time, so that an ADD never waits for a DEL.

use crate::nft;
use crate::nsid;
use crate::procfs::Procfs;
use crate::router::{RouterError, pin};
use crate::{NetlinkError, Netns, NetnsError, Socket};
use plexus_types::{NetnsCookie, RouterName};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The node, as its kernel side sees it. Shared by all threads of an agent.
#[derive(Debug)]
pub struct NodeSide {
    netns: Netns,
    /// Every thread that uses this is in that namespace already.
    at_home: bool,
    idle: Arc<Idle>,
    routers_dir: Option<PathBuf>,
    routers: Mutex<BTreeMap<RouterName, Known>>,
    /// Held while a router is made, changed or removed.
    pub(crate) building: Mutex<()>,
    /// For announcements; see there.
    pub(crate) packets: OnceLock<OwnedFd>,
    /// For the sysctls of pods.
    pub(crate) procfs: Procfs,
    /// Held while the firewall is read and changed.
    pub(crate) firewall: Mutex<()>,
    /// What the firewall should have; changed only by who holds it.
    table: Mutex<nft::Table>,
    /// The other nodes, once they were told.
    pub(crate) peers: Mutex<Option<BTreeSet<IpAddr>>>,
}

/// A namespace that host ends live in: the node's, or a router's.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    /// None: the node's own.
    netns: Option<Netns>,
    idle: Arc<Idle>,
}

/// A router that was opened.
#[derive(Debug)]
struct Known {
    netns: Netns,
    /// Of the namespace; not reused as long as we hold it open.
    inode: (u64, u64),
    idle: Arc<Idle>,
    /// Its sysctls were seen to be right: nobody else works there.
    settled: bool,
}

type Idle = Mutex<Vec<Socket>>;

/// Sockets kept open when idle: on the node, and in each router.
const IDLE_AT_MOST: usize = 64;
/// Routers held open; beyond it they are opened anew each time.
const ROUTERS_AT_MOST: usize = 4096;

impl NodeSide {
    /// The node whose network namespace is `netns`.
    pub fn new(netns: Netns) -> Self {
        Self {
            netns,
            at_home: false,
            idle: Arc::default(),
            routers_dir: None,
            routers: Mutex::default(),
            building: Mutex::default(),
            packets: OnceLock::new(),
            procfs: Procfs::default(),
            firewall: Mutex::default(),
            table: Mutex::default(),
            peers: Mutex::default(),
        }
    }

    /// The node whose network namespace the calling thread is in, as every thread must be that
    /// uses it: then nobody needs to enter it, and the way back from a pod is known.
    pub fn current() -> Result<Self, NetnsError> {
        let netns = Netns::current()?;
        Ok(Self {
            at_home: true,
            ..Self::new(netns)
        })
    }

    /// As [`current`](Self::current), with the directory in which routers are pinned.
    pub fn current_with(routers_dir: impl Into<PathBuf>) -> Result<Self, NetnsError> {
        Ok(Self::current()?.with_routers(routers_dir))
    }

    /// The same node, with the directory in which routers are pinned.
    pub fn with_routers(mut self, dir: impl Into<PathBuf>) -> Self {
        self.routers_dir = Some(dir.into());
        self
    }

    /// Where routers are pinned, if the node was told.
    pub fn routers_dir(&self) -> Option<&Path> {
        self.routers_dir.as_deref()
    }

    /// The same, for use of a router.
    pub(crate) fn routers_dir_for(&self, router: &RouterName) -> Result<&Path, RouterError> {
        let dir = self.routers_dir();
        dir.ok_or_else(|| RouterError::NoDirectory(router.clone()))
    }

    /// The namespace of a router, held open; opened anew if another one has taken its place.
    pub fn router(&self, name: &RouterName) -> Result<Netns, RouterError> {
        self.known(name).map(|(netns, _)| netns)
    }

    /// Runs `work` in the node's namespace.
    pub(crate) fn inside<T>(&self, work: impl FnOnce() -> T) -> Result<T, NetnsError> {
        if self.at_home {
            Ok(work())
        } else {
            self.netns.enter(work)
        }
    }

    /// Runs `work` in a pod's or a router's namespace.
    pub(crate) fn visit<T>(&self, pod: &Netns, work: impl FnOnce() -> T) -> Result<T, NetnsError> {
        if self.at_home {
            pod.enter_from(&self.netns, work)
        } else {
            pod.enter(work)
        }
    }

    /// Where host ends of that router live; without a router, the node's own namespace.
    pub(crate) fn home(&self, router: Option<&RouterName>) -> Result<Home, RouterError> {
        let Some(name) = router else {
            return Ok(self.own_home());
        };
        let (netns, idle) = self.known(name)?;
        Ok(Home {
            netns: Some(netns),
            idle,
        })
    }

    /// Runs `work` in a home.
    pub(crate) fn at<T>(&self, home: &Home, work: impl FnOnce() -> T) -> Result<T, NetnsError> {
        match &home.netns {
            None => self.inside(work),
            Some(netns) => self.visit(netns, work),
        }
    }

    /// Runs `work` with a route socket in a home that nobody else uses meanwhile.
    pub(crate) fn with_home<T, E: From<NetlinkError>>(
        &self,
        home: &Home,
        work: impl FnOnce(&mut Socket) -> Result<T, E>,
    ) -> Result<T, E> {
        let idle = lock(&home.idle).pop();
        let mut socket = match idle {
            Some(socket) => socket,
            None => self.at(home, Socket::open).map_err(NetlinkError::from)??,
        };
        let result = work(&mut socket);
        let mut idle = lock(&home.idle);
        if !socket.is_broken() && idle.len() < IDLE_AT_MOST {
            idle.push(socket);
        }
        result
    }

    /// A route socket in a pod's namespace.
    pub fn socket_in(&self, pod: &Netns) -> Result<Socket, NetlinkError> {
        self.visit(pod, Socket::open)?
    }

    /// The number by which the namespace of a socket knows the node's, if it does: it tells whether the parent of a
    /// link there is on the node. The kernel gives these numbers, and nobody can give one to two namespaces.
    pub fn number_in(&self, pod: &mut Socket) -> Result<Option<i32>, NetlinkError> {
        nsid::number_of(pod, &self.netns)
    }

    /// The cookie of a pod's namespace.
    pub fn cookie_of(&self, pod: &Netns) -> Result<NetnsCookie, NetnsError> {
        self.visit(pod, || pod.cookie_here())?
    }

    /// Its namespace.
    pub fn netns(&self) -> &Netns {
        &self.netns
    }

    /// Runs `work` with a route socket on the node that nobody else uses meanwhile.
    pub fn with_socket<T, E: From<NetlinkError>>(
        &self,
        work: impl FnOnce(&mut Socket) -> Result<T, E>,
    ) -> Result<T, E> {
        self.with_home(&self.own_home(), work)
    }

    /// Whether a router's sysctls were seen to be right, as long as this process holds it open.
    pub(crate) fn is_settled(&self, name: &RouterName) -> bool {
        lock(&self.routers)
            .get(name)
            .is_some_and(|known| known.settled)
    }

    /// Remembers it.
    pub(crate) fn settle(&self, name: &RouterName) {
        if let Some(known) = lock(&self.routers).get_mut(name) {
            known.settled = true;
        }
    }

    /// Lets go of a router.
    pub(crate) fn forget_router(&self, name: &RouterName) {
        lock(&self.routers).remove(name);
    }

    /// What the firewall should have, as far as this process has put it there. Held for a moment only.
    pub(crate) fn table(&self) -> MutexGuard<'_, nft::Table> {
        lock(&self.table)
    }

    fn own_home(&self) -> Home {
        Home {
            netns: None,
            idle: Arc::clone(&self.idle),
        }
    }

    fn known(&self, name: &RouterName) -> Result<(Netns, Arc<Idle>), RouterError> {
        let path = pin::path(self.routers_dir_for(name)?, name);
        let inode = pin::inode(&path).map_err(|source| RouterError::missing(name, source))?;
        let mut routers = lock(&self.routers);
        if let Some(known) = routers.get(name).filter(|known| known.inode == inode) {
            return Ok((known.netns.clone(), Arc::clone(&known.idle)));
        }
        let opened = Netns::open(&path).and_then(|netns| Ok((netns.inode()?, netns)));
        let (inode, netns) = opened.map_err(|source| RouterError::missing(name, source))?;
        let idle = Arc::default();
        if routers.len() < ROUTERS_AT_MOST || routers.contains_key(name) {
            let known = Known {
                netns: netns.clone(),
                inode,
                idle: Arc::clone(&idle),
                settled: false,
            };
            routers.insert(name.clone(), known);
        }
        Ok((netns, idle))
    }
}

impl Home {
    /// Its namespace, if it is a router's.
    pub(crate) fn router(&self) -> Option<&Netns> {
        self.netns.as_ref()
    }
}

/// What a thread left that panicked is used as it is.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
