//! What NADs ask for, and what of a changed one is followed.

use super::*;

fn spec(contrail: Contrail) -> NetworkSpec {
    match wish(false, contrail) {
        Wish::Network(spec) => *spec,
        other => panic!("{other:?}"),
    }
}

fn contrail(cidrs: &[&str], snat: bool, forwarding: bool) -> Contrail {
    Contrail {
        cidrs: cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect(),
        snat,
        forwarding,
        network: None,
    }
}

#[test]
fn flags_choose_the_provider_and_forwarding_wins() {
    let plain = spec(contrail(&["10.1.1.0/24", "fd00:1::/64"], false, false));
    assert_eq!(plain.provider_name(), "overlay");
    assert!(!plain.snat && plain.source_check);
    assert_eq!(plain.subnets["s0"].cidr.to_string(), "10.1.1.0/24");
    assert_eq!(plain.subnets["s1"].cidr.to_string(), "fd00:1::/64");
    let snat = spec(contrail(&["10.1.1.0/24"], true, false));
    assert_eq!((snat.provider_name(), snat.snat), ("overlay", true));
    let both = spec(contrail(&["10.1.1.0/24"], true, true));
    assert_eq!((both.provider_name(), both.snat), ("routed", false));
}

#[test]
fn the_order_of_many_subnets_is_that_of_their_names() {
    let cidrs: Vec<String> = (0..12).map(|i| format!("10.{i}.0.0/16")).collect();
    let cidrs: Vec<&str> = cidrs.iter().map(String::as_str).collect();
    let spec = spec(contrail(&cidrs, false, false));
    let got: Vec<String> = spec
        .subnets
        .values()
        .map(|subnet| subnet.cidr.to_string())
        .collect();
    assert_eq!(got, cidrs);
}

#[test]
fn no_annotation_makes_no_network() {
    assert_eq!(wish(false, Contrail::default()), Wish::Nothing);
    assert_eq!(wish(true, Contrail::default()), Wish::Nothing);
    assert!(matches!(
        wish(true, contrail(&["10.0.0.0/24"], false, false)),
        Wish::Unclear(_)
    ));
    assert_eq!(read(&BTreeMap::new(), Ok(None)).wish, Wish::Nothing);
    let not_text = read(&BTreeMap::new(), Err("spec.config is not text"));
    assert_eq!(
        not_text.wish,
        Wish::Unclear("spec.config is not text".into())
    );
}

#[test]
fn a_network_in_use_follows_in_what_it_can() {
    let now = spec(contrail(&["10.1.1.0/24"], false, false));
    assert_eq!(
        follow(&now, &now, true),
        Following {
            spec: None,
            stays: vec![]
        }
    );

    let snat = spec(contrail(&["10.1.1.0/24"], true, false));
    assert_eq!(follow(&now, &snat, true).spec, Some(snat));

    let more = spec(contrail(&["10.1.1.0/24", "fd00::/64"], false, false));
    assert_eq!(follow(&now, &more, true).spec, Some(more));

    let other = spec(contrail(&["10.1.2.0/24"], true, false));
    let following = follow(&now, &other, true);
    assert_eq!(following.stays, ["subnets stay 10.1.1.0/24"]);
    let partly = following.spec.unwrap();
    assert!(partly.snat && partly.subnets == now.subnets);
    assert_eq!(
        follow(&now, &other, false),
        Following {
            spec: Some(other),
            stays: vec![]
        }
    );

    let routed = spec(contrail(&["10.1.1.0/24"], false, true));
    assert_eq!(
        follow(&now, &routed, true),
        Following {
            spec: None,
            stays: vec!["provider stays overlay".into()]
        }
    );
    assert_eq!(follow(&now, &routed, false).spec, Some(routed));
}

#[test]
fn what_others_wrote_into_the_network_stays() {
    let wish = spec(contrail(&["10.1.1.0/24"], false, false));
    let mut now = wish.clone();
    now.mtu = Some(1400);
    now.subnets.get_mut("s0").unwrap().exclude = vec!["10.1.1.0/28".parse().unwrap()];
    assert_eq!(follow(&now, &wish, false).spec, None);
}
