//! What networks keep on the node: bridges, sysctls, masquerading, routers. Owns making it so by
//! difference; never removes what others made. Cheap when all is there.

use crate::nft::{self, NftError};
use crate::observe::{addresses_of, link_by_name};
use crate::router::{self, RouterError};
use crate::sysctl::{self, SysctlError};
use crate::{NetlinkError, NetnsError, NodeSide, bridge};
use ipnet::IpNet;
use plexus_core::plan::{NodePlan, Observed};
use plexus_types::IfName;

/// What had to be changed; empty if all was there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ensured {
    /// In words, in order.
    pub changes: Vec<String>,
}

/// The node is not what the plan needs.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The node's namespace cannot be used.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// A bridge could not be made or changed.
    #[error("cannot set up bridge {name} on the node")]
    Bridge {
        /// The bridge.
        name: IfName,
        /// What the kernel said.
        #[source]
        source: NetlinkError,
    },
    /// The name belongs to something else.
    #[error(
        "{name} exists on the node already but is a {kind}, not a bridge: choose another bridge name"
    )]
    NotBridge {
        /// The name.
        name: IfName,
        /// What it is.
        kind: String,
    },
    /// Another gateway address is in the way.
    #[error(
        "bridge {name} has the address {has} already, which differs from {wanted}: remove it, or set forceAddress to have it replaced"
    )]
    Address {
        /// The bridge.
        name: IfName,
        /// Its address.
        has: IpNet,
        /// The plan's.
        wanted: IpNet,
    },
    /// A bridge was made and then was not there.
    #[error("bridge {0} vanished right after it was made: is another program at work on the node?")]
    Vanished(IfName),
    /// A sysctl could not be set.
    #[error("cannot prepare the node")]
    Setting(#[from] SysctlError),
    /// Masquerading could not be set up.
    #[error("cannot set up masquerading on the node")]
    Masquerade(#[from] NftError),
    /// A router could not be made or changed.
    #[error(transparent)]
    Router(#[from] Box<RouterError>),
    /// Netlink itself failed.
    #[error("cannot talk to the kernel about the node")]
    Netlink(#[from] NetlinkError),
}

/// Makes the node what the plan says. Can be repeated, and run by several threads at once.
pub fn ensure(plan: &NodePlan, node: &NodeSide) -> Result<Ensured, NodeError> {
    let mut done = Ensured::default();
    if plan.is_empty() {
        return Ok(done);
    }
    let known = node.with_socket(|socket| {
        let bridges = plan.bridges.iter();
        let ensured = bridges.map(|b| bridge::ensure(socket, node.netns(), b, &mut done.changes));
        ensured.collect::<Result<Vec<_>, _>>()
    })?;
    let settings = || {
        let of_bridges = plan.bridges.iter().zip(&known).flat_map(|(bridge, known)| {
            let settings = bridge.settings.iter();
            settings.filter(|setting| !known.has_of(bridge.name.as_str(), setting))
        });
        of_bridges.chain(&plan.settings)
    };
    node.inside(|| -> Result<(), NodeError> {
        for setting in settings() {
            if sysctl::ensure(setting)? {
                done.changes
                    .push(format!("set sysctl {} to {}", setting.key, setting.value));
            }
        }
        Ok(())
    })??;
    if !plan.masquerades.is_empty() {
        done.changes.extend(nft::ensure(node, &plan.masquerades)?);
    }
    for wanted in &plan.routers {
        let changes = router::ensure(node, wanted).map_err(Box::new)?;
        done.changes.extend(changes);
    }
    Ok(done)
}

/// The bridges of a plan and their addresses, as the kernel has them.
pub fn observe(plan: &NodePlan, node: &NodeSide) -> Result<Observed, NetlinkError> {
    node.with_socket(|socket| {
        let mut observed = Observed::default();
        for bridge in &plan.bridges {
            if let Some(link) = link_by_name(socket, bridge.name.as_str())? {
                observed.addresses.extend(addresses_of(socket, link.index)?);
                observed.links.push(link);
            }
        }
        Ok(observed)
    })
}
