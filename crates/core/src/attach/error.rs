//! Why a request cannot be served.

use crate::ipam::AllocateError;
use crate::plan::PlanError;
use crate::refusal::{Fault, Refusal};
use plexus_types::{Family, IfName, Invalid, NetworkName};
use std::borrow::Cow;

/// What is wrong, and with which attachment.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AttachError {
    /// A link cannot be planned.
    #[error("interface {ifname}")]
    Plan {
        /// The link's name in the pod.
        ifname: IfName,
        /// Why.
        #[source]
        source: PlanError,
    },
    /// An attachment gets no address.
    #[error(transparent)]
    Allocate(#[from] AllocateError),
    /// A choice of the default route fits none, or comes too late.
    #[error(transparent)]
    DefaultRoute(#[from] DefaultRouteError),
    /// An interface would have a name that is none.
    #[error("network {network} (number {number})")]
    Name {
        /// The network.
        network: NetworkName,
        /// Which of the references.
        number: usize,
        /// Why.
        #[source]
        source: Invalid,
    },
    /// Two interfaces would have one name.
    #[error(
        "network {} (number {}) and network {} (number {}) both want the interface name {ifname}",
        first.0, first.1, second.0, second.1
    )]
    SameName {
        /// The network and the number of the reference that has it.
        first: (NetworkName, usize),
        /// Those of the one that asks for it too.
        second: (NetworkName, usize),
        /// The name.
        ifname: IfName,
    },
    /// Source routing of what plugins make.
    #[error(
        "network {network} (number {number}): sourceRouting is not available for executed plugins"
    )]
    SourceRouting {
        /// The network.
        network: NetworkName,
        /// Which of the references.
        number: usize,
    },
}

impl Refusal for AttachError {
    fn fault(&self) -> Fault {
        match self {
            AttachError::Plan { source, .. } => source.fault(),
            AttachError::Allocate(error) => error.fault(),
            AttachError::DefaultRoute(error) => error.fault(),
            AttachError::Name { .. } | AttachError::SameName { .. } => Fault::Invalid,
            AttachError::SourceRouting { .. } => Fault::Unsupported,
        }
    }

    fn remedy(&self) -> Cow<'static, str> {
        match self {
            AttachError::Plan { source, .. } => source.remedy(),
            AttachError::Allocate(error) => error.remedy(),
            AttachError::DefaultRoute(error) => error.remedy(),
            AttachError::Name { .. } => "give it an `interface`".into(),
            AttachError::SameName { .. } => {
                "give one of them another `interface`; the first is always named CNI_IFNAME, others net<number> unless they ask".into()
            }
            AttachError::SourceRouting { .. } => {
                "add the plugin `sbr` to its chain instead".into()
            }
        }
    }
}

/// Why nobody can be given the default route.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefaultRouteError {
    /// The one that is named is not there.
    #[error("default-gw: {name} is neither a network nor an interface of this container")]
    Unknown {
        /// The name.
        name: String,
        /// Networks and interfaces that are there.
        known: Vec<(NetworkName, IfName)>,
    },
    /// The one that is named brings no gateway.
    #[error(
        "default-gw: {name} is chosen for {family}, but network {network} (interface {ifname}) brings no {family} gateway"
    )]
    NoGateway {
        /// The name.
        name: String,
        /// For which family.
        family: Family,
        /// The network that it means.
        network: NetworkName,
        /// And the interface.
        ifname: IfName,
    },
    /// Executed plugins have set one that belongs elsewhere.
    #[error(
        "the plugins of network {network} (interface {ifname}) set an {family} default route, which belongs to network {} (interface {})",
        winner.0, winner.1
    )]
    AlreadySet {
        /// Of which family.
        family: Family,
        /// Their network.
        network: NetworkName,
        /// Their interface.
        ifname: IfName,
        /// Network and interface that it belongs to.
        winner: (NetworkName, IfName),
    },
}

impl Refusal for DefaultRouteError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }

    fn remedy(&self) -> Cow<'static, str> {
        match self {
            DefaultRouteError::Unknown { known, .. } => {
                let each = known
                    .iter()
                    .map(|(network, ifname)| format!("{network} ({ifname})"));
                let known = each.collect::<Vec<_>>().join(", ");
                format!("name one of {known}").into()
            }
            DefaultRouteError::NoGateway { .. } => {
                "give its IPAM a gateway or a default route, or choose another".into()
            }
            DefaultRouteError::AlreadySet { network, .. } => format!(
                "name {network} in default-gw, or take the default route out of its configuration"
            )
            .into(),
        }
    }
}
