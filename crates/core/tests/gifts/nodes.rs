//! Several nodes and an API server, as a model: caches that lag, processes that die at any step,
//! machines that vanish, blocks that somebody deletes. What nodes decide is decided by the real code.
//!
//! Three rules keep it true, and each can be seen to matter by leaving it out: a part is journaled
//! before it is said; whoever makes a block looks what is inside before it uses it; whoever makes a
//! block of a part looks whether it is still given.

use crate::{config, key, subnet};
use ipnet::IpNet;
use plexus_api::cni::{BlockIpam, BlockSubnet};
use plexus_api::objects::Gift;
use plexus_core::ipam::{AllocateError, Given, Pools, blocks_to_try, is_granted};
use plexus_types::Family;
use proptest::prelude::{TestCaseError, prop_assert};
use std::collections::BTreeMap;
use std::net::IpAddr;

pub(crate) const NODES: usize = 4;

/// A Block.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    node: String,
    /// Which of the machines that had that name.
    machine: u32,
    given: Vec<Gift>,
}

pub(crate) type Objects = BTreeMap<IpNet, Object>;

#[derive(Default)]
pub(crate) struct Node {
    name: String,
    machine: u32,
    /// Its Node object is there.
    there: bool,
    pools: Pools,
    cache: Objects,
    pub(crate) addresses: BTreeMap<String, IpAddr>,
    gifts: BTreeMap<IpNet, Given>,
}

pub(crate) struct World {
    subnet: BlockSubnet,
    pub(crate) api: Objects,
    pub(crate) nodes: Vec<Node>,
}

/// Where a process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dies {
    BeforeJournal,
    BeforeStatus,
    After,
    Not,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Add(usize, u8),
    Del(usize, u8),
    Give(usize, usize, u32, Dies),
    Take(usize),
    TakeBack(usize),
    Publish(usize),
    Crash(usize),
    Watch(usize),
    Gone(usize),
    Returns(usize),
    Collect,
    Deleted(usize, u8),
}

impl Node {
    fn config(&self, subnet: &BlockSubnet) -> BlockIpam {
        let own =
            |(cidr, object): &(&IpNet, &Object)| self.is_own(object) && self.is_granted(**cidr);
        let blocks: Vec<IpNet> = self
            .cache
            .iter()
            .filter(own)
            .map(|(cidr, _)| *cidr)
            .collect();
        let mut given = Vec::new();
        for block in &blocks {
            let told = self.cache[block].given.iter().map(|gift| gift.cidr);
            let inside = self.cache.keys().copied();
            given.extend(told.chain(inside.filter(|one| block.contains(one) && one != block)));
        }
        config(subnet, &blocks, &given)
    }

    fn is_own(&self, object: &Object) -> bool {
        object.node == self.name && object.machine == self.machine
    }

    fn is_granted(&self, cidr: IpNet) -> bool {
        is_granted(cidr, &self.name, |prefix| {
            let object = self.cache.get(prefix)?;
            Some((&*object.node, &*object.given))
        })
    }

    fn keep(&mut self, given: Given) {
        self.pools.mark_given(&given);
        self.gifts.insert(given.part, given);
    }

    fn restart(&mut self, subnet: &BlockSubnet) {
        self.pools = Pools::default();
        let key = key(&config(subnet, &[], &[]));
        for (owner, address) in &self.addresses {
            self.pools.reserve(&key, *address, owner).unwrap();
        }
        for given in self.gifts.values() {
            self.pools.mark_given(given);
        }
    }
}

impl World {
    pub(crate) fn new(length: u8) -> Self {
        let nodes = (0..NODES).map(|number| Node {
            name: format!("n{number}"),
            there: true,
            ..Node::default()
        });
        Self {
            subnet: subnet("10.1.0.0/27", "10.1.0.30", length),
            api: Objects::new(),
            nodes: nodes.collect(),
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Returns(n) => self.nodes[n].there = true,
            Step::Collect => self.collect(),
            Step::Add(n, _)
            | Step::Del(n, _)
            | Step::Give(n, ..)
            | Step::Take(n)
            | Step::TakeBack(n)
            | Step::Publish(n)
            | Step::Crash(n)
            | Step::Watch(n)
            | Step::Gone(n)
            | Step::Deleted(n, _)
                if !self.nodes[n].there => {}
            Step::Add(n, owner) => self.add(n, &format!("o{owner}")),
            Step::Del(n, owner) => {
                let (node, owner) = (&mut self.nodes[n], format!("o{owner}"));
                node.addresses.remove(&owner);
                node.pools
                    .release(&key(&config(&self.subnet, &[], &[])), &owner);
            }
            Step::Give(n, to, addresses, dies) => self.give(n, to, addresses, dies),
            Step::Take(n) => self.take(n),
            Step::TakeBack(n) => self.take_back(n),
            Step::Publish(n) => self.publish(n),
            Step::Crash(n) => self.nodes[n].restart(&self.subnet),
            Step::Watch(n) => self.nodes[n].cache = self.api.clone(),
            Step::Gone(n) => {
                let node = &mut self.nodes[n];
                *node = Node {
                    name: node.name.clone(),
                    machine: node.machine + 1,
                    ..Node::default()
                };
            }
            Step::Deleted(n, number) => self.deleted(n, number),
        }
    }

    fn add(&mut self, n: usize, owner: &str) {
        for _ in 0..2 {
            let subnet = self.subnet.clone();
            let node = &mut self.nodes[n];
            let config = node.config(&subnet);
            let got = node
                .pools
                .allocate_blocks(&key(&config), &config, &[], owner);
            match got {
                Ok(assigned) => {
                    let address = assigned.ips[0].address.addr();
                    node.addresses.insert(owner.to_owned(), address);
                    return;
                }
                Err(AllocateError::NeedsBlock { .. }) => self.claim(n),
                Err(_) => return,
            }
        }
    }

    fn claim(&mut self, n: usize) {
        let taken: Vec<IpNet> = self.nodes[n].cache.keys().copied().collect();
        let candidates = blocks_to_try(&self.subnet, &taken, &self.nodes[n].name, None);
        if let Some(cidr) = candidates.first() {
            self.create(n, *cidr, None);
        }
    }

    /// Makes a block; a name that is taken is somebody's.
    fn create(&mut self, n: usize, cidr: IpNet, giver: Option<IpNet>) -> bool {
        let whole = self.subnet.block_length.unwrap();
        let node = &mut self.nodes[n];
        if let Some(theirs) = self.api.get(&cidr).filter(|object| !node.is_own(object)) {
            node.cache.insert(cidr, theirs.clone());
            return false;
        }
        let object = Object {
            node: node.name.clone(),
            machine: node.machine,
            given: Vec::new(),
        };
        let object = self.api.entry(cidr).or_insert(object).clone();
        // Looks around before it uses it.
        let parts = self
            .api
            .iter()
            .filter(|(part, _)| part.prefix_len() > whole);
        for (part, object) in parts.filter(|(part, _)| **part != cidr) {
            node.cache.insert(*part, object.clone());
            let inside = cidr.contains(part) && !node.is_own(object);
            if inside && giver.is_none() {
                node.keep(given(cidr, *part, &object.node));
            }
        }
        if let Some(giver) = giver {
            let around = self.api.get(&giver);
            let gave = |gift: &Gift| gift.cidr == cidr && gift.node == node.name;
            let still =
                around.filter(|around| around.node == node.name || around.given.iter().any(gave));
            let Some(around) = still else {
                // The watch will bring it, after all that came before it.
                return true;
            };
            node.cache.insert(giver, around.clone());
        }
        node.cache.insert(cidr, object);
        true
    }

    fn give(&mut self, n: usize, to: usize, addresses: u32, dies: Dies) {
        let to = self.nodes[to].name.clone();
        let subnet = self.subnet.clone();
        let node = &mut self.nodes[n];
        let config = node.config(&subnet);
        let Some(given) = node.pools.give(&config, Family::V4, addresses, &to) else {
            return;
        };
        if dies > Dies::BeforeJournal {
            node.gifts.insert(given.part, given);
        }
        if dies > Dies::BeforeStatus {
            self.publish(n);
        }
        if dies < Dies::Not {
            self.nodes[n].restart(&subnet);
        }
    }

    /// Says what the journal has.
    fn publish(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        for given in node.gifts.values() {
            let Some(object) = self.api.get_mut(&given.block) else {
                continue;
            };
            if object.node != node.name {
                continue;
            }
            object.given.retain(|gift| gift.cidr != given.part);
            object.given.push(Gift {
                cidr: given.part,
                node: given.node.clone(),
            });
        }
    }

    /// Makes blocks of what was given to this node.
    fn take(&mut self, n: usize) {
        let node = &self.nodes[n];
        let mut offers = Vec::new();
        for (block, object) in &node.cache {
            let mine = object.given.iter().filter(|gift| gift.node == node.name);
            let open = mine.filter(|gift| !node.cache.contains_key(&gift.cidr));
            offers.extend(open.map(|gift| (*block, gift.cidr)));
        }
        for (block, part) in offers {
            self.create(n, part, Some(block));
        }
    }

    /// What was given to nodes that are gone becomes a block of the giver's.
    fn take_back(&mut self, n: usize) {
        let there: Vec<String> = self
            .nodes
            .iter()
            .filter(|node| node.there)
            .map(|node| node.name.clone())
            .collect();
        let node = &self.nodes[n];
        let abandoned = node.gifts.values().filter(|given| {
            let own = node
                .cache
                .get(&given.block)
                .is_some_and(|object| node.is_own(object));
            own && !there.contains(&given.node) && !node.cache.contains_key(&given.part)
        });
        for given in abandoned.cloned().collect::<Vec<_>>() {
            if self.create(n, given.part, Some(given.block)) {
                let node = self.nodes[n].name.clone();
                self.nodes[n].keep(Given { node, ..given });
            }
        }
    }

    /// The controller: what nodes that are gone had returns, unless a part of it is another's.
    fn collect(&mut self) {
        let there = |name: &str| {
            self.nodes
                .iter()
                .any(|node| node.there && node.name == name)
        };
        let returns: Vec<IpNet> = self
            .api
            .iter()
            .filter(|(cidr, object)| {
                let machine = self.nodes.iter().find(|node| node.name == object.node);
                let gone = machine.is_none_or(|node| node.machine != object.machine);
                let parts = || {
                    self.api
                        .iter()
                        .filter(|(part, _)| cidr.contains(*part) && part != cidr)
                };
                let anothers = parts().any(|(_, part)| part.node != object.node);
                let promised = object.given.iter().any(|gift| {
                    gift.node != object.node
                        && there(&gift.node)
                        && !self.api.contains_key(&gift.cidr)
                });
                gone && !anothers && !promised
            })
            .map(|(cidr, _)| *cidr)
            .collect();
        for cidr in returns {
            self.api.remove(&cidr);
        }
    }

    /// Somebody deletes a block that its owner does not use, and its owner sees that.
    fn deleted(&mut self, n: usize, number: u8) {
        let node = &mut self.nodes[n];
        node.cache = self.api.clone();
        let unused = |(cidr, object): &(&IpNet, &Object)| {
            node.is_own(object) && !node.addresses.values().any(|held| cidr.contains(held))
        };
        let own: Vec<IpNet> = self
            .api
            .iter()
            .filter(unused)
            .map(|(cidr, _)| *cidr)
            .collect();
        let Some(cidr) = own.get(usize::from(number) % own.len().max(1)) else {
            return;
        };
        self.api.remove(cidr);
        node.cache.remove(cidr);
    }

    pub(crate) fn check(&self) -> Result<(), TestCaseError> {
        let mut all = BTreeMap::new();
        for node in &self.nodes {
            for (owner, address) in &node.addresses {
                let here = format!("{}/{owner}", node.name);
                let before = all.insert(*address, here.clone());
                prop_assert!(
                    before.is_none(),
                    "{} is {:?}'s and {}'s",
                    address,
                    before,
                    here
                );
                prop_assert!(
                    !["10.1.0.0", "10.1.0.30", "10.1.0.31"].contains(&&*address.to_string())
                );
            }
        }
        Ok(())
    }
}

fn given(block: IpNet, part: IpNet, node: &str) -> Given {
    Given {
        network: "u-1".to_owned(),
        block,
        part,
        node: node.to_owned(),
    }
}
