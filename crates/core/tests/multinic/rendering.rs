//! CIDR and IPPool of Blocks.

use crate::stage::{Stage, host, nets};
use plexus_api::objects::{Allocation, BlockSpec};
use plexus_core::multinic::{MAX_LISTED_HOSTS, cidr, ip_pool};

#[test]
fn the_seeds_cidr_and_its_pools() {
    let mut stage = Stage::seed();
    stage.bits.exclude = nets(&["192.168.0.16/28"]);
    stage.settle(&[
        host(
            "host1",
            0,
            &[("eth1", "10.0.1.1/24"), ("eth2", "10.0.2.1/24")],
        ),
        host(
            "host2",
            1,
            &[("eth1", "10.0.1.2/24"), ("eth2", "10.0.2.2/24")],
        ),
    ]);
    let blocks: Vec<&BlockSpec> = stage.blocks.values().map(|block| &block.spec).collect();
    let spec = cidr(&stage.target(), blocks.iter().rev().copied());
    assert_eq!(spec, cidr(&stage.target(), blocks.iter().copied()));
    assert_eq!(
        (
            spec.config.subnet.as_str(),
            spec.config.host_block,
            spec.config.interface_block,
            spec.config.vlan_mode.as_str()
        ),
        ("192.168.0.0/16", 6, 2, "l3")
    );
    let entries: Vec<String> = spec
        .cidr
        .iter()
        .flat_map(|entry| {
            let hosts = entry.hosts.iter();
            hosts.map(move |host| {
                format!(
                    "{} {} {} {} {} {} {} {} {}",
                    entry.net_address,
                    entry.interface_index,
                    entry.vlan_cidr,
                    host.host_index,
                    host.host_name,
                    host.interface_name,
                    host.host_ip,
                    host.pod_cidr,
                    host.ippool
                )
            })
        })
        .collect();
    assert_eq!(
        entries,
        [
            "10.0.1.0/24 0 192.168.0.0/18 0 host1 eth1 10.0.1.1 192.168.0.0/24 sample-192.168.0.0-24",
            "10.0.1.0/24 0 192.168.0.0/18 1 host2 eth1 10.0.1.2 192.168.1.0/24 sample-192.168.1.0-24",
            "10.0.2.0/24 1 192.168.64.0/18 0 host1 eth2 10.0.2.1 192.168.64.0/24 sample-192.168.64.0-24",
            "10.0.2.0/24 1 192.168.64.0/18 1 host2 eth2 10.0.2.2 192.168.65.0/24 sample-192.168.65.0-24",
        ]
    );
    let allocation = Allocation {
        pod: "p".to_owned(),
        namespace: "default".to_owned(),
        index: 1,
        address: "192.168.0.1".to_owned(),
    };
    let pool = ip_pool(&stage.target(), blocks[0], vec![allocation.clone()]).unwrap();
    assert_eq!(
        (
            pool.pod_cidr.as_str(),
            pool.vlan_cidr.as_str(),
            pool.host_name.as_str(),
            pool.interface_name.as_str()
        ),
        ("192.168.0.0/24", "192.168.0.0/18", "host1", "eth1")
    );
    assert_eq!(
        (pool.excludes, pool.allocations),
        (vec!["192.168.0.16/28".to_owned()], vec![allocation])
    );
}

#[test]
fn a_large_network_is_summed_up() {
    let mut stage = Stage::new(&["10.128.0.0/9"], &["10.0.0.0/16"], 1, 10);
    let count = u32::try_from(MAX_LISTED_HOSTS).unwrap();
    let name = |i: u32| {
        (
            format!("h{i:04}"),
            format!("10.0.{}.{}/16", i / 250, i % 250 + 1),
        )
    };
    let mut hosts: Vec<_> = (0..count)
        .map(|i| {
            let (name, address) = name(i);
            host(&name, i, &[("eth1", &address)])
        })
        .collect();
    stage.settle(&hosts);
    let blocks = |stage: &Stage| -> Vec<BlockSpec> {
        stage
            .blocks
            .values()
            .map(|block| block.spec.clone())
            .collect()
    };
    let all = blocks(&stage);
    assert_eq!(
        cidr(&stage.target(), &all).cidr[0].hosts.len(),
        MAX_LISTED_HOSTS
    );
    let (last, address) = name(count);
    hosts.push(host(&last, count, &[("eth1", &address)]));
    stage.settle(&hosts);
    let all = blocks(&stage);
    let entry = &cidr(&stage.target(), &all).cidr[0];
    assert_eq!(
        (entry.hosts.len(), entry.num_of_hosts),
        (0, u64::from(count) + 1)
    );
}
