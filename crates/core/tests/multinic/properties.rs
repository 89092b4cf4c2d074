//! What holds whatever comes and goes, in whatever order.

use crate::stage::{Stage, host, nets};
use ipnet::IpNet;
use plexus_core::ipam::Pool;
use plexus_core::multinic::{Host, pool_excludes};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// What happens to a cluster of up to eight hosts with up to four NICs.
#[derive(Debug, Clone)]
enum Step {
    /// These NICs of a host are there, as bits; none: it is not.
    Host(usize, u8),
    /// A host's blocks are in use, or not any more.
    Use(usize, bool),
    /// Its nodes have closed what is retired, and opened what is not.
    Close,
    /// Its blocks are gone with it.
    Return(usize),
    /// Excludes, by number.
    Exclude(u8),
    /// Another division.
    Bits(u8, u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..8_usize, 0..32_u8).prop_map(|(host, nics)| Step::Host(host, nics)),
        2 => (0..8_usize, any::<bool>()).prop_map(|(host, used)| Step::Use(host, used)),
        2 => Just(Step::Close),
        1 => (0..8_usize).prop_map(Step::Return),
        1 => (0..4_u8).prop_map(Step::Exclude),
        1 => (0..3_u8, 1..4_u8).prop_map(|(interface, host)| Step::Bits(interface, host)),
    ];
    prop::collection::vec(step, 1..40)
}

/// The fifth NIC is a second one on the first subnet.
fn of_bits(number: usize, bits: u8) -> Host {
    let all = [
        ("eth1", 1),
        ("eth2", 2),
        ("eth3", 3),
        ("eth4", 4),
        ("eth5", 1),
    ];
    let there = all
        .iter()
        .enumerate()
        .filter(|(bit, _)| bits >> bit & 1 == 1);
    let nics: Vec<(&str, String)> = there
        .map(|(bit, (name, net))| (*name, format!("10.0.{net}.{}/24", number * 8 + bit + 1)))
        .collect();
    let nics: Vec<(&str, &str)> = nics
        .iter()
        .map(|(name, address)| (*name, address.as_str()))
        .collect();
    host(
        &format!("h{number}"),
        u32::try_from(number % 3).unwrap(),
        &nics,
    )
}

fn excludes(number: u8) -> Vec<IpNet> {
    let all = nets(&["192.168.0.0/21", "192.168.64.0/18", "192.168.96.0/30"]);
    all.into_iter().take(usize::from(number)).collect()
}

fn apply(stage: &mut Stage, hosts: &mut [Option<Host>], step: &Step) {
    let named = |number: &usize| format!("h{number}");
    match step {
        Step::Host(number, bits) => {
            let here = (*bits > 0).then(|| of_bits(*number, *bits));
            if let Some(slot) = hosts.get_mut(*number) {
                *slot = here;
            }
        }
        Step::Use(number, used) => {
            let own = stage
                .blocks
                .values_mut()
                .filter(|block| block.spec.node == named(number));
            for block in own.filter(|block| !block.closed || !used) {
                block.allocated = u64::from(*used);
                block.untouched &= !used;
            }
        }
        Step::Close => {
            for block in stage.blocks.values_mut() {
                block.closed = block.spec.nic.as_ref().unwrap().retired;
            }
        }
        Step::Return(number) if hosts.get(*number).is_some_and(Option::is_none) => {
            stage
                .blocks
                .retain(|_, block| block.spec.node != named(number));
        }
        Step::Return(_) => {}
        Step::Exclude(number) => stage.bits.exclude = excludes(*number),
        Step::Bits(interface, host) => {
            (stage.bits.interface, stage.bits.host) = (*interface, *host);
        }
    }
}

fn check(stage: &Stage, hosts: &[Host]) {
    let all: Vec<_> = stage.blocks.values().collect();
    for (i, one) in all.iter().enumerate() {
        for other in all.iter().skip(i + 1) {
            let (a, b) = (one.spec.cidr, other.spec.cidr);
            assert!(!a.contains(&b) && !b.contains(&a), "{a} and {b}");
        }
    }
    let live: Vec<_> = all
        .iter()
        .filter(|block| !block.spec.nic.as_ref().unwrap().retired)
        .collect();
    let mut ports = BTreeSet::new();
    let mut slots = BTreeSet::new();
    for block in &live {
        let nic = block.spec.nic.as_ref().unwrap();
        let known = hosts.iter().any(|host| host.name == block.spec.node);
        assert!(
            !known || !plexus_core::multinic::is_skipped(&block.spec.cidr, &stage.bits.exclude),
            "{:?}",
            block.spec
        );
        if known {
            assert!(
                ports.insert((&block.spec.node, &nic.interface)),
                "two blocks: {:?}",
                block.spec
            );
        }
        if known {
            let slot = (nic.interface_index, nic.host_index);
            assert!(slots.insert(slot), "{:?}", block.spec);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_two_blocks_overlap_and_excludes_are_never_issued(steps in steps()) {
        let mut stage = Stage::new(
            &["192.168.0.0/16"],
            &["10.0.1.0/24", "10.0.2.0/24", "10.0.3.0/24", "10.0.4.0/24"],
            2,
            3,
        );
        let mut hosts: Vec<Option<Host>> = vec![None; 8];
        for step in &steps {
            apply(&mut stage, &mut hosts, step);
            let there: Vec<Host> = hosts.iter().flatten().cloned().collect();
            let before = stage.blocks.clone();
            let assignment = stage.go(&there);
            check(&stage, &there);
            // Whatever is in use stays.
            for (name, block) in before.iter().filter(|(_, block)| block.allocated > 0) {
                assert!(stage.blocks.contains_key(name), "{:?}", block.spec);
            }
            // Each NIC has a block, or is named.
            let nics: usize = there.iter().map(|host| host.nics.len()).sum();
            let named = assignment.left_out.len();
            assert!(assignment.blocks.len() == nics || named > 0, "{nics} NICs: {assignment:?}");
            prop_assert!(assignment.blocks.len() <= nics);
            // It comes to rest, and then nothing more is written.
            stage.settle(&there);
        }
    }

    #[test]
    fn the_order_in_which_they_are_known_does_not_matter(
        bits in prop::collection::vec(1..32_u8, 1..8),
        seed in any::<u64>(),
    ) {
        let hosts: Vec<Host> = bits.iter().enumerate().map(|(i, bits)| of_bits(i, *bits)).collect();
        let mut shuffled = hosts.clone();
        shuffled.sort_by_key(|host| {
            host.name.bytes().fold(seed, |sum, byte| sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u64::from(byte)))
        });
        for host in &mut shuffled {
            host.nics.reverse();
        }
        let mut one = Stage::seed();
        let mut other = Stage::seed();
        one.master_nets.clear();
        other.master_nets.clear();
        one.settle(&hosts);
        other.settle(&shuffled);
        prop_assert_eq!(one.rows(), other.rows());
    }

    #[test]
    fn every_usable_address_is_reachable(length in 22..31_u8, excludes in prop::collection::vec((0..1024_u32, 24..33_u8), 0..6)) {
        let block: IpNet = format!("10.0.0.0/{length}").parse().unwrap();
        let excludes: Vec<IpNet> = excludes
            .iter()
            .map(|(at, length)| IpNet::new(std::net::Ipv4Addr::from(0x0a00_0000 + at).into(), *length).unwrap().trunc())
            .filter(|one| one.prefix_len() > block.prefix_len())
            .collect();
        let mut pool = Pool::new(block, &pool_excludes(&block, &excludes), &[]);
        let usable: BTreeSet<_> = block
            .hosts()
            .filter(|address| !excludes.iter().any(|one| one.contains(address)))
            .collect();
        let mut given = BTreeSet::new();
        for i in 0..usable.len() {
            given.extend(pool.allocate(&i.to_string()));
        }
        prop_assert_eq!(given, usable);
        prop_assert_eq!(pool.allocate("one more"), None);
    }
}
