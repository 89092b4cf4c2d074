//! The network configuration on standard input: plugin mode (one network) and standalone mode
//! (a list of networks).

use super::{Native, Outcome, Runtime, Version};
use plexus_types::{ContainerId, Family, IfName, NetworkName, PluginType};
use serde_json::{Map, Value};

/// A validated configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct NetConf {
    /// The version that the answer must have.
    pub version: Version,
    /// The network's name: with the container id and the interface name, what identifies an
    /// attachment.
    pub name: NetworkName,
    /// The name that we were called by.
    pub plugin_type: PluginType,
    /// What is asked for.
    pub body: Body,
    /// What the plugins before us in the chain did (ADD), or all did (CHECK, DEL).
    pub prev_result: Option<Outcome>,
    /// What the runtime adds per container.
    pub runtime: Runtime,
    /// GC's list of what must stay. No list is not an empty list.
    pub valid_attachments: Option<Vec<ValidAttachment>>,
    /// What users should be told though it works: options that have no meaning here.
    pub warnings: Vec<String>,
}

/// One network, or all of the container's.
#[expect(
    clippy::large_enum_variant,
    reason = "one per call, or a handful; none is kept"
)]
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Plugin mode: one call, one interface.
    One(Network),
    /// Standalone mode: one call, all interfaces.
    All {
        /// In order; the first is named CNI_IFNAME.
        networks: Vec<Network>,
        /// Who has the default route.
        default_gw: DefaultGw,
    },
    /// `"networks": "pod"`: all interfaces that the pod's annotations name, after the cluster-wide
    /// default network.
    Pod,
    /// Plugin mode, one of our types and no provider: the network that the cluster knows by the
    /// configuration's name, or by this fully qualified one.
    Named(Option<FqName>),
}

/// `{"domain": "default-domain", "project": "team-a", "name": "blue"}`
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FqName {
    /// The namespace, or `<cluster>-<namespace>`.
    pub project: String,
    /// The network.
    pub name: String,
}

impl Body {
    /// The networks, in order.
    pub fn networks(&self) -> &[Network] {
        match self {
            Body::One(network) => std::slice::from_ref(network),
            Body::All { networks, .. } => networks,
            Body::Pod | Body::Named(_) => &[],
        }
    }
}

/// `default-gw`: a network's or an interface's name, for both families or for each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DefaultGw {
    /// For IPv4; none: the first interface that brings a gateway.
    pub v4: Option<String>,
    /// For IPv6; none: the first interface that brings a gateway.
    pub v6: Option<String>,
}

impl DefaultGw {
    /// The choice for a family.
    pub fn of(&self, family: Family) -> Option<&str> {
        match family {
            Family::V4 => self.v4.as_deref(),
            Family::V6 => self.v6.as_deref(),
        }
    }
}

/// One network to attach to.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Its name; in plugin mode the configuration's.
    pub name: NetworkName,
    /// The interface name that the entry asks for (standalone mode).
    pub interface: Option<IfName>,
    /// Replies leave by the interface that the request came in by.
    pub source_routing: bool,
    /// An object of the API describes it, and gave it its name; else a configuration, which may be called anything.
    pub of_object: bool,
    /// Who makes its interface.
    pub backend: NetworkBackend,
    /// `runtimeConfig` for the plugins that it executes; none: what the runtime sent.
    pub runtime: Option<Map<String, Value>>,
}

/// Who makes the interface: Plexus itself, or plugins that it executes.
#[expect(
    clippy::large_enum_variant,
    reason = "one per call, or a handful; none is kept"
)]
#[derive(Debug, Clone, PartialEq)]
pub enum NetworkBackend {
    /// By netlink.
    Native(Native),
    /// By executing a plugin or a chain.
    Delegate(Chain),
}

impl NetworkBackend {
    /// What is executed for it: the plugins that make it, or the IPAM plugin below a link that we make.
    pub fn executed(&self) -> Option<&Chain> {
        match self {
            NetworkBackend::Native(native) => Some(&native.executed_ipam()?.chain),
            NetworkBackend::Delegate(chain) => Some(chain),
        }
    }
}

/// Plugins to execute, in order. Each is the plugin's configuration as written, with its `type`,
/// without `cniVersion`, `name`, `runtimeConfig` and `prevResult`, which the runner inserts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Which binary gets each of the configurations.
    pub executable: Executable,
    /// The version written in the configuration: what to talk unless the plugin knows only less.
    pub version: Version,
    /// At least one.
    pub plugins: Vec<Map<String, Value>>,
    /// The key of a reference plugin's configuration for which Plexus executes the plugin: `vlan`.
    pub unsupported_key: Option<String>,
}

impl Chain {
    /// The names of the binaries, in order; `?` where there is none.
    pub fn executables(&self) -> impl Iterator<Item = &str> {
        let plugins = self.plugins.iter();
        plugins.map(|plugin| self.executable.name(plugin).unwrap_or("?"))
    }
}

/// Whose binary is executed with a plugin's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Executable {
    /// That of its `type`, which executes its IPAM plugin itself.
    #[default]
    Type,
    /// That of its `ipam.type` alone: we make the link.
    IpamType,
}

impl Executable {
    /// The name of the binary, as the configuration has it.
    pub fn name(self, plugin: &Map<String, Value>) -> Option<&str> {
        match self {
            Executable::Type => plugin.get("type")?.as_str(),
            Executable::IpamType => plugin.get("ipam")?.get("type")?.as_str(),
        }
    }
}

/// An element of `cni.dev/valid-attachments`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValidAttachment {
    /// The container.
    pub container: ContainerId,
    /// The interface that the runtime knows.
    pub ifname: IfName,
}
