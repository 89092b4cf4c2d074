//! Why a router could not be made, changed or reached.

use super::uplink::RANGE;
use crate::nft::NftError;
use crate::sysctl::SysctlError;
use crate::{NetlinkError, NetnsError};
use plexus_core::fabric::VXLAN_PORT;
use plexus_types::RouterName;
use std::io;
use std::path::PathBuf;

/// A router that is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    /// The node does not know where routers are.
    #[error("router {0} cannot be used: no directory for routers was given")]
    NoDirectory(RouterName),
    /// The directory cannot be read.
    #[error("cannot list the routers in {}", .0.display())]
    List(PathBuf, #[source] io::Error),
    /// The router is not there.
    #[error("router {0} is not there: it is made when its network is next used on this node")]
    Missing(RouterName, #[source] Box<NetnsError>),
    /// Its namespace cannot be made or kept.
    #[error(
        "cannot pin or unpin router {router} at {}: this needs CAP_SYS_ADMIN, and a directory in which mounts are allowed",
        path.display()
    )]
    Pin {
        /// The router.
        router: RouterName,
        /// The path of its namespace.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something in it, or its link to the node, could not be set.
    #[error("cannot set up router {0}")]
    Netlink(RouterName, #[source] NetlinkError),
    /// Netlink itself failed.
    #[error("cannot talk to the kernel about routers")]
    Socket(#[from] NetlinkError),
    /// The number of its VXLAN is taken.
    #[error(
        "cannot make VXLAN {vni} of router {router}: a device of the node uses that number on port {VXLAN_PORT} already, or another program has that port; see `ip -d link show type vxlan`"
    )]
    VniTaken {
        /// The router.
        router: RouterName,
        /// The number.
        vni: u32,
        /// What the kernel said.
        #[source]
        source: NetlinkError,
    },
    /// No link addresses are left.
    #[error("router {0} cannot be joined to the node: every pair of {RANGE} is in use on the node")]
    NoLinkAddress(RouterName),
    /// A link was made and then was not there.
    #[error(
        "{link} of router {router} vanished right after it was made: is another program at work on the node?"
    )]
    Vanished {
        /// The router.
        router: RouterName,
        /// The link.
        link: String,
    },
    /// A sysctl could not be set.
    #[error("cannot prepare router {0}")]
    Setting(RouterName, #[source] SysctlError),
    /// Its firewall could not be set.
    #[error("cannot set up the firewall of router {0}")]
    Firewall(RouterName, #[source] NftError),
    /// The namespace cannot be entered.
    #[error(transparent)]
    Netns(#[from] NetnsError),
}

impl RouterError {
    pub(crate) fn missing(router: &RouterName, source: NetnsError) -> Self {
        RouterError::Missing(router.clone(), Box::new(source))
    }

    pub(super) fn netlink(router: &RouterName) -> impl Fn(NetlinkError) -> Self + Copy + '_ {
        |source| RouterError::Netlink(router.clone(), source)
    }

    pub(super) fn firewall(router: &RouterName) -> impl Fn(NftError) -> Self + '_ {
        |source| RouterError::Firewall(router.clone(), source)
    }

    pub(super) fn vanished(router: &RouterName, link: &str) -> Self {
        let (router, link) = (router.clone(), link.to_owned());
        RouterError::Vanished { router, link }
    }

    /// Whether the router does not exist, as opposed to being out of reach.
    pub fn is_gone(&self) -> bool {
        match self {
            RouterError::Missing(_, source) => source.is_gone(),
            _ => false,
        }
    }

    /// Whether the router is not there at all.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(..) | Self::NoDirectory(_))
    }
}
