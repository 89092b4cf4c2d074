use crate::lab::Lab;
use plexus_core::nics::{Nic, NicChoice, NicState, published};
use plexus_kernel::events::wait;
use plexus_kernel::{Changes, NodeSide, Sysfs, nics};
use plexus_testkit::eventually;
use plexus_types::Family;
use std::time::Duration;

fn look(side: &NodeSide, patterns: &[&str]) -> Vec<Nic> {
    let choice = NicChoice {
        virtual_names: patterns.iter().map(|text| text.parse().unwrap()).collect(),
        default_route: false,
    };
    published(nics::observe(side, &Sysfs::default()).unwrap(), &choice)
}

fn names(nics: &[Nic]) -> Vec<&str> {
    nics.iter().map(|nic| nic.name.as_str()).collect()
}

/// `eth2`, and `eth3` with nobody on the wire; beside them what is virtual.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.node.ns().ip(
        "link add eth2 type veth peer name w2\nlink set eth2 up mtu 9000\nlink set w2 up\n\
         address add 10.0.2.1/24 dev eth2\naddress add 10.0.2.9/24 dev eth2\n\
         address add 2001:db8:2::1/64 dev eth2 nodad\n\
         link add eth3 type veth peer name w3\nlink set eth3 up\n\
         link add br0 type bridge\nlink add mv0 link eth2 type macvlan\n\
         link add vx0 type vxlan id 5 dstport 4789 dev eth2\n",
    );
    lab
}

#[test]
fn what_a_nic_is_is_seen_as_ip_shows_it() {
    let lab = lab();
    let seen = look(&lab.side, &["eth*"]);
    assert!(names(&seen).ends_with(&["eth2", "eth3"]), "{seen:?}");
    assert_eq!(names(&look(&lab.side, &[])), [""; 0]);
    let nic = seen.iter().find(|nic| nic.name == "eth2").unwrap();
    let text = |nets: &[ipnet::IpNet]| nets.iter().map(ToString::to_string).collect::<Vec<_>>();
    let addresses = text(&nic.addresses);
    for wanted in ["10.0.2.1/24", "10.0.2.9/24", "2001:db8:2::1/64"] {
        assert!(addresses.iter().any(|net| net == wanted), "{addresses:?}");
    }
    let first = nic.address(Family::V4).unwrap();
    assert_eq!(first.to_string(), "10.0.2.1/24");
    assert_eq!((nic.mtu, nic.state), (9000, NicState::Up));
    let mac = lab
        .node
        .ns()
        .sh("cat /sys/class/net/eth2/address 2>/dev/null || true; ip -o link show eth2");
    assert!(mac.contains(&nic.mac.unwrap().to_string()), "{mac}");
    assert_eq!(nic.speed, Some(10_000), "as a veth's driver says");
    let no_carrier = seen.iter().find(|nic| nic.name == "eth3").unwrap();
    assert_eq!(
        (no_carrier.state, no_carrier.speed),
        (NicState::NoCarrier, None)
    );
    lab.node.ns().ip("link set eth2 down\n");
    let seen = look(&lab.side, &["eth2"]);
    assert_eq!(
        (seen[0].name.as_str(), seen[0].state),
        ("eth2", NicState::Down)
    );
}

#[test]
fn the_default_route_names_its_nic() {
    let lab = lab();
    let default = |all: &[Nic]| {
        let main = all.iter().find(|nic| nic.default_route);
        main.map(|nic| nic.name.clone())
    };
    let all = || nics::observe(&lab.side, &Sysfs::default()).unwrap();
    lab.node
        .ns()
        .sh("ip route flush default; ip -6 route flush default");
    assert_eq!(default(&all()), None);
    lab.node
        .ns()
        .sh("ip route add default via 10.0.2.2 table 77");
    assert_eq!(default(&all()), None, "another table's");
    lab.node.ns().sh("ip route add default via 10.0.2.2");
    assert_eq!(default(&all()).as_deref(), Some("eth2"));
    assert!(!names(&look(&lab.side, &["eth*"])).contains(&"eth2"));
    lab.node
        .ns()
        .sh("ip route del default via 10.0.2.2; ip -6 route add default via 2001:db8:2::2");
    assert_eq!(default(&all()).as_deref(), Some("eth2"));
}

#[test]
fn every_change_of_a_nic_is_an_event() {
    let lab = lab();
    let ns = lab.node.ns();
    let changes = Changes::of_nics(&lab.side).unwrap();
    let quiet = || {
        wait(&[&changes], Some(Duration::from_millis(300)))
            .unwrap()
            .is_none()
    };
    eventually("the links are quiet", quiet);
    for change in [
        "ip address add 10.0.3.1/24 dev eth3",
        "ip address del 10.0.3.1/24 dev eth3",
        "ip address add 2001:db8:3::1/64 dev eth3 nodad",
        "ip link set eth2 mtu 1400",
        "ip link set w3 up",
        "ip link set eth3 down",
        "ip link set eth3 name rail3",
        "ip route add default via 10.0.2.2 metric 77",
        "ip link del rail3",
    ] {
        ns.sh(change);
        let told = wait(&[&changes], Some(Duration::from_secs(5))).unwrap();
        assert!(told.is_some(), "nobody told of: {change}");
        eventually("the links are quiet", quiet);
    }
    assert!(!names(&look(&lab.side, &["*"])).contains(&"rail3"));
}
