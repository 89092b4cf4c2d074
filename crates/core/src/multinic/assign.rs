//! Who has which block: what stands in Blocks stays, every NIC without one gets the next index of its rail, and what is no
//! longer wanted is retired, then deleted once nothing of it is in use.

use super::arithmetic::{host_block, interface_block, is_skipped, last, numbers_met};
use super::indices::Indices;
use super::left_out::LeftOut;
use super::rails::Rails;
use ipnet::IpNet;
use plexus_api::objects::{BlockBits, BlockNic, BlockSpec, HostNic, NetworkRef};
use plexus_types::Family;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The network that is assigned.
#[derive(Debug, Clone, Copy)]
pub struct MultiNicTarget<'a> {
    /// Its name, and the UID of its object.
    pub network: &'a NetworkRef,
    /// Its subnets, one of each family at most.
    pub subnets: &'a [IpNet],
    /// The subnets of its NICs, in order; none: all.
    pub master_nets: &'a [IpNet],
    /// How a subnet is divided.
    pub bits: &'a BlockBits,
}

/// A host whose NICs are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// When its Node was made, RFC 3339: who was there first has the lower index.
    pub created: String,
    /// Its Node.
    pub name: String,
    /// The UID of that.
    pub uid: String,
    /// Its NICs.
    pub nics: Vec<Nic>,
}

/// A NIC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nic {
    /// Its name.
    pub name: String,
    /// Its addresses with their prefixes, the most important first.
    pub addresses: Vec<IpNet>,
}

impl From<&HostNic> for Nic {
    fn from(nic: &HostNic) -> Self {
        Nic {
            name: nic.interface_name.clone(),
            addresses: nic.all_addresses(),
        }
    }
}

/// A Block of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingBlock {
    /// What it says.
    pub spec: BlockSpec,
    /// Addresses of it in use.
    pub allocated: u64,
    /// Its node issues nothing more from it.
    pub closed: bool,
    /// Its node has never issued anything from it.
    pub untouched: bool,
}

impl ExistingBlock {
    fn name(&self) -> String {
        BlockSpec::name(&self.spec.network.uuid, &self.spec.cidr)
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockChange {
    /// There is none yet.
    Create(BlockSpec),
    /// It says something else of its NIC.
    Update {
        /// Its name.
        name: String,
        /// What it should say.
        nic: BlockNic,
    },
    /// Nobody wants or uses it any more.
    Delete {
        /// Its name.
        name: String,
    },
}

/// The blocks of a network as they should be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Assignment {
    /// Those that NICs have, by name.
    pub blocks: BTreeMap<String, BlockSpec>,
    /// What makes it so.
    pub changes: Vec<BlockChange>,
    /// Who has none, and why.
    pub left_out: Vec<LeftOut>,
    /// Blocks that are retired, and still in use.
    pub draining: usize,
}

/// The indices of a NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    interface: u32,
    host: u32,
}

/// A NIC of a host, on a subnet that the network wants.
#[derive(Debug, Clone, Copy)]
struct Port<'a> {
    host: &'a Host,
    nic: &'a Nic,
    net: IpNet,
}

/// Decides who has which block. Hosts and blocks may be in any order. A block of a node that is not among the hosts is
/// left alone, and so is its place.
pub fn assign(
    target: MultiNicTarget<'_>,
    hosts: &[Host],
    existing: &[ExistingBlock],
) -> Assignment {
    let mut hosts: Vec<&Host> = hosts.iter().collect();
    hosts.sort_by(|a, b| (&a.created, &a.name).cmp(&(&b.created, &b.name)));
    let ports = ports(&target, &hosts);
    let Standing {
        sound,
        stale,
        rails,
    } = Standing::of(&target, &ports, existing);
    let (rails, mut left_out) = Rails::assign(&target, rails, &stale, &needed(&target, &ports));
    let mut indices = host_indices(&target, &rails, &sound, &stale);
    let (mut slots, waiting) = keep_assigned(&ports, &sound, &rails);
    for (rail, at) in waiting {
        let Some(port) = ports.get(at) else { continue };
        let host = indices.get_mut(&rail).and_then(Indices::append);
        match host {
            Some(host) => slots.push((
                at,
                Slot {
                    interface: rail,
                    host,
                },
            )),
            None => left_out.push(LeftOut::NoHostIndex {
                host: port.host.name.clone(),
                nic: port.nic.name.clone(),
                net: port.net,
            }),
        }
    }
    let mut blocks = BTreeMap::new();
    for (at, slot) in slots {
        if let Some(port) = ports.get(at) {
            add_blocks(&target, port, slot, &stale, &mut blocks, &mut left_out);
        }
    }
    let (changes, draining) = changes(&hosts, &blocks, existing);
    left_out.sort();
    left_out.dedup();
    Assignment {
        blocks,
        changes,
        left_out,
        draining,
    }
}

/// The NICs that the network wants, host by host; of a host and a subnet, by name.
fn ports<'a>(target: &MultiNicTarget<'_>, hosts: &[&'a Host]) -> Vec<Port<'a>> {
    let mut ports = Vec::new();
    for host in hosts {
        let mut own: Vec<Port<'a>> = host
            .nics
            .iter()
            .filter_map(|nic| {
                let net = net_of(target, nic)?;
                Some(Port { host, nic, net })
            })
            .collect();
        own.sort_by(|a, b| (a.net, &a.nic.name).cmp(&(b.net, &b.nic.name)));
        own.dedup_by(|a, b| a.nic.name == b.nic.name);
        ports.extend(own);
    }
    ports
}

/// On which of the network's subnets a NIC is: the first of masterNets, else that of its first address.
fn net_of(target: &MultiNicTarget<'_>, nic: &Nic) -> Option<IpNet> {
    let mut nets = nic.addresses.iter().map(IpNet::trunc);
    if target.master_nets.is_empty() {
        return nets.next();
    }
    let has = |net: &&IpNet| nic.addresses.iter().any(|one| one.trunc() == **net);
    target.master_nets.iter().find(has).copied()
}

/// How many rails each subnet needs, in the order in which they are numbered.
fn needed(target: &MultiNicTarget<'_>, ports: &[Port<'_>]) -> Vec<(IpNet, usize)> {
    let mut most: BTreeMap<IpNet, usize> = BTreeMap::new();
    let mut of_host: BTreeMap<(&str, IpNet), usize> = BTreeMap::new();
    for port in ports {
        let count = of_host.entry((&port.host.name, port.net)).or_default();
        *count += 1;
        let most = most.entry(port.net).or_default();
        *most = (*most).max(*count);
    }
    if target.master_nets.is_empty() {
        return most.into_iter().collect();
    }
    let count = |net: &IpNet| (*net, most.get(net).copied().unwrap_or(1));
    target.master_nets.iter().map(count).collect()
}

/// A Block that is as the network's arithmetic has it.
struct Sound<'a> {
    spec: &'a BlockSpec,
    nic: &'a BlockNic,
}

/// What the Blocks that are there say.
struct Standing<'a> {
    sound: Vec<Sound<'a>>,
    /// Addresses that somebody may use by another arithmetic.
    stale: Vec<IpNet>,
    /// Interface indices that are in use.
    rails: BTreeMap<u32, IpNet>,
}

impl<'a> Standing<'a> {
    fn of(target: &MultiNicTarget<'_>, ports: &[Port<'_>], existing: &'a [ExistingBlock]) -> Self {
        let mut sorted: Vec<&ExistingBlock> = existing.iter().collect();
        // A rail is of the subnet of those that are not closed.
        sorted.sort_by_key(|block| (is_gone(block), block.spec.cidr));
        let revived = revived(target, ports, existing);
        let mut standing = Standing {
            sound: Vec::new(),
            stale: Vec::new(),
            rails: BTreeMap::new(),
        };
        for block in sorted {
            let spec = &block.spec;
            let nic = spec.nic.as_ref().filter(|nic| {
                let wanted =
                    !is_gone(block) || revived.get(&port_key(spec, nic)) == Some(&slot(nic));
                wanted && is_in_place(target, &spec.cidr, nic)
            });
            let Some(nic) = nic else {
                standing.stale.push(spec.cidr);
                continue;
            };
            let net = *standing
                .rails
                .entry(nic.interface_index)
                .or_insert(nic.net_address);
            if net == nic.net_address {
                standing.sound.push(Sound { spec, nic });
            } else {
                standing.stale.push(spec.cidr);
            }
        }
        standing
    }
}

/// Whether nothing is issued from a block any more.
fn is_gone(block: &ExistingBlock) -> bool {
    block.spec.nic.as_ref().is_some_and(|nic| nic.retired) && block.closed
}

/// A host and its UID, a NIC and its subnet.
type PortKey<'a> = (&'a str, &'a str, &'a str, IpNet);

fn port_key<'a>(spec: &'a BlockSpec, nic: &'a BlockNic) -> PortKey<'a> {
    (&spec.node, &spec.node_uid, &nic.interface, nic.net_address)
}

/// The slots to which NICs return that have lost an address and have it again, such as one whose link was down: their pods
/// are still there. A NIC that has another slot by now stays there.
fn revived<'a>(
    target: &MultiNicTarget<'_>,
    ports: &[Port<'a>],
    existing: &'a [ExistingBlock],
) -> BTreeMap<PortKey<'a>, Slot> {
    if !existing.iter().any(is_gone) {
        return BTreeMap::new();
    }
    let mut best: BTreeMap<PortKey<'a>, (bool, bool, Slot)> = BTreeMap::new();
    let wanted: BTreeSet<PortKey<'a>> = ports
        .iter()
        .map(|port| {
            let (host, nic) = (port.host, port.nic);
            (&*host.name, &*host.uid, &*nic.name, port.net)
        })
        .collect();
    for block in existing {
        let Some(nic) = &block.spec.nic else { continue };
        let key = port_key(&block.spec, nic);
        if wanted.contains(&key) && is_in_place(target, &block.spec.cidr, nic) {
            let found = (nic.retired, is_gone(block), slot(nic));
            let best = best.entry(key).or_insert(found);
            *best = found.min(*best);
        }
    }
    let slots = best.into_iter();
    slots.map(|(key, (.., slot))| (key, slot)).collect()
}

fn slot(nic: &BlockNic) -> Slot {
    Slot {
        interface: nic.interface_index,
        host: nic.host_index,
    }
}

/// Whether a block is where its indices say, and the network wants it.
fn is_in_place(target: &MultiNicTarget<'_>, cidr: &IpNet, nic: &BlockNic) -> bool {
    let slot = slot(nic);
    let wanted = target.master_nets.is_empty() || target.master_nets.contains(&nic.net_address);
    let mut subnets = target.subnets.iter();
    wanted
        && !is_skipped(cidr, &target.bits.exclude)
        && subnets.any(|subnet| block_of(target, subnet, slot) == Some(*cidr))
}

fn block_of(target: &MultiNicTarget<'_>, subnet: &IpNet, slot: Slot) -> Option<IpNet> {
    let outer = interface_block(subnet, target.bits.interface, slot.interface).ok()?;
    host_block(&outer, target.bits.host, slot.host).ok()
}

/// The host indices of every rail, of which those are taken that blocks have.
fn host_indices(
    target: &MultiNicTarget<'_>,
    rails: &Rails,
    sound: &[Sound<'_>],
    stale: &[IpNet],
) -> BTreeMap<u32, Indices> {
    let bits = target.bits;
    let mut all = BTreeMap::new();
    for (rail, _) in rails.iter() {
        let mut indices = Indices::to(last(bits.host));
        for subnet in target.subnets {
            let Ok(outer) = interface_block(subnet, bits.interface, rail) else {
                continue;
            };
            // An exclude that is smaller than a block takes addresses of it, not the block.
            let length = outer.prefix_len().saturating_add(bits.host);
            let whole = bits.exclude.iter().filter(|one| one.prefix_len() <= length);
            for net in whole.chain(stale) {
                if let Some((first, end)) = numbers_met(&outer, bits.host, net) {
                    indices.bar(first, end);
                }
            }
        }
        all.insert(rail, indices);
    }
    for Sound { nic, .. } in sound {
        if let Some(indices) = all.get_mut(&nic.interface_index) {
            indices.take(nic.host_index);
        }
    }
    all
}

/// Ports, by their number, and the slots that they have.
type Slots = Vec<(usize, Slot)>;
/// Rails, and the numbers of the ports that wait there.
type Waiting = BTreeSet<(u32, usize)>;

/// The slots that NICs have already, and the rails on which the others wait, in the order in which they are served.
fn keep_assigned(ports: &[Port<'_>], sound: &[Sound<'_>], rails: &Rails) -> (Slots, Waiting) {
    let mut held: BTreeMap<(&str, &str, IpNet), BTreeMap<Slot, &str>> = BTreeMap::new();
    for Sound { spec, nic } in sound {
        let slot = slot(nic);
        let key = (spec.node.as_str(), spec.node_uid.as_str(), nic.net_address);
        let of_host = held.entry(key).or_default();
        of_host.insert(slot, &nic.interface);
    }
    let mut kept = Vec::new();
    let mut waiting = BTreeSet::new();
    let mut at = 0;
    while let Some(first) = ports.get(at) {
        let same = |port: &Port<'_>| port.host.name == first.host.name && port.net == first.net;
        let rest = ports.get(at..).unwrap_or_default();
        let end = at + rest.iter().take_while(|port| same(port)).count().max(1);
        let key = (first.host.name.as_str(), first.host.uid.as_str(), first.net);
        let free = held.remove(&key).unwrap_or_default();
        let (own, without) = match_names(ports, at..end, free);
        let used: BTreeSet<u32> = own.iter().map(|(_, slot)| slot.interface).collect();
        kept.extend(own);
        let open = rails.of(&first.net).filter(|rail| !used.contains(rail));
        waiting.extend(open.zip(without));
        at = end;
    }
    (kept, waiting)
}

/// Slots to NICs of one host and subnet: by name, then a NIC that was renamed has the slot of a name that is gone. One
/// host has one slot on a rail.
fn match_names(
    ports: &[Port<'_>],
    range: std::ops::Range<usize>,
    mut free: BTreeMap<Slot, &str>,
) -> (Slots, Vec<usize>) {
    let name = |at: usize| ports.get(at).map(|port| port.nic.name.as_str());
    let mut kept = Slots::new();
    let mut without = Vec::new();
    for at in range {
        let own = free.iter().find(|(_, held)| Some(**held) == name(at));
        match own.map(|(slot, _)| *slot) {
            Some(slot) => {
                free.retain(|other, _| other.interface != slot.interface);
                kept.push((at, slot));
            }
            None => without.push(at),
        }
    }
    let mut still = Vec::new();
    for at in without {
        match free.pop_first() {
            Some((slot, _)) => {
                free.retain(|other, _| other.interface != slot.interface);
                kept.push((at, slot));
            }
            None => still.push(at),
        }
    }
    (kept, still)
}

/// The blocks of a NIC: one in each subnet.
fn add_blocks(
    target: &MultiNicTarget<'_>,
    port: &Port<'_>,
    slot: Slot,
    stale: &[IpNet],
    blocks: &mut BTreeMap<String, BlockSpec>,
    left_out: &mut Vec<LeftOut>,
) {
    let (host, nic) = (&port.host.name, &port.nic.name);
    for subnet in target.subnets {
        let Some(cidr) = block_of(target, subnet, slot) else {
            continue;
        };
        let meets = |one: &IpNet| one.contains(&cidr) || cidr.contains(one);
        if is_skipped(&cidr, &target.bits.exclude) || stale.iter().any(meets) {
            let (host, nic) = (host.clone(), nic.clone());
            left_out.push(LeftOut::NoBlock { host, nic, cidr });
            continue;
        }
        let family = Family::of(subnet.addr());
        let via = address_of(port, family);
        if via.is_none() && target.bits.mode.is_routed() {
            let (host, nic) = (host.clone(), nic.clone());
            left_out.push(LeftOut::NoAddress { host, nic, family });
            continue;
        }
        let spec = BlockSpec {
            network: target.network.clone(),
            cidr,
            node: host.clone(),
            node_uid: port.host.uid.clone(),
            nic: Some(BlockNic {
                interface: nic.clone(),
                net_address: port.net,
                interface_index: slot.interface,
                host_index: slot.host,
                via,
                retired: false,
            }),
        };
        blocks.insert(BlockSpec::name(&target.network.uuid, &cidr), spec);
    }
}

/// The NIC's address of a family: the one on the network's subnet, else its first.
fn address_of(port: &Port<'_>, family: Family) -> Option<IpAddr> {
    let own = || {
        let addresses = port.nic.addresses.iter();
        addresses.filter(|one| Family::of(one.addr()) == family)
    };
    let on_net = own().find(|one| one.trunc() == port.net);
    on_net.or_else(|| own().next()).map(IpNet::addr)
}

/// What makes the Blocks what they should be, and how many that nobody wants are still in use.
fn changes(
    hosts: &[&Host],
    wanted: &BTreeMap<String, BlockSpec>,
    existing: &[ExistingBlock],
) -> (Vec<BlockChange>, usize) {
    let there: BTreeMap<String, &ExistingBlock> =
        existing.iter().map(|block| (block.name(), block)).collect();
    let known: BTreeSet<(&str, &str)> = hosts
        .iter()
        .map(|host| (host.name.as_str(), host.uid.as_str()))
        .collect();
    let mut changes = Vec::new();
    let mut draining = 0;
    for (name, block) in &there {
        if wanted.contains_key(name)
            || !known.contains(&(block.spec.node.as_str(), block.spec.node_uid.as_str()))
        {
            continue;
        }
        let retired = block.spec.nic.as_ref().is_some_and(|nic| nic.retired);
        if retired && block.allocated == 0 && (block.closed || block.untouched) {
            changes.push(BlockChange::Delete { name: name.clone() });
            continue;
        }
        draining += 1;
        if let Some(nic) = block.spec.nic.as_ref().filter(|nic| !nic.retired) {
            let mut nic = nic.clone();
            nic.retired = true;
            changes.push(BlockChange::Update {
                name: name.clone(),
                nic,
            });
        }
    }
    for (name, spec) in wanted {
        match (there.get(name), &spec.nic) {
            (None, _) => changes.push(BlockChange::Create(spec.clone())),
            (Some(block), Some(nic)) if block.spec.nic.as_ref() != Some(nic) => {
                changes.push(BlockChange::Update {
                    name: name.clone(),
                    nic: nic.clone(),
                });
            }
            _ => {}
        }
    }
    (changes, draining)
}
