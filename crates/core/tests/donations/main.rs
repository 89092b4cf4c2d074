//! Parts of blocks that are given away: which part, who answers, and, over random histories of
//! several nodes, that no address is ever issued by two.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]

mod histories;
mod nodes;
mod parts;

use ipnet::IpNet;
use plexus_api::cni::{BlockIpam, BlockSubnet, Ipam};
use plexus_core::ipam::{NodeBlocks, PoolKey};
use plexus_types::NetworkName;
use std::net::IpAddr;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn subnet(cidr: &str, gateway: &str, length: u8) -> BlockSubnet {
    BlockSubnet {
        cidr: net(cidr),
        gateway: ip(gateway),
        exclude: Vec::new(),
        block_length: Some(length),
    }
}

/// A network, and what of it is this node's.
struct Config {
    ipam: BlockIpam,
    own: NodeBlocks,
}

fn config(subnet: &BlockSubnet, blocks: &[IpNet], donated: &[IpNet]) -> Config {
    Config {
        ipam: BlockIpam {
            uid: "u-1".to_owned(),
            subnets: vec![subnet.clone()],
            routes: Vec::new(),
        },
        own: NodeBlocks {
            own: blocks.to_vec(),
            donated: donated.to_vec(),
        },
    }
}

fn key(config: &Config) -> PoolKey {
    let network = NetworkName::new("default.blue").unwrap();
    PoolKey::of(&Ipam::Blocks(config.ipam.clone()), &network, true).unwrap()
}
