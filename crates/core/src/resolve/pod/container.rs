//! Containers that are no pods (Podman, nerdctl, `ctr --cni`): by which name their runtime finds a
//! network, and which network a call means. Nobody but the machine's administrator starts them, so
//! each counts as one of the network's own namespace.

use super::error::ResolveError;
use super::lookup::{Lookup, ResolvedNetwork, by_fq_name, network_name};
use super::object::name_of;
use super::{
    NetworkObject, Objects, PodFacts, PodNetworks, ResolvedReference, Settings, is_of_fabric,
    is_routed,
};
use plexus_api::cni::{Body, DefaultGw, FqName, Network, NetworkBackend, Runtime};
use plexus_api::pod::NetworkSelection;
use plexus_types::{IfName, NetworkName};

/// The namespace whose networks have short names.
pub const HOME: &str = "default";
/// The interface that has the default route and the ports of the node.
const FIRST: &str = "eth0";
/// What runtimes take for something else than a network's name, or for that of the network which containers
/// get without naming one (Podman's is `podman`, nerdctl's `bridge`); `plexus` is the configuration for pods.
const TAKEN: [&str; 12] = [
    "bridge",
    "container",
    "default",
    "host",
    "none",
    "ns",
    "pasta",
    "plexus",
    "pod",
    "podman",
    "private",
    "slirp4netns",
];

/// What a runtime calls a network: its name if it is in `default`, else `<namespace>.<name>`. No two
/// networks have the same, and none has a word that means something else to a runtime.
pub fn runtime_name(network: &NetworkObject) -> Result<NetworkName, ResolveError> {
    let name = network.name.as_str();
    if network.namespace == HOME && !name.contains('.') && !TAKEN.contains(&name) {
        return network_name(&[name]);
    }
    name_of(network)
}

/// The one network that a call for a container means: the Network of the fully qualified name, else
/// the one that `default` has under the configuration's name. `eth0` has the default route, if the
/// network brings a gateway.
pub fn container_network(
    name: &str,
    fq_name: Option<&FqName>,
    cni_ifname: &IfName,
    runtime: &Runtime,
    settings: &Settings,
    objects: &dyn Objects,
) -> Result<PodNetworks, ResolveError> {
    let fq_name = fq_name.cloned().unwrap_or_else(|| FqName {
        project: HOME.to_owned(),
        name: name.to_owned(),
    });
    let at = |error: ResolveError| ResolveError::Container {
        project: fq_name.project.clone(),
        name: fq_name.name.clone(),
        source: Box::new(error),
    };
    let found = find(&fq_name, runtime, settings, objects).map_err(at)?;
    let first = is_first(cni_ifname);
    let mut networks = found.networks;
    for network in networks.all_mut() {
        if first {
            check_ports(network, runtime).map_err(at)?;
        }
        // Nobody knows whether the same network comes once more.
        network.source_routing |= is_routed(network) || is_of_fabric(network);
    }
    Ok(PodNetworks {
        references: vec![ResolvedReference {
            reference: found.reference,
            networks,
        }],
        default_gw: first.then(DefaultGw::default),
        warnings: found.warnings,
    })
}

/// Whether an interface is the one that ports of the node lead to.
pub fn is_first(cni_ifname: &IfName) -> bool {
    cni_ifname.as_str() == FIRST
}

fn find(
    fq_name: &FqName,
    runtime: &Runtime,
    settings: &Settings,
    objects: &dyn Objects,
) -> Result<ResolvedNetwork, ResolveError> {
    // Its configuration is the agent's, which writes namespaces.
    let object = by_fq_name(fq_name, &fq_name.project, settings, objects)?;
    let lookup = Lookup {
        pod: &PodFacts {
            namespace: object.namespace.clone(),
            ..PodFacts::default()
        },
        settings,
        objects,
    };
    let request = NetworkSelection {
        ips: runtime.ips.clone(),
        mac: runtime.mac,
        ..NetworkSelection::named(&object.namespace, &object.name)
    };
    lookup.of_object(&object, &request)
}

/// Ports of the node that would lead nowhere are refused.
fn check_ports(network: &Network, runtime: &Runtime) -> Result<(), ResolveError> {
    if runtime.port_mappings.is_empty() {
        return Ok(());
    }
    let what = match &network.backend {
        NetworkBackend::Native(native) if native.provider.kind().host_ports => return Ok(()),
        NetworkBackend::Native(native) => native.provider.name(),
        NetworkBackend::Delegate(_) if takes_ports(network) => return Ok(()),
        NetworkBackend::Delegate(_) => "delegate without a plugin for port mappings",
    };
    Err(ResolveError::Ports {
        provider: what.to_owned(),
    })
}

fn takes_ports(network: &Network) -> bool {
    Body::One(network.clone()).takes("portMappings")
}
