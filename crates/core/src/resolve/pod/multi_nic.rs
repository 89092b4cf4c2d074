//! The networks of a MultiNicNetwork: one for each NIC of the node that the pod gets. Each is what a `Network` with the
//! plugin's provider on that NIC would be, with the addresses of the node's block.
//!
//! ```text
//!   MultiNicNetwork, this node's NICs and Blocks ──select, by cni-args──► [NIC] ──► Network { provider on the NIC,
//!                                                                                   subnet: the interface block }
//! ```
//! The controller decides which block is whose ([`crate::multinic`]); nothing is claimed here.

use super::error::ResolveError;
use super::lookup::{Lookup, Networks, ResolvedNetwork};
use super::{NadObject, NetworkObject, ReadOnce, Reference};
use crate::multinic::{NicChoice, SelectError, interface_block, pool_excludes, select};
use crate::refusal::Fault;
use ipnet::IpNet;
use plexus_api::Problems;
use plexus_api::cni::{Dns, Network, NetworkBackend};
use plexus_api::objects::{
    BlockBits, BlockNic, BlockSize, MultiNic, MultiNicNetworkSpec, NetworkSpec, OnNicDown,
    RouteSpec, Subnet,
};
use plexus_api::pod::NetworkSelection;
use plexus_types::Family;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// A MultiNicNetwork, with what this node has of it.
#[derive(Debug, Clone, PartialEq)]
pub struct MultiNicObject {
    /// Its name.
    pub name: String,
    /// The object's UID.
    pub uid: String,
    /// What it is.
    pub spec: Arc<MultiNicNetworkSpec>,
    /// What the spec means.
    pub meaning: Arc<Result<MultiNic, Problems>>,
    /// This node's NICs of it, in order of their interface indices.
    pub nics: Vec<NodeNic>,
}

/// A NIC of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeNic {
    /// Its name.
    pub name: String,
    /// Which interface block of the subnet is its.
    pub index: u32,
    /// The node's blocks on it: one of each family at most.
    pub blocks: Vec<IpNet>,
    /// Whether it is up.
    pub is_up: bool,
}

impl NodeNic {
    /// The NICs that a node's blocks of one network are for. Nothing new is issued from blocks that are retired.
    pub fn of_blocks(
        blocks: impl IntoIterator<Item = (BlockNic, IpNet)>,
        is_up: impl Fn(&str) -> bool,
    ) -> Vec<Self> {
        let mut nics: BTreeMap<(u32, String), Vec<IpNet>> = BTreeMap::new();
        for (nic, block) in blocks {
            if !nic.retired {
                let of_nic = nics.entry((nic.interface_index, nic.interface));
                of_nic.or_default().push(block);
            }
        }
        let each = nics.into_iter();
        let nic = |((index, name), blocks): ((u32, String), Vec<IpNet>)| Self {
            is_up: is_up(&name),
            name,
            index,
            blocks,
        };
        each.map(nic).collect()
    }
}

/// Why a pod cannot have its interfaces.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MultiNicError {
    /// It is not there.
    #[error("it is not there")]
    Missing,
    /// It is wrong.
    #[error("it cannot be used: {0}")]
    Wrong(Problems),
    /// It is not for the pod's namespace.
    #[error("it is for the namespaces {}, and the pod is in {pod}", .allowed.join(", "))]
    NotAllowed {
        /// Those of the network.
        allowed: Vec<String>,
        /// The pod's.
        pod: String,
    },
    /// What the pod asks for cannot be read.
    #[error("cni-args: {key}: {why}")]
    Args {
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The NICs that the pod asks for.
    #[error(transparent)]
    Select(SelectError),
    /// Another IPAM than that of blocks gives the addresses.
    #[error(
        "another IPAM than multi-nic-ipam gives its addresses, which this version does not serve"
    )]
    OtherIpam,
    /// The controller has not assigned a block yet.
    #[error("this node has no block of it yet")]
    NoBlock,
    /// A NIC that the pod needs is down.
    #[error("the NIC {0} is down")]
    Down(String),
    /// An address that the pod asks for belongs to none of its NICs.
    #[error("the address {0} is in no block of the pod's NICs")]
    Address(IpAddr),
}

impl MultiNicError {
    pub(super) fn fault(&self) -> Fault {
        match self {
            MultiNicError::Missing | MultiNicError::NoBlock => Fault::Pending,
            MultiNicError::Down(_) => Fault::Unavailable,
            MultiNicError::Select(SelectError::None) => Fault::Unavailable,
            _ => Fault::Invalid,
        }
    }

    pub(super) fn remedy(&self) -> Cow<'static, str> {
        let next = match self {
            MultiNicError::Missing => {
                "create it, or correct the name in the configuration of the NetworkAttachmentDefinition"
            }
            MultiNicError::Wrong(_) => "correct the MultiNicNetwork",
            MultiNicError::NotAllowed { .. } => {
                "add the namespace to spec.namespaces of the MultiNicNetwork"
            }
            MultiNicError::Args { .. } => "correct cni-args in the pod's annotation",
            MultiNicError::Select(_) => {
                "correct cni-args in the pod's annotation, or masterNets of the MultiNicNetwork"
            }
            MultiNicError::OtherIpam => {
                "write the IPAM multi-nic-ipam, or a NetworkAttachmentDefinition for each NIC"
            }
            MultiNicError::NoBlock => {
                "the controller assigns it once the HostInterface of this node lists the NICs: is it running, and what do the conditions of the MultiNicNetwork say?"
            }
            MultiNicError::Down(_) => {
                "bring the NIC up, or write onNicDown: skip into the MultiNicNetwork"
            }
            MultiNicError::Address(_) => {
                "ask for an address of this node's blocks: kubectl get blocks shows them"
            }
        };
        next.into()
    }
}

impl Lookup<'_> {
    /// The networks of a NAD of a MultiNicNetwork.
    pub(super) fn of_multi_nic(
        &self,
        nad: &NadObject,
        name: &str,
        selection: &NetworkSelection,
    ) -> Result<ResolvedNetwork, ResolveError> {
        let at = |source: MultiNicError| ResolveError::MultiNic {
            network: name.to_owned(),
            source,
        };
        self.check_isolated(&nad.namespace, &nad.name)?;
        let object = self.objects.multi_nic(name);
        let object = object.ok_or_else(|| at(MultiNicError::Missing))?;
        self.check_namespace(&object).map_err(at)?;
        let meaning = object.meaning.as_ref().as_ref();
        let meaning = meaning.map_err(|all| at(MultiNicError::Wrong(all.clone())))?;
        if meaning.bits().is_none() {
            return Err(at(MultiNicError::OtherIpam));
        }
        let (choice, rest) = choice(&selection.cni_args).map_err(at)?;
        let (nics, warnings) = chosen(&object, &choice).map_err(at)?;
        let each = requests(&nics, selection, rest).map_err(at)?;
        let mut networks = Vec::with_capacity(nics.len());
        for (nic, request) in nics.iter().zip(&each) {
            let described = network_object(&object, meaning, nic).map_err(at)?;
            let found = self.described(&described, request)?;
            networks.extend(found.networks.all().iter().cloned().map(without_gateway));
        }
        let subnets = meaning.subnets.iter().map(|subnet| (*subnet, None));
        Ok(ResolvedNetwork {
            reference: Reference {
                index: 0,
                total: 1,
                namespace: nad.namespace.clone(),
                name: nad.name.clone(),
                uuid: object.uid.clone(),
                source: String::new(),
                subnets: subnets.collect(),
            },
            networks: Networks::PerNic(networks),
            warnings,
        })
    }

    /// NADs can be copied: the network says where it is for.
    fn check_namespace(&self, object: &MultiNicObject) -> Result<(), MultiNicError> {
        let allowed = &object.spec.namespaces;
        if allowed.is_empty() || allowed.contains(&self.pod.namespace) {
            return Ok(());
        }
        Err(MultiNicError::NotAllowed {
            allowed: allowed.clone(),
            pod: self.pod.namespace.clone(),
        })
    }
}

/// What the pod asks for of NICs, and its other arguments.
fn choice(args: &Map<String, Value>) -> Result<(NicChoice, Map<String, Value>), MultiNicError> {
    let mut rest = args.clone();
    let count = match rest.remove("nics") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            Some(number.ok_or(MultiNicError::Args {
                key: "nics",
                why: "write a number of NICs; 0 means all",
            })?)
        }
    };
    let wrong = || MultiNicError::Args {
        key: "masters",
        why: "write a list of names of NICs, such as [\"eth1\"]",
    };
    let names = match rest.remove("masters") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(names)) => {
            let names = names.iter().map(|name| name.as_str().map(str::to_owned));
            names.collect::<Option<Vec<_>>>().ok_or_else(wrong)?
        }
        Some(_) => return Err(wrong()),
    };
    Ok((NicChoice { count, names }, rest))
}

/// The NICs that the pod gets. One that is down is left out where the network says so, with a warning.
fn chosen<'n>(
    object: &'n MultiNicObject,
    choice: &NicChoice,
) -> Result<(Vec<&'n NodeNic>, Vec<String>), MultiNicError> {
    if object.nics.is_empty() {
        return Err(MultiNicError::NoBlock);
    }
    let skip = object.spec.on_nic_down == Some(OnNicDown::Skip);
    let mut warnings = Vec::new();
    let mut there = Vec::new();
    for nic in &object.nics {
        if nic.is_up || !skip {
            there.push(nic.name.as_str());
        } else {
            let (network, nic) = (&object.name, &nic.name);
            warnings.push(format!(
                "MultiNicNetwork {network}: the NIC {nic} is down, so that the pod has no interface on it"
            ));
        }
    }
    let names = select(&there, choice).map_err(MultiNicError::Select)?;
    let nic = |name: &&str| object.nics.iter().find(|nic| nic.name == **name);
    let nics: Vec<&NodeNic> = names.iter().filter_map(nic).collect();
    match nics.iter().find(|nic| !nic.is_up) {
        Some(nic) => Err(MultiNicError::Down(nic.name.clone())),
        None => Ok((nics, warnings)),
    }
}

/// What is asked of each NIC's network: the addresses that are in the node's block there.
fn requests(
    nics: &[&NodeNic],
    selection: &NetworkSelection,
    cni_args: Map<String, Value>,
) -> Result<Vec<NetworkSelection>, MultiNicError> {
    let base = NetworkSelection {
        cni_args,
        ips: Vec::new(),
        ..selection.clone()
    };
    let mut each = vec![base; nics.len()];
    for (address, length) in &selection.ips {
        let has = |nic: &&NodeNic| nic.blocks.iter().any(|block| block.contains(address));
        let at = nics.iter().position(has);
        let request = at.and_then(|at| each.get_mut(at));
        let request = request.ok_or(MultiNicError::Address(*address))?;
        request.ips.push((*address, *length));
    }
    Ok(each)
}

/// The interface blocks of a NIC.
fn parts<'m>(meaning: &'m MultiNic, nic: &NodeNic) -> impl Iterator<Item = IpNet> + 'm {
    let (bits, index) = (meaning.bits(), nic.index);
    meaning
        .subnets
        .iter()
        .filter_map(move |subnet| interface_block(subnet, bits?.interface, index).ok())
}

/// The `Network` that a NIC's part of the network is.
fn network_object(
    object: &MultiNicObject,
    meaning: &MultiNic,
    nic: &NodeNic,
) -> Result<NetworkObject, MultiNicError> {
    let bits = meaning.bits().ok_or(MultiNicError::OtherIpam)?;
    if nic.blocks.is_empty() {
        return Err(MultiNicError::NoBlock);
    }
    let subnets = parts(meaning, nic).filter_map(|part| {
        let mut blocks = nic.blocks.iter().filter(|block| part.contains(*block));
        let first = blocks.clone().next()?;
        let subnet = Subnet {
            cidr: part,
            gateway: None,
            exclude: blocks
                .by_ref()
                .flat_map(|block| pool_excludes(block, &bits.exclude))
                .collect(),
        };
        Some((family_key(first).to_owned(), subnet))
    });
    let spec = NetworkSpec {
        provider: Some(meaning.plugin.name().to_owned()),
        source_check: true,
        subnets: subnets.collect::<BTreeMap<_, _>>(),
        block_size: Some(block_size(&nic.blocks)),
        routes: routes(meaning, bits, nic),
        config: options(object, meaning, bits, nic),
        ..NetworkSpec::default()
    };
    Ok(NetworkObject {
        namespace: String::new(),
        name: object.name.clone(),
        uid: object.uid.clone(),
        spec,
        vni: None,
        earlier_subnets: Vec::new(),
        made_from: None,
        unusable: None,
        going: false,
        parsed: ReadOnce::default(),
    })
}

/// The routes of a NIC: those without a gateway, and those whose gateway is on the other end of this NIC. The kernel
/// refuses any other.
fn routes(meaning: &MultiNic, bits: &BlockBits, nic: &NodeNic) -> Vec<RouteSpec> {
    let has_block = |part: &IpNet| nic.blocks.iter().any(|block| part.contains(block));
    let near: Vec<IpNet> = parts(meaning, nic).filter(has_block).collect();
    let is_reached = |gw: IpAddr| {
        let on_link = bits.routes.iter().filter(|route| route.gw.is_none());
        let mut nets = near.iter().copied().chain(on_link.map(|route| route.dst));
        nets.any(|net| net.contains(&gw))
    };
    let of_nic = bits
        .routes
        .iter()
        .filter(|route| route.gw.is_none_or(is_reached));
    let routes = of_nic.map(|route| RouteSpec {
        dst: route.dst,
        gw: route.gw,
    });
    routes.collect()
}

/// The options of the provider: the NIC, what the plugin has besides, name servers.
fn options(
    object: &MultiNicObject,
    meaning: &MultiNic,
    bits: &BlockBits,
    nic: &NodeNic,
) -> Map<String, Value> {
    let mut options = meaning.plugin.options(&nic.name, bits.mode);
    let plugin = object.spec.plugin.as_ref();
    for (key, value) in plugin.iter().flat_map(|plugin| &plugin.args) {
        // They are texts, whatever the plugin wants.
        let value = match serde_json::from_str(value) {
            Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
            _ => json!(value),
        };
        options.entry(key.clone()).or_insert(value);
    }
    let of_plugin = plugin
        .and_then(|plugin| plugin.dns.as_ref())
        .map(|dns| json!(dns));
    let of_ipam = (bits.dns != Dns::default()).then(|| json!(bits.dns));
    if let Some(dns) = of_ipam.or(of_plugin) {
        options.insert("dns".to_owned(), dns);
    }
    options
}

fn family_key(net: &IpNet) -> &'static str {
    match Family::of(net.addr()) {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    }
}

fn block_size(blocks: &[IpNet]) -> BlockSize {
    let length = |family: Family| {
        let mut of_family = blocks
            .iter()
            .filter(|block| Family::of(block.addr()) == family);
        of_family.next().map(IpNet::prefix_len)
    };
    BlockSize {
        ipv4: length(Family::V4),
        ipv6: length(Family::V6),
    }
}

/// Nobody is a gateway there: neighbours are on the link, or the node routes. No node claims a block.
fn without_gateway(mut network: Network) -> Network {
    if let NetworkBackend::Native(native) = &mut network.backend
        && let Some(ipam) = native.block_ipam_mut()
    {
        for subnet in &mut ipam.subnets {
            subnet.gateway = None;
        }
        ipam.assigned = true;
    }
    network
}
