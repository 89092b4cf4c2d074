//! Makes the plan of a pod: one [`Link`] per attachment.

use super::provider::{self, LinkRequest};
use super::{Address, Device, Facts, Link, PlanProblem, PodPlan, route, settings};
use crate::attachment::{Alias, Assigned, DefaultRoute, NativeSpec, derived_mac};
use crate::ipam::PoolKey;
use crate::stable::hash32;
use ipnet::IpNet;
use plexus_types::{ContainerId, Family, IfName, NetnsCookie};
use std::collections::BTreeSet;

/// The container and the call that own a link.
#[derive(Debug, Clone, Copy)]
pub struct LinkOwner<'a> {
    /// The node's namespace.
    pub node: NetnsCookie,
    /// The container's namespace.
    pub netns: NetnsCookie,
    /// CNI_CONTAINERID.
    pub container: &'a ContainerId,
    /// CNI_IFNAME of the call.
    pub cni_ifname: &'a IfName,
}

/// The plan of one interface. What IPAM answered goes in as it came; see
/// [`effective`](super::effective) for what is made of it.
pub fn build(
    spec: &NativeSpec,
    assigned: &Assigned,
    default_route: DefaultRoute,
    owner: &LinkOwner<'_>,
    facts: &Facts,
) -> Result<Link, PlanProblem> {
    check(spec, assigned)?;
    let provider = provider::of(&spec.native.provider);
    let alias = alias(spec, assigned, owner, facts);
    let mac = spec.native.mac.or_else(|| {
        (!provider.keeps_parent_mac())
            .then(|| derived_mac(owner.container.as_str(), owner.netns, &spec.ifname, "pod"))
    });
    let parts = provider.link(&LinkRequest {
        spec,
        assigned,
        owner,
        facts,
        alias: &alias,
        mac,
    })?;
    let (routes, rules) = route::routes(spec, assigned, default_route)?;
    Ok(Link {
        name: spec.ifname.clone(),
        mac,
        mtu: parts.mtu,
        alias,
        settings: settings::of_pod(spec, assigned),
        addresses: addresses(spec, assigned),
        neighbours: parts.neighbours,
        routes,
        rules,
        kind: parts.kind,
    })
}

/// The plan of all links that one call makes.
pub fn pod_plan(owner: &LinkOwner<'_>, mut links: Vec<Link>) -> PodPlan {
    let mut written = BTreeSet::new();
    for link in &mut links {
        link.settings
            .retain(|setting| written.insert(setting.clone()));
    }
    PodPlan {
        group: group(owner),
        links,
        host_ports: Vec::new(),
    }
}

/// Where our groups begin: above what people number by hand, below what tools print as negative.
const GROUPS: u32 = 0x4000_0000;

/// The link group of a call: a hash with the top bit set, so that it is never 0 and never one of
/// the small numbers that people use.
pub fn group(owner: &LinkOwner<'_>) -> u32 {
    GROUPS
        | (hash32(&["group", owner.container.as_str(), owner.cni_ifname.as_str()]) & (GROUPS - 1))
}

fn check(spec: &NativeSpec, assigned: &Assigned) -> Result<(), PlanProblem> {
    if spec.native.ipam.is_some() && assigned.ips.is_empty() {
        return Err(PlanProblem::NoAddress);
    }
    let small_mtu = spec.native.mtu.filter(|mtu| *mtu < 1280);
    for ip in &assigned.ips {
        let family = ip.family();
        if let Some(gateway) = ip.gateway.filter(|gateway| Family::of(*gateway) != family) {
            let of = ip.address;
            return Err(PlanProblem::GatewayFamily { gateway, of });
        }
        if let Some(mtu) = small_mtu.filter(|_| family == Family::V6) {
            return Err(PlanProblem::MtuTooSmall(mtu));
        }
    }
    Ok(())
}

fn addresses(spec: &NativeSpec, assigned: &Assigned) -> Vec<Address> {
    let routed = spec.native.provider.is_routed();
    let each = assigned.ips.iter().map(|ip| Address {
        net: if routed {
            IpNet::from(ip.address.addr())
        } else {
            ip.address
        },
    });
    let mut addresses: Vec<Address> = Vec::with_capacity(assigned.ips.len());
    for address in each {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

fn alias(spec: &NativeSpec, assigned: &Assigned, owner: &LinkOwner<'_>, facts: &Facts) -> String {
    let pool = PoolKey::of_spec(spec);
    let alias = Alias {
        node: owner.node,
        container: owner.container.to_string(),
        cni_ifname: owner.cni_ifname.to_string(),
        network: spec.network.to_string(),
        ifname: spec.ifname.to_string(),
        pool: pool.map_or_else(|| "-".to_owned(), |key| key.word()),
        moved: facts.device.as_ref().map(Device::mark),
        addresses: assigned.ips.iter().map(|ip| ip.address).collect(),
    };
    alias.render()
}
