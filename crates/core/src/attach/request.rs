//! What is asked for: a sandbox, and the networks that it shall have interfaces on, in order. Made by whoever takes
//! requests: a CNI call is one source of them. Nothing behind it knows where a request came from.

use crate::plan::LinkOwner;
use crate::resolve::{Networks, PodNetworks, Reference};
use plexus_api::cni::{Body, DefaultGw, NetConf, Outcome, PortMapping};
use plexus_types::{ContainerId, IfName, NetnsCookie};
use serde_json::{Map, Value};

/// A request for attachments.
#[derive(Debug, Clone, PartialEq)]
pub struct AttachRequest {
    /// Who gets them.
    pub sandbox: Sandbox,
    /// What is referred to, in order.
    pub references: Vec<ReferenceRequest>,
    /// Who has the default route, where the request is for all interfaces of the sandbox (standalone mode). None: it
    /// is for one reference among others (plugin mode), and default routes are as configured.
    pub default_gw: Option<DefaultGw>,
    /// Ports of the node that lead to the first interface.
    pub port_mappings: Vec<PortMapping>,
    /// What the runtime tells the plugins of references that have no `runtime` of their own.
    pub runtime: Map<String, Value>,
    /// What others did for the same interface before.
    pub previous: Option<Outcome>,
}

/// A network namespace that gets interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The container's id.
    pub container: ContainerId,
    /// The name of the first interface; with the container's id it identifies the request.
    pub ifname: IfName,
    /// The path of the namespace.
    pub path: String,
    /// The namespace's cookie.
    pub cookie: NetnsCookie,
    /// The cookie of the node's namespace.
    pub node: NetnsCookie,
}

/// One mention of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceRequest {
    /// How the cluster knows it; none for an inline configuration.
    pub origin: Option<Reference>,
    /// What it means: a network for each interface that it makes.
    pub networks: Networks,
}

impl AttachRequest {
    /// The request of a configuration that lists its networks itself.
    pub fn of(conf: &NetConf, sandbox: Sandbox) -> Self {
        let references = conf.body.networks().iter();
        let references = references.map(|network| ReferenceRequest {
            origin: None,
            networks: Networks::One(network.clone()),
        });
        let default_gw = match &conf.body {
            Body::All { default_gw, .. } => Some(default_gw.clone()),
            Body::One(_) | Body::Pod | Body::Named(_) => None,
        };
        Self::new(conf, references.collect(), default_gw, sandbox)
    }

    /// The request of a configuration that leaves its networks to the cluster, which said what they are.
    pub fn of_pod(conf: &NetConf, networks: PodNetworks, sandbox: Sandbox) -> Self {
        let references = networks.references.into_iter();
        let references = references.map(|one| ReferenceRequest {
            origin: Some(one.reference),
            networks: one.networks,
        });
        Self::new(conf, references.collect(), networks.default_gw, sandbox)
    }

    fn new(
        conf: &NetConf,
        references: Vec<ReferenceRequest>,
        default_gw: Option<DefaultGw>,
        sandbox: Sandbox,
    ) -> Self {
        Self {
            sandbox,
            references,
            default_gw,
            port_mappings: conf.runtime.port_mappings.clone(),
            runtime: conf.runtime.raw.clone(),
            previous: conf.prev_result.clone(),
        }
    }

    /// Whether it is for all interfaces of the sandbox.
    pub fn is_standalone(&self) -> bool {
        self.default_gw.is_some()
    }
}

impl Sandbox {
    /// As plans name it.
    pub(super) fn owner(&self) -> LinkOwner<'_> {
        LinkOwner {
            node: self.node,
            netns: self.cookie,
            container: &self.container,
            cni_ifname: &self.ifname,
        }
    }
}
