//! From references to attachments: their order, and the names of their interfaces.
//!
//! The first reference's interface has the request's name, another one's the name that it asks for, else
//! `net<reference>`. Interfaces of a reference that makes one for each NIC have its name with `-<ordinal>` behind it.

use super::{AttachError, AttachRequest, Attachment, Backend, NativeWork, PluginRun, Preparation};
use crate::attachment::{Assigned, NativeSpec};
use crate::plan::{Facts, NodePlan};
use crate::resolve::Networks;
use plexus_api::cni::{ExecutedIpam, Network, NetworkBackend};
use plexus_types::IfName;
use serde_json::{Map, Value};

pub(super) fn attachments(request: &AttachRequest) -> Result<Vec<Attachment>, AttachError> {
    let several = request.references.len() > 1
        || request
            .references
            .iter()
            .any(|reference| reference.networks.all().len() > 1);
    let mut all: Vec<Attachment> = Vec::with_capacity(request.references.len());
    for (index, reference) in request.references.iter().enumerate() {
        for (ordinal, network) in (0_u32..).zip(reference.networks.all()) {
            let number = matches!(reference.networks, Networks::PerNic(_)).then_some(ordinal);
            let ifname = ifname(request, network, index, number)?;
            if let Some(other) = all.iter().find(|other| other.ifname == ifname) {
                return Err(AttachError::SameName {
                    first: (other.network.clone(), other.reference),
                    second: (network.name.clone(), index),
                    ifname,
                });
            }
            all.push(Attachment {
                reference: index,
                ordinal,
                origin: reference.origin.clone(),
                network: network.name.clone(),
                backend: backend(network, index, &ifname, several, &request.runtime)?,
                ifname,
                outcome: None,
            });
        }
    }
    Ok(all)
}

pub(super) fn backend(
    network: &Network,
    index: usize,
    ifname: &IfName,
    several: bool,
    runtime: &Map<String, Value>,
) -> Result<Backend, AttachError> {
    let runtime = network.runtime.as_ref().unwrap_or(runtime);
    let by_plugin = |ipam: &ExecutedIpam| Preparation::Ipam(PluginRun::new(&ipam.chain, runtime));
    match &network.backend {
        NetworkBackend::Native(native) => Ok(Backend::Native(Box::new(NativeWork {
            spec: NativeSpec {
                index,
                network: network.name.clone(),
                of_object: network.of_object,
                ifname: ifname.clone(),
                native: native.clone(),
                source_routing: network.source_routing,
                several,
            },
            facts: Facts::default(),
            addresses: Assigned::default(),
            lease: None,
            preparations: native.executed_ipam().map(by_plugin).into_iter().collect(),
            link: None,
            node: NodePlan::default(),
            made: false,
            skipped: false,
        }))),
        NetworkBackend::Delegate(_) if network.source_routing => Err(AttachError::SourceRouting {
            network: network.name.clone(),
            number: index,
        }),
        NetworkBackend::Delegate(chain) => Ok(Backend::Plugins(PluginRun::new(chain, runtime))),
    }
}

fn ifname(
    request: &AttachRequest,
    network: &Network,
    index: usize,
    number: Option<u32>,
) -> Result<IfName, AttachError> {
    let asked = network.interface.as_ref();
    let name = match asked.filter(|_| request.is_standalone() && index > 0) {
        Some(interface) => interface.to_string(),
        None if index == 0 => request.sandbox.ifname.to_string(),
        None => format!("net{index}"),
    };
    let name = match number {
        None => name,
        Some(number) => format!("{name}-{number}"),
    };
    IfName::new(&name).map_err(|source| AttachError::Name {
        network: network.name.clone(),
        number: index,
        source,
    })
}
