//! The node's own side: its namespace and a few open sockets in it, one per thread that works at
//! the same time, so that an ADD never waits for a DEL.

use crate::procfs::Procfs;
use crate::{NetlinkError, Netns, NetnsError, Socket};
use plexus_types::NetnsCookie;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The node, as its kernel side sees it. Shared by all threads of an agent.
#[derive(Debug)]
pub struct NodeSide {
    netns: Netns,
    /// Every thread that uses this is in that namespace already.
    at_home: bool,
    idle: Mutex<Vec<Socket>>,
    /// For announcements; see there.
    pub(crate) packets: OnceLock<OwnedFd>,
    /// For the sysctls of pods.
    pub(crate) procfs: Procfs,
    /// Held while the firewall is read and changed.
    pub(crate) firewall: Mutex<()>,
}

/// Sockets kept open when idle.
const IDLE_AT_MOST: usize = 64;

impl NodeSide {
    /// The node whose network namespace is `netns`.
    pub fn new(netns: Netns) -> Self {
        Self {
            netns,
            at_home: false,
            idle: Mutex::default(),
            packets: OnceLock::new(),
            procfs: Procfs::default(),
            firewall: Mutex::default(),
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

    /// Runs `work` in the node's namespace.
    pub(crate) fn inside<T>(&self, work: impl FnOnce() -> T) -> Result<T, NetnsError> {
        if self.at_home {
            Ok(work())
        } else {
            self.netns.enter(work)
        }
    }

    /// Runs `work` in a pod's namespace.
    pub(crate) fn visit<T>(&self, pod: &Netns, work: impl FnOnce() -> T) -> Result<T, NetnsError> {
        if self.at_home {
            pod.enter_from(&self.netns, work)
        } else {
            pod.enter(work)
        }
    }

    /// A route socket in a pod's namespace.
    pub fn socket_in(&self, pod: &Netns) -> Result<Socket, NetlinkError> {
        self.visit(pod, Socket::open)?
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
        let idle = self.idle().pop();
        let mut socket = match idle {
            Some(socket) => socket,
            None => self.inside(Socket::open).map_err(NetlinkError::from)??,
        };
        let result = work(&mut socket);
        let mut idle = self.idle();
        if !socket.is_broken() && idle.len() < IDLE_AT_MOST {
            idle.push(socket);
        }
        result
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Socket>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
