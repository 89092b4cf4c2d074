//! IPAM `plexus` over several subnets and changing configurations, and host-local's order.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]

use plexus_api::cni::{Ipam, PlexusIpam, Range};
use plexus_core::ipam::host_local::{HostLocalError, next, share_out};
use plexus_core::ipam::{PoolKey, Pools};
use plexus_core::refusal::Refusal as _;
use plexus_types::{NetworkName, chain};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::IpAddr;

fn config(subnets: &[&str], exclude: &[&str], gateway: &[&str]) -> PlexusIpam {
    PlexusIpam {
        subnets: subnets.iter().map(|text| text.parse().unwrap()).collect(),
        exclude: exclude.iter().map(|text| text.parse().unwrap()).collect(),
        gateway: gateway.iter().map(|text| text.parse().unwrap()).collect(),
        routes: vec![],
    }
}

fn key(network: &str) -> PoolKey {
    let network = NetworkName::new(network).unwrap();
    PoolKey::of(&Ipam::Plexus(config(&[], &[], &[])), &network, false).unwrap()
}

fn get(pools: &mut Pools, config: &PlexusIpam, owner: &str) -> Result<Vec<String>, String> {
    ask(pools, config, &[], owner)
}

fn ask(
    pools: &mut Pools,
    config: &PlexusIpam,
    requested: &[(&str, Option<u8>)],
    owner: &str,
) -> Result<Vec<String>, String> {
    let requested: Vec<(IpAddr, Option<u8>)> = requested
        .iter()
        .map(|(text, prefix)| (text.parse().unwrap(), *prefix))
        .collect();
    let assigned = pools.allocate(&key("blue"), config, &requested, owner);
    let assigned = assigned.map_err(|error| format!("{}; {}", chain(&error), error.remedy()))?;
    Ok(assigned
        .ips
        .iter()
        .map(|ip| format!("{} via {:?}", ip.address, ip.gateway))
        .collect())
}

#[test]
fn one_address_per_family_from_the_first_subnet_with_room() {
    let mut pools = Pools::default();
    let config = config(
        &["10.0.0.0/30", "fd00::/64", "10.0.1.0/24"],
        &[],
        &["10.0.1.9"],
    );
    let first = get(&mut pools, &config, "a").unwrap();
    assert_eq!(
        first,
        [
            "10.0.0.2/30 via Some(10.0.0.1)",
            "fd00::2/64 via Some(fd00::1)"
        ]
    );
    assert_eq!(
        get(&mut pools, &config, "a").unwrap(),
        first,
        "the same owner, the same answer"
    );
    let second = get(&mut pools, &config, "b").unwrap();
    assert_eq!(
        second,
        [
            "10.0.1.1/24 via Some(10.0.1.9)",
            "fd00::3/64 via Some(fd00::1)"
        ]
    );
    pools.release(&key("blue"), "a");
    assert_eq!(
        get(&mut pools, &config, "b").unwrap(),
        second,
        "stays where it is"
    );
}

#[test]
fn a_failure_changes_nothing() {
    let mut pools = Pools::default();
    let config = config(&["10.0.0.0/24", "fd00::/127"], &[], &[]);
    get(&mut pools, &config, "a").unwrap();
    let before: Vec<_> = pools
        .held()
        .map(|(_, address, owner)| (address, owner.to_owned()))
        .collect();
    let error = get(&mut pools, &config, "b").unwrap_err();
    assert_eq!(
        error,
        "network blue has no free IPv6 address: subnet fd00::/127 is full, all 1 of its usable addresses are in use; remove containers that no longer need theirs, or add a subnet to `ipam.subnets`"
    );
    let after: Vec<_> = pools
        .held()
        .map(|(_, address, owner)| (address, owner.to_owned()))
        .collect();
    assert_eq!(before, after);
}

#[test]
fn requests_are_taken_or_refused() {
    let mut pools = Pools::default();
    let config = config(&["10.0.0.0/24", "fd00::/64"], &["10.0.0.128/25"], &[]);
    let got = ask(&mut pools, &config, &[("10.0.0.9", Some(24))], "a").unwrap();
    assert_eq!(
        got,
        [
            "10.0.0.9/24 via Some(10.0.0.1)",
            "fd00::2/64 via Some(fd00::1)"
        ]
    );
    let again = ask(&mut pools, &config, &[("10.0.0.9", None)], "a").unwrap();
    assert_eq!(again, got);
    for (requested, text) in [
        (vec![("10.0.0.9", None)], "in use by a"),
        (vec![("10.0.0.129", None)], "excluded by 10.0.0.128/25"),
        (
            vec![("10.0.0.1", None)],
            "is the gateway of subnet 10.0.0.0/24",
        ),
        (
            vec![("10.1.0.1", None)],
            "outside of its subnets 10.0.0.0/24, fd00::/64",
        ),
        (
            vec![("10.0.0.10", Some(16))],
            "10.0.0.10/16 has another prefix length",
        ),
        (
            vec![("10.0.0.10", None), ("10.0.0.11", None)],
            "two IPv4 addresses are requested",
        ),
    ] {
        let error = ask(&mut pools, &config, &requested, "b").unwrap_err();
        assert!(
            error.contains(text) && error.contains("network blue"),
            "{error}"
        );
        assert!(pools.held().all(|(_, _, owner)| owner == "a"));
    }
}

#[test]
fn what_is_replayed_is_not_handed_out_whatever_the_configuration_has_become() {
    let mut pools = Pools::default();
    let blue = key("blue");
    pools
        .reserve(&blue, "10.0.0.2".parse().unwrap(), "old")
        .unwrap();
    pools
        .reserve(&blue, "10.0.0.3".parse().unwrap(), "old")
        .unwrap();
    pools
        .reserve(&blue, "10.0.0.2".parse().unwrap(), "old")
        .unwrap();
    assert!(
        pools
            .reserve(&blue, "10.0.0.2".parse().unwrap(), "other")
            .is_err()
    );
    let small = config(&["10.0.0.0/24"], &[], &[]);
    let wide = config(&["10.0.0.0/16"], &["10.0.0.128/25"], &["10.0.0.9"]);
    assert_eq!(
        get(&mut pools, &small, "a").unwrap(),
        ["10.0.0.4/24 via Some(10.0.0.1)"]
    );
    let mut seen = BTreeSet::from(["10.0.0.2", "10.0.0.3", "10.0.0.4"].map(str::to_owned));
    for i in 0..50 {
        let config = if i % 2 == 0 { &wide } else { &small };
        let got = get(&mut pools, config, &i.to_string()).unwrap().remove(0);
        let address = got.split('/').next().unwrap().to_owned();
        assert!(seen.insert(address.clone()), "{address} twice");
    }
    assert_eq!(pools.release(&blue, "old").len(), 2);
    assert_eq!(pools.release(&blue, "old").len(), 0);
    let freed: IpAddr = "10.0.0.2".parse().unwrap();
    let mut held = pools.held();
    assert!(!held.any(|(key, address, _)| (key, address) == (&blue, freed)));
}

#[test]
fn networks_are_independent() {
    let mut pools = Pools::default();
    let config = config(&["10.0.0.0/24"], &[], &[]);
    let green = pools.allocate(&key("green"), &config, &[], "a").unwrap();
    let blue = pools.allocate(&key("blue"), &config, &[], "a").unwrap();
    assert_eq!(green, blue);
}

#[test]
fn a_subnet_of_one_address_has_no_gateway() {
    let mut pools = Pools::default();
    let config = config(&["10.0.0.7/32"], &[], &[]);
    assert_eq!(
        get(&mut pools, &config, "a").unwrap(),
        ["10.0.0.7/32 via None"]
    );
}

fn range(subnet: &str, start: &str, end: &str, gateway: &str) -> Range {
    Range {
        subnet: subnet.parse().unwrap(),
        start: start.parse().unwrap(),
        end: end.parse().unwrap(),
        gateway: gateway.parse().unwrap(),
    }
}

/// Takes addresses as files would be made: each once.
fn pick(
    set: &[Range],
    last: &mut Option<IpAddr>,
    taken: &mut BTreeSet<IpAddr>,
) -> Result<String, String> {
    let mut reserve = |address| Ok::<bool, Infallible>(taken.insert(address));
    let picked = next(set, *last, None, &mut reserve).map_err(|error| error.to_string())?;
    *last = Some(picked.address.addr());
    Ok(picked.address.to_string())
}

/// Seen with the reference plugin: .2 to .6, then .4 and .2 freed, then .2, then .4.
#[test]
fn host_local_goes_round() {
    let set = [range("10.0.0.0/29", "10.0.0.1", "10.0.0.6", "10.0.0.1")];
    let (mut last, mut taken) = (None, BTreeSet::new());
    for expected in [
        "10.0.0.2/29",
        "10.0.0.3/29",
        "10.0.0.4/29",
        "10.0.0.5/29",
        "10.0.0.6/29",
    ] {
        assert_eq!(pick(&set, &mut last, &mut taken).unwrap(), expected);
    }
    let error = pick(&set, &mut last, &mut taken).unwrap_err();
    assert_eq!(
        error,
        "no IP addresses available in range set: 10.0.0.1-10.0.0.6"
    );
    taken.remove(&"10.0.0.4".parse().unwrap());
    taken.remove(&"10.0.0.2".parse().unwrap());
    assert_eq!(pick(&set, &mut last, &mut taken).unwrap(), "10.0.0.2/29");
    assert_eq!(pick(&set, &mut last, &mut taken).unwrap(), "10.0.0.4/29");
    assert!(pick(&set, &mut last, &mut taken).is_err());
}

#[test]
fn host_local_goes_from_range_to_range_and_back() {
    let set = [
        range("10.0.0.0/24", "10.0.0.5", "10.0.0.6", "10.0.0.1"),
        range("10.0.1.0/24", "10.0.1.1", "10.0.1.2", "10.0.1.1"),
    ];
    let (mut last, mut taken) = (Some("10.0.0.6".parse().unwrap()), BTreeSet::new());
    for expected in ["10.0.1.2/24", "10.0.0.5/24", "10.0.0.6/24"] {
        assert_eq!(pick(&set, &mut last, &mut taken).unwrap(), expected);
    }
    assert!(pick(&set, &mut last, &mut taken).is_err());
    let (mut last, mut taken) = (Some("192.168.0.1".parse().unwrap()), BTreeSet::new());
    assert_eq!(
        pick(&set, &mut last, &mut taken).unwrap(),
        "10.0.0.5/24",
        "a stranger is ignored"
    );
}

#[test]
fn host_local_stops_where_there_is_nothing_to_find() {
    let only_gateway = [range("10.0.0.0/24", "10.0.0.1", "10.0.0.1", "10.0.0.1")];
    let mut never = |_| Ok::<bool, Infallible>(false);
    assert!(matches!(
        next(&only_gateway, None, None, &mut never),
        Err(HostLocalError::Full { .. })
    ));
    assert!(matches!(
        next(&[], None, None, &mut never),
        Err(HostLocalError::Full { .. })
    ));
    let end = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
    let huge = [range("::/0", "::1", end, "::1")];
    let mut tries = 0;
    let mut count = |_| {
        tries += 1;
        Ok::<bool, Infallible>(false)
    };
    assert!(matches!(
        next(&huge, None, None, &mut count),
        Err(HostLocalError::TooMany { .. })
    ));
    assert!(tries <= 1 << 20);
    let mut last = [range("::/0", end, end, "::1")];
    last[0].subnet = "::/0".parse().unwrap();
    assert!(matches!(
        next(&last, None, None, &mut never),
        Err(HostLocalError::Full { .. })
    ));
}

#[test]
fn host_local_requests() {
    let sets = vec![
        vec![range("10.0.0.0/24", "10.0.0.1", "10.0.0.254", "10.0.0.1")],
        vec![range("fd00::/64", "fd00::1", "fd00::ff", "fd00::1")],
    ];
    let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
    let shares = share_out::<Infallible>(&sets, &[ip("fd00::9"), ip("10.0.0.9")]).unwrap();
    assert_eq!(shares, [Some(ip("10.0.0.9")), Some(ip("fd00::9"))]);
    let left = share_out::<Infallible>(&sets, &[ip("10.0.0.9"), ip("10.0.0.10")]).unwrap_err();
    assert_eq!(
        left.to_string(),
        "failed to allocate all requested IPs: 10.0.0.10"
    );
    let mut yes = |_| Ok::<bool, Infallible>(true);
    let mut no = |_| Ok::<bool, Infallible>(false);
    let picked = next(&sets[0], None, Some(ip("10.0.0.9")), &mut yes).unwrap();
    assert_eq!(picked.address.to_string(), "10.0.0.9/24");
    for (address, reserve, text) in [
        (
            "10.0.0.1",
            &mut yes as &mut dyn FnMut(IpAddr) -> Result<bool, Infallible>,
            "requested ip 10.0.0.1 is subnet's gateway",
        ),
        (
            "10.0.0.9",
            &mut no,
            "requested IP address 10.0.0.9 is not available in range set 10.0.0.1-10.0.0.254",
        ),
    ] {
        let error = next(&sets[0], None, Some(ip(address)), reserve).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
}
