//! How full a network is: by subnet, by block and by node, with what blocks can hand out at all.

use crate::get::age_of;
use crate::snapshot::{
    Snapshot, blocks_of, cidr, list, name, namespace, network_spec, number, text, uid,
};
use crate::text::{Cell, Paint, Screen, Table, bar, count};
use ipnet::IpNet;
use plexus_api::cni::BlockSubnet;
pub use plexus_core::ipam::Share;
use plexus_core::ipam::{Pool, blocks_to_try, shares, tightest};
use plexus_types::Family;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Columns of a bar, and of one beside others on a narrow terminal.
const BAR: usize = 20;
const SHORT: usize = 10;
/// A narrow terminal.
const NARROW: usize = 100;

/// How full a network is.
#[derive(Debug, Clone, Default)]
pub struct Fullness {
    /// Its subnets, in order.
    pub subnets: Vec<SubnetUse>,
    /// Its blocks, in order of their addresses.
    pub blocks: Vec<BlockUse>,
}

/// A subnet.
#[derive(Debug, Clone)]
pub struct SubnetUse {
    /// The addresses.
    pub cidr: IpNet,
    /// How many can be handed out.
    pub capacity: u128,
    /// How many are in use.
    pub used: u128,
    /// How many blocks are owned.
    pub claimed: usize,
    /// How many blocks it has.
    pub blocks: u128,
    /// Whether a block of it is free.
    pub has_free_block: bool,
}

/// A block.
#[derive(Debug, Clone)]
pub struct BlockUse {
    /// The addresses.
    pub cidr: IpNet,
    /// Who owns it.
    pub node: String,
    /// How many its owner can hand out.
    pub capacity: u128,
    /// How many are in use.
    pub used: u128,
    /// Parts that are others' now.
    pub donated: Vec<IpNet>,
}

impl BlockUse {
    fn left(&self) -> u128 {
        self.capacity.saturating_sub(self.used)
    }
}

/// Reckons a network; an error if its spec cannot be read.
pub fn fullness(network: &Value, snapshot: &Snapshot) -> Result<Fullness, String> {
    let spec = network_spec(network)?;
    let subnets = spec.block_subnets();
    let recorded = recorded(network, snapshot);
    let mut blocks: Vec<BlockUse> = blocks_of(snapshot, &uid(network))
        .filter_map(|block| block_use(block, &subnets, &recorded))
        .collect();
    blocks.sort_by_key(|block| block.cidr);
    let taken: Vec<IpNet> = blocks.iter().map(|block| block.cidr).collect();
    let subnets = subnets.iter().map(|subnet| {
        let inside = || {
            blocks
                .iter()
                .filter(|block| subnet.cidr.contains(&block.cidr))
        };
        let length = subnet.block_length.unwrap_or(subnet.cidr.prefix_len());
        let bits = u32::from(length.saturating_sub(subnet.cidr.prefix_len()));
        SubnetUse {
            cidr: subnet.cidr,
            capacity: Pool::new(subnet.cidr, &subnet.exclude, subnet.gateway.as_slice()).capacity(),
            used: inside().map(|block| block.used).sum(),
            claimed: inside().count(),
            blocks: 1_u128.checked_shl(bits).unwrap_or(u128::MAX),
            has_free_block: !blocks_to_try(subnet, &taken, "", None).is_empty(),
        }
    });
    Ok(Fullness {
        subnets: subnets.collect(),
        blocks,
    })
}

impl Fullness {
    /// Whether the node could give a pod an address of that family: from a block that it has, or
    /// from one that it could claim. None if the network has no subnet of the family.
    pub fn has_room(&self, node: &str, family: Family) -> Option<bool> {
        let of = |net: &IpNet| Family::of(net.addr()) == family;
        let mut subnets = self
            .subnets
            .iter()
            .filter(|subnet| of(&subnet.cidr))
            .peekable();
        subnets.peek()?;
        let free = subnets.any(|subnet| subnet.has_free_block);
        let own = self
            .blocks
            .iter()
            .any(|block| block.node == node && of(&block.cidr) && block.left() > 0);
        Some(free || own)
    }

    /// Other nodes that have addresses of that family left.
    pub fn elsewhere(&self, node: &str, family: Family) -> Vec<&str> {
        let blocks = self.blocks.iter().filter(|block| {
            block.node != node && block.left() > 0 && Family::of(block.cidr.addr()) == family
        });
        let mut nodes: Vec<&str> = blocks.map(|block| block.node.as_str()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// How full each family is that the network has subnets of.
    pub fn families(&self) -> Vec<(Family, Share)> {
        let each = self.subnets.iter();
        shares(each.map(|subnet| (subnet.cidr, subnet.used, subnet.capacity)))
    }

    /// How full it is: by the family with the fewest addresses left, since a pod gets one of each.
    pub fn tightest(&self) -> Share {
        tightest(&self.families())
    }

    /// Whether no subnet of a family has a block that nobody owns.
    pub fn all_blocks_are_owned(&self, family: Family) -> bool {
        let mut subnets = self.subnets.iter();
        !subnets.any(|subnet| Family::of(subnet.cidr.addr()) == family && subnet.has_free_block)
    }

    /// By node: how many blocks, and how full they are.
    pub fn by_node(&self) -> BTreeMap<&str, (usize, Share)> {
        let mut nodes: BTreeMap<&str, Vec<&BlockUse>> = BTreeMap::new();
        for block in &self.blocks {
            nodes.entry(block.node.as_str()).or_default().push(block);
        }
        let each = nodes.into_iter().map(|(node, blocks)| {
            let share = shares(blocks.iter().map(|one| (one.cidr, one.used, one.capacity)));
            (node, (blocks.len(), tightest(&share)))
        });
        each.collect()
    }
}

/// The addresses of a network that pods have by their records. Agents report the use of their
/// blocks now and then; records are there at once.
fn recorded(network: &Value, snapshot: &Snapshot) -> BTreeSet<IpAddr> {
    let identities = [uid(network), text(network, "/spec/uuid").to_owned()];
    let attachments = snapshot
        .records
        .iter()
        .flat_map(|record| list(record, "/status/attachments"));
    let of_it = attachments.filter(|one| {
        let uuid = text(one, "/network/uuid");
        !uuid.is_empty() && identities.iter().any(|own| own == uuid)
    });
    let ips = of_it.flat_map(|one| list(one, "/ips"));
    ips.filter_map(|ip| Some(ip.as_str()?.parse::<IpNet>().ok()?.addr()))
        .collect()
}

/// How many addresses of a block are in use, and how many its owner can hand out, if its network is
/// known.
pub fn block_fullness(block: &Value, snapshot: &Snapshot) -> Option<(u128, u128)> {
    let wanted = text(block, "/spec/network/uid");
    let network = snapshot
        .networks
        .iter()
        .find(|network| uid(network) == wanted)?;
    let spec = network_spec(network).ok()?;
    let found = block_use(block, &spec.block_subnets(), &recorded(network, snapshot))?;
    Some((found.used, found.capacity))
}

fn block_use(
    block: &Value,
    subnets: &[BlockSubnet],
    recorded: &BTreeSet<IpAddr>,
) -> Option<BlockUse> {
    let cidr = cidr(block)?;
    let donated: Vec<IpNet> = list(block, "/status/given")
        .iter()
        .filter_map(|donated| text(donated, "/cidr").parse().ok())
        .collect();
    let subnet = subnets.iter().find(|subnet| subnet.cidr.contains(&cidr));
    let capacity = |part: IpNet| {
        let subnet = subnet?;
        let pool = Pool::of_part(
            part,
            subnet.cidr,
            &subnet.exclude,
            subnet.gateway.as_slice(),
        );
        Some(pool.capacity())
    };
    let whole = capacity(cidr).unwrap_or(0);
    let gone = donated.iter().filter_map(|part| capacity(*part));
    let gone = gone.fold(0, u128::saturating_add);
    let inside =
        |ip: &&IpAddr| cidr.contains(*ip) && !donated.iter().any(|part| part.contains(*ip));
    let reported = number(block, "/status/allocated").unwrap_or_default();
    Some(BlockUse {
        cidr,
        node: text(block, "/spec/node").to_owned(),
        capacity: whole.saturating_sub(gone),
        used: u128::from(reported).max(recorded.iter().filter(inside).count() as u128),
        donated,
    })
}

/// A network's use, for people.
pub fn show(network: &Value, snapshot: &Snapshot, screen: Screen) -> Result<String, String> {
    let fullness = fullness(network, snapshot)?;
    let title = format!("Network {}/{}", namespace(network), name(network));
    let mut out = screen.paint(Paint::Strong, &title);
    let families = fullness.families();
    let in_use: Vec<String> = match families[..] {
        [] => vec!["0 of 0".to_owned()],
        [(_, share)] => vec![of(share)],
        _ => families
            .iter()
            .map(|(family, share)| format!("{} {family}", of(*share)))
            .collect(),
    };
    out.push_str(&format!(": {} addresses in use\n", in_use.join(", ")));
    if families.is_empty() {
        out.push_str("it has no subnets: its addresses, if any, come from its config\n");
        return Ok(out);
    }
    let Share { used, capacity } = fullness.tightest();
    out.push_str(&format!("{}\n\n", bar(used, capacity, 2 * BAR, screen)));
    let plain = Screen {
        colour: false,
        ..screen
    };
    let mut subnets = Table::new(["SUBNET", "USED", "OF", "", "BLOCKS"]);
    for subnet in &fullness.subnets {
        let blocks = match subnet.has_free_block {
            true => format!("{} of {}", subnet.claimed, count(subnet.blocks)),
            false => format!(
                "{} of {}, none is free",
                subnet.claimed,
                count(subnet.blocks)
            ),
        };
        subnets.row(vec![
            subnet.cidr.to_string().into(),
            subnet.used.to_string().into(),
            count(subnet.capacity).into(),
            bar_cell(subnet.used, subnet.capacity, plain),
            blocks.into(),
        ]);
    }
    out.push_str(&subnets.render(screen));
    if fullness.blocks.is_empty() {
        out.push_str("\nno node has a block of it yet: the first pod on a node claims one\n");
        return Ok(out);
    }
    let mut nodes = Table::new(["NODE", "USED", "OF", "", "BLOCKS"]);
    for (node, (blocks, Share { used, capacity })) in fullness.by_node() {
        nodes.row(vec![
            node.into(),
            used.to_string().into(),
            count(capacity).into(),
            bar_cell(used, capacity, plain),
            blocks.to_string().into(),
        ]);
    }
    out.push('\n');
    out.push_str(&nodes.render(screen));
    let mut blocks = Table::new(["BLOCK", "NODE", "USED", "OF", "", "GIVEN"]);
    for block in &fullness.blocks {
        let donated: Vec<String> = block.donated.iter().map(IpNet::to_string).collect();
        blocks.row(vec![
            block.cidr.to_string().into(),
            block.node.as_str().into(),
            block.used.to_string().into(),
            count(block.capacity).into(),
            bar_cell(block.used, block.capacity, plain),
            donated.join(",").into(),
        ]);
    }
    out.push('\n');
    out.push_str(&blocks.render(screen));
    let pending = requests(network, snapshot);
    if !pending.is_empty() {
        out.push('\n');
        out.push_str(&pending);
    }
    Ok(out)
}

/// `3 of 250`
pub(crate) fn of(share: Share) -> String {
    format!("{} of {}", share.used, count(share.capacity))
}

/// The colour goes to the whole cell, so that columns stay aligned.
fn bar_cell(used: u128, capacity: u128, plain: Screen) -> Cell {
    let paint = match capacity {
        0 => Paint::Faint,
        capacity if used >= capacity => Paint::Bad,
        capacity if used.saturating_mul(5) >= capacity.saturating_mul(4) => Paint::Warn,
        _ => Paint::Good,
    };
    let columns = match plain.width {
        Some(width) if width < NARROW => SHORT,
        _ => BAR,
    };
    Cell::painted(paint, bar(used, capacity, columns, plain))
}

/// Nodes that ask for addresses because no block is free.
fn requests(network: &Value, snapshot: &Snapshot) -> String {
    let wanted = uid(network);
    let pending = snapshot
        .requests
        .iter()
        .filter(|request| text(request, "/spec/network/uid") == wanted);
    let lines = pending.map(|request| {
        format!(
            "node {} asks for {} {} address(es) since {}\n",
            text(request, "/spec/node"),
            number(request, "/spec/addresses").unwrap_or(1),
            text(request, "/spec/family"),
            age_of(request, snapshot.now),
        )
    });
    lines.collect()
}

/// The same for programs.
pub fn to_json(network: &Value, snapshot: &Snapshot) -> Result<Value, String> {
    let fullness = fullness(network, snapshot)?;
    let number_json =
        |number: u128| u64::try_from(number).map_or(json!(number.to_string()), |n| json!(n));
    let families = fullness.families().into_iter().map(|(family, share)| {
        json!({
            "family": family.to_string(), "used": number_json(share.used),
            "capacity": number_json(share.capacity),
        })
    });
    let subnets = fullness.subnets.iter().map(|subnet| {
        json!({
            "cidr": subnet.cidr, "used": number_json(subnet.used), "capacity": number_json(subnet.capacity),
            "claimedBlocks": subnet.claimed, "blocks": number_json(subnet.blocks),
            "hasFreeBlock": subnet.has_free_block,
        })
    });
    let blocks = fullness.blocks.iter().map(|block| {
        json!({
            "cidr": block.cidr, "node": block.node, "used": number_json(block.used),
            "capacity": number_json(block.capacity), "given": block.donated,
        })
    });
    Ok(json!({
        "namespace": namespace(network), "name": name(network),
        "families": families.collect::<Vec<_>>(),
        "subnets": subnets.collect::<Vec<_>>(), "blocks": blocks.collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(first: u64, second: u64) -> Snapshot {
        let block = |cidr: &str, node: &str, allocated: u64, donated: Value| {
            json!({"spec": {"network": {"uid": "u"}, "cidr": cidr, "node": node},
                "status": {"allocated": allocated, "given": donated}})
        };
        Snapshot {
            networks: vec![
                json!({"metadata": {"name": "blue", "namespace": "a", "uid": "u"},
                "spec": {"blockSize": {"ipv4": 30}, "subnets": {
                    "a": {"cidr": "10.1.0.0/29"}, "b": {"cidr": "fd00::/64"}}}}),
            ],
            blocks: vec![
                block("10.1.0.4/30", "n2", second, json!([])),
                block(
                    "10.1.0.0/30",
                    "n1",
                    first,
                    json!([{"cidr": "10.1.0.1/32", "node": "n2"}]),
                ),
            ],
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_gift_is_no_longer_the_givers() {
        let snapshot = snapshot(1, 0);
        let full = fullness(&snapshot.networks[0], &snapshot).unwrap();
        // Of four one is the network's address, one is given away.
        let capacities: Vec<u128> = full.blocks.iter().map(|block| block.capacity).collect();
        assert_eq!(capacities, [2, 2]);
        assert_eq!(full.blocks[0].node, "n1");
        assert_eq!(block_fullness(&snapshot.blocks[1], &snapshot), Some((1, 2)));
        let share = Share {
            used: 1,
            capacity: 2,
        };
        assert_eq!(full.by_node()["n1"], (1, share));
    }

    #[test]
    fn the_family_that_runs_out_first_counts() {
        let mut snapshot = snapshot(2, 2);
        snapshot.blocks.push(
            json!({"spec": {"network": {"uid": "u"}, "cidr": "fd00::/122", "node": "n1"},
            "status": {"allocated": 4}}),
        );
        let full = fullness(&snapshot.networks[0], &snapshot).unwrap();
        let share = full.tightest();
        assert_eq!((share.used, share.capacity), (4, 5));
        let families: Vec<Family> = full.families().iter().map(|(family, _)| *family).collect();
        assert_eq!(families, [Family::V4, Family::V6]);
        assert!(full.all_blocks_are_owned(Family::V4));
        assert!(!full.all_blocks_are_owned(Family::V6));
        assert_eq!(full.by_node()["n1"].1.used, 2, "of IPv4");
    }

    #[test]
    fn what_pods_have_counts_before_agents_have_said_so() {
        let mut snapshot = snapshot(0, 0);
        let attached = |ip: &str, uuid: &str| json!({"ips": [ip], "network": {"uuid": uuid}});
        snapshot.records = vec![json!({"status": {"attachments": [
            attached("10.1.0.5/29", "u"), attached("10.1.0.6/29", "another"),
            // In the part that n1 has given away.
            attached("10.1.0.1/29", "u"),
        ]}})];
        let full = fullness(&snapshot.networks[0], &snapshot).unwrap();
        let used: Vec<u128> = full.blocks.iter().map(|block| block.used).collect();
        assert_eq!(used, [0, 1]);
    }

    #[test]
    fn room_is_what_a_node_has_or_can_claim() {
        let of = |first, second| {
            let snapshot = snapshot(first, second);
            fullness(&snapshot.networks[0], &snapshot).unwrap()
        };
        assert_eq!(of(2, 0).has_room("n1", Family::V4), Some(false));
        assert_eq!(of(2, 0).elsewhere("n1", Family::V4), ["n2"]);
        assert_eq!(of(1, 0).has_room("n1", Family::V4), Some(true));
        assert_eq!(of(2, 2).has_room("n3", Family::V6), Some(true));
        let mut bare = snapshot(0, 0);
        bare.networks[0]["spec"]["subnets"] = json!({});
        let none = fullness(&bare.networks[0], &bare).unwrap();
        assert_eq!(none.has_room("n1", Family::V4), None);
    }

    #[test]
    fn shown_with_bars() {
        let snapshot = snapshot(2, 1);
        let text = show(&snapshot.networks[0], &snapshot, Screen::PIPE).unwrap();
        for words in [
            "Network a/blue: 3 of ",
            "10.1.0.0/29   3      5",
            "2 of 2, none is free",
            "0 of ~2^58",
            "n1     2      2    [####################] 100%   1",
            "10.1.0.4/30   n2     1      2    [##########..........] 50%",
            "10.1.0.1/32",
        ] {
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
        let value = to_json(&snapshot.networks[0], &snapshot).unwrap();
        assert_eq!(value["blocks"][0]["node"], "n1");
        let first = json!({"family": "IPv4", "used": 3, "capacity": 5});
        assert_eq!(value["families"][0], first, "{value:#}");
        assert_eq!(value["families"].as_array().unwrap().len(), 2);
        let mut odd = snapshot.clone();
        odd.networks[0]["spec"]["mtu"] = json!("x");
        assert!(show(&odd.networks[0], &odd, Screen::PIPE).is_err());
    }
}
