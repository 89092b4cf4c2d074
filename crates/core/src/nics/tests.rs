//! Which links count as NICs, and how two inventories differ.

use super::*;

fn nic(index: u32, name: &str, kind: &str) -> Nic {
    let device = NicDevice {
        pci_address: Some(format!("0000:3b:00.{index}")),
        ..NicDevice::default()
    };
    Nic {
        index,
        name: name.into(),
        kind: kind.into(),
        addresses: vec![],
        mac: None,
        permanent_mac: None,
        mtu: 1500,
        state: NicState::Up,
        speed: None,
        device: kind.is_empty().then_some(device),
        master: None,
        parent: None,
        default_route: false,
        ours: false,
    }
}

fn on(mut nic: Nic, parent: u32) -> Nic {
    nic.parent = Some(parent);
    nic
}

fn port(mut nic: Nic, master: &str) -> Nic {
    nic.master = Some(master.into());
    nic
}

fn names(all: Vec<Nic>, choice: &NicChoice) -> Vec<String> {
    let published = published(all, choice).into_iter();
    published.map(|nic| nic.name).collect()
}

fn choice(patterns: &[&str]) -> NicChoice {
    NicChoice {
        virtual_names: patterns.iter().map(|text| text.parse().unwrap()).collect(),
        default_route: false,
    }
}

#[test]
fn hardware_bonds_and_vlans_count_and_nothing_virtual() {
    let mut without_hardware = nic(20, "lo", "");
    without_hardware.device = None;
    let mut main = nic(1, "ens1", "");
    main.default_route = true;
    let mut made = on(nic(21, "blue5", "vlan"), 2);
    made.ours = true;
    let all = vec![
        main,
        nic(10, "ens10", ""),
        nic(2, "ens2", ""),
        port(nic(3, "ens3", ""), "bond"),
        port(nic(4, "ens4", ""), "bridge"),
        port(nic(5, "ens5", ""), "vrf"),
        nic(6, "bond0", "bond"),
        on(nic(7, "bond0.5", "vlan"), 6),
        on(nic(8, "br0.5", "vlan"), 9),
        nic(9, "br0", "bridge"),
        nic(11, "veth0", "veth"),
        on(nic(12, "mv", "macvlan"), 2),
        on(nic(13, "iv", "ipvlan"), 2),
        nic(14, "vx", "vxlan"),
        nic(15, "tun0", "tun"),
        nic(16, "dm", "dummy"),
        on(nic(17, "lost", "vlan"), 99),
        on(nic(18, "round", "vlan"), 18),
        without_hardware,
        made,
    ];
    let wanted = ["bond0", "bond0.5", "ens2", "ens5", "ens10"];
    assert_eq!(names(all.clone(), &NicChoice::default()), wanted);
    let mut reversed = all.clone();
    reversed.reverse();
    assert_eq!(names(reversed, &NicChoice::default()), wanted);
    let asked = NicChoice {
        default_route: true,
        ..NicChoice::default()
    };
    assert!(names(all, &asked).contains(&"ens1".to_owned()));
}

#[test]
fn virtual_links_count_that_were_named() {
    let all = vec![
        nic(1, "eth1", "veth"),
        nic(2, "eth10", "veth"),
        on(nic(3, "eth1.7", "vlan"), 1),
        nic(4, "px123", "veth"),
        port(nic(5, "eth2", "veth"), "bridge"),
    ];
    let found = names(all.clone(), &choice(&["eth*"]));
    assert_eq!(found, ["eth1", "eth1.7", "eth10"]);
    assert_eq!(names(all, &choice(&["eth10", "x"])), ["eth10"]);
    for wrong in ["", "a/b", "e*h", "**", "a name", "sixteen-letters-x"] {
        let error = wrong.parse::<NicPattern>().unwrap_err();
        assert!(error.to_string().contains("with * behind it"), "{error}");
    }
    for right in ["eth1", "eth*", "*"] {
        assert_eq!(right.parse::<NicPattern>().unwrap().to_string(), right);
    }
}

#[test]
fn addresses_of_one_wire_are_nobody_elses_business() {
    let mut nic = nic(1, "ens1", "");
    nic.addresses = ["169.254.3.4/16", "fe80::1/64", "10.0.1.1/24", "10.0.1.9/24"]
        .map(|net| net.parse().unwrap())
        .into();
    let first = nic.address(Family::V4).map(|net| net.to_string());
    assert_eq!(first.as_deref(), Some("10.0.1.1/24"));
    assert_eq!(nic.address(Family::V6), None);
    assert_eq!(nic.global_addresses().count(), 2);
}

#[test]
fn differences_name_the_nic() {
    let before = [nic(1, "ens1", ""), nic(2, "ens2", "")];
    let mut after = [nic(2, "ens2", ""), nic(3, "ens3", "")];
    after[0].mtu = 9000;
    assert_eq!(
        differences(&before, &after),
        ["ens2 has changed", "ens3 is new", "ens1 is gone"]
    );
    let mut same = before.clone();
    same[0].addresses.push("fe80::1/64".parse().unwrap());
    assert_eq!(differences(&before, &same), Vec::<String>::new());
}
