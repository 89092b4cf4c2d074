//! Routers of overlay networks: traffic between nodes, by packets.

use crate::fabric_lab::{Fabric, Network};
use crate::lab::net;
use plexus_core::plan::diff_host_ends;
use plexus_kernel::{pod, router};
use plexus_testkit::NetNs;

#[test]
fn pods_of_a_network_talk_across_nodes_dual_stack() {
    let fabric = Fabric::new();
    let blue = Network::new("blue", 5001);
    fabric.network(&blue);
    let (first, second) = (&fabric.nodes[0], &fabric.nodes[1]);
    let (one, _) = first.pod_of(&blue, "one", &["10.7.0.2/32", "fd00:7::2/128"]);
    let (two, _) = first.pod_of(&blue, "two", &["10.7.0.3/32", "fd00:7::3/128"]);
    let (far, _) = second.pod_of(&blue, "far", &["10.7.1.2/32", "fd00:7:0:1::2/128"]);
    for address in [
        "10.7.0.3",
        "fd00:7::3",
        "10.7.1.2",
        "fd00:7:0:1::2",
        "10.7.255.254",
        "fd00:7:0:ffff::fffe",
    ] {
        assert!(one.ns.pings(address), "{address} does not answer");
    }
    assert!(far.ns.pings("10.7.0.3") && far.ns.pings("fd00:7::2"));
    // The largest packet that the network promises fits.
    assert!(two.ns.try_sh("ping -c 1 -W 2 -M do -s 1402 10.7.1.2"));
    let seen = first.in_router(
        &blue,
        "ip -d link show vxlan0; ip route; ip -6 route; bridge fdb",
    );
    for text in [
        "nolearning",
        "dstport 4789",
        "id 5001",
        "local 192.0.2.11",
        "mtu 1430",
    ] {
        assert!(seen.contains(text), "no {text:?} in\n{seen}");
    }
    assert!(seen.contains("unreachable 10.7.0.0/16"), "{seen}");
    assert!(
        seen.contains("10.7.1.0/24 via 192.0.2.12 dev vxlan0"),
        "{seen}"
    );
    // Nobody has it: told at once, not lost.
    let answer = one.ns.sh("ping -c 1 -W 2 10.7.9.9 || true");
    assert!(answer.contains("Unreachable"), "{answer}");
    // Nothing of it is in the node's own namespace.
    let node = first.ns.sh("ip link; ip route; ip -6 route");
    assert!(!node.contains("10.7.") && !node.contains("vxlan"), "{node}");
}

#[test]
fn networks_with_the_same_addresses_do_not_meet() {
    let fabric = Fabric::new();
    let (mut blue, mut red) = (Network::new("blue", 5011), Network::new("red", 5012));
    (blue.snat, red.snat) = (true, true);
    fabric.network(&blue);
    fabric.network(&red);
    let (first, second) = (&fabric.nodes[0], &fabric.nodes[1]);
    let addresses = ["10.7.0.2/32", "fd00:7::2/128"];
    let (here, _) = first.pod_of(&blue, "b1", &addresses);
    let (same, _) = first.pod_of(&red, "r1", &addresses);
    let (_other, _) = first.pod_of(&red, "r2", &["10.7.0.9/32", "fd00:7::9/128"]);
    let (_far, _) = second.pod_of(&red, "r3", &["10.7.1.9/32", "fd00:7:0:1::9/128"]);
    for address in [
        "10.7.0.9",
        "fd00:7::9",
        "10.7.1.9",
        "fd00:7:0:1::9",
        "192.0.2.1",
    ] {
        assert!(same.ns.pings(address), "{address} does not answer its own");
    }
    // Directly, by the block's range on the other node, and by the addresses of links to the node.
    for address in ["10.7.0.9", "fd00:7::9", "10.7.1.9", "fd00:7:0:1::9"] {
        assert!(here.ns.silent(address), "{address} answers");
    }
    let links = first.in_router(&red, "ip -o addr show uplink scope global");
    let mut tried = 0;
    for word in links.split_whitespace().filter(|w| w.contains('/')) {
        let (address, _) = word.split_once('/').unwrap();
        assert!(here.ns.silent(address), "the red uplink {address} answers");
        assert!(
            first.ns.silent(address),
            "the red uplink {address} answers the node"
        );
        tried += 1;
    }
    assert_eq!(tried, 2, "{links}");
    // By the node: it knows no way to a pod, even when told to use the router's link.
    let outer = first.ns.sh("ip -o link show group 0x20005081");
    assert_eq!(outer.lines().count(), 2, "{outer}");
    let via = links
        .split_whitespace()
        .find(|w| w.starts_with("169.254."))
        .unwrap();
    let (via, _) = via.split_once('/').unwrap();
    first.ns.sh(&format!("ip route add 10.7.0.9/32 via {via}"));
    assert!(first.ns.silent("10.7.0.9"), "a red pod answers the node");
    assert!(
        !fabric
            .outside
            .try_sh("ip route add 10.7.0.9/32 via 192.0.2.11; ping -c 1 -W 1 10.7.0.9")
    );
}

#[test]
fn a_source_that_is_not_the_pods_own_goes_nowhere() {
    let fabric = Fabric::new();
    let mut blue = Network::new("blue", 5021);
    fabric.network(&blue);
    let (first, second) = (&fabric.nodes[0], &fabric.nodes[1]);
    let (liar, _) = first.pod_of(&blue, "liar", &["10.7.0.2/32", "fd00:7::2/128"]);
    let (victim, _) = second.pod_of(&blue, "victim", &["10.7.1.2/32", "fd00:7:0:1::2/128"]);
    assert!(liar.ns.pings("10.7.1.2"));
    liar.ns
        .sh("ip addr add 10.7.0.77/32 dev eth0; ip addr add fd00:7::77/128 dev eth0 nodad");
    let lies = [
        (
            "ping -c 2 -i 0.2 -W 1 -I 10.7.0.77 10.7.1.2",
            "icmp and src 10.7.0.77",
        ),
        (
            "ping -c 2 -i 0.2 -W 1 -I fd00:7::77 fd00:7:0:1::2",
            "icmp6 and src fd00:7::77",
        ),
    ];
    let arrives = |lie: &str, filter: &str| {
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                victim
                    .ns
                    .try_sh(&format!("timeout 3 tcpdump -c 1 -ni eth0 '{filter}'"))
            });
            std::thread::sleep(std::time::Duration::from_millis(700));
            liar.ns.try_sh(lie);
            watch.join().unwrap()
        })
    };
    for (lie, filter) in lies {
        assert!(!arrives(lie, filter), "{filter} arrived");
    }
    // Changed in place: the pods stay, the check goes.
    blue.source_check = false;
    let changed = first.ensure(&blue.router(first));
    assert_eq!(changed.len(), 1, "{changed:?}");
    for (lie, filter) in lies {
        assert!(
            arrives(lie, filter),
            "{filter} did not arrive without the check"
        );
    }
}

#[test]
fn another_node_sends_from_the_networks_addresses_alone() {
    let fabric = Fabric::new();
    let mut blue = Network::new("blue", 5022);
    fabric.network(&blue);
    let (first, second) = (&fabric.nodes[0], &fabric.nodes[1]);
    let (liar, _) = first.pod_of(&blue, "liar", &["10.7.0.2/32", "fd00:7::2/128"]);
    let (victim, _) = second.pod_of(&blue, "victim", &["10.7.1.2/32", "fd00:7:0:1::2/128"]);
    let checking = blue.router(second);
    // The first node lets anything out: the second decides.
    blue.source_check = false;
    first.ensure(&blue.router(first));
    liar.ns
        .sh("ip addr add 10.9.0.7/32 dev eth0; ip addr add fd00:9::7/128 dev eth0 nodad");
    let victim = &victim.ns;
    let arrives = |from: &str, to: &str, family: &str| {
        std::thread::scope(|scope| {
            let watch = format!("timeout 3 tcpdump -c 1 -ni eth0 '{family} and src {from}'");
            let watch = scope.spawn(move || victim.try_sh(&watch));
            std::thread::sleep(std::time::Duration::from_millis(700));
            let ping = format!("ping -c 2 -i 0.2 -W 1 -I {from} {to}");
            liar.ns.try_sh(&ping);
            watch.join().unwrap()
        })
    };
    let outside = [
        ("10.9.0.7", "10.7.1.2", "icmp"),
        ("fd00:9::7", "fd00:7:0:1::2", "icmp6"),
    ];
    for (from, to, family) in outside {
        assert!(!arrives(from, to, family), "{from} arrived");
    }
    // The network's own do, and what the other router says itself.
    assert!(liar.ns.pings("10.7.1.2") && liar.ns.pings("fd00:7:0:1::2"));
    for nobody in ["10.7.0.200", "fd00:7::200"] {
        let answer = victim.sh(&format!("ping -c 1 -W 2 {nobody} || true"));
        assert!(answer.contains("nreachable"), "{answer}");
    }
    // Blocks that the router is told of are the network's too, whatever its subnets were when it was made.
    let remotes = blue.remotes(&fabric, second);
    let mut with_more = remotes.clone();
    let more = &mut with_more[0].blocks;
    more.extend([net("10.9.0.0/24"), net("fd00:9::/64")]);
    router::set_remotes(&second.side, &checking, &with_more, &[]).unwrap();
    for (from, to, family) in outside {
        assert!(arrives(from, to, family), "{from} of a block");
    }
    router::set_remotes(&second.side, &checking, &remotes, &[]).unwrap();
    assert!(!arrives("10.9.0.7", "10.7.1.2", "icmp"));
    // Where sources are not checked, pods may pass on what is not the network's.
    second.ensure(&blue.router(second));
    for (from, to, family) in outside {
        assert!(arrives(from, to, family), "{from} without the check");
    }
}

#[test]
fn snat_leaves_under_the_nodes_address_and_only_answers_come_in() {
    let fabric = Fabric::new();
    let mut blue = Network::new("blue", 5031);
    fabric.network(&blue);
    let first = &fabric.nodes[0];
    let (one, _) = first.pod_of(&blue, "one", &["10.7.0.2/32", "fd00:7::2/128"]);
    for address in ["192.0.2.1", "2001:db8::1"] {
        assert!(one.ns.silent(address), "{address} answers without SNAT");
    }
    blue.snat = true;
    let router = blue.router(first);
    assert!(!first.ensure(&router).is_empty());
    assert_eq!(first.ensure(&router), Vec::<String>::new());
    let seen = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            fabric.outside.sh("timeout 4 tcpdump -c 2 -ni wire 'icmp[icmptype] == 8 or icmp6[icmp6type] == 128' 2>/dev/null || true")
        });
        std::thread::sleep(std::time::Duration::from_millis(700));
        for address in ["192.0.2.1", "2001:db8::1"] {
            assert!(one.ns.pings(address), "{address} does not answer");
        }
        watch.join().unwrap()
    });
    assert!(seen.contains("192.0.2.11 > 192.0.2.1"), "{seen}");
    assert!(seen.contains("2001:db8::11 > 2001:db8::1"), "{seen}");
    // A pod does not speak to tunnels of other nodes.
    let tunnel = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            fabric
                .outside
                .try_sh("timeout 2 tcpdump -c 1 -ni wire 'udp port 4789 and src 192.0.2.11'")
        });
        std::thread::sleep(std::time::Duration::from_millis(700));
        one.ns
            .try_sh("echo x | timeout 1 bash -c 'cat >/dev/udp/192.0.2.12/4789'");
        watch.join().unwrap()
    });
    assert!(!tunnel, "a pod reached a tunnel");
    // And off again.
    blue.snat = false;
    assert!(!first.ensure(&blue.router(first)).is_empty());
    assert!(one.ns.silent("192.0.2.1"), "an answer without SNAT");
    assert_eq!(first.ns.sh("ip -o link show group 0x20005081"), "");
    assert!(!first.ns.sh("nft list ruleset").contains("169.254."));
    assert_eq!(first.ensure(&blue.router(first)), Vec::<String>::new());
}

#[test]
fn ensured_twice_and_changed_in_place() {
    let fabric = Fabric::new();
    let mut blue = Network::new("blue", 5041);
    blue.snat = true;
    fabric.network(&blue);
    let (first, second) = (&fabric.nodes[0], &fabric.nodes[1]);
    let mut router = blue.router(first);
    assert_eq!(first.ensure(&router), Vec::<String>::new());
    let (one, _) = first.pod_of(&blue, "one", &["10.7.0.2/32"]);
    let (_far, _) = second.pod_of(&blue, "far", &["10.7.1.2/32"]);
    assert!(one.ns.pings("10.7.1.2"));
    router.mtu = 1400;
    router.gateways = vec!["10.7.255.1".parse().unwrap()];
    router.subnets = vec![net("10.7.0.0/16"), net("10.8.0.0/16")];
    let changes = first.ensure(&router);
    assert!(changes.len() >= 5, "{changes:?}");
    assert_eq!(first.ensure(&router), Vec::<String>::new());
    assert!(one.ns.pings("10.7.255.1") && one.ns.pings("10.7.1.2"));
    let seen = first.in_router(&blue, "ip -o addr show lo; ip route; ip -6 route; ip link");
    assert!(
        !seen.contains("10.7.255.254") && !seen.contains("fd00:7:0:ffff"),
        "{seen}"
    );
    assert!(seen.contains("unreachable 10.8.0.0/16"), "{seen}");
    // Another address of the node: what is known of others stays.
    first.ns.sh("ip addr add 192.0.2.21/24 dev eth0");
    router.local = "192.0.2.21".parse().unwrap();
    assert_eq!(first.ensure(&router).len(), 1);
    assert_eq!(first.ensure(&router), Vec::<String>::new());
    plexus_kernel::nft::guard::set_peers(&second.side, &[router.local, second.addresses[0]])
        .unwrap();
    assert!(one.ns.pings("10.7.1.2"));
    // What somebody took away is put back.
    first.in_router(
        &blue,
        "ip addr flush dev lo; ip link set vxlan0 down; ip link del uplink; nft flush ruleset",
    );
    assert!(!first.ensure(&router).is_empty());
    assert_eq!(first.ensure(&router), Vec::<String>::new());
    assert!(one.ns.pings("192.0.2.1"));
}

#[test]
fn what_is_known_of_other_nodes_follows_by_difference() {
    let fabric = Fabric::new();
    let blue = Network::new("blue", 5051);
    let (first, second) = (&fabric.nodes[0], &fabric.nodes[1]);
    fabric.network(&blue);
    let router = blue.router(first);
    let mut remotes = blue.remotes(&fabric, first);
    let set = |remotes: &[_]| router::set_remotes(&first.side, &router, remotes, &[]).unwrap();
    assert_eq!(set(&remotes), 0);
    let (one, plan) = first.pod_of(&blue, "one", &["10.7.0.2/32", "fd00:7::2/128"]);
    let (_far, _) = second.pod_of(&blue, "far", &["10.7.5.2/32", "fd00:7:0:1::2/128"]);
    assert!(one.ns.silent("10.7.5.2"));
    remotes[0].blocks.push(net("10.7.5.0/24"));
    assert_eq!(set(&remotes), 1);
    assert!(one.ns.pings("10.7.5.2"));
    // It moves to another address, and back.
    remotes[0].underlay = "192.0.2.99".parse().unwrap();
    assert!(set(&remotes) > 0);
    assert!(one.ns.silent("10.7.5.2"));
    remotes[0].underlay = second.address.parse().unwrap();
    assert!(set(&remotes) > 0);
    assert!(one.ns.pings("10.7.5.2") && one.ns.pings("fd00:7:0:1::2"));
    // Its address is one of ours.
    remotes[0].underlay = "10.7.255.254".parse().unwrap();
    assert!(set(&remotes) > 0);
    let seen = first.in_router(&blue, "ip route");
    assert!(seen.contains("10.7.5.0/24 via inet6 fe80::"), "{seen}");
    // Many, then none; the pod's own routes stay.
    let many: Vec<_> = (0..2000_u32)
        .map(|i| plexus_core::fabric::Remote {
            node: format!("n{i}"),
            underlay: std::net::Ipv4Addr::from(0x0a63_0000 + i).into(),
            mac: plexus_core::fabric::vtep_mac("blue", &format!("n{i}")),
            blocks: vec![
                net(&format!("10.7.{}.{}/29", i / 32, (i % 32) * 8)),
                net(&format!("fd00:7:1:{i:x}::/64")),
            ],
        })
        .collect();
    let start = std::time::Instant::now();
    assert!(set(&many) >= 10_000);
    println!("2,000 nodes: {:?}", start.elapsed());
    let start = std::time::Instant::now();
    assert_eq!(set(&many), 0);
    println!("nothing to do: {:?}", start.elapsed());
    assert_eq!(first.ensure(&router), Vec::<String>::new());
    set(&[]);
    let seen = first.in_router(
        &blue,
        "ip route; ip -6 route; ip neigh show dev vxlan0; bridge fdb show dev vxlan0",
    );
    assert!(
        !seen.contains("via") && !seen.contains("PERMANENT") && !seen.contains(" dst "),
        "{seen}"
    );
    let later = pod::observe(&plan, &one.netns, &first.side).unwrap();
    assert_eq!(diff_host_ends(&plan, &later.node), []);
}

#[test]
fn a_part_of_another_node_s_block_is_reached_here_and_its_rest_is_nowhere() {
    let fabric = Fabric::new();
    let blue = Network::new("blue", 5071);
    let (first, second) = (&fabric.nodes[0], &fabric.nodes[1]);
    fabric.network(&blue);
    // 10.7.1.0/24 is the second's; it gave a part of it to the first.
    let island = [net("10.7.1.8/29"), net("fd00:7:0:1::8/125")];
    let (router, theirs) = (blue.router(first), blue.router(second));
    let to_second = blue.remotes(&fabric, first);
    let mut to_first = blue.remotes(&fabric, second);
    to_first[0].blocks.extend(island);
    router::set_remotes(&second.side, &theirs, &to_first, &[]).unwrap();
    let set = |islands: &[_]| router::set_remotes(&first.side, &router, &to_second, islands);
    assert_eq!(set(&island).unwrap(), 2);
    assert_eq!(set(&island).unwrap(), 0);
    assert_eq!(first.ensure(&router), Vec::<String>::new());

    let (one, _) = first.pod_of(&blue, "one", &["10.7.1.9/32", "fd00:7:0:1::9/128"]);
    let (far, _) = second.pod_of(&blue, "far", &["10.7.1.2/32", "fd00:7:0:1::2/128"]);
    assert!(one.ns.pings("10.7.1.2") && far.ns.pings("10.7.1.9"));
    assert!(one.ns.pings("fd00:7:0:1::2") && far.ns.pings("fd00:7:0:1::9"));
    // Nobody has it: it does not go to and fro, and both hear that, also from a router whose address their own has.
    let crossed = |pod: &NetNs| {
        let count = || {
            let shown = first.in_router(&blue, "ip -s -o link show vxlan0");
            let received = shown.split("RX:").nth(1).unwrap();
            let numbers = received.split('\\').nth(1).unwrap();
            let packets = numbers.split_whitespace().nth(1).unwrap();
            packets.parse::<u64>().unwrap()
        };
        let before = count();
        let said = pod.sh("ping -n -c 1 -W 2 10.7.1.10 || true");
        (count() - before, said)
    };
    for pod in [&one, &far] {
        let (packets, said) = crossed(&pod.ns);
        assert!(
            said.contains("Unreachable") && packets < 5,
            "{packets}: {said}"
        );
    }
    assert_eq!(set(&[]).unwrap(), 2);
    let (packets, said) = crossed(&far.ns);
    assert!(
        said.contains("exceeded") && packets > 20,
        "{packets}: {said}"
    );
}

#[test]
fn removed_without_a_trace() {
    let fabric = Fabric::new();
    let mut blue = Network::new("blue", 5061);
    blue.snat = true;
    let first = &fabric.nodes[0];
    let look = || {
        first.ns.sh("ip -o link | cut -d: -f2; ip addr show scope global; ip route; ip -6 route show proto 80")
    };
    let before = look();
    let router = blue.router(first);
    first.ensure(&router);
    let (one, plan) = first.pod_of(&blue, "one", &["10.7.0.2/32", "fd00:7::2/128"]);
    assert_eq!(router::list(&first.dir).unwrap(), [blue.name()]);
    let removed = pod::remove(&plan, Some(&one.netns), &first.side).unwrap();
    assert_eq!(removed.in_pod, 1);
    assert!(!first.in_router(&blue, "ip -o link").contains(": px"));
    assert!(router::remove(&first.side, &blue.name()).unwrap());
    assert!(!router::remove(&first.side, &blue.name()).unwrap());
    assert_eq!(router::list(&first.dir).unwrap(), []);
    assert_eq!(std::fs::read_dir(&first.dir).unwrap().count(), 0);
    assert_eq!(look(), before);
    assert!(!first.ns.sh("nft list ruleset").contains("masquerade"));
    // The number of the VXLAN is free again at once, and a pod on a router that is gone says so.
    let error = pod::apply(&plan, &one.netns, &first.side).unwrap_err();
    assert!(error.to_string().contains(blue.name().as_str()), "{error}");
    first.ensure(&router);
    pod::apply(&plan, &one.netns, &first.side).unwrap();
}

#[test]
fn half_made_is_completed_and_replaced_is_noticed() {
    let fabric = Fabric::new();
    let mut blue = Network::new("blue", 5071);
    blue.snat = true;
    let first = &fabric.nodes[0];
    let router = blue.router(first);
    // Death after the file was made, before the mount.
    std::fs::create_dir_all(&first.dir).unwrap();
    std::fs::write(first.dir.join(blue.name().as_str()), b"").unwrap();
    assert_eq!(router::list(&first.dir).unwrap(), []);
    assert!(first.side.router(&blue.name()).is_err());
    assert!(!first.ensure(&router).is_empty());
    let before = first.side.router(&blue.name()).unwrap().cookie().unwrap();
    // Death between the link to the node and its addresses.
    first.in_router(&blue, "ip addr flush dev uplink; ip link set lo down");
    first.ns.sh("nft flush ruleset; for l in $(ip -o link show group 0x20005081 | cut -d: -f2 | cut -d@ -f1); do ip addr flush dev $l; done");
    assert!(!first.ensure(&router).is_empty());
    assert_eq!(first.ensure(&router), Vec::<String>::new());
    let (one, _) = first.pod_of(&blue, "one", &["10.7.0.2/32", "fd00:7::2/128"]);
    assert!(one.ns.pings("192.0.2.1") && one.ns.pings("2001:db8::1"));
    // The namespace is gone, as after a restart of a container that kept it to itself.
    first.ns.sh(&format!(
        "umount -l {}",
        first.dir.join(blue.name().as_str()).display()
    ));
    assert!(first.side.router(&blue.name()).is_err());
    first.ensure(&router);
    assert_ne!(
        first.side.router(&blue.name()).unwrap().cookie().unwrap(),
        before
    );
    assert_eq!(first.ensure(&router), Vec::<String>::new());
}

#[test]
fn many_threads_make_one_router() {
    let fabric = Fabric::new();
    let mut blue = Network::new("blue", 5081);
    blue.snat = true;
    let first = &fabric.nodes[0];
    let router = blue.router(first);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| first.ensure(&router));
        }
    });
    assert_eq!(first.ensure(&router), Vec::<String>::new());
    let path = first.dir.join(blue.name().as_str());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let here = mounts
        .lines()
        .filter(|l| l.contains(&*path.to_string_lossy()));
    assert_eq!(here.count(), 1);
}

#[test]
fn two_networks_have_links_of_their_own_and_a_number_is_used_once() {
    let fabric = Fabric::new();
    let first = &fabric.nodes[0];
    let mut taken = std::collections::BTreeSet::new();
    for i in 0..6 {
        let mut network = Network::new(&format!("n{i}"), 5091 + i);
        network.snat = true;
        first.ensure(&network.router(first));
        let seen = first.in_router(&network, "ip -o -4 addr show uplink");
        assert!(taken.insert(seen), "an address is used twice");
    }
    let twice = Network::new("twice", 5091);
    let error = plexus_kernel::router::ensure(&first.side, &twice.router(first)).unwrap_err();
    assert!(error.to_string().contains("5091"), "{error}");
}

#[test]
fn an_underlay_of_ipv6_carries_both_families() {
    let fabric = Fabric::new();
    let blue = Network::new("blue", 5111);
    let underlays = ["2001:db8::11", "2001:db8::12"];
    for (i, node) in fabric.nodes.iter().enumerate() {
        let router = blue.router_at(underlays[i], &node.name);
        node.ensure(&router);
        let mut remotes = blue.remotes(&fabric, node);
        remotes[0].underlay = underlays[1 - i].parse().unwrap();
        router::set_remotes(&node.side, &router, &remotes, &[]).unwrap();
        assert_eq!(node.ensure(&router), Vec::<String>::new());
        assert_eq!(
            router::set_remotes(&node.side, &router, &remotes, &[]).unwrap(),
            0
        );
    }
    let (one, _) = fabric.nodes[0].pod_of(&blue, "one", &["10.7.0.2/32", "fd00:7::2/128"]);
    let (_far, _) = fabric.nodes[1].pod_of(&blue, "far", &["10.7.1.2/32", "fd00:7:0:1::2/128"]);
    assert!(one.ns.pings("10.7.1.2") && one.ns.pings("fd00:7:0:1::2"));
    // Back to IPv4: the device is made anew, and what it led to is told again.
    fabric.network(&blue);
    assert!(one.ns.pings("10.7.1.2") && one.ns.pings("fd00:7:0:1::2"));
}
