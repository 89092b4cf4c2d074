//! IPAM `plexus`: a pool in memory for each subnet of the configuration, see [`Pools`](super::Pools).

use super::allocator::{AddressStore, Allocator};
use super::pools::assigned;
use super::{AllocateError, PoolKey};
use crate::attachment::{Assigned, AssignedIp, NativeSpec};
use crate::plan::is_like_object;
use ipnet::IpNet;
use plexus_api::cni::{Ipam, PlexusIpam};
use plexus_types::NetworkName;
use std::net::IpAddr;

impl Allocator for PlexusIpam {
    fn pool(&self, network: &NetworkName, of_object: bool) -> Option<PoolKey> {
        let apart = !of_object && is_like_object(network);
        Some(PoolKey::new(Ipam::PLEXUS, "", network, apart))
    }

    fn subnets(&self) -> Vec<(IpNet, Option<IpAddr>)> {
        let each = self.subnets.iter().map(|subnet| {
            let mut gateways = self.gateway.iter();
            let gateway = gateways.find(|gateway| subnet.contains(*gateway));
            (*subnet, gateway.copied())
        });
        each.collect()
    }

    fn every_subnet(&self) -> Option<Vec<AssignedIp>> {
        let each = self.subnets.iter();
        let each = each.map(|subnet| assigned(self, subnet, subnet.network()));
        Some(each.collect())
    }

    fn choose(
        &self,
        spec: &NativeSpec,
        owner: &str,
        store: &mut dyn AddressStore,
    ) -> Result<Assigned, AllocateError> {
        let key = PoolKey::of_spec(spec).ok_or(AllocateError::NoIpam)?;
        let mut pools = store.pools();
        pools.allocate(&key, self, &spec.native.ips, owner)
    }
}
