use crate::lab::{Lab, ifname, net, plan, set_option};
use plexus_core::plan::{Route, Rule};
use plexus_types::MacvlanMode;

#[test]
fn two_pods_talk_over_one_parent() {
    let lab = Lab::new();
    let (one, two) = (lab.pod("one"), lab.pod("two"));
    let mut first = lab.macvlan("c1", "net1", &["192.0.2.11/24", "2001:db8::11/64"]);
    first.routes.push(Route::new(
        net("0.0.0.0/0"),
        Some("192.0.2.1".parse().unwrap()),
    ));
    first.routes.push(Route::new(
        net("::/0"),
        Some("2001:db8::1".parse().unwrap()),
    ));
    let applied = lab.apply(&plan(1, vec![first.clone()]), &one);
    let link = applied.pod.link(&ifname("net1")).unwrap();
    assert_eq!(link.kind, "macvlan");
    assert_eq!(link.option(1), Some(4));
    assert_eq!(link.mac, first.mac);
    assert_eq!(link.group, 0x8000_0001);
    assert_eq!(link.alias.as_deref(), Some(first.alias.as_str()));
    assert!(link.up);
    lab.apply(
        &plan(
            2,
            vec![lab.macvlan("c2", "net1", &["192.0.2.12/24", "2001:db8::12/64"])],
        ),
        &two,
    );

    // At once: no duplicate address detection keeps IPv6 waiting.
    for address in ["192.0.2.12", "2001:db8::12", "192.0.2.1", "2001:db8::1"] {
        assert!(one.ns.pings(address), "{address} does not answer");
    }
    let seen = one.ns.sh(
        "ip -o link show net1; ip -o address show net1; ip route; ip -6 route; ip -o link show lo",
    );
    for text in [
        "alias plexus 7 c1 eth0 blue net1",
        "inet 192.0.2.11/24 brd 192.0.2.255 scope global net1",
        "default via 192.0.2.1 dev net1 proto 80",
        "default via 2001:db8::1 dev net1 proto 80",
        "<LOOPBACK,UP,LOWER_UP>",
    ] {
        assert!(seen.contains(text), "no {text:?} in\n{seen}");
    }
    assert!(
        !seen.contains("tentative") || seen.contains("fe80"),
        "{seen}"
    );
    assert_eq!(
        one.ns
            .sh("cat /proc/sys/net/ipv6/conf/net1/accept_ra")
            .trim(),
        "0"
    );
}

#[test]
fn four_at_once_with_everything_a_route_can_have() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let mut links: Vec<_> = (0..4)
        .map(|i| lab.macvlan("c1", &format!("net{i}"), &[&format!("10.9.{i}.2/24")]))
        .collect();
    links[1].mtu = Some(1400);
    let gateway = Some("10.9.0.1".parse().unwrap());
    links[0].routes.push(Route {
        metric: Some(7),
        mtu: Some(1300),
        advmss: Some(1200),
        ..Route::new(net("10.20.0.0/16"), gateway)
    });
    links[0].routes.push(Route {
        table: Some(5000),
        ..Route::new(net("10.30.0.0/16"), gateway)
    });
    links[0].routes.push(Route {
        src: Some("10.9.0.2".parse().unwrap()),
        scope: Some(253),
        ..Route::new(net("10.40.0.0/16"), None)
    });
    links[0].routes.push(Route {
        onlink: true,
        ..Route::new(net("10.50.0.0/16"), Some("172.31.0.1".parse().unwrap()))
    });
    links[0].rules.push(Rule {
        from: net("10.9.0.2/32"),
        table: 5000,
        priority: 5080,
    });
    let applied = lab.apply(&plan(1, links), &pod);
    assert_eq!(applied.pod.rules.len(), 1);
    assert_eq!(
        applied
            .pod
            .routes
            .iter()
            .filter(|r| r.protocol == 80)
            .count(),
        4
    );
    let seen = pod
        .ns
        .sh("ip route show table all proto 80; ip rule; ip -o link show net1");
    for text in [
        "10.20.0.0/16 via 10.9.0.1 dev net0 metric 7 mtu 1300 advmss 1200",
        "10.30.0.0/16 via 10.9.0.1 dev net0 table 5000",
        "10.40.0.0/16 dev net0 scope link src 10.9.0.2",
        "10.50.0.0/16 via 172.31.0.1 dev net0 onlink",
        "5080:\tfrom 10.9.0.2 lookup 5000 proto 80",
        "mtu 1400",
    ] {
        assert!(seen.contains(text), "no {text:?} in\n{seen}");
    }
}

#[test]
fn every_mode() {
    let lab = Lab::new();
    let modes = [
        (MacvlanMode::Private, 1),
        (MacvlanMode::Vepa, 2),
        (MacvlanMode::Bridge, 4),
    ];
    for (index, (wanted, number)) in modes.into_iter().enumerate() {
        let pod = lab.pod(&format!("p{index}"));
        let mut link = lab.macvlan(&format!("c{index}"), "net1", &[]);
        set_option(&mut link, "mode", wanted.number());
        set_option(&mut link, "bcqueuelen", 500);
        let applied = lab.apply(&plan(1, vec![link]), &pod);
        assert_eq!(
            applied.pod.link(&ifname("net1")).unwrap().option(1),
            Some(number)
        );
        assert!(pod.ns.sh("ip -d link show net1").contains("bcqueuelen 500"));
    }
}

#[test]
fn passthru_takes_the_parent_alone_and_keeps_its_mac() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let mut link = lab.macvlan("c1", "net1", &["192.0.2.11/24"]);
    link.mac = None;
    set_option(&mut link, "mode", MacvlanMode::Passthru.number());
    let applied = lab.apply(&plan(1, vec![link]), &pod);
    let mac = applied.pod.link(&ifname("net1")).unwrap().mac.unwrap();
    assert_eq!(mac.to_string(), "02:00:5e:00:00:02");
    assert!(pod.ns.pings("192.0.2.1"));
}
