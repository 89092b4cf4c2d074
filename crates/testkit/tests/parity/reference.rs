//! Where the reference is wrong and we are not. Each case also shows what the reference does, so
//! that we learn when it is mended.

use crate::interop::{connect, execute, links};
use crate::pairs::{Pair, host_local};
use crate::twins::{Twin, Who};
use plexus_testkit::{Agent, CniOutput};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Both answers to an ADD, and what `builder` finds afterwards on the reference's node and on ours.
fn both<T>(
    pair: &Pair,
    builder: impl Fn(&Twin, &plexus_testkit::Pod<'_>) -> T,
) -> [(CniOutput, T); 2] {
    [Who::Reference, Who::Ours].map(|who| {
        let twin = Twin::new(who, pair);
        let _agent = (who == Who::Ours).then(|| Agent::start(&twin.node));
        let pod = twin.pod("c1", pair);
        let answer = twin.call("ADD", &pod, pair);
        let found = builder(&twin, &pod);
        (answer, found)
    })
}

#[test]
fn a_default_route_from_ipam_does_not_collide_with_the_gateway() {
    let mut ipam = host_local(&["10.1.2.0/24", "fd00:1::/64"]);
    ipam["routes"] = json!([{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]);
    let options = json!({"bridge": "br0", "isDefaultGateway": true, "ipam": ipam});
    let pair = Pair::new("default routes", "bridge", options);
    let [theirs, ours] = both(&pair, |_, pod| {
        pod.ns()
            .sh("ip route show default; ip -6 route show default")
    });
    assert!(theirs.0.error().1.contains("file exists"), "{:?}", theirs.0);
    ours.0.ok();
    assert_eq!(ours.1.lines().count(), 2, "{}", ours.1);
}

#[test]
fn a_bridge_that_lost_its_ports_takes_a_gateway() {
    let options = json!({"bridge": "br0", "isGateway": true, "ipam": host_local(&["10.1.2.0/24"])});
    let pair = Pair {
        on_node: "ip link add br0 type bridge; ip link set br0 up; \
                  ip link add p0 type veth peer name p1; ip link set p0 master br0; \
                  ip link del p0",
        ..Pair::new("no ports", "bridge", options)
    };
    let [theirs, ours] = both(&pair, |twin, pod| {
        connect(
            pod.ns(),
            twin.node.ns(),
            SocketAddr::from(([10, 1, 2, 1], 7008)),
            SocketAddr::from(([10, 1, 2, 1], 7008)),
        )
    });
    let text = theirs.0.error().1;
    assert!(text.contains("could not set bridge's mac"), "{text}");
    ours.0.ok();
    assert_eq!(ours.1, Some("10.1.2.2".parse().unwrap()));
}

#[test]
fn an_unspecified_ipv6_gateway_means_that_there_is_none() {
    let mut ipam = host_local(&["fd00:1::/64"]);
    ipam["routes"] = json!([{"dst": "fd00:6::/64", "gw": "::"}]);
    let pair = Pair::new(
        "no gateway",
        "bridge",
        json!({"bridge": "br0", "ipam": ipam}),
    );
    let [theirs, ours] = both(&pair, |_, pod| pod.ns().sh("ip -6 route show fd00:6::/64"));
    assert!(
        theirs.0.error().1.contains("invalid argument"),
        "{:?}",
        theirs.0
    );
    ours.0.ok();
    assert!(ours.1.starts_with("fd00:6::/64 dev net1"), "{}", ours.1);
}

#[test]
fn a_failed_add_leaves_no_link() {
    let mut ipam = host_local(&["10.1.2.0/24"]);
    ipam["routes"] = json!([{"dst": "10.5.0.0/16", "gw": "10.99.0.1"}]);
    let pair = Pair::new("fails", "macvlan", json!({"master": "eth1", "ipam": ipam}));
    let [theirs, ours] = both(&pair, |_, pod| links(pod.ns()));
    assert!(
        theirs.0.error().1.contains("network is unreachable"),
        "{:?}",
        theirs.0
    );
    let text = ours.0.error().1;
    assert!(
        text.contains("10.5.0.0/16") && text.contains("10.99.0.1"),
        "{text}"
    );
    assert_eq!(
        (theirs.1, ours.1),
        (
            vec!["lo".to_owned(), "net1".to_owned()],
            vec!["lo".to_owned()]
        )
    );
}

#[test]
fn check_understands_host_addresses() {
    let ipam = json!({"type": "static", "addresses": [{"address": "10.1.2.9/32"}]});
    let pair = Pair::new(
        "host address",
        "macvlan",
        json!({"master": "eth1", "ipam": ipam}),
    );
    let [theirs, ours] = [Who::Reference, Who::Ours].map(|who| {
        let twin = Twin::new(who, &pair);
        let _agent = (who == Who::Ours).then(|| Agent::start(&twin.node));
        let pod = twin.pod("c1", &pair);
        let result = twin.call("ADD", &pod, &pair).ok();
        twin.check(&pod, &pair, &result)
    });
    assert!(
        theirs.error().1.contains("Failed to find Gateway"),
        "{theirs:?}"
    );
    ours.done();
}

/// The same network twice in one container: removing one leaves the other masqueraded.
#[test]
fn masquerading_of_one_interface_outlives_the_other() {
    let options = json!({"bridge": "br0", "isDefaultGateway": true, "ipMasq": true,
        "ipam": host_local(&["10.1.2.0/24"])});
    let pair = Pair::new("twice", "bridge", options);
    let outside = SocketAddr::from(([192, 0, 2, 1], 7009));
    let call = |twin: &Twin, pod: &plexus_testkit::Pod<'_>, who: Who, verb: &str, ifname: &str| {
        match who {
            Who::Reference => {
                let attachment = ("c1", pod.netns());
                execute(
                    &twin.node,
                    "bridge",
                    verb,
                    (attachment.0, &attachment.1, ifname),
                    "",
                    &twin.config,
                )
            }
            Who::Ours => pod.call(verb, &twin.config).ifname(ifname).run(),
        }
    };
    let [theirs, ours] = [Who::Reference, Who::Ours].map(|who| {
        let twin = Twin::new(who, &pair);
        let _agent = (who == Who::Ours).then(|| Agent::start(&twin.node));
        let pod = twin.pod("c1", &pair);
        let added: Vec<Value> = ["net1", "net2"]
            .map(|name| call(&twin, &pod, who, "ADD", name).ok())
            .into();
        assert_eq!(added.len(), 2);
        let deleted = call(&twin, &pod, who, "DEL", "net1");
        pod.ns()
            .sh("ip route show default | grep -q . || ip route add default via 10.1.2.1");
        (
            deleted,
            connect(pod.ns(), twin.node.outside(), outside, outside),
        )
    });
    assert!(
        !theirs.0.success() && theirs.1 != Some("192.0.2.2".parse().unwrap()),
        "{theirs:?}"
    );
    ours.0.done();
    assert_eq!(ours.1, Some("192.0.2.2".parse().unwrap()));
}
