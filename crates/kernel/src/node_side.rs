//! The node's own side: its namespace and a few open sockets in it, one per thread that works at
//! the same time, so that an ADD never waits for a DEL.

use crate::procfs::Procfs;
use crate::{NetlinkError, Netns, NetnsError, Socket};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The node, as its kernel side sees it. Shared by all threads of an agent.
#[derive(Debug)]
pub struct NodeSide {
    netns: Netns,
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
            idle: Mutex::default(),
            packets: OnceLock::new(),
            procfs: Procfs::default(),
            firewall: Mutex::default(),
        }
    }

    /// The node whose network namespace the calling thread is in.
    pub fn current() -> Result<Self, NetnsError> {
        Netns::current().map(Self::new)
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
            None => Socket::open_in(&self.netns)?,
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
