//! Why a plan could not be applied: which object, where, and the likely cause.

use crate::nft::NftError;
use crate::nft::host_ports::HostPortError;
use crate::router::RouterError;
use crate::sysctl::SysctlError;
use crate::{NetlinkError, NetnsError, NodeSide, hint};
use plexus_types::IfName;
use std::path::PathBuf;

/// A plan that could not be applied. What had been made until then is still there.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The pod's namespace cannot be used.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The router of a host end cannot be used.
    #[error(transparent)]
    Router(#[from] Box<RouterError>),
    /// The node's firewall is not as the plan needs it.
    #[error(transparent)]
    Firewall(#[from] NftError),
    /// Ports of the node could not be led to the pod.
    #[error(transparent)]
    HostPorts(#[from] HostPortError),
    /// The bridge of a host end is not there.
    #[error("cannot make {link}: there is no bridge {bridge} on the node")]
    NoBridge {
        /// The link of the pod.
        link: IfName,
        /// The missing bridge.
        bridge: IfName,
    },
    /// A link could not be made.
    #[error("cannot make {link} in {}: {hint}", netns.display())]
    Create {
        /// The link of the pod.
        link: IfName,
        /// The pod's namespace.
        netns: PathBuf,
        /// The likely cause.
        hint: String,
        /// What the kernel said.
        #[source]
        source: NetlinkError,
    },
    /// A link was made and then was not there.
    #[error("{link} vanished from {} right after it was made: is another program at work there?", netns.display())]
    Vanished {
        /// The link of the pod, or its end on the node.
        link: IfName,
        /// Where it should be.
        netns: PathBuf,
    },
    /// Something in the pod's namespace could not be set.
    #[error("cannot {what} in {}: {hint}", netns.display())]
    Configure {
        /// What was asked for.
        what: String,
        /// The pod's namespace.
        netns: PathBuf,
        /// The likely cause.
        hint: String,
        /// What the kernel said.
        #[source]
        source: NetlinkError,
    },
    /// Something on the node could not be set.
    #[error("cannot {what} on the node: {hint}")]
    Node {
        /// What was asked for.
        what: String,
        /// The likely cause.
        hint: String,
        /// What the kernel said.
        #[source]
        source: NetlinkError,
    },
    /// A sysctl could not be set.
    #[error("cannot prepare {link}")]
    Setting {
        /// The link, in the pod or on the node.
        link: IfName,
        /// Which, and why.
        #[source]
        source: SysctlError,
    },
    /// Netlink itself failed.
    #[error("cannot talk to the kernel about the interfaces of {}", netns.display())]
    Netlink {
        /// The pod's namespace.
        netns: PathBuf,
        /// Why.
        #[source]
        source: NetlinkError,
    },
}

impl ApplyError {
    /// Netlink on the node failed.
    pub(super) fn on_node(node: &NodeSide) -> impl Fn(NetlinkError) -> Self + Copy + '_ {
        |source| ApplyError::Netlink {
            netns: node.netns().path().into(),
            source,
        }
    }

    /// The kernel's error number, if it was the kernel that refused.
    pub fn errno(&self) -> Option<i32> {
        match self {
            ApplyError::Create { source, .. }
            | ApplyError::Configure { source, .. }
            | ApplyError::Node { source, .. }
            | ApplyError::Netlink { source, .. } => source.errno(),
            _ => None,
        }
    }

    /// The link that the kernel refuses because of something that is there.
    pub fn refused_link(&self) -> Option<&IfName> {
        match self {
            ApplyError::Create { link, source, .. } => {
                matches!(source.errno(), Some(libc::EBUSY | libc::EEXIST)).then_some(link)
            }
            _ => None,
        }
    }
}

/// What was refused, and why most likely.
pub(super) fn refusal(error: &NetlinkError) -> Option<(String, String)> {
    match error {
        NetlinkError::Refused(refused) => {
            Some((refused.what.clone(), hint::general(refused.errno)))
        }
        _ => None,
    }
}
