//! Which attachments a call makes. Owns their order, their names and who has the default route.
//!
//! Never looks at a kernel or a file: a validated configuration goes in, a list of [`Resolved`]
//! comes out; the default route is chosen later, when the addresses are known.

mod default;
mod pod;

pub use default::{Brings, Candidate, choose_default};
pub use pod::{
    ANNOTATIONS, Examined, HOME, NadObject, Named, NetworkObject, Objects, PodFacts, PodNetworks,
    Reference, Settings, block_ipam, by_fq_name, container_network, examine, is_first, nad_network,
    name_of, named_network, pod_networks, runtime_name,
};

use crate::attachment::Wanted;
use plexus_api::cni::{Body, Chain, Code, Error, How, NetConf, Network};
use plexus_types::{IfName, NetworkName};

/// One attachment, before it has addresses.
#[expect(
    clippy::large_enum_variant,
    reason = "a handful per call, none of them kept"
)]
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved {
    /// Made by us.
    Native(Wanted),
    /// Made by plugins that we execute.
    Delegate(Delegate),
}

impl Resolved {
    /// Which of the container's references it is, from 0.
    pub fn index(&self) -> usize {
        match self {
            Resolved::Native(wanted) => wanted.index,
            Resolved::Delegate(delegate) => delegate.index,
        }
    }

    /// Its network.
    pub fn network(&self) -> &NetworkName {
        match self {
            Resolved::Native(wanted) => &wanted.network,
            Resolved::Delegate(delegate) => &delegate.network,
        }
    }

    /// Its name in the pod.
    pub fn ifname(&self) -> &IfName {
        match self {
            Resolved::Native(wanted) => &wanted.ifname,
            Resolved::Delegate(delegate) => &delegate.ifname,
        }
    }
}

/// An attachment that executed plugins make.
#[derive(Debug, Clone, PartialEq)]
pub struct Delegate {
    /// Which of the container's references it is, from 0.
    pub index: usize,
    /// Its network.
    pub network: NetworkName,
    /// Its name in the pod.
    pub ifname: IfName,
    /// What to execute.
    pub chain: Chain,
}

/// The attachments of a configuration, in order, with their final names.
pub fn resolve(conf: &NetConf, cni_ifname: &IfName) -> Result<Vec<Resolved>, Error> {
    let networks = conf.body.networks();
    let several = networks.len() > 1;
    let mut resolved: Vec<Resolved> = Vec::with_capacity(networks.len());
    for (index, network) in networks.iter().enumerate() {
        let ifname = ifname(&conf.body, network, index, cni_ifname)?;
        if let Some(other) = resolved.iter().find(|other| *other.ifname() == ifname) {
            return Err(clash(other, &network.name, index, &ifname));
        }
        resolved.push(one(network, index, ifname, several)?);
    }
    Ok(resolved)
}

fn one(network: &Network, index: usize, ifname: IfName, several: bool) -> Result<Resolved, Error> {
    match &network.how {
        How::Native(native) => Ok(Resolved::Native(Wanted {
            index,
            network: network.name.clone(),
            ifname,
            native: native.clone(),
            source_routing: network.source_routing,
            several,
        })),
        How::Delegate(_) if network.source_routing => Err(Error::new(
            Code::UnsupportedField,
            format!(
                "network {} (number {index}): sourceRouting is not available for executed plugins",
                network.name
            ),
            "add the plugin `sbr` to its chain instead",
        )),
        How::Delegate(chain) => Ok(Resolved::Delegate(Delegate {
            index,
            network: network.name.clone(),
            ifname,
            chain: chain.clone(),
        })),
    }
}

fn ifname(
    body: &Body,
    network: &Network,
    index: usize,
    cni_ifname: &IfName,
) -> Result<IfName, Error> {
    if index == 0 || matches!(body, Body::One(_)) {
        return Ok(cni_ifname.clone());
    }
    match &network.interface {
        Some(interface) => Ok(interface.clone()),
        None => IfName::new(&format!("net{index}")).map_err(|invalid| {
            let text = format!("network {} (number {index}): {invalid}", network.name);
            Error::new(Code::InvalidConfig, text, "give it an `interface`")
        }),
    }
}

fn clash(other: &Resolved, network: &NetworkName, index: usize, ifname: &IfName) -> Error {
    Error::new(
        Code::InvalidConfig,
        format!(
            "network {} (number {}) and network {network} (number {index}) both want the interface name {ifname}",
            other.network(),
            other.index(),
        ),
        "give one of them another `interface`; the first is always named CNI_IFNAME, others net<number> unless they ask",
    )
}
