//! What an IPAM answers, whichever it is. Each IPAM's file has its own part; [`of`] is the one place that tells them
//! apart.
//!
//! ```text
//!   NativeSpec ─► choose ─► Assigned
//!                   │ asks
//!                   ▼
//!             AddressStore: pools in memory, this node's blocks, host-local's directory
//! ```
//! An agent's store is its memory, its cache of the cluster and files; that of a preview is memory alone.

use super::{AllocateError, NodeBlocks, PoolKey, Pools, Unreadable};
use crate::attachment::{Assigned, AssignedIp, NativeSpec};
use ipnet::IpNet;
use plexus_api::cni::Ipam;
use plexus_types::NetworkName;
use std::net::IpAddr;
use std::ops::DerefMut;

/// Where it is noted which addresses are taken.
pub trait AddressStore {
    /// The pools in memory.
    fn pools(&mut self) -> Box<dyn DerefMut<Target = Pools> + '_>;

    /// The blocks of a network, by its identity, that are this node's.
    fn blocks(&self, network_uid: &str) -> NodeBlocks;

    /// The address that host-local handed out last from a set of ranges.
    fn last_reserved(&mut self, set: usize) -> Option<IpAddr>;

    /// Whether nobody has the address in host-local's directory.
    fn is_free(&self, address: IpAddr) -> Result<bool, Unreadable>;

    /// Takes an address in host-local's directory, from the set that was asked about last.
    fn reserve(&mut self, set: usize, address: IpAddr);
}

/// What the file of an IPAM answers.
pub(crate) trait Allocator {
    /// The key of its pool; none: it takes no address of ours. `of_object`: the network is an object of the API.
    fn pool(&self, _network: &NetworkName, _of_object: bool) -> Option<PoolKey> {
        None
    }

    /// The subnets of its addresses as far as the configuration says them, each with its gateway.
    fn subnets(&self) -> Vec<(IpNet, Option<IpAddr>)> {
        Vec::new()
    }

    /// Every subnet with its gateway, if the node serves all of them, whichever a pod's address is from.
    fn every_subnet(&self) -> Option<Vec<AssignedIp>> {
        None
    }

    /// The addresses of an interface; none if it gets them later. The same owner gets the same from a pool; on error no
    /// pool has changed.
    fn choose(
        &self,
        _spec: &NativeSpec,
        _owner: &str,
        _store: &mut dyn AddressStore,
    ) -> Result<Assigned, AllocateError> {
        Ok(Assigned::default())
    }
}

/// The registry: what each IPAM answers.
pub(crate) fn of(ipam: &Ipam) -> &dyn Allocator {
    match ipam {
        Ipam::HostLocal(ipam) => ipam,
        Ipam::Static(ipam) => ipam,
        Ipam::Plexus(ipam) => ipam,
        Ipam::Blocks(ipam) => ipam,
        Ipam::Executed(ipam) => &**ipam,
    }
}

/// Chooses the addresses of an interface; it has none if its network has no IPAM, or one that is executed later.
pub fn choose(
    spec: &NativeSpec,
    owner: &str,
    store: &mut dyn AddressStore,
) -> Result<Assigned, AllocateError> {
    match &spec.native.ipam {
        Some(ipam) => of(ipam).choose(spec, owner, store),
        None if spec.native.ips.is_empty() => Ok(Assigned::default()),
        None => Err(AllocateError::NoIpam),
    }
}
