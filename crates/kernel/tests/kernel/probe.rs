use plexus_kernel::{Feature, Features, Netns, boot_id, probe};
use plexus_testkit::NetNs;

fn features() -> Features {
    probe()
}

#[test]
fn says_what_ip_says() {
    let features = features();
    let ns = NetNs::create(&format!("px-test-{}-probe", std::process::id()));
    ns.try_sh("ip link add p0 type veth peer name p1");
    let attempts = [
        (Feature::Veth, "ip link add x0 type veth peer name x1"),
        (Feature::Bridge, "ip link add x2 type bridge"),
        (
            Feature::Macvlan,
            "ip link add x3 link p0 type macvlan mode bridge",
        ),
        (
            Feature::Ipvlan,
            "ip link add x4 link p1 type ipvlan mode l2",
        ),
        (Feature::Vlan, "ip link add x5 link p0 type vlan id 80"),
        (
            Feature::Vxlan,
            "ip link add x6 type vxlan id 80 dstport 4789",
        ),
        (Feature::Vrf, "ip link add x7 type vrf table 80"),
        (Feature::Dummy, "ip link add x8 type dummy"),
        (
            Feature::Masquerade,
            "nft 'add table inet t; add chain inet t c { type nat hook postrouting priority srcnat; }; add rule inet t c masquerade'",
        ),
    ];
    for (feature, attempt) in attempts {
        let missing = features.missing(feature);
        assert_eq!(
            features.has(feature),
            ns.try_sh(attempt),
            "{feature}: {missing:?}"
        );
        if let Some(why) = missing {
            assert!(why.contains(feature.name()), "{why}");
        }
    }
    assert!(features.has(Feature::NetnsCookie));
    assert_eq!(features.iter().count(), Feature::ALL.len());
}

#[test]
fn leaves_the_caller_where_it_was() {
    let before = Netns::current().unwrap().cookie().unwrap();
    features();
    assert_eq!(Netns::current().unwrap().cookie().unwrap(), before);
}

#[test]
fn the_boot_has_an_id() {
    let id = boot_id().unwrap();
    assert_eq!(id.len(), 36);
    assert_eq!(id, boot_id().unwrap());
}
