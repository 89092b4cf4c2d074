//! IPAM `static`: the addresses are written down in the configuration, those that are asked for among them.

use super::AllocateError;
use super::allocator::{AddressStore, Allocator};
use crate::attachment::{Assigned, AssignedIp, NativeSpec};
use ipnet::IpNet;
use plexus_api::cni::Static;
use std::net::IpAddr;

impl Allocator for Static {
    fn subnets(&self) -> Vec<(IpNet, Option<IpAddr>)> {
        let each = self.addresses.iter();
        each.map(|written| (written.address.trunc(), written.gateway))
            .collect()
    }

    fn choose(
        &self,
        _: &NativeSpec,
        _: &str,
        _: &mut dyn AddressStore,
    ) -> Result<Assigned, AllocateError> {
        let ips = self.addresses.iter().map(|written| AssignedIp {
            address: written.address,
            gateway: written.gateway,
        });
        Ok(Assigned {
            ips: ips.collect(),
            routes: self.routes.clone(),
            dns: self.dns.clone(),
        })
    }
}
