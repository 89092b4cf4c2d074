//! The CIDR of a network and the IPPools of its blocks, as people and tools read them. Nothing is decided by either.

use super::arithmetic::{interface_block, within_block};
use super::assign::MultiNicTarget;
use ipnet::IpNet;
use plexus_api::objects::{
    Allocation, BlockBits, BlockNic, BlockSpec, CidrConfig, CidrEntry, CidrHost, CidrSpec,
    IpPoolSpec, MULTI_NIC_IPAM,
};
use std::collections::{BTreeMap, BTreeSet};

/// A CIDR names the hosts of a network that has no more of them: etcd takes objects of 1.5 MiB.
pub const MAX_LISTED_HOSTS: usize = 500;

/// The CIDR of a network, of Blocks in any order.
pub fn cidr<'b>(
    target: &MultiNicTarget<'_>,
    blocks: impl IntoIterator<Item = &'b BlockSpec>,
) -> CidrSpec {
    let mut entries: BTreeMap<(u32, IpNet), CidrEntry> = BTreeMap::new();
    let mut hosts = BTreeSet::new();
    let mut of_entry: BTreeMap<(u32, IpNet), BTreeSet<&str>> = BTreeMap::new();
    let mut sorted: Vec<(&BlockNic, &BlockSpec)> = blocks
        .into_iter()
        .filter_map(|block| Some((block.nic.as_ref()?, block)))
        .collect();
    sorted.sort_by_key(|(nic, block)| (nic.interface_index, nic.host_index, block.cidr));
    for (nic, block) in sorted {
        let Some(outer) = outer_of(target, nic, &block.cidr) else {
            continue;
        };
        hosts.insert(block.node.as_str());
        let key = (nic.interface_index, outer);
        of_entry.entry(key).or_default().insert(&block.node);
        let entry = entries.entry(key).or_insert_with(|| CidrEntry {
            net_address: nic.net_address.to_string(),
            interface_index: nic.interface_index,
            vlan_cidr: outer.to_string(),
            ..CidrEntry::default()
        });
        entry.hosts.push(CidrHost {
            host_index: nic.host_index,
            host_name: block.node.clone(),
            interface_name: nic.interface.clone(),
            host_ip: nic.via.map(|via| via.to_string()).unwrap_or_default(),
            pod_cidr: block.cidr.to_string(),
            ippool: ip_pool_name(&target.network.name, &block.cidr),
        });
    }
    let summary = hosts.len() > MAX_LISTED_HOSTS;
    let entries = entries.into_iter().map(|(key, mut entry)| {
        entry.num_of_hosts = of_entry.get(&key).map_or(0, |hosts| hosts.len() as u64);
        if summary {
            entry.hosts.clear();
        }
        entry
    });
    CidrSpec {
        config: config(target),
        cidr: entries.collect(),
    }
}

/// The interface block around a block.
fn outer_of(target: &MultiNicTarget<'_>, nic: &BlockNic, cidr: &IpNet) -> Option<IpNet> {
    let mut subnets = target.subnets.iter();
    let subnet = subnets.find(|subnet| subnet.contains(cidr))?;
    interface_block(subnet, target.bits.interface, nic.interface_index).ok()
}

fn config(target: &MultiNicTarget<'_>) -> CidrConfig {
    let texts = |nets: &[IpNet]| nets.iter().map(ToString::to_string).collect::<Vec<_>>();
    let BlockBits {
        interface,
        host,
        exclude,
        mode,
        ..
    } = target.bits;
    CidrConfig {
        name: target.network.name.clone(),
        kind: MULTI_NIC_IPAM.to_owned(),
        subnet: texts(target.subnets).join(","),
        master_nets: texts(target.master_nets),
        host_block: *host,
        interface_block: *interface,
        exclude_cidrs: texts(exclude),
        vlan_mode: mode.name().to_owned(),
    }
}

/// `<network>-<block>`, with `-` for what a name cannot have.
pub fn ip_pool_name(network: &str, block: &IpNet) -> String {
    let block = block.to_string().replace(['/', ':'], "-");
    format!("{network}-{block}")
}

/// The IPPool of a Block; none if that is not of a multi-NIC network.
pub fn ip_pool(
    target: &MultiNicTarget<'_>,
    block: &BlockSpec,
    allocations: Vec<Allocation>,
) -> Option<IpPoolSpec> {
    let nic = block.nic.as_ref()?;
    let outer = outer_of(target, nic, &block.cidr)?;
    let excludes = within_block(&block.cidr, &target.bits.exclude);
    Some(IpPoolSpec {
        pod_cidr: block.cidr.to_string(),
        vlan_cidr: outer.to_string(),
        net_attach_def: target.network.name.clone(),
        host_name: block.node.clone(),
        interface_name: nic.interface.clone(),
        excludes: excludes.iter().map(ToString::to_string).collect(),
        allocations,
    })
}
