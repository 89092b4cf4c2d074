//! A network namespace, held open. Owns how one is recognised, entered and left.
//!
//! Never names or pins one. A path goes in; what comes out is certain to be a network namespace
//! and stays the same one even if the path is reused.

use crate::sys;
use plexus_types::NetnsCookie;
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open network namespace. Cloning it is cheap and refers to the same namespace.
#[derive(Debug, Clone)]
pub struct Netns {
    fd: Arc<OwnedFd>,
    path: PathBuf,
}

/// A namespace that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// Nothing there, or not readable.
    #[error("cannot open network namespace {}: is the container gone?", .0.display())]
    Open(PathBuf, #[source] io::Error),
    /// A file or directory that is no namespace.
    #[error(
        "{} is not a namespace: it is on a file system with magic {magic:#x}, not on nsfs; \
         probably the namespace is mounted there for others but the mount does not reach this \
         process: run it with HostToContainer mount propagation of that directory",
        path.display()
    )]
    NotNamespace {
        /// The path asked for.
        path: PathBuf,
        /// What `fstatfs` says.
        magic: u64,
    },
    /// A namespace, but not a network namespace.
    #[error("{} is a {kind} namespace, not a network namespace: give the container's network namespace", path.display())]
    WrongKind {
        /// The path asked for.
        path: PathBuf,
        /// What it is.
        kind: String,
    },
    /// The thread may not go there.
    #[error("cannot enter network namespace {}: this needs CAP_SYS_ADMIN", .0.display())]
    Enter(PathBuf, #[source] io::Error),
    /// The kernel does not say who the namespace is.
    #[error("cannot {what} of network namespace {}: kernel 5.14 or newer is needed", path.display())]
    Identify {
        /// What was asked.
        what: &'static str,
        /// The path asked for.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl NetnsError {
    /// Whether the namespace does not exist any more, as opposed to being out of reach.
    pub fn is_gone(&self) -> bool {
        matches!(self, NetnsError::Open(_, source) if source.kind() == io::ErrorKind::NotFound)
    }
}

const NSFS_MAGIC: u64 = 0x6e73_6673;
const OWN: &str = "/proc/thread-self/ns/net";

impl Netns {
    /// Opens the namespace at `path`, and makes sure that it is one.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, NetnsError> {
        let path = path.as_ref();
        // O_NONBLOCK: a hostile path may be a FIFO, which would otherwise hold us up.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let failed = |e: rustix::io::Errno| NetnsError::Open(path.into(), e.into());
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
        let magic = rustix::fs::fstatfs(&fd).map_err(failed)?.f_type as u64;
        if magic != NSFS_MAGIC {
            return Err(NetnsError::NotNamespace {
                path: path.into(),
                magic,
            });
        }
        match sys::namespace_kind(&fd) {
            Ok(libc::CLONE_NEWNET) => Ok(Self {
                fd: Arc::new(fd),
                path: path.into(),
            }),
            Ok(kind) => Err(NetnsError::WrongKind {
                path: path.into(),
                kind: kind_name(kind),
            }),
            Err(source) => Err(NetnsError::Open(path.into(), source)),
        }
    }

    /// The namespace of the calling thread.
    pub fn current() -> Result<Self, NetnsError> {
        Self::open(OWN)
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kernel's number for this namespace, never reused until the machine reboots.
    pub fn cookie(&self) -> Result<NetnsCookie, NetnsError> {
        self.enter(|| self.cookie_here())?
    }

    /// The same, with the calling thread in this namespace.
    pub(crate) fn cookie_here(&self) -> Result<NetnsCookie, NetnsError> {
        let flags = SocketFlags::CLOEXEC;
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)
            .map_err(io::Error::from)
            .and_then(|socket| crate::peer::netns_of(&socket))
            .map_err(|source| self.unknown("read the cookie", source))
    }

    /// Device and inode number: the same for every path to this namespace.
    pub fn inode(&self) -> Result<(u64, u64), NetnsError> {
        let stat = rustix::fs::fstat(&*self.fd)
            .map_err(|e| self.unknown("read the inode number", e.into()))?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// Runs `inside` with the calling OS thread in this namespace, and comes back, also when
    /// `inside` panics.
    ///
    /// If coming back fails the process aborts: a thread left behind in a pod's namespace would
    /// go on to configure that pod as if it were the node, and nobody would notice.
    pub fn enter<T>(&self, inside: impl FnOnce() -> T) -> Result<T, NetnsError> {
        let home = rustix::fs::open(OWN, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| NetnsError::Open(OWN.into(), error.into()))?;
        self.go_and_return(home.as_fd(), inside)
    }

    /// The same for a thread that is known to be in `home`, without asking where it is.
    pub(crate) fn enter_from<T>(
        &self,
        home: &Netns,
        inside: impl FnOnce() -> T,
    ) -> Result<T, NetnsError> {
        self.go_and_return(home.as_fd(), inside)
    }

    fn go_and_return<T>(
        &self,
        home: BorrowedFd<'_>,
        inside: impl FnOnce() -> T,
    ) -> Result<T, NetnsError> {
        move_into_link_name_space(self.fd.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| NetnsError::Enter(self.path.clone(), error.into()))?;
        let _back = Back(home);
        Ok(inside())
    }

    fn unknown(&self, what: &'static str, source: io::Error) -> NetnsError {
        NetnsError::Identify {
            what,
            path: self.path.clone(),
            source,
        }
    }
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Brings the thread home when it is dropped.
struct Back<'a>(BorrowedFd<'a>);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        if move_into_link_name_space(self.0, Some(LinkNameSpaceType::Network)).is_err() {
            std::process::abort();
        }
    }
}

fn kind_name(kind: i32) -> String {
    match kind {
        libc::CLONE_NEWNS => "mount".into(),
        libc::CLONE_NEWPID => "pid".into(),
        libc::CLONE_NEWUTS => "uts".into(),
        libc::CLONE_NEWIPC => "ipc".into(),
        libc::CLONE_NEWUSER => "user".into(),
        libc::CLONE_NEWCGROUP => "cgroup".into(),
        other => format!("{other:#x}"),
    }
}
