//! Why a router could not be made, changed or reached.

use crate::nft::NftError;
use crate::sysctl::SysctlError;
use crate::{NetlinkError, NetnsError};
use plexus_types::RouterName;
use std::io;
use std::path::PathBuf;

/// A router that is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    /// The node does not know where routers are.
    #[error("router {router} cannot be used: no directory for routers was given")]
    NoDirectory {
        /// The router.
        router: RouterName,
    },
    /// The directory cannot be read.
    #[error("cannot list the routers in {}", path.display())]
    List {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The router is not there.
    #[error("router {router} is not there: it is made when its network is next used on this node")]
    Missing {
        /// The router.
        router: RouterName,
        /// Why.
        #[source]
        source: Box<NetnsError>,
    },
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
    #[error("cannot set up router {router}")]
    Netlink {
        /// The router.
        router: RouterName,
        /// What the kernel said.
        #[source]
        source: NetlinkError,
    },
    /// Netlink itself failed.
    #[error("cannot talk to the kernel about routers")]
    Socket(#[source] NetlinkError),
    /// The number of its VXLAN is taken.
    #[error(
        "cannot make VXLAN {vni} of router {router}: a device of the node uses that number on port {port} already, or another program has that port; see `ip -d link show type vxlan`"
    )]
    VniTaken {
        /// The router.
        router: RouterName,
        /// The number.
        vni: u32,
        /// The UDP port.
        port: u16,
        /// What the kernel said.
        #[source]
        source: NetlinkError,
    },
    /// No link addresses are left.
    #[error(
        "router {router} cannot be joined to the node: every pair of {range} is in use on the node"
    )]
    NoLinkAddress {
        /// The router.
        router: RouterName,
        /// Where they are taken from.
        range: &'static str,
    },
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
    #[error("cannot prepare router {router}")]
    Setting {
        /// The router.
        router: RouterName,
        /// Which, and why.
        #[source]
        source: SysctlError,
    },
    /// Its firewall could not be set.
    #[error("cannot set up the firewall of router {router}")]
    Firewall {
        /// The router.
        router: RouterName,
        /// Why.
        #[source]
        source: NftError,
    },
    /// The namespace cannot be entered.
    #[error(transparent)]
    Netns(#[from] NetnsError),
}

impl RouterError {
    pub(crate) fn missing(router: &RouterName, source: NetnsError) -> Self {
        RouterError::Missing {
            router: router.clone(),
            source: Box::new(source),
        }
    }

    pub(super) fn netlink(router: &RouterName) -> impl Fn(NetlinkError) -> Self + Copy + '_ {
        |source| RouterError::Netlink {
            router: router.clone(),
            source,
        }
    }

    /// Whether the router does not exist, as opposed to being out of reach.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            RouterError::Missing { source, .. } => source.is_gone(),
            _ => false,
        }
    }

    /// Whether the router is not there at all.
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            RouterError::Missing { .. } | RouterError::NoDirectory { .. }
        )
    }
}
