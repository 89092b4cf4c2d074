//! Which node a block is reached at.

use super::*;
use proptest::prelude::*;

fn block(uid: &str, cidr: &str, node: &str) -> OwnedBlock {
    let cidr: IpNet = cidr.parse().unwrap();
    OwnedBlock {
        uid: uid.to_owned(),
        cidr,
        node: node.to_owned(),
        whole: cidr.max_prefix_len() - cidr.prefix_len() >= 6,
        given: Vec::new(),
        claimed: ClaimAge::Unknown,
        no_route: None,
    }
}

/// What a node without routes of ours does.
fn block_routes(
    here: &str,
    nodes: &[FabricNode],
    blocks: &[OwnedBlock],
) -> (Vec<BlockRoute>, Vec<String>) {
    super::block_routes(here, nodes, blocks, &ExistingRoutes::default())
}

fn own(here: &str, blocks: &[OwnedBlock]) -> Vec<IpNet> {
    super::own(here, blocks, &ExistingRoutes::default())
}

fn made(seconds: i64, block: OwnedBlock) -> OwnedBlock {
    OwnedBlock {
        claimed: ClaimAge::Made(seconds),
        ..block
    }
}

fn closed(block: OwnedBlock) -> OwnedBlock {
    OwnedBlock {
        no_route: Some("Pending: spec.subnets".to_owned()),
        ..block
    }
}

fn text(routes: &[BlockRoute]) -> Vec<String> {
    let each = routes.iter();
    each.map(|route| format!("{} {}", route.dst, route.via))
        .collect()
}

fn giving(mut block: OwnedBlock, donations: &[(&str, &str)]) -> OwnedBlock {
    block.given = donations
        .iter()
        .map(|(cidr, node)| DonatedPart {
            cidr: cidr.parse().unwrap(),
            node: (*node).to_owned(),
        })
        .collect();
    block
}

fn node(name: &str, addresses: &[&str]) -> FabricNode {
    FabricNode {
        name: name.to_owned(),
        addresses: addresses.iter().map(|ip| ip.parse().unwrap()).collect(),
    }
}

fn nodes() -> Vec<FabricNode> {
    vec![
        node("n1", &["192.0.2.1", "2001:db8::1"]),
        node("n2", &["192.0.2.2", "192.0.2.22", "2001:db8::2"]),
        node("n3", &["192.0.2.3"]),
        node("n6", &["2001:db8::6"]),
    ]
}

#[test]
fn one_remote_per_node_with_all_its_blocks_of_the_network() {
    let blocks = [
        block("a", "10.1.0.128/26", "n2"),
        block("a", "fd00::40/122", "n2"),
        block("a", "10.1.0.0/26", "n2"),
        block("b", "10.1.0.64/26", "n3"),
        block("a", "10.1.0.64/26", "n1"),
        block("a", "10.1.1.0/26", "n6"),
        block("a", "10.1.2.0/26", "gone"),
    ];
    let local = "192.0.2.1".parse().unwrap();
    let (remotes, unreachable) = remotes("a", "n1", local, &nodes(), &blocks);
    assert_eq!(remotes.len(), 1);
    assert_eq!(remotes[0].underlay, "192.0.2.2".parse::<IpAddr>().unwrap());
    assert_eq!(remotes[0].mac, vtep_mac("a", "n2"));
    let cidrs: Vec<String> = remotes[0].blocks.iter().map(IpNet::to_string).collect();
    assert_eq!(cidrs, ["10.1.0.0/26", "10.1.0.128/26", "fd00::40/122"]);
    assert_eq!(
        unreachable,
        [
            "10.1.2.0/26: its owner gone is not a node of the cluster",
            "10.1.1.0/26: node n6 has no IPv4 InternalIP",
        ]
    );
}

#[test]
fn the_order_of_what_goes_in_does_not_matter() {
    let mut blocks = vec![
        block("a", "10.1.0.128/26", "n2"),
        block("a", "10.1.0.0/26", "n3"),
        block("a", "10.1.0.0/27", "n2"),
        block("a", "10.1.0.0/24", "n6"),
    ];
    let local = "192.0.2.1".parse().unwrap();
    let one = remotes("a", "n1", local, &nodes(), &blocks);
    let routes = block_routes("n1", &nodes(), &blocks);
    blocks.reverse();
    assert_eq!(one, remotes("a", "n1", local, &nodes(), &blocks));
    assert_eq!(routes, block_routes("n1", &nodes(), &blocks));
}

#[test]
fn a_block_that_overlaps_with_another_node_s_leads_nowhere() {
    for (mine, theirs) in [
        ("10.1.0.0/26", "10.1.0.0/26"),
        ("10.1.0.0/26", "10.1.0.7/32"),
        ("10.1.0.0/26", "10.0.0.0/8"),
    ] {
        let blocks = [
            block("a", mine, "n1"),
            block("a", theirs, "n2"),
            block("a", "10.200.0.0/26", "n3"),
        ];
        let (routes, refused) = block_routes("n1", &nodes(), &blocks);
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(refused[0].contains("overlaps with 10.1.0.0/26 of node n1"));
        assert_eq!(routes.len(), 1);
    }
}

#[test]
fn a_part_that_was_given_is_reached_at_whoever_has_it() {
    let whole = giving(
        block("a", "10.1.0.0/26", "n1"),
        &[("10.1.0.8/29", "n2"), ("10.1.0.32/32", "n3")],
    );
    let part = giving(block("a", "10.1.0.8/29", "n2"), &[("10.1.0.9/32", "n1")]);
    let blocks = [
        block("a", "10.1.0.32/32", "n3"),
        part,
        whole,
        block("a", "10.1.0.9/32", "n1"),
        // Nobody gave it this.
        block("a", "10.1.0.48/32", "n2"),
    ];
    let text = |here: &str| {
        let (routes, refused) = block_routes(here, &nodes(), &blocks);
        let text = routes.iter().map(|r| format!("{} {}", r.dst, r.via));
        (text.collect::<Vec<_>>(), refused)
    };
    let wrong = "10.1.0.48/32: owned by node n2, but it overlaps with 10.1.0.0/26 of node n1";
    let (routes, refused) = text("n1");
    assert_eq!(routes, ["10.1.0.8/29 192.0.2.2", "10.1.0.32/32 192.0.2.3"]);
    assert_eq!(refused, [wrong]);
    let (routes, refused) = text("n3");
    let expected = [
        "10.1.0.0/26 192.0.2.1",
        "10.1.0.8/29 192.0.2.2",
        "10.1.0.9/32 192.0.2.1",
    ];
    assert_eq!(
        (routes.as_slice(), refused.len()),
        (&expected.map(str::to_owned)[..], 1)
    );
    let local = "192.0.2.3".parse().unwrap();
    let (remotes, _) = remotes("a", "n3", local, &nodes(), &blocks);
    let each = remotes
        .iter()
        .map(|remote| (&*remote.node, remote.blocks.len()));
    assert_eq!(each.collect::<Vec<_>>(), [("n1", 2), ("n2", 1)]);

    let islands = |here: &str| {
        let cidrs = super::islands(here, &blocks).into_iter();
        cidrs.map(|cidr| cidr.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(islands("n1"), ["10.1.0.9/32"]);
    assert_eq!(islands("n3"), ["10.1.0.32/32"]);
    assert!(super::islands("n1", &blocks[2..3]).is_empty());
}

/// What every node does with a block that nobody gave: nothing, wherever it comes in the alphabet.
#[test]
fn a_robber_gets_nothing_and_takes_nothing() {
    let whole = giving(block("a", "10.1.0.0/26", "n2"), &[("10.1.0.8/29", "n3")]);
    let right = [whole, block("a", "10.1.0.8/29", "n3")];
    for robber in ["n1", "n3"] {
        for stolen in ["10.1.0.7/32", "10.1.0.0/27", "10.1.0.9/32", "10.1.0.0/28"] {
            if (robber, stolen) == ("n3", "10.1.0.9/32") {
                // In what it was given.
                continue;
            }
            let mut blocks = right.to_vec();
            blocks.push(block("a", stolen, robber));
            for here in ["n1", "n2", "n3", "n6"] {
                let (routes, refused) = block_routes(here, &nodes(), &blocks);
                assert_eq!(routes, block_routes(here, &nodes(), &right).0);
                assert_eq!(refused.len(), 1, "{refused:?}");
                assert_eq!(own(here, &blocks), own(here, &right));
                assert_eq!(islands(here, &blocks), islands(here, &right));
            }
        }
    }
}

proptest! {
    /// Whatever is added that nobody gave: the routes to all else stay as they are.
    #[test]
    fn blocks_that_nobody_gave_change_no_route(
        stolen in prop::collection::vec((27_u8..=32, 0_u8..64, 0_usize..3), 1..8),
        here in 0_usize..4,
    ) {
        let names = ["n1", "n2", "n3", "n6"];
        let whole = giving(block("a", "10.1.0.0/26", "n3"), &[("10.1.0.8/29", "n2")]);
        let part = giving(block("a", "10.1.0.8/29", "n2"), &[("10.1.0.12/30", "n3")]);
        let right = vec![whole, part, block("a", "10.1.0.12/30", "n3")];
        let mut blocks = right.clone();
        for (length, last, node) in stolen {
            let cidr = IpNet::new(format!("10.1.0.{last}").parse().unwrap(), length).unwrap();
            let node = ["n1", "a", "z"][node];
            if !blocks.iter().any(|block| block.cidr == cidr.trunc()) {
                blocks.push(block("a", &cidr.trunc().to_string(), node));
            }
        }
        let (routes, _) = block_routes(names[here], &nodes(), &blocks);
        prop_assert_eq!(routes, block_routes(names[here], &nodes(), &right).0);
    }
}

#[test]
fn routes_go_to_the_owner_s_address_of_the_block_s_family() {
    let blocks = [
        block("a", "fd00:244:2::/64", "n2"),
        block("b", "10.244.2.0/24", "n2"),
        block("b", "10.244.1.0/24", "n1"),
        block("a", "fd00:244:3::/64", "n3"),
    ];
    let (routes, unreachable) = block_routes("n1", &nodes(), &blocks);
    let text: Vec<String> = routes
        .iter()
        .map(|route| format!("{} via {}", route.dst, route.via))
        .collect();
    assert_eq!(
        text,
        [
            "10.244.2.0/24 via 192.0.2.2",
            "fd00:244:2::/64 via 2001:db8::2"
        ]
    );
    assert_eq!(
        unreachable,
        ["fd00:244:3::/64: node n3 has no IPv6 InternalIP"]
    );
}

#[test]
fn a_node_that_has_our_own_address_is_not_a_remote() {
    let twin = [node("n1", &["192.0.2.1"]), node("twin", &["192.0.2.1"])];
    let blocks = [block("a", "10.1.0.0/26", "twin")];
    let local = "192.0.2.1".parse().unwrap();
    let (remotes, unreachable) = remotes("a", "n1", local, &twin, &blocks);
    assert!(remotes.is_empty() && unreachable.len() == 1);
}

/// A node's name is chosen by whoever registers it.
#[test]
fn of_two_owners_the_older_has_the_prefix_whatever_they_are_called() {
    for (a, b) in [("n2", "n3"), ("n3", "n2")] {
        for theirs in ["10.1.0.0/26", "10.1.0.0/24", "10.1.0.0/27"] {
            let blocks = [
                made(100, block("a", "10.1.0.0/26", a)),
                made(101, block("b", theirs, b)),
            ];
            let (routes, refused) = block_routes("n1", &nodes(), &blocks);
            let via = address_of(a, &nodes(), Family::V4).unwrap();
            assert_eq!(text(&routes), [format!("10.1.0.0/26 {via}")], "{refused:?}");
            assert_eq!(refused.len(), 1, "{refused:?}");
            assert!(refused[0].starts_with(theirs), "{refused:?}");
        }
        // What the control plane gave a Node was there before.
        let mut pods = block("cluster-default", "10.1.0.0/24", a);
        pods.claimed = ClaimAge::ControlPlane;
        let blocks = [made(0, block("b", "10.1.0.64/26", b)), pods];
        let (routes, refused) = block_routes("n1", &nodes(), &blocks);
        assert_eq!((routes.len(), refused.len()), (1, 1), "{routes:?}");
        assert_eq!(routes[0].dst.to_string(), "10.1.0.0/24");
    }
}

#[test]
fn of_two_owners_of_whom_nothing_tells_the_first_none_gets_a_route() {
    let alike = [ClaimAge::Unknown, ClaimAge::Made(7), ClaimAge::ControlPlane];
    for claimed in alike {
        let mut blocks = [
            block("a", "10.1.0.0/26", "n2"),
            block("b", "10.1.0.0/26", "n3"),
        ];
        blocks.iter_mut().for_each(|block| block.claimed = claimed);
        let (routes, refused) = block_routes("n1", &nodes(), &blocks);
        assert_eq!(text(&routes), Vec::<String>::new());
        assert_eq!(refused.len(), 2, "each is said: {refused:?}");
        assert!(refused[0].contains("nothing tells"), "{refused:?}");
        // Traffic that goes to one of them already is not moved.
        for via in ["192.0.2.2", "192.0.2.3"] {
            let route = BlockRoute {
                dst: blocks[0].cidr,
                via: via.parse().unwrap(),
            };
            let existing = ExistingRoutes {
                to_blocks: BTreeSet::from([route.clone()]),
                ..ExistingRoutes::default()
            };
            let (routes, refused) = super::block_routes("n1", &nodes(), &blocks, &existing);
            assert_eq!((routes, refused.len()), (vec![route], 1));
        }
    }
    // One of which something is known does not win by it alone.
    let blocks = [
        made(7, block("a", "10.1.0.0/26", "n2")),
        block("b", "10.1.0.0/26", "n3"),
    ];
    assert!(block_routes("n1", &nodes(), &blocks).0.is_empty());
}

#[test]
fn a_network_that_is_not_active_keeps_its_routes_and_gets_no_new_ones() {
    let blocks = [
        closed(block("a", "10.1.0.0/26", "n2")),
        closed(block("a", "10.1.0.64/26", "n3")),
        closed(block("a", "10.1.0.128/26", "n1")),
        closed(block("a", "10.1.0.192/26", "n1")),
        block("b", "10.2.0.0/26", "n3"),
    ];
    let (routes, refused) = block_routes("n1", &nodes(), &blocks);
    assert_eq!(text(&routes), ["10.2.0.0/26 192.0.2.3"]);
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused[0].contains("Pending: spec.subnets"), "{refused:?}");
    assert!(own("n1", &blocks).is_empty());

    let route = |dst: &str, via: &str| BlockRoute {
        dst: dst.parse().unwrap(),
        via: via.parse().unwrap(),
    };
    let existing = ExistingRoutes {
        // The second leads elsewhere: what it leads to now would be new.
        to_blocks: BTreeSet::from([
            route("10.1.0.0/26", "192.0.2.2"),
            route("10.1.0.64/26", "192.0.2.9"),
        ]),
        own: BTreeSet::from(["10.1.0.128/26".parse().unwrap()]),
    };
    let (routes, _) = super::block_routes("n1", &nodes(), &blocks, &existing);
    assert_eq!(
        text(&routes),
        ["10.1.0.0/26 192.0.2.2", "10.2.0.0/26 192.0.2.3"]
    );
    let own = super::own("n1", &blocks, &existing);
    assert_eq!(own, ["10.1.0.128/26".parse::<IpNet>().unwrap()]);
}

/// Otherwise whoever writes a Network that nobody lets become Active would take routes away.
#[test]
fn what_gets_no_route_takes_none_away() {
    for (node, age) in [("n3", ClaimAge::Made(1)), ("n1", ClaimAge::Unknown)] {
        let mut robber = closed(block("b", "10.1.0.0/24", node));
        robber.claimed = age;
        let blocks = [made(100, block("a", "10.1.0.0/26", "n2")), robber];
        let (routes, _) = block_routes("n1", &nodes(), &blocks);
        assert_eq!(text(&routes), ["10.1.0.0/26 192.0.2.2"]);
    }
}

/// Otherwise a block around those of others would take all of them away, by losing against one.
#[test]
fn who_loses_takes_nothing_from_others() {
    let blocks = [
        made(1, block("a", "10.1.0.0/26", "n2")),
        made(2, block("b", "10.0.0.0/8", "n3")),
        made(3, block("c", "10.2.0.0/26", "n2")),
        made(3, block("d", "10.3.0.0/26", "n3")),
    ];
    let (routes, refused) = block_routes("n1", &nodes(), &blocks);
    let expected = [
        "10.1.0.0/26 192.0.2.2",
        "10.2.0.0/26 192.0.2.2",
        "10.3.0.0/26 192.0.2.3",
    ];
    assert_eq!(
        (text(&routes).as_slice(), refused.len()),
        (&expected.map(str::to_owned)[..], 1)
    );
}
