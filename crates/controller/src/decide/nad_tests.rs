//! What of a changed NAD is followed.

use super::*;
use plexus_api::nad::Contrail;

fn spec(contrail: Contrail) -> NetworkSpec {
    contrail.spec()
}

fn contrail(cidrs: &[&str], snat: bool, forwarding: bool) -> Contrail {
    Contrail {
        cidrs: cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect(),
        snat,
        forwarding,
        ..Contrail::default()
    }
}

#[test]
fn a_network_in_use_follows_in_what_it_can() {
    let now = spec(contrail(&["10.1.1.0/24"], false, false));
    let nothing = SpecUpdate {
        spec: None,
        stays: vec![],
        recreate: false,
    };
    assert_eq!(follow(&now, &now, true), nothing);

    let snat = spec(contrail(&["10.1.1.0/24"], true, false));
    assert_eq!(follow(&now, &snat, true).spec, Some(snat));

    let more = spec(contrail(&["10.1.1.0/24", "fd00::/64"], false, false));
    assert_eq!(follow(&now, &more, true).spec, Some(more));

    let other = spec(contrail(&["10.1.2.0/24"], true, false));
    let following = follow(&now, &other, true);
    assert_eq!(following.stays, ["subnets stay 10.1.1.0/24"]);
    let partly = following.spec.unwrap();
    assert!(partly.snat && partly.subnets == now.subnets);
    let unused = follow(&now, &other, false);
    assert!(unused.recreate && unused.spec.is_none() && unused.stays.is_empty());
}

#[test]
fn another_provider_is_another_network() {
    let now = spec(contrail(&["10.1.1.0/24"], false, false));
    let routed = spec(contrail(&["10.1.1.0/24"], false, true));
    let used = follow(&now, &routed, true);
    assert_eq!(used.stays, ["provider stays overlay"]);
    assert!(!used.recreate && used.spec.is_none());
    let unused = follow(&now, &routed, false);
    assert!(unused.recreate && unused.spec.is_none() && unused.stays.is_empty());
}

#[test]
fn what_others_wrote_into_the_network_stays() {
    let wanted = spec(contrail(&["10.1.1.0/24"], false, false));
    let mut now = wanted.clone();
    now.mtu = Some(1400);
    now.subnets.values_mut().next().unwrap().exclude = vec!["10.1.1.0/28".parse().unwrap()];
    assert_eq!(follow(&now, &wanted, false).spec, None);
}
