//! A network that is read and checked once, and what a pod asks of it, which is added per pod.
//!
//! Addresses, a MAC, and what the executed plugins take are added without reading anything again. Some requests
//! decide how the configuration is read, and it must be read together with them: `cni-args`, which stand in the
//! configuration; addresses of IPAM `static`, and of a network that may have no IPAM; whatever is refused, so that
//! the message names every problem at once.

use super::{object, read_config, untaken};
use crate::cni::parse::ipam::fixed;
use crate::cni::{Chain, Error, Native, Network, NetworkBackend, ObjectFacts, Requests};
use crate::objects::NetworkSpec;
use crate::pod::NetworkSelection;
use plexus_types::NetworkName;
use serde_json::{Map, Value};

/// A network as it is for a pod that asks nothing of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedNetwork {
    pub(super) network: Network,
    /// The capabilities that a plugin's configuration declares; none: it is written for us, and takes all that
    /// its provider has.
    pub(super) declared: Option<Vec<String>>,
}

impl ParsedNetwork {
    /// Reads the configuration of a NAD: see [`Network::from_config`].
    pub fn of_config(name: &NetworkName, config: &Map<String, Value>) -> Result<Self, Error> {
        read_config(name, config, &NetworkSelection::default())
    }

    /// Reads the spec of a `Network` object: see [`Network::from_spec`].
    pub fn of_spec(
        name: &NetworkName,
        spec: &NetworkSpec,
        facts: &ObjectFacts,
    ) -> Result<Self, Error> {
        object::checked(name, spec, facts, &NetworkSelection::default())
    }

    /// The network for a pod that asks for `selection`; none if that decides how the configuration is read, or is
    /// refused: then [`Network::from_config`] or [`Network::from_spec`] reads both together.
    pub fn with_request(&self, selection: &NetworkSelection) -> Option<Network> {
        let backend = &self.network.backend;
        let refused = untaken(selection, backend, self.declared.as_deref());
        if !selection.cni_args.is_empty() || !refused.is_empty() {
            return None;
        }
        let backend = match backend {
            NetworkBackend::Native(native) => {
                NetworkBackend::Native(with_selection(native, selection)?)
            }
            NetworkBackend::Delegate(chain)
                if !selection.ips.is_empty()
                    && (chain.plugins.iter().any(fixed::is_asked_of) || lacks_ipam(chain)) =>
            {
                return None;
            }
            NetworkBackend::Delegate(_) => backend.clone(),
        };
        Some(Network {
            name: self.network.name.clone(),
            interface: selection.interface.clone(),
            source_routing: self.network.source_routing,
            of_object: self.network.of_object,
            backend,
            runtime: Some(selection.runtime_config()),
        })
    }
}

impl Network {
    /// Adds what a `Network` object says to every provider, and what the cluster knows of it.
    pub fn set_object_facts(&mut self, spec: &NetworkSpec, facts: &ObjectFacts) {
        if let NetworkBackend::Native(native) = &mut self.backend {
            native.provider.with_network(spec, facts);
        }
    }
}

/// What a native network takes: addresses and a MAC. A provider may read other requests by itself.
fn with_selection(native: &Native, selection: &NetworkSelection) -> Option<Native> {
    let keys = selection.runtime_config();
    if keys.keys().any(|key| key != "ips" && key != "mac") {
        return None;
    }
    let mut native = native.clone();
    native.mac = selection.mac.or(native.mac);
    if !selection.ips.is_empty() {
        match native.ipam.as_ref()?.requests() {
            Requests::Written => return None,
            // It is told by `runtimeConfig`.
            Requests::Passed => {}
            Requests::Chosen => native.ips.clone_from(&selection.ips),
        }
    }
    Some(native)
}

/// Whether it is executed for a key of a reference plugin that has no IPAM: whoever asks for addresses of it is refused.
fn lacks_ipam(chain: &Chain) -> bool {
    let has_ipam = |plugin: &Map<String, Value>| {
        let ipam = plugin.get("ipam");
        ipam.is_some_and(|ipam| ipam.get("type").is_some())
    };
    chain.unsupported_key.is_some() && !chain.plugins.iter().all(has_ipam)
}

#[cfg(test)]
#[path = "parsed_tests.rs"]
mod tests;
