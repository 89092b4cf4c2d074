//! Which NIC of which host has which block, as hosts and NICs come, change and go.

use crate::stage::{Stage, host, net, nets};
use plexus_core::multinic::{Host, LeftOut};
use plexus_types::Family;

fn two(name: &str, created: u32, last: u8) -> Host {
    let (a, b) = (format!("10.0.1.{last}/24"), format!("10.0.2.{last}/24"));
    host(name, created, &[("eth1", &a), ("eth2", &b)])
}

#[test]
fn the_seeds_four_cidrs() {
    let mut stage = Stage::seed();
    let assignment = stage.settle(&[two("host2", 2, 2), two("host1", 1, 1)]);
    assert_eq!(
        stage.rows(),
        [
            "host1 eth1 192.168.0.0/24 0/0",
            "host1 eth2 192.168.64.0/24 1/0",
            "host2 eth1 192.168.1.0/24 0/1",
            "host2 eth2 192.168.65.0/24 1/1",
        ]
    );
    assert!(assignment.left_out.is_empty());
    let via = |host, nic| {
        stage
            .clone()
            .block(host, nic)
            .spec
            .nic
            .clone()
            .unwrap()
            .via
            .unwrap()
            .to_string()
    };
    assert_eq!(
        (via("host2", "eth1").as_str(), via("host2", "eth2").as_str()),
        ("10.0.1.2", "10.0.2.2")
    );
}

#[test]
fn hosts_come_by_creation_then_by_name() {
    let mut stage = Stage::seed();
    stage.go(&[two("b", 1, 1), two("c", 0, 2), two("a", 1, 3)]);
    let index = |host: &str| {
        stage
            .clone()
            .block(host, "eth1")
            .spec
            .nic
            .as_ref()
            .unwrap()
            .host_index
    };
    assert_eq!(["c", "a", "b"].map(index), [0, 1, 2]);
}

#[test]
fn who_is_there_stays_where_it_is() {
    let mut stage = Stage::seed();
    stage.settle(&[two("b", 5, 1)]);
    let before = stage.rows();
    // Older hosts, and more subnets in front.
    stage.master_nets = nets(&["10.0.9.0/24", "10.0.1.0/24", "10.0.2.0/24"]);
    stage.settle(&[two("a", 0, 2), two("b", 5, 1)]);
    for one in before {
        assert!(stage.rows().contains(&one), "{one}: {:?}", stage.rows());
    }
    assert!(
        stage
            .settle(&[two("b", 5, 1), two("a", 0, 2)])
            .changes
            .is_empty()
    );
    // A subnet that has no NIC yet has its index.
    let third = host("c", 9, &[("x", "10.0.9.3/24")]);
    stage.settle(&[two("a", 0, 2), two("b", 5, 1), third]);
    assert!(
        stage
            .rows()
            .contains(&"c x 192.168.128.0/24 2/0".to_owned()),
        "{:?}",
        stage.rows()
    );
}

#[test]
fn a_subnet_without_nics_keeps_its_place_in_the_list() {
    let mut stage = Stage::seed();
    stage.settle(&[host("a", 0, &[("eth2", "10.0.2.1/24")])]);
    assert_eq!(stage.rows(), ["a eth2 192.168.64.0/24 1/0"]);
    stage.settle(&[two("a", 0, 1)]);
    assert_eq!(
        stage.rows(),
        ["a eth1 192.168.0.0/24 0/0", "a eth2 192.168.64.0/24 1/0"]
    );
}

#[test]
fn a_renamed_nic_and_a_new_address_keep_the_block() {
    let mut stage = Stage::seed();
    stage.settle(&[two("a", 0, 1)]);
    stage.block("a", "eth1").allocated = 7;
    let changed = host("a", 0, &[("ens5", "10.0.1.77/24"), ("eth2", "10.0.2.1/24")]);
    stage.settle(&[changed]);
    assert_eq!(
        stage.rows(),
        ["a ens5 192.168.0.0/24 0/0", "a eth2 192.168.64.0/24 1/0"]
    );
    let via = stage.block("a", "ens5").spec.nic.clone().unwrap().via;
    assert_eq!(via, Some("10.0.1.77".parse().unwrap()));
}

#[test]
fn a_nic_that_is_gone_leaves_its_block_once_that_is_empty() {
    let mut stage = Stage::seed();
    stage.settle(&[two("a", 0, 1), two("b", 1, 2)]);
    let block = stage.block("a", "eth1");
    (block.allocated, block.untouched) = (1, false);
    let hosts = [host("a", 0, &[("eth2", "10.0.2.1/24")]), two("b", 1, 2)];
    let assignment = stage.go(&hosts);
    assert_eq!((assignment.changes.len(), assignment.draining), (1, 1));
    assert!(
        stage
            .rows()
            .contains(&"-a eth1 192.168.0.0/24 0/0".to_owned()),
        "{:?}",
        stage.rows()
    );
    // Nothing is done to it while somebody uses it, or the node may still issue from it.
    assert!(stage.go(&hosts).changes.is_empty());
    let retired = |stage: &mut Stage, allocated, closed| {
        let mut blocks = stage.blocks.values_mut();
        let block = blocks
            .find(|block| block.spec.nic.as_ref().unwrap().retired)
            .unwrap();
        (block.allocated, block.closed) = (allocated, closed);
    };
    retired(&mut stage, 0, false);
    assert!(stage.go(&hosts).changes.is_empty());
    // It returns before the block was closed: it is the same block.
    let mut back = stage.clone();
    back.settle(&[two("a", 0, 1), two("b", 1, 2)]);
    assert!(
        back.rows()
            .contains(&"a eth1 192.168.0.0/24 0/0".to_owned()),
        "{:?}",
        back.rows()
    );
    // … and after, too: its node opens it again.
    retired(&mut stage, 1, true);
    let mut late = stage.clone();
    late.settle(&[two("a", 0, 1), two("b", 1, 2)]);
    assert_eq!(late.rows(), back.rows());
    // Of another subnet it is another NIC.
    let mut elsewhere = stage.clone();
    elsewhere.master_nets.clear();
    elsewhere.settle(&[
        host("a", 0, &[("eth1", "10.0.9.1/24"), ("eth2", "10.0.2.1/24")]),
        two("b", 1, 2),
    ]);
    let shown = elsewhere.rows();
    assert!(
        shown.contains(&"-a eth1 192.168.0.0/24 0/0".to_owned())
            && shown.contains(&"a eth1 192.168.128.0/24 2/0".to_owned()),
        "{shown:?}"
    );
    retired(&mut stage, 0, true);
    stage.settle(&hosts);
    assert_eq!(stage.rows().len(), 3);
}

#[test]
fn an_address_that_was_away_finds_its_place_on_a_full_rail() {
    let mut stage = Stage::new(&["192.168.0.0/16"], &["10.0.1.0/24"], 2, 1);
    let one = |name, created, address: &str| host(name, created, &[("eth1", address)]);
    let hosts = [one("a", 0, "10.0.1.1/24"), one("b", 1, "10.0.1.2/24")];
    stage.settle(&hosts);
    let before = stage.rows();
    let block = stage.block("a", "eth1");
    (block.allocated, block.untouched) = (3, false);
    stage.settle(&[one("a", 0, ""), one("b", 1, "10.0.1.2/24")]);
    for block in stage.blocks.values_mut() {
        block.closed = block.spec.nic.as_ref().unwrap().retired;
    }
    // Nobody gets the place of pods that run.
    let other = [
        one("a", 0, ""),
        one("b", 1, "10.0.1.2/24"),
        one("c", 2, "10.0.1.3/24"),
    ];
    assert_eq!(stage.decide(&other).left_out.len(), 1);
    let assignment = stage.settle(&hosts);
    assert_eq!(stage.rows(), before);
    assert_eq!((assignment.left_out, assignment.draining), (vec![], 0));
}

#[test]
fn of_both_families_one_returns_beside_the_other() {
    let mut stage = Stage::new(&["192.168.0.0/16", "fd00:192::/48"], &["10.0.1.0/24"], 2, 6);
    let with = |addresses: &str| [host("a", 0, &[("eth1", addresses)])];
    stage.settle(&with("10.0.1.1/24 2001:db8::1/64"));
    let before = stage.rows();
    for block in stage.blocks.values_mut() {
        (block.allocated, block.untouched) = (1, false);
    }
    // Its link was down: the kernel keeps the IPv4 address alone.
    stage.settle(&with("10.0.1.1/24"));
    for block in stage.blocks.values_mut() {
        block.closed = block.spec.nic.as_ref().unwrap().retired;
    }
    assert_eq!(stage.rows().len(), 2);
    assert_ne!(stage.rows(), before);
    let assignment = stage.settle(&with("10.0.1.1/24 2001:db8::1/64"));
    assert_eq!(stage.rows(), before);
    assert_eq!(assignment.left_out, []);
}

#[test]
fn a_nic_that_has_another_block_by_now_keeps_that() {
    let mut stage = Stage::seed();
    let hosts = [two("a", 0, 1)];
    stage.settle(&hosts);
    let (name, old) = {
        let mut all = stage.blocks.iter();
        let (name, old) = all.next().unwrap();
        (name.clone(), old.clone())
    };
    // As an earlier version left them: one that is drained, and another in its place.
    let mut new = old.clone();
    new.spec.cidr = "192.168.1.0/24".parse().unwrap();
    new.spec.nic.as_mut().unwrap().host_index = 1;
    let drained = stage.blocks.get_mut(&name).unwrap();
    drained.spec.nic.as_mut().unwrap().retired = true;
    (drained.allocated, drained.closed, drained.untouched) = (1, true, false);
    let at = plexus_api::objects::BlockSpec::name("u", &new.spec.cidr);
    stage.blocks.insert(at, new);
    let before = stage.rows();
    assert_eq!(stage.settle(&hosts).draining, 1);
    assert_eq!(stage.rows(), before);
}

#[test]
fn blocks_of_a_node_that_is_not_known_are_left_alone() {
    let mut stage = Stage::seed();
    stage.settle(&[two("a", 0, 1), two("b", 1, 2)]);
    let before = stage.rows();
    assert!(stage.go(&[two("b", 1, 2)]).changes.is_empty());
    // Another Node of the same name: the old one's places are still taken.
    let mut again = two("a", 9, 1);
    again.uid = "another".to_owned();
    stage.settle(&[two("b", 1, 2), again]);
    for one in before {
        assert!(stage.rows().contains(&one));
    }
    assert!(
        stage
            .rows()
            .contains(&"a eth1 192.168.2.0/24 0/2".to_owned()),
        "{:?}",
        stage.rows()
    );
}

#[test]
fn two_nics_on_one_subnet_have_an_interface_index_each() {
    let mut stage = Stage::seed();
    let twice = host(
        "a",
        0,
        &[
            ("eth3", "10.0.1.9/24"),
            ("eth1", "10.0.1.1/24"),
            ("eth2", "10.0.2.1/24"),
        ],
    );
    stage.settle(&[twice.clone(), two("b", 1, 2)]);
    assert_eq!(
        stage.rows(),
        [
            "a eth1 192.168.0.0/24 0/0",
            "a eth2 192.168.64.0/24 1/0",
            "a eth3 192.168.128.0/24 2/0",
            "b eth1 192.168.1.0/24 0/1",
            "b eth2 192.168.65.0/24 1/1",
        ]
    );
    assert!(stage.go(&[two("b", 1, 2), twice]).changes.is_empty());
}

#[test]
fn whoever_does_not_fit_is_named() {
    let mut stage = Stage::new(
        &["192.168.0.0/16"],
        &["10.0.1.0/24", "10.0.2.0/24", "10.0.3.0/24"],
        1,
        1,
    );
    let hosts: Vec<Host> = (0..3)
        .map(|i| two(&format!("h{i}"), i, u8::try_from(i).unwrap() + 1))
        .collect();
    let assignment = stage.settle(&hosts);
    assert_eq!(stage.rows().len(), 4);
    let no_host = |nic: &str, net_address: &str| LeftOut::NoHostIndex {
        host: "h2".to_owned(),
        nic: nic.to_owned(),
        net: net(net_address),
    };
    assert_eq!(
        assignment.left_out,
        [
            LeftOut::NoInterfaceIndex {
                net: net("10.0.3.0/24")
            },
            no_host("eth1", "10.0.1.0/24"),
            no_host("eth2", "10.0.2.0/24"),
        ]
    );
    let texts: Vec<String> = assignment
        .left_out
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        texts[0].contains("10.0.3.0/24") && texts[1].contains("eth1 of h2"),
        "{texts:?}"
    );
    // It has room once somebody else is gone.
    stage.blocks.retain(|_, block| block.spec.node != "h0");
    assert_eq!(stage.settle(&hosts[1..]).left_out.len(), 1);
}

#[test]
fn another_division_comes_beside_what_is_in_use() {
    let mut stage = Stage::seed();
    let hosts = [two("a", 0, 1), two("b", 1, 2)];
    stage.settle(&hosts);
    for block in stage.blocks.values_mut() {
        (block.allocated, block.untouched) = (1, false);
    }
    let before: Vec<String> = stage.rows();
    stage.bits.host = 8;
    let assignment = stage.go(&hosts);
    assert_eq!((stage.blocks.len(), assignment.draining), (8, 4));
    let shown = stage.rows();
    for one in before {
        assert!(shown.contains(&format!("-{one}")), "{one}: {shown:?}");
    }
    // Behind what is in use: 192.168.0.0/24 and 192.168.1.0/24 are indices 0 to 7 now.
    assert!(
        shown.contains(&"a eth1 192.168.2.0/26 0/8".to_owned()),
        "{shown:?}"
    );
    for block in stage.blocks.values_mut() {
        (block.allocated, block.closed) = (0, true);
    }
    stage.settle(&hosts);
    assert_eq!(stage.blocks.len(), 4);
}

#[test]
fn both_families_have_the_same_indices() {
    let mut stage = Stage::new(&["192.168.0.0/16", "fd00:1::/48"], &["10.0.1.0/24"], 2, 6);
    let hosts = [
        host("a", 0, &[("eth1", "10.0.1.1/24 fd00:9::1/64")]),
        host("b", 1, &[("eth1", "10.0.1.2/24")]),
    ];
    let assignment = stage.settle(&hosts);
    assert_eq!(
        stage.rows(),
        [
            "a eth1 192.168.0.0/24 0/0",
            "a eth1 fd00:1::/56 0/0",
            "b eth1 192.168.1.0/24 0/1",
        ]
    );
    let missing = LeftOut::NoAddress {
        host: "b".to_owned(),
        nic: "eth1".to_owned(),
        family: Family::V6,
    };
    assert_eq!(assignment.left_out, [missing]);
    // An index that is excluded in one family is nobody's.
    stage.bits.exclude = nets(&["fd00:1:0:200::/56"]);
    let with_c = [
        hosts[0].clone(),
        hosts[1].clone(),
        host("c", 2, &[("eth1", "10.0.1.3/24 fd00:9::3/64")]),
    ];
    stage.settle(&with_c);
    let shown = stage.rows();
    assert!(
        shown.contains(&"c eth1 fd00:1:0:300::/56 0/3".to_owned()),
        "{shown:?}"
    );
}

#[test]
fn without_master_nets_all_nics_count() {
    let mut stage = Stage::new(&["192.168.0.0/16"], &[], 2, 6);
    stage.settle(&[host(
        "a",
        0,
        &[("x", "10.0.7.1/24"), ("y", "10.0.3.1/24"), ("z", "")],
    )]);
    assert_eq!(
        stage.rows(),
        ["a x 192.168.64.0/24 1/0", "a y 192.168.0.0/24 0/0"]
    );
}
