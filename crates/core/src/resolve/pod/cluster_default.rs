//! The cluster-wide default network, where it is Plexus's own: routed, and masqueraded to the outside. Its addresses
//! are the node's podCIDRs, or blocks of the Network `cluster-default`.

use super::error::ResolveError;
use super::object::{block_ipam, name_of};
use super::{NetworkObject, Reference};
use crate::ipam::address_at;
use ipnet::IpNet;
use plexus_api::cni::{BlockIpam, BlockSubnet, Dns, Native, Network, NetworkBackend, Routed};
use plexus_types::{Invalid, NetworkName};

/// Its name in records, and that of the Network that describes it where it has blocks.
pub const CLUSTER_DEFAULT: &str = "cluster-default";

/// The network on the node's podCIDRs; pods reach `cluster_cidrs` under their own addresses.
pub fn pod_cidr_network(
    pod_cidrs: &[IpNet],
    cluster_cidrs: &[IpNet],
) -> Result<(Network, Reference), Invalid> {
    let subnets = pod_cidrs.iter().map(IpNet::trunc).filter_map(|cidr| {
        Some(BlockSubnet {
            cidr,
            gateway: Some(address_at(&cidr, 1)?),
            exclude: Vec::new(),
            block_length: None,
        })
    });
    let ipam = BlockIpam {
        uid: CLUSTER_DEFAULT.to_owned(),
        subnets: subnets.collect(),
        routes: Vec::new(),
        assigned: false,
    };
    let name = NetworkName::new(CLUSTER_DEFAULT)?;
    Ok(network(name, ipam, None, cluster_cidrs))
}

/// The network on blocks of a Network.
pub fn block_network(
    object: &NetworkObject,
    cluster_cidrs: &[IpNet],
) -> Result<(Network, Reference), ResolveError> {
    let ipam = block_ipam(object)?;
    // The name that the object has for everyone, so that there is one pool of its addresses.
    let name = name_of(object)?;
    Ok(network(name, ipam, object.spec.mtu, cluster_cidrs))
}

fn network(
    name: NetworkName,
    ipam: BlockIpam,
    mtu: Option<u32>,
    cluster_cidrs: &[IpNet],
) -> (Network, Reference) {
    let uuid = ipam.uid.clone();
    let native = Native {
        provider: Routed {
            ip_masq: true,
            not_masq: cluster_cidrs.to_vec(),
            source_check: true,
        }
        .into(),
        ipam: Some(ipam.into()),
        mac: None,
        ips: Vec::new(),
        mtu,
        dns: Dns::default(),
    };
    let network = Network {
        name,
        interface: None,
        source_routing: false,
        of_object: true,
        backend: NetworkBackend::Native(native),
        runtime: None,
    };
    let reference = Reference::cluster_default(&network, &uuid);
    (network, reference)
}

impl Reference {
    /// The one that no annotation names. How many there are is said when all are known.
    pub fn cluster_default(network: &Network, uuid: &str) -> Self {
        Self::of("", CLUSTER_DEFAULT, uuid, network)
    }
}
