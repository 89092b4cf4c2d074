//! The pool against a model that is too simple to be wrong: a list of free addresses.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]

use ipnet::IpNet;
use plexus_core::ipam::{Pool, PoolError, address_at, index_of};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

#[derive(Debug, Clone)]
enum Operation {
    Allocate(u8),
    AllocateSpecific(u8, u128),
    Reserve(u8, u128),
    Release(u8),
}

/// What a pool must do, written down naively: every address of the window is looked at.
struct Model {
    subnet: IpNet,
    usable: BTreeSet<u128>,
    owners: BTreeMap<u128, String>,
    cursor: u128,
    last: u128,
}

impl Model {
    fn new(subnet: IpNet, excludes: &[IpNet], gateway: Option<IpAddr>, window: u128) -> Self {
        let addresses = (0..).map_while(|index| Some((index, address_at(&subnet, index)?)));
        let last = match address_at(&subnet, window) {
            Some(_) => window,
            None => {
                addresses
                    .clone()
                    .take_while(|(index, _)| *index < window)
                    .count() as u128
                    - 1
            }
        };
        let is_last = |index: u128| address_at(&subnet, index + 1).is_none();
        let small = address_at(&subnet, 2).is_none();
        let usable = addresses
            .take_while(|(index, _)| *index <= last)
            .filter(|(index, _)| small || *index != 0)
            .filter(|(index, _)| small || subnet.addr().is_ipv6() || !is_last(*index))
            .filter(|(_, address)| !excludes.iter().any(|exclude| exclude.contains(address)))
            .filter(|(_, address)| Some(*address) != gateway)
            .map(|(index, _)| index)
            .collect();
        Self {
            subnet,
            usable,
            owners: BTreeMap::new(),
            cursor: 0,
            last,
        }
    }

    fn of(&self, owner: &str) -> Option<u128> {
        self.owners
            .iter()
            .find(|(_, other)| *other == owner)
            .map(|(index, _)| *index)
    }

    fn allocate(&mut self, owner: &str) -> Option<u128> {
        if let Some(index) = self.of(owner) {
            return Some(index);
        }
        let mut free = self
            .usable
            .iter()
            .filter(|index| !self.owners.contains_key(index));
        let first = free.clone().next().copied();
        let index = free
            .find(|index| **index >= self.cursor)
            .copied()
            .or(first)?;
        self.owners.insert(index, owner.to_owned());
        self.cursor = index + 1;
        Some(index)
    }

    fn allocate_specific(&mut self, index: u128, owner: &str) -> bool {
        match (self.owners.get(&index), self.of(owner)) {
            (Some(other), _) => other == owner,
            (None, Some(_)) => false,
            (None, None) if self.usable.contains(&index) => {
                self.owners.insert(index, owner.to_owned());
                true
            }
            (None, None) => false,
        }
    }

    fn reserve(&mut self, index: u128, owner: &str) -> bool {
        let other = self.owners.entry(index).or_insert_with(|| owner.to_owned());
        other == owner
    }

    fn release(&mut self, owner: &str) -> Vec<IpAddr> {
        let gone: Vec<u128> = self
            .owners
            .iter()
            .filter(|(_, other)| *other == owner)
            .map(|(index, _)| *index)
            .collect();
        self.owners.retain(|_, other| other != owner);
        gone.into_iter()
            .filter_map(|index| address_at(&self.subnet, index))
            .collect()
    }
}

fn operations(window: u128) -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        4 => (0..40_u8).prop_map(Operation::Allocate),
        2 => (0..40_u8, 0..window).prop_map(|(owner, index)| Operation::AllocateSpecific(owner, index)),
        1 => (0..40_u8, 0..window).prop_map(|(owner, index)| Operation::Reserve(owner, index)),
        3 => (0..40_u8).prop_map(Operation::Release),
    ];
    proptest::collection::vec(operation, 1..200)
}

fn subnets() -> impl Strategy<Value = IpNet> {
    let texts = [
        "10.0.0.0/24",
        "10.0.0.16/28",
        "10.0.0.4/30",
        "10.0.0.0/31",
        "10.0.0.7/32",
        "0.0.0.0/0",
        "10.0.0.0/8",
        "255.255.255.0/24",
        "fd00::/64",
        "fd00::/120",
        "fd00::/126",
        "fd00::/127",
        "fd00::/128",
        "::/0",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00/120",
    ];
    proptest::sample::select(texts.to_vec()).prop_map(|text| text.parse().unwrap())
}

fn case() -> impl Strategy<Value = (IpNet, Vec<IpNet>, Option<IpAddr>, Vec<Operation>)> {
    subnets().prop_flat_map(|subnet| {
        let exclude = (0..64_u128, 0..6_u8).prop_filter_map("outside", move |(index, bits)| {
            let address = address_at(&subnet, index)?;
            Some(
                IpNet::new(address, subnet.max_prefix_len() - bits)
                    .unwrap()
                    .trunc(),
            )
        });
        let excludes = match subnet.max_prefix_len() - subnet.prefix_len() {
            0..=2 => proptest::collection::vec(exclude, 0..1).boxed(),
            _ => proptest::collection::vec(exclude, 0..4).boxed(),
        };
        let gateway = proptest::option::of(0..8_u128)
            .prop_map(move |index| index.and_then(|index| address_at(&subnet, index)));
        (Just(subnet), excludes, gateway, operations(300))
    })
}

fn check_against(pool: &mut Pool, model: &mut Model, operation: &Operation) {
    let subnet = model.subnet;
    let specific = |index: u128| {
        let name_of = |owner: &u8| format!("owner {owner}");
        (address_at(&subnet, index), name_of)
    };
    match operation {
        Operation::Allocate(owner) => {
            let owner = format!("owner {owner}");
            // A model of a window cannot tell what lies behind it.
            let expected = model.allocate(&owner);
            match (pool.allocate(&owner), expected) {
                (Some(address), Some(index)) => assert_eq!(index_of(&subnet, address), Some(index)),
                (None, None) => {}
                (got, expected) => panic!("{got:?} instead of {expected:?}"),
            }
        }
        Operation::AllocateSpecific(owner, index) => {
            let (Some(address), name) = specific(*index) else {
                return;
            };
            let expected = *index <= model.last && model.allocate_specific(*index, &name(owner));
            let got = pool.allocate_specific(address, &name(owner));
            assert_eq!(got.is_ok(), expected, "{address} {got:?}");
        }
        Operation::Reserve(owner, index) => {
            let (Some(address), name) = specific(*index) else {
                return;
            };
            let got = pool.reserve(address, &name(owner));
            assert_eq!(
                got.is_ok(),
                model.reserve(*index, &name(owner)),
                "{address} {got:?}"
            );
        }
        Operation::Release(owner) => {
            let owner = format!("owner {owner}");
            assert_eq!(pool.release(&owner), model.release(&owner));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_pool_does_what_the_model_does((subnet, excludes, gateway, operations) in case()) {
        let gateways: Vec<IpAddr> = gateway.into_iter().collect();
        let mut pool = Pool::new(subnet, &excludes, &gateways);
        let mut model = Model::new(subnet, &excludes, gateway, 600);
        for operation in &operations {
            check_against(&mut pool, &mut model, operation);
            let used = model.owners.keys().filter(|index| model.usable.contains(index)).count();
            prop_assert_eq!(pool.used(), used as u128);
            prop_assert!(pool.used() <= pool.capacity());
        }
    }

    #[test]
    fn every_usable_address_is_issued_exactly_once(
        bits in 0..=8_u8,
        v6 in any::<bool>(),
        holes in proptest::collection::vec((0..256_u128, 0..4_u8), 0..5),
        start in 0..256_usize,
    ) {
        let base: IpAddr = if v6 { "fd00::".parse().unwrap() } else { "10.0.0.0".parse().unwrap() };
        let full = if v6 { 128 } else { 32 };
        let subnet = IpNet::new(base, full - bits).unwrap();
        let excludes: Vec<IpNet> = holes
            .iter()
            .filter_map(|(index, bits)| Some((address_at(&subnet, *index)?, bits)))
            .map(|(address, bits)| IpNet::new(address, full - bits).unwrap().trunc())
            .collect();
        let mut pool = Pool::new(subnet, &excludes, &[]);
        // Not from the start: the cursor has gone round before.
        for _ in 0..start {
            let _ = pool.allocate("passing");
            pool.release("passing");
        }
        let mut seen = BTreeSet::new();
        for i in 0..pool.capacity() {
            let address = pool.allocate(&i.to_string()).unwrap();
            prop_assert!(seen.insert(address), "{} twice", address);
            prop_assert!(!excludes.iter().any(|exclude| exclude.contains(&address)));
        }
        prop_assert!(pool.allocate("one more").is_none());
        prop_assert_eq!(pool.used(), pool.capacity());
        for i in 0..pool.capacity() {
            prop_assert_eq!(pool.release(&i.to_string()).len(), 1);
        }
        prop_assert_eq!(pool.used(), 0);
    }
}

#[test]
fn a_freed_address_rests() {
    let mut pool = Pool::new("10.0.0.0/29".parse().unwrap(), &[], &[]);
    let first = pool.allocate("a").unwrap();
    pool.release("a");
    for i in 0..5 {
        assert_ne!(pool.allocate(&i.to_string()).unwrap(), first);
    }
    assert_eq!(pool.allocate("again").unwrap(), first);
}

#[test]
fn refusals_say_why() {
    let exclude = ["10.0.0.64/26".parse().unwrap()];
    let gateway = ["10.0.0.1".parse().unwrap()];
    let mut pool = Pool::new("10.0.0.0/24".parse().unwrap(), &exclude, &gateway);
    pool.allocate_specific("10.0.0.9".parse().unwrap(), "pod a eth0")
        .unwrap();
    for (address, text) in [
        (
            "10.0.0.9",
            "address 10.0.0.9 of subnet 10.0.0.0/24 is in use by pod a eth0",
        ),
        (
            "10.0.0.70",
            "address 10.0.0.70 of subnet 10.0.0.0/24 is excluded by 10.0.0.64/26",
        ),
        (
            "10.0.1.1",
            "address 10.0.1.1 is outside of subnet 10.0.0.0/24",
        ),
        (
            "fd00::1",
            "address fd00::1 is outside of subnet 10.0.0.0/24",
        ),
        (
            "10.0.0.1",
            "address 10.0.0.1 is the gateway of subnet 10.0.0.0/24",
        ),
        (
            "10.0.0.255",
            "address 10.0.0.255 is the broadcast address of subnet 10.0.0.0/24, which no interface can have",
        ),
    ] {
        let error = pool
            .allocate_specific(address.parse().unwrap(), "pod b")
            .unwrap_err();
        assert_eq!(error.to_string(), text);
    }
    let error = pool
        .allocate_specific("10.0.0.10".parse().unwrap(), "pod a eth0")
        .unwrap_err();
    assert!(matches!(error, PoolError::HasAnother { .. }), "{error}");
}

#[test]
fn an_excluded_address_that_is_held_stays_excluded_when_it_is_freed() {
    let exclude = ["10.0.0.2/32".parse().unwrap()];
    let mut pool = Pool::new("10.0.0.0/30".parse().unwrap(), &exclude, &[]);
    pool.reserve("10.0.0.2".parse().unwrap(), "old").unwrap();
    assert_eq!((pool.capacity(), pool.used()), (1, 0));
    pool.release("old");
    assert_eq!(pool.allocate("a").unwrap().to_string(), "10.0.0.1");
    assert!(pool.allocate("b").is_none());
}

#[test]
fn a_huge_subnet_costs_no_more_than_a_small_one() {
    let mut pool = Pool::new(
        "fd00::/64".parse().unwrap(),
        &["fd00::/65".parse().unwrap()],
        &[],
    );
    for i in 0..10_000 {
        pool.allocate(&i.to_string()).unwrap();
    }
    assert_eq!(
        pool.address_of("9999").unwrap().to_string(),
        "fd00::8000:0:0:270f"
    );
}
