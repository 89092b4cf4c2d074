//! Why a pod's networks cannot be told: which reference of the pod, and what is wrong with it.

use super::multi_nic::MultiNicError;
use super::request::NetworkRequest;
use plexus_api::pod::{DEFAULT_GW, DEFAULT_NETWORK, MAX_NETWORKS};
use plexus_api::{Problems, cni, nad};
use plexus_types::{Family, IfName, Invalid};

/// What is wrong with a pod's networks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// One of the pod's references.
    #[error("network {name} (number {number}, annotation {annotation})")]
    Reference {
        /// Its name, as users know it.
        name: String,
        /// Which of the pod's.
        number: usize,
        /// The annotation that names it; empty if none does.
        annotation: &'static str,
        /// What is wrong with it.
        #[source]
        source: Box<ResolveError>,
    },
    /// The network of a container that is no pod.
    #[error("network {project}/{name}")]
    Container {
        /// The project that it is of.
        project: String,
        /// Its name there.
        name: String,
        /// What is wrong with it.
        #[source]
        source: Box<ResolveError>,
    },
    /// Something that users wrote.
    #[error("{}{problems}", prefix(what))]
    Written {
        /// What it is; empty where the problems say so.
        what: String,
        /// What is wrong with it.
        problems: Problems,
    },
    /// A network's configuration, or what the pod asks of it.
    #[error("{}", .0.msg)]
    Config(cni::Error),
    /// An object has a name that no network can have.
    #[error(transparent)]
    Name(Invalid),
    /// An interface would have a name that is none.
    #[error("network {name} (number {number})")]
    Interface {
        /// The reference's name.
        name: String,
        /// Which of the pod's.
        number: usize,
        /// Why.
        #[source]
        source: Invalid,
    },
    /// A NAD or a `Network` that is not there.
    #[error("there is no {kind} {object}")]
    Missing {
        /// Which of the two.
        kind: &'static str,
        /// Its namespace and name.
        object: String,
        /// What may be meant.
        instead: Instead,
    },
    /// A `Network` of a project that is not there.
    #[error("there is no Network {name} {}, as the project {project} says", places(project, namespace.as_deref()))]
    NoNetworkOfProject {
        /// Its name.
        name: String,
        /// The project.
        project: String,
        /// The namespace that the project may mean besides.
        namespace: Option<String>,
        /// What the cluster is called.
        cluster: String,
    },
    /// A project may be either of two namespaces.
    #[error(
        "the project {project} of network {name} may be the namespace {project} or the namespace {namespace}: both are there"
    )]
    AmbiguousProject {
        /// Its name.
        name: String,
        /// The project.
        project: String,
        /// The namespace that Contrail calls so.
        namespace: String,
    },
    /// Neither a NAD nor a `Network` of that namespace and name is there.
    #[error("there is neither a NetworkAttachmentDefinition nor a Network {0}")]
    Neither(String),
    /// A NAD of that namespace and name leaves everything to a `Network` that is not there.
    #[error(
        "NetworkAttachmentDefinition {0} leaves everything to the Network {0}, which is not there"
    )]
    NoNamesake(String),
    /// A NAD of that namespace and name has no configuration, and nothing else has its name.
    #[error(
        "NetworkAttachmentDefinition {0} has no config, the CNI directory of this node has none of that name, and there is no Network {0}"
    )]
    NoConfig(String),
    /// A NAD of that namespace and name describes a network, but another one has its name.
    #[error(
        "NetworkAttachmentDefinition {0} describes a network by {cidr}, but the Network {0} was not made from it",
        cidr = nad::CIDR
    )]
    NotMadeFrom(String),
    /// A pod names a device that a device plugin gives out.
    #[error(
        "the pod asks for the device {device:?}, but NetworkAttachmentDefinition {object} is of the resource {resource}, whose devices its device plugin gives out"
    )]
    DeviceOfResource {
        /// Namespace and name of the NAD.
        object: String,
        /// What is asked for.
        device: String,
        /// The resource.
        resource: String,
    },
    /// The NAD is too large.
    #[error("NetworkAttachmentDefinition {object} cannot be used: {reason}")]
    UnusableNad {
        /// Its namespace and name.
        object: String,
        /// Why.
        reason: String,
    },
    /// No new pod may use the `Network`, by its phase.
    #[error("Network {object} cannot be used: {reason}")]
    Unusable {
        /// Its namespace and name.
        object: String,
        /// The phase, and why.
        reason: String,
        /// It ends by itself.
        passing: bool,
    },
    /// The `Network` is not for pods of this namespace.
    #[error("Network {object} is only for pods of {rule}, and this pod is in {pod}")]
    NotAllowed {
        /// Its namespace and name.
        object: String,
        /// Whom it is for.
        rule: String,
        /// The pod's namespace.
        pod: String,
    },
    /// Pods of this cluster use networks of their own namespace alone.
    #[error(
        "{object} is in another namespace, and pods of {pod} may only use networks of their own (--namespace-isolation)"
    )]
    Isolated {
        /// Namespace and name of what is named.
        object: String,
        /// The pod's namespace.
        pod: String,
    },
    /// A link without addresses would lead nowhere.
    #[error("Network {object} has no subnets: a pod on provider {provider} could not be reached")]
    NoSubnets {
        /// Its namespace and name.
        object: String,
        /// Its provider.
        provider: String,
    },
    /// A MultiNicNetwork.
    #[error("MultiNicNetwork {network}")]
    MultiNic {
        /// Its name.
        network: String,
        /// What is wrong with it, or with what the pod asks of it.
        #[source]
        source: MultiNicError,
    },
    /// A delegating plugin may mean two networks.
    #[error(
        "network {name} for interface {ifname} may be {one} or {other}, and nothing tells which"
    )]
    Ambiguous {
        /// The name that it passes on.
        name: String,
        /// CNI_IFNAME.
        ifname: IfName,
        /// Namespace and name of the one.
        one: String,
        /// And of the other.
        other: String,
    },
    /// The pod refers to more networks than a pod may have.
    #[error("the pod's annotations name {0} networks: at most {MAX_NETWORKS} are attached")]
    TooMany(usize),
    /// Something is asked of the first interface that others can have.
    #[error("annotation {DEFAULT_NETWORK}: {0} is not possible for the first interface")]
    OfFirst(&'static str),
    /// The default gateway is none of the pod's networks.
    #[error("annotation {DEFAULT_GW}: {text:?} is neither a network nor an interface of this pod")]
    DefaultGw {
        /// What is written.
        text: String,
        /// Those that it could be.
        known: Vec<String>,
    },
    /// Two networks ask for the default route.
    #[error(
        "it asks for the {family} default route, which interface {interface} has been given already"
    )]
    DefaultRouteTaken {
        /// Of which family.
        family: Family,
        /// Who has it.
        interface: String,
    },
    /// A default route without addresses.
    #[error("`default-route` is asked for, but the network gives no addresses")]
    DefaultRouteAlone,
    /// A default route by two gateways.
    #[error("`default-route` has two {family} gateways, {} and {}", gateways[0], gateways[1])]
    TwoGateways {
        /// Of which family.
        family: Family,
        /// Both.
        gateways: [std::net::IpAddr; 2],
    },
    /// A gateway for an interface that plugins make.
    #[error(
        "`default-route` names a gateway, but executed plugins make this interface and its routes"
    )]
    GatewayOfPlugins,
    /// Ports of the node that would lead nowhere.
    #[error("ports of the node cannot lead to it: its provider is {provider}")]
    Ports {
        /// Its provider.
        provider: String,
    },
}

/// What may be meant by the name of something that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instead {
    /// An object of the other kind, this one, has that name; which annotation names those.
    OtherKind(&'static str, &'static str),
    /// The pod's own namespace has one of that name: its namespace and name.
    Own(String),
    /// Nothing.
    Nothing,
}

impl ResolveError {
    /// The error itself, without the reference that it is about.
    pub fn innermost(&self) -> &Self {
        match self {
            ResolveError::Reference { source, .. } | ResolveError::Container { source, .. } => {
                source.innermost()
            }
            error => error,
        }
    }

    /// The name and the number of the reference that it is about, if it is about one.
    pub fn reference(&self) -> Option<(&str, usize)> {
        match self {
            ResolveError::Reference { name, number, .. }
            | ResolveError::Interface { name, number, .. } => Some((name, *number)),
            _ => None,
        }
    }

    /// The same error, saying which of the pod's references it is about.
    pub(super) fn within(self, request: &NetworkRequest, number: usize) -> Self {
        ResolveError::Reference {
            name: request.display_name(),
            number,
            annotation: request.source,
            source: Box::new(self),
        }
    }
}

/// What is wrong with something that users wrote.
pub(super) fn invalid(what: &str, problems: Problems) -> ResolveError {
    let what = what.to_owned();
    ResolveError::Written { what, problems }
}

fn prefix(what: &str) -> String {
    match what {
        "" => String::new(),
        what => format!("{what}: "),
    }
}

fn places(project: &str, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("neither in namespace {project} nor in {namespace}"),
        None => format!("in namespace {project}"),
    }
}
