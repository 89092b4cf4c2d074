//! A network, its hosts and its Blocks, as a controller would have them over time.

use ipnet::IpNet;
use plexus_api::objects::{BlockBits, BlockSpec, NetworkRef, VlanMode};
use plexus_core::multinic::{
    Assignment, BlockChange, ExistingBlock, Host, MultiNicTarget, Nic, assign,
};
use std::collections::BTreeMap;

pub(crate) fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

pub(crate) fn nets(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| net(text)).collect()
}

/// A host whose NICs have these names and addresses; made in the order of `created`.
pub(crate) fn host(name: &str, created: u32, nics: &[(&str, &str)]) -> Host {
    let nic = |(name, addresses): &(&str, &str)| Nic {
        name: (*name).to_owned(),
        addresses: addresses.split_whitespace().map(net).collect(),
    };
    Host {
        created: format!("2026-01-01T00:{:02}:{:02}Z", created / 60, created % 60),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        nics: nics.iter().map(nic).collect(),
    }
}

#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) network: NetworkRef,
    pub(crate) subnets: Vec<IpNet>,
    pub(crate) master_nets: Vec<IpNet>,
    pub(crate) bits: BlockBits,
    pub(crate) blocks: BTreeMap<String, ExistingBlock>,
}

impl Stage {
    pub(crate) fn new(subnets: &[&str], master_nets: &[&str], interface: u8, host: u8) -> Self {
        Stage {
            network: NetworkRef {
                namespace: String::new(),
                name: "sample".to_owned(),
                uuid: "u".to_owned(),
            },
            subnets: nets(subnets),
            master_nets: nets(master_nets),
            bits: BlockBits {
                interface,
                host,
                mode: VlanMode::L3,
                ..BlockBits::default()
            },
            blocks: BTreeMap::new(),
        }
    }

    /// The seed's: 192.168.0.0/16, two NICs, six host bits.
    pub(crate) fn seed() -> Self {
        Self::new(&["192.168.0.0/16"], &["10.0.1.0/24", "10.0.2.0/24"], 2, 6)
    }

    pub(crate) fn target(&self) -> MultiNicTarget<'_> {
        MultiNicTarget {
            network: &self.network,
            subnets: &self.subnets,
            master_nets: &self.master_nets,
            bits: &self.bits,
        }
    }

    pub(crate) fn decide(&self, hosts: &[Host]) -> Assignment {
        let blocks: Vec<ExistingBlock> = self.blocks.values().cloned().collect();
        assign(self.target(), hosts, &blocks)
    }

    /// Decides, and does what was decided.
    pub(crate) fn go(&mut self, hosts: &[Host]) -> Assignment {
        let assignment = self.decide(hosts);
        for change in &assignment.changes {
            match change {
                BlockChange::Create(spec) => {
                    let name = BlockSpec::name(&spec.network.uuid, &spec.cidr);
                    let block = ExistingBlock {
                        spec: spec.clone(),
                        allocated: 0,
                        closed: false,
                        untouched: true,
                    };
                    assert!(self.blocks.insert(name, block).is_none(), "{spec:?}");
                }
                BlockChange::Update { name, nic } => {
                    self.blocks.get_mut(name).unwrap().spec.nic = Some(nic.clone());
                }
                BlockChange::Delete { name } => {
                    self.blocks.remove(name).unwrap();
                }
            }
        }
        assignment
    }

    /// Until nothing changes; the nodes close what is retired.
    pub(crate) fn settle(&mut self, hosts: &[Host]) -> Assignment {
        for _ in 0..8 {
            let assignment = self.go(hosts);
            if assignment.changes.is_empty() {
                return assignment;
            }
        }
        panic!("does not come to rest: {:?}", self.decide(hosts).changes);
    }

    /// `host nic block interface-index/host-index`, sorted; retired ones have a `-` in front.
    pub(crate) fn rows(&self) -> Vec<String> {
        let mut shown: Vec<String> = self
            .blocks
            .values()
            .map(|block| {
                let nic = block.spec.nic.as_ref().unwrap();
                let retired = if nic.retired { "-" } else { "" };
                format!(
                    "{retired}{} {} {} {}/{}",
                    block.spec.node,
                    nic.interface,
                    block.spec.cidr,
                    nic.interface_index,
                    nic.host_index
                )
            })
            .collect();
        shown.sort();
        shown
    }

    /// A Block of that host on that NIC.
    pub(crate) fn block(&mut self, host: &str, nic: &str) -> &mut ExistingBlock {
        let mut blocks = self.blocks.values_mut();
        let of = |block: &&mut ExistingBlock| {
            let has = block.spec.nic.as_ref().unwrap();
            block.spec.node == host && has.interface == nic && !has.retired
        };
        blocks.find(of).unwrap()
    }
}
