//! What can go wrong on the way to the kernel, and what the kernel says when it refuses.

use crate::NetnsError;
use std::fmt;
use std::io;

/// A request that did not get through, or was refused.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// No socket.
    #[error("cannot open a netlink socket")]
    Open {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No socket in that namespace.
    #[error(transparent)]
    Netns(Box<NetnsError>),
    /// The kernel did not take the messages at all.
    #[error("cannot send the request to {what}")]
    Send {
        /// The first request of the batch.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The answer did not come, or was lost (ENOBUFS).
    #[error("cannot read the kernel's answer to: {what}")]
    Receive {
        /// The first request of the batch.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// An answer that makes no sense.
    #[error("the kernel's answer to {what:?} is garbled: {why}")]
    Garbled {
        /// The first request of the batch.
        what: String,
        /// In which way.
        why: &'static str,
    },
    /// The kernel said no.
    #[error(transparent)]
    Refused(Box<Refused>),
    /// A device that must be given back is nowhere.
    #[error(
        "cannot give {device} back: it is neither on the node nor in the pod, but on its way back, or in a namespace that cannot be seen"
    )]
    Lost {
        /// Its name on the node, and what it is part of.
        device: String,
    },
}

impl From<NetnsError> for NetlinkError {
    fn from(error: NetnsError) -> Self {
        NetlinkError::Netns(Box::new(error))
    }
}

impl From<Refused> for NetlinkError {
    fn from(refused: Refused) -> Self {
        NetlinkError::Refused(Box::new(refused))
    }
}

impl NetlinkError {
    /// The error number of a refusal.
    pub fn errno(&self) -> Option<i32> {
        match self {
            NetlinkError::Refused(refused) => Some(refused.errno),
            NetlinkError::Open { source }
            | NetlinkError::Send { source, .. }
            | NetlinkError::Receive { source, .. } => source.raw_os_error(),
            NetlinkError::Netns(_) | NetlinkError::Garbled { .. } | NetlinkError::Lost { .. } => {
                None
            }
        }
    }

    /// Whether the thing that was asked for does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, NetlinkError::Refused(r)
            if matches!(r.errno, libc::ENODEV | libc::ENOENT | libc::ESRCH | libc::ENXIO | libc::EADDRNOTAVAIL))
    }
}

/// A refusal by the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Place of the refused request in its batch.
    pub index: usize,
    /// What was asked for: "create macvlan net1 on eth1".
    pub what: String,
    /// The error number.
    pub errno: i32,
    /// The kernel's own words, if it had any.
    pub text: Option<String>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errno = io::Error::from_raw_os_error(self.errno);
        write!(f, "the kernel refused to {}: {errno}", self.what)?;
        match &self.text {
            Some(text) => write!(f, ", \"{text}\""),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refused {}
