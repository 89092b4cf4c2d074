//! Choosing for several attachments at once, giving back, replaying.

use super::*;
use plexus_api::cni::{
    BlockIpam, Dns, HostLocal, Ipam, Macvlan, Native, PlexusIpam, Provider, Range,
};
use plexus_core::ipam::{Donation, NodeBlocks};
use plexus_types::Family;

fn wanted(ifname: &str, ipam: Ipam) -> NativeSpec {
    NativeSpec {
        index: 0,
        network: "blue".parse().unwrap(),
        of_object: false,
        ifname: ifname.parse().unwrap(),
        native: Native {
            provider: Provider::Macvlan(Macvlan {
                master: None,
                mode: Default::default(),
                bcqueuelen: None,
            }),
            ipam: Some(ipam),
            mac: None,
            ips: Vec::new(),
            mtu: None,
            dns: Dns::default(),
        },
        source_routing: false,
        several: false,
    }
}

fn cni_ifname() -> IfName {
    "eth0".parse().unwrap()
}

fn plexus() -> Ipam {
    Ipam::Plexus(PlexusIpam {
        subnets: vec!["10.0.0.0/29".parse().unwrap()],
        exclude: Vec::new(),
        gateway: Vec::new(),
        routes: Vec::new(),
    })
}

fn host_local(data_dir: &std::path::Path) -> Ipam {
    Ipam::HostLocal(HostLocal {
        ranges: vec![vec![Range {
            subnet: "10.1.0.0/29".parse().unwrap(),
            start: "10.1.0.1".parse().unwrap(),
            end: "10.1.0.6".parse().unwrap(),
            gateway: "10.1.0.1".parse().unwrap(),
        }]],
        routes: Vec::new(),
        data_dir: data_dir.to_owned(),
        resolv_conf: None,
    })
}

fn addresses_of(reservation: &Reservation<'_>) -> Vec<String> {
    let chosen = reservation.chosen.iter();
    chosen
        .flat_map(|(_, assigned, _)| &assigned.ips)
        .map(|ip| ip.address.addr().to_string())
        .collect()
}

#[test]
fn what_is_not_kept_is_free_again() {
    let addresses = Addresses::default();
    let (container, cni_ifname) = ("c1".parse().unwrap(), cni_ifname());
    let (a, b) = (wanted("eth0", plexus()), wanted("net1", plexus()));
    let reservation = addresses
        .choose(&[a.clone(), b.clone()], &own(), &container, &cni_ifname)
        .unwrap();
    assert_eq!(addresses_of(&reservation), ["10.0.0.2", "10.0.0.3"]);
    assert_eq!(addresses.usage()[0].2, 2);
    drop(reservation);
    assert_eq!(addresses.usage()[0].2, 0);
}

#[test]
fn all_or_none() {
    let addresses = Addresses::default();
    let (container, cni_ifname) = ("c1".parse().unwrap(), cni_ifname());
    let wanted: Vec<NativeSpec> = (0..6)
        .map(|i| wanted(&format!("net{i}"), plexus()))
        .collect();
    let error = addresses
        .choose(&wanted, &own(), &container, &cni_ifname)
        .map(drop)
        .map_err(refusal)
        .unwrap_err();
    assert!(
        error.msg.contains("net5") && error.msg.contains("10.0.0.0/29"),
        "{error}"
    );
    assert_eq!(addresses.usage()[0].2, 0);
}

#[test]
fn a_replayed_address_is_not_given_out() {
    let addresses = Addresses::default();
    addresses
        .replay("plexus: blue", "10.0.0.2".parse().unwrap(), "other/eth0")
        .unwrap();
    let (container, cni_ifname) = ("c1".parse().unwrap(), cni_ifname());
    let one = wanted("eth0", plexus());
    let reservation = addresses
        .choose(std::slice::from_ref(&one), &own(), &container, &cni_ifname)
        .unwrap();
    assert_eq!(addresses_of(&reservation), ["10.0.0.3"]);
    assert!(
        addresses
            .replay("nonsense", "10.0.0.4".parse().unwrap(), "x")
            .is_err()
    );
}

#[test]
fn host_local_is_written_only_when_told_to() {
    let directory = std::env::temp_dir().join(format!("plexus-choose-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let addresses = Addresses::default();
    let (container, cni_ifname) = ("c1".parse().unwrap(), cni_ifname());
    let (a, b) = (
        wanted("eth0", host_local(&directory)),
        wanted("net1", host_local(&directory)),
    );
    let mut reservation = addresses
        .choose(&[a.clone(), b.clone()], &own(), &container, &cni_ifname)
        .unwrap();
    assert_eq!(addresses_of(&reservation), ["10.1.0.2", "10.1.0.3"]);
    assert!(!directory.join("blue/10.1.0.2").exists());
    reservation.write().unwrap();
    for name in ["10.1.0.2", "10.1.0.3"] {
        assert!(directory.join("blue").join(name).exists());
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn one_directory_by_two_names_is_locked_once() {
    let directory = std::env::temp_dir().join(format!("plexus-twice-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(directory.join("real")).unwrap();
    std::os::unix::fs::symlink("real", directory.join("name")).unwrap();
    let addresses = Addresses::default();
    let (container, cni_ifname) = ("c1".parse().unwrap(), cni_ifname());
    let (a, b) = (
        wanted("eth0", host_local(&directory.join("real"))),
        wanted("net1", host_local(&directory.join("name"))),
    );
    let begun = std::time::Instant::now();
    let mut reservation = addresses
        .choose(&[a.clone(), b.clone()], &own(), &container, &cni_ifname)
        .unwrap();
    assert!(begun.elapsed().as_secs() < 5, "it waited for itself");
    assert_eq!(addresses_of(&reservation), ["10.1.0.2", "10.1.0.3"]);
    reservation.write().unwrap();
    for name in ["10.1.0.2", "10.1.0.3"] {
        assert!(directory.join("real/blue").join(name).exists());
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_directory_that_stays_locked_is_named() {
    let directory = std::env::temp_dir().join(format!("plexus-kept-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let held = host_local::lock_all([directory.join("blue")].into()).unwrap();
    let addresses = Addresses::default();
    let (container, cni_ifname) = ("c1".parse().unwrap(), cni_ifname());
    let one = wanted("eth0", host_local(&directory));
    let error = addresses
        .choose(std::slice::from_ref(&one), &own(), &container, &cni_ifname)
        .map(drop)
        .map_err(refusal)
        .unwrap_err();
    assert_eq!(error.code, Code::TryAgainLater);
    assert!(error.msg.contains(directory.to_str().unwrap()), "{error}");
    drop(held);
    drop(
        addresses
            .choose(std::slice::from_ref(&one), &own(), &container, &cni_ifname)
            .unwrap(),
    );
    std::fs::remove_dir_all(directory).unwrap();
}

fn refusal(why: NotChosen) -> Error {
    match why {
        NotChosen::Refused(_, error) => error,
        NotChosen::NeedsBlock(needs) => needs.error,
    }
}

fn block_of(uid: &str) -> BlockIpam {
    use plexus_api::cni::BlockSubnet;
    BlockIpam {
        uid: uid.to_owned(),
        subnets: vec![BlockSubnet {
            cidr: "10.0.0.0/24".parse().unwrap(),
            gateway: "10.0.0.254".parse().ok(),
            exclude: Vec::new(),
            block_length: Some(30),
        }],
        routes: Vec::new(),
        assigned: false,
    }
}

/// What of it is this node's.
fn own() -> NodeBlocks {
    NodeBlocks {
        own: vec!["10.0.0.4/30".parse().unwrap()],
        donated: Vec::new(),
    }
}

#[test]
fn of_networks_that_are_gone_only_what_is_held_is_kept() {
    let addresses = Addresses::default();
    let container = "c1".parse().unwrap();
    let ifname = cni_ifname();
    let wanted = ["held", "gone", "there"].map(|uid| [wanted("eth0", Ipam::Blocks(block_of(uid)))]);
    let [held, gone, there] = wanted
        .each_ref()
        .map(|one| addresses.choose(one, &own(), &container, &ifname).unwrap());
    let pool = addresses.choose(
        &[self::wanted("eth0", plexus())],
        &own(),
        &container,
        &ifname,
    );
    drop((gone, there, pool.unwrap()));
    assert_eq!(addresses.usage().len(), 4);
    let all_but = BTreeSet::from(["there".to_owned()]);
    addresses.forget_all_but(&all_but);
    assert_eq!(addresses.usage().len(), 3);
    drop(held);
    addresses.forget_all_but(&all_but);
    // The other kind of pool belongs to no object that could be gone.
    assert_eq!(addresses.usage().len(), 2);
}

#[test]
fn what_an_add_has_chosen_is_not_given_and_what_is_given_is_not_chosen() {
    let blocks = block_of("u");
    let (container, cni_ifname) = ("c1".parse().unwrap(), cni_ifname());
    let want = |ifname: &str| wanted(ifname, Ipam::Blocks(blocks.clone()));
    let addresses = Addresses::default();
    // Not journaled yet: an ADD on its way.
    let first = [want("eth0")];
    let reservation = addresses
        .choose(&first, &own(), &container, &cni_ifname)
        .unwrap();
    assert_eq!(addresses_of(&reservation), ["10.0.0.4"]);
    let donate = |addresses: &Addresses| {
        addresses
            .pools()
            .donate(&blocks, &own(), Family::V4, 8, "n2")
    };
    let donations: Vec<Donation> = std::iter::from_fn(|| donate(&addresses)).collect();
    let parts: Vec<String> = donations.iter().map(|one| one.part.to_string()).collect();
    assert_eq!(parts, ["10.0.0.5/32", "10.0.0.6/32", "10.0.0.7/32"]);
    let second = [want("net1")];
    let full = addresses.choose(&second, &own(), &container, &cni_ifname);
    assert!(matches!(full, Err(NotChosen::NeedsBlock(_))));
    drop(full);
    drop(reservation);

    // After a restart, by the journal alone.
    let addresses = Addresses::default();
    addresses.pools().mark_donated(&donations[0]);
    addresses.pools().mark_donated(&donations[2]);
    let two = [want("eth0"), want("net1")];
    let reservation = addresses
        .choose(&two, &own(), &container, &cni_ifname)
        .unwrap();
    assert_eq!(addresses_of(&reservation), ["10.0.0.4", "10.0.0.6"]);
    assert_eq!(donate(&addresses), None);
}

/// A node that claims blocks.
struct Claimed(std::cell::RefCell<NodeBlocks>);

impl BlockSource for Claimed {
    fn blocks(&self, network_uid: &str) -> NodeBlocks {
        assert_eq!(network_uid, "u");
        self.0.borrow().clone()
    }
}

#[test]
fn blocks_are_asked_for_at_each_choice_and_not_kept() {
    let addresses = Addresses::default();
    let (container, cni_ifname) = ("c1".parse().unwrap(), cni_ifname());
    let node = Claimed(Default::default());
    let specs = ["eth0", "net1"].map(|ifname| wanted(ifname, Ipam::Blocks(block_of("u"))));
    let choose = || addresses.choose(&specs, &node, &container, &cni_ifname);
    let Err(NotChosen::NeedsBlock(needs)) = choose() else {
        panic!("there is no block");
    };
    assert_eq!((needs.number, needs.have.len()), (0, 0));
    let single: IpNet = "10.0.0.8/32".parse().unwrap();
    node.0.borrow_mut().own.push(single);
    let Err(NotChosen::NeedsBlock(needs)) = choose() else {
        panic!("there is one address");
    };
    assert_eq!((needs.number, needs.have), (1, vec![single]));
    node.0.borrow_mut().own.push("10.0.0.4/30".parse().unwrap());
    node.0
        .borrow_mut()
        .donated
        .push("10.0.0.4/31".parse().unwrap());
    let reservation = choose().unwrap();
    assert_eq!(addresses_of(&reservation), ["10.0.0.8", "10.0.0.6"]);
    drop(reservation);
    // A block that was lost is not handed out from again.
    node.0.borrow_mut().own.pop();
    let one = addresses.choose(&specs[..1], &node, &container, &cni_ifname);
    assert_eq!(addresses_of(&one.unwrap()), ["10.0.0.8"]);
}
