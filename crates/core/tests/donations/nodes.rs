//! Several nodes and an API server, as a model: caches that lag, processes that die at any step,
//! machines that vanish, blocks that somebody deletes. What nodes decide is decided by the real code.
//!
//! What keeps it true, and each can be seen to matter by leaving it out: a part is journaled before it is
//! said; whoever makes a block looks at what is inside before it uses it, and gives no part in which its
//! own pods have addresses; whoever makes a block of a part looks whether it is still given; what is said
//! of a block is said of that very object.

use crate::{Config, config, key, subnet};
use ipnet::IpNet;
use plexus_api::cni::BlockSubnet;
use plexus_api::objects::DonatedPart;
use plexus_core::ipam::{
    AllocateError, Donation, EnclosingBlock, Pools, blocks_to_try, enclosing_block, given_within,
    superseded,
};
use plexus_types::Family;
use proptest::prelude::{TestCaseError, prop_assert};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub(crate) const NODES: usize = 4;

/// A Block.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    uid: u32,
    node: String,
    /// Which of the machines that had that name.
    machine: u32,
    given: Vec<DonatedPart>,
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
    /// Blocks that were this node's, as its disk has them.
    own: BTreeSet<IpNet>,
    /// Objects that it may use, and those of which it has seen the parts: then, with what was there.
    settled: BTreeMap<IpNet, u32>,
    listed: BTreeMap<IpNet, (u32, BTreeSet<IpNet>)>,
    pub(crate) addresses: BTreeMap<String, IpAddr>,
    donations: BTreeMap<IpNet, Donation>,
}

pub(crate) struct Cluster {
    subnet: BlockSubnet,
    pub(crate) api: Objects,
    pub(crate) nodes: Vec<Node>,
    /// What was sent and has not arrived: block, UID, what was given of it.
    sent: Vec<(IpNet, u32, Vec<DonatedPart>)>,
    uids: u32,
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
    /// A claim, or the taking of what was given, that goes no further than the object.
    Post(usize),
    /// … and what is left to do of it.
    List(usize),
    Settle(usize),
    /// Blocks in use that somebody deleted.
    MakeAgain(usize),
    Publish(usize),
    /// What is said is under way.
    Send(usize),
    Arrives(u8),
    Crash(usize),
    Watch(usize),
    Gone(usize),
    Returns(usize),
    Collect,
    Deleted(usize, u8),
}

impl Node {
    /// What it issues from, and what it leaves out of that.
    fn config(&self, subnet: &BlockSubnet) -> Config {
        let usable = |(cidr, object): &(&IpNet, &Object)| {
            let settled = self.settled.get(*cidr) == Some(&object.uid);
            self.is_own(object) && settled && is_legal(&self.cache, **cidr)
        };
        let blocks = self.cache.iter().filter(usable);
        let blocks: Vec<IpNet> = blocks.map(|(cidr, _)| *cidr).collect();
        let mut donated = Vec::new();
        for block in &blocks {
            let published = self.cache[block].given.iter().map(|donated| donated.cidr);
            let inside = self.cache.keys().copied();
            let inside = inside.filter(|one| block.contains(one) && one != block);
            donated.extend(published.chain(inside.filter(|one| is_legal(&self.cache, *one))));
        }
        config(subnet, &blocks, &donated)
    }

    fn is_own(&self, object: &Object) -> bool {
        object.node == self.name && object.machine == self.machine
    }

    fn uses(&self, cidr: &IpNet) -> bool {
        self.addresses.values().any(|held| cidr.contains(held))
    }

    fn sees(&mut self, api: Objects) {
        self.cache = api;
        let own = self.cache.iter().filter(|(_, object)| self.is_own(object));
        let own: Vec<IpNet> = own.map(|(cidr, _)| *cidr).collect();
        self.own.extend(own);
    }

    /// Whether it may be another's: nothing of it is in use here, but what its owner gave this node.
    fn record(&mut self, donation: Donation) -> bool {
        let part = donation.part;
        let blocks = self.cache.keys().copied();
        let given_back = given_within(
            part,
            &self.name,
            blocks.filter(|one| part.contains(one)),
            |prefix| found(&self.cache, prefix),
        );
        let kept = self.pools.mark_donated_if_free(&donation, &given_back);
        if kept {
            self.donations.insert(donation.part, donation);
        }
        kept
    }

    /// Donations of an earlier object of this block that nobody has, where another has the part around them.
    fn drop_superseded(&mut self, block: IpNet, part: IpNet) {
        let journaled: Vec<Donation> = self.donations.values().cloned().collect();
        let given = &self.cache[&block].given;
        let is_alive = |one: &Donation| {
            self.cache.contains_key(&one.part) || given.iter().any(|given| given.cidr == one.part)
        };
        for void in superseded(&journaled, "u-1", &block, &part, is_alive) {
            self.pools.unmark_donated(void);
            self.donations.remove(&void.part);
        }
    }

    fn restart(&mut self, subnet: &BlockSubnet) {
        self.pools = Pools::default();
        self.listed.clear();
        let key = key(&config(subnet, &[], &[]));
        for (owner, address) in &self.addresses {
            self.pools.reserve(&key, *address, owner).unwrap();
        }
        for donation in self.donations.values() {
            self.pools.mark_donated(donation);
        }
    }
}

impl Cluster {
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
            sent: Vec::new(),
            uids: 0,
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Returns(n) => self.nodes[n].there = true,
            Step::Collect => self.collect(),
            Step::Arrives(number) => self.arrives(usize::from(number)),
            Step::Add(n, _)
            | Step::Del(n, _)
            | Step::Give(n, ..)
            | Step::Take(n)
            | Step::TakeBack(n)
            | Step::Post(n)
            | Step::List(n)
            | Step::Settle(n)
            | Step::MakeAgain(n)
            | Step::Send(n)
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
            Step::Give(n, to, addresses, dies) => self.donate(n, to, addresses, dies),
            Step::Take(n) => self.take(n),
            Step::TakeBack(n) => self.take_back(n),
            Step::Post(n) => self.post_one(n),
            Step::List(n) => self.each_unsettled(n, Self::list),
            Step::Settle(n) => self.each_unsettled(n, Self::settle),
            Step::MakeAgain(n) => self.make_again(n),
            Step::Send(n) => self.send(n),
            Step::Publish(n) => self.publish(n),
            Step::Crash(n) => self.nodes[n].restart(&self.subnet),
            Step::Watch(n) => self.nodes[n].sees(self.api.clone()),
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
            let got =
                node.pools
                    .allocate_blocks(&key(&config), &config.ipam, &config.own, &[], owner);
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
        if let Some(cidr) = self.candidate(n) {
            self.create(n, cidr);
        }
    }

    /// The next block to claim. One that somebody deleted though it is in use is its owner's: whether
    /// that is fast enough is not what is asked here.
    fn candidate(&self, n: usize) -> Option<IpNet> {
        let (node, whole) = (&self.nodes[n], self.whole());
        let taken = node.cache.keys().copied();
        let mut taken: Vec<IpNet> = taken.filter(|one| one.prefix_len() == whole).collect();
        for (other, node) in self.nodes.iter().enumerate() {
            let used = node.own.iter().filter(|cidr| node.uses(cidr));
            let whole = used.filter(|cidr| cidr.prefix_len() == whole && other != n);
            taken.extend(whole.copied());
        }
        let all = blocks_to_try(&self.subnet, &taken, &node.name, None);
        all.first().copied()
    }

    fn whole(&self) -> u8 {
        self.subnet.block_length.unwrap()
    }

    fn post_one(&mut self, n: usize) {
        let offer = self.offers(n).into_iter().next();
        if let Some(cidr) = offer.or_else(|| self.candidate(n)) {
            self.post(n, cidr);
        }
    }

    /// Makes a block and uses it, if that is right.
    fn create(&mut self, n: usize, cidr: IpNet) -> bool {
        let ours = self.post(n, cidr);
        if ours {
            self.list(n, cidr);
            self.settle(n, cidr);
        }
        ours
    }

    /// A name that is taken is somebody's.
    fn post(&mut self, n: usize, cidr: IpNet) -> bool {
        self.uids += 1;
        let node = &mut self.nodes[n];
        let new = Object {
            uid: self.uids,
            node: node.name.clone(),
            machine: node.machine,
            given: Vec::new(),
        };
        let object = self.api.entry(cidr).or_insert(new).clone();
        let ours = node.is_own(&object);
        node.cache.insert(cidr, object);
        if ours {
            node.own.insert(cidr);
        }
        ours
    }

    fn each_unsettled(&mut self, n: usize, what: fn(&mut Self, usize, IpNet)) {
        let node = &self.nodes[n];
        let own = node.cache.iter().filter(|(_, object)| node.is_own(object));
        let open = own.filter(|(cidr, object)| node.settled.get(*cidr) != Some(&object.uid));
        for cidr in open.map(|(cidr, _)| *cidr).collect::<Vec<_>>() {
            what(self, n, cidr);
        }
    }

    /// Looks at all parts that there are.
    fn list(&mut self, n: usize, cidr: IpNet) {
        let whole = self.whole();
        let parts = self.api.iter().filter(|(one, _)| one.prefix_len() > whole);
        let parts: Objects = parts
            .map(|(cidr, object)| (*cidr, object.clone()))
            .collect();
        let node = &mut self.nodes[n];
        let there = parts.keys().copied().collect();
        node.cache.extend(parts);
        let uid = node.cache[&cidr].uid;
        node.listed.insert(cidr, (uid, there));
    }

    /// Looks at the block around a part, keeps what others have, and only then uses it.
    fn settle(&mut self, n: usize, cidr: IpNet) {
        let whole = IpNet::new(cidr.network(), self.whole()).unwrap().trunc();
        let node = &mut self.nodes[n];
        let uid = node.cache[&cidr].uid;
        let Some((listed, mut there)) = node.listed.get(&cidr).cloned() else {
            return;
        };
        if listed != uid {
            return;
        }
        if cidr != whole {
            if let Some(found) = self.api.get(&whole) {
                node.cache.insert(whole, found.clone());
                there.insert(whole);
            }
            let enclosing_block = enclosing_block_in(&node.cache, cidr);
            let gives =
                enclosing_block.filter(|enclosing_block| enclosing_block.gives(&cidr, &node.name));
            if !gives.is_some_and(|enclosing_block| there.contains(&enclosing_block.cidr)) {
                return;
            }
        }
        let inside = node
            .cache
            .iter()
            .filter(|(part, _)| cidr.contains(*part) && **part != cidr);
        let inside: Vec<(IpNet, String)> = inside
            .map(|(part, object)| (*part, object.node.clone()))
            .collect();
        for (part, to) in &inside {
            let outer = inside
                .iter()
                .any(|(other, _)| other != part && other.contains(part));
            if *to != node.name && !outer {
                node.drop_superseded(cidr, *part);
                node.record(donation(cidr, *part, to));
            }
        }
        node.settled.insert(cidr, uid);
    }

    /// Blocks of ours that are in use and that somebody deleted.
    fn make_again(&mut self, n: usize) {
        let node = &self.nodes[n];
        let missing = node
            .own
            .iter()
            .filter(|cidr| !node.cache.contains_key(*cidr));
        let missing = missing.filter(|cidr| node.uses(cidr));
        for cidr in missing.copied().collect::<Vec<_>>() {
            self.post(n, cidr);
        }
    }

    fn donate(&mut self, n: usize, to: usize, addresses: u32, dies: Dies) {
        let to = self.nodes[to].name.clone();
        let subnet = self.subnet.clone();
        let node = &mut self.nodes[n];
        let config = node.config(&subnet);
        let Some(donation) =
            node.pools
                .donate(&config.ipam, &config.own, Family::V4, addresses, &to)
        else {
            return;
        };
        if dies > Dies::BeforeJournal {
            node.donations.insert(donation.part, donation);
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
        let before = self.sent.len();
        self.send(n);
        while self.sent.len() > before {
            self.arrives(before);
        }
    }

    /// All that is to be said of a node's blocks, as it sees them.
    fn send(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        let over = node.donations.values().filter(|donation| {
            let block = node.cache.get(&donation.block);
            block.is_some_and(|block| block.node != node.name)
        });
        for over in over.cloned().collect::<Vec<_>>() {
            node.pools.unmark_donated(&over);
            node.donations.remove(&over.part);
        }
        let own = node
            .cache
            .iter()
            .filter(|(_, object)| object.node == node.name);
        for (block, object) in own.map(|(b, o)| (*b, o.clone())).collect::<Vec<_>>() {
            let mut all = object.given.clone();
            all.retain(|donated| {
                let known = node.donations.contains_key(&donated.cidr);
                !known && node.record(donation(block, donated.cidr, &donated.node))
            });
            let kept = node
                .donations
                .values()
                .filter(|donation| donation.block == block);
            all.extend(kept.map(|donation| DonatedPart {
                cidr: donation.part,
                node: donation.node.clone(),
            }));
            all.sort_by_key(|donated| donated.cidr);
            all.dedup();
            self.sent.push((block, object.uid, all));
        }
    }

    /// Only if it is that very object.
    fn arrives(&mut self, number: usize) {
        if self.sent.is_empty() {
            return;
        }
        let (block, uid, given) = self.sent.remove(number % self.sent.len());
        if let Some(object) = self.api.get_mut(&block).filter(|object| object.uid == uid) {
            object.given = given;
        }
    }

    fn offers(&self, n: usize) -> Vec<IpNet> {
        let node = &self.nodes[n];
        let mut offers = Vec::new();
        for (block, object) in &node.cache {
            let mine = object
                .given
                .iter()
                .filter(|donated| donated.node == node.name);
            let open = mine.filter(|donated| !node.cache.contains_key(&donated.cidr));
            let legal = open.filter(|donated| {
                let enclosing_block = enclosing_block_in(&node.cache, donated.cidr);
                object.node != node.name
                    && enclosing_block.is_some_and(|enclosing_block| enclosing_block.cidr == *block)
            });
            offers.extend(legal.map(|donated| donated.cidr));
        }
        offers
    }

    /// Makes blocks of what was given to this node.
    fn take(&mut self, n: usize) {
        for part in self.offers(n) {
            self.create(n, part);
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
        let abandoned = node.donations.values().filter(|donation| {
            let own = node
                .cache
                .get(&donation.block)
                .is_some_and(|object| node.is_own(object));
            own && !there.contains(&donation.node) && !node.cache.contains_key(&donation.part)
        });
        for donation in abandoned.cloned().collect::<Vec<_>>() {
            if self.create(n, donation.part) {
                let node = self.nodes[n].name.clone();
                self.nodes[n].record(Donation { node, ..donation });
            }
        }
    }

    /// The controller: what nodes that are gone had returns; a part of a block only if it gave nothing to
    /// others. What nobody gave and nobody uses is removed.
    fn collect(&mut self) {
        let there = |name: &str| {
            let mut nodes = self.nodes.iter();
            nodes.any(|node| node.there && node.name == name)
        };
        let whole = self.whole();
        let returns = self.api.iter().filter(|(cidr, object)| {
            let machine = self.nodes.iter().find(|node| node.name == object.node);
            let gone = machine.is_none_or(|node| node.machine != object.machine);
            let mut inside = self.api.iter().filter(|(part, _)| cidr.contains(*part));
            let anothers =
                inside.any(|(part, other)| other.node != object.node && is_legal(&self.api, *part));
            let promised = object.given.iter().any(|donated| {
                let open = !self.api.contains_key(&donated.cidr);
                donated.node != object.node && there(&donated.node) && open
            });
            let free = cidr.prefix_len() == whole || !anothers && !promised;
            let idle = machine.is_none_or(|node| {
                !node.uses(cidr) && !node.config(&self.subnet).own.own.contains(cidr)
            });
            gone && free || !is_legal(&self.api, **cidr) && idle
        });
        let returns: Vec<IpNet> = returns.map(|(cidr, _)| *cidr).collect();
        for cidr in returns {
            self.api.remove(&cidr);
        }
    }

    /// Somebody deletes a block, and its owner sees that: a whole one, or a part that its owner does not
    /// use.
    fn deleted(&mut self, n: usize, number: u8) {
        let whole = self.whole();
        let api = self.api.clone();
        let node = &mut self.nodes[n];
        node.sees(api);
        let may = |cidr: &IpNet| cidr.prefix_len() == whole || !node.uses(cidr);
        let own = node.cache.iter().filter(|(_, object)| node.is_own(object));
        let own: Vec<IpNet> = own.map(|(cidr, _)| *cidr).filter(may).collect();
        let Some(cidr) = own.get(usize::from(number) % own.len().max(1)) else {
            return;
        };
        self.api.remove(cidr);
        node.cache.remove(cidr);
        if !node.uses(cidr) {
            node.own.remove(cidr);
        }
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

fn donation(block: IpNet, part: IpNet, node: &str) -> Donation {
    Donation {
        network: "u-1".to_owned(),
        block,
        part,
        node: node.to_owned(),
    }
}

/// The smallest legal block around one.
fn enclosing_block_in(objects: &Objects, cidr: IpNet) -> Option<EnclosingBlock<'_>> {
    enclosing_block(cidr, |prefix| found(objects, prefix))
}

fn found<'a>(objects: &'a Objects, cidr: &IpNet) -> Option<(&'a str, &'a [DonatedPart])> {
    let object = objects.get(cidr)?;
    Some((&*object.node, &*object.given))
}

fn is_legal(objects: &Objects, cidr: IpNet) -> bool {
    let node = objects.get(&cidr).map(|object| &object.node);
    let enclosing_block = enclosing_block_in(objects, cidr);
    node.is_none_or(|node| {
        enclosing_block.is_none_or(|enclosing_block| enclosing_block.gives(&cidr, node))
    })
}
