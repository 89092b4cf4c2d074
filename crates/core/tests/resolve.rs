//! Which attachments a configuration makes, and who has the default route.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]

use plexus_api::cni::{
    Args, DefaultGw, Dns, Macvlan, MacvlanMode, Native, NetConf, Network, Outcome, Provider,
    RouteConf,
};
use plexus_core::attach::preview::sandbox;
use plexus_core::attach::{
    Attach, AttachRequest, Attachment, Candidate, Provided, ReferenceRequest, choose_default,
};
use plexus_core::attachment::{Assigned, AssignedIp, DefaultRoute, NativeSpec};
use plexus_core::refusal::Refusal;
use plexus_core::resolve::Networks;
use plexus_types::{IfName, NetworkName, chain};

/// The error and its next step.
fn printed(error: &impl Refusal) -> String {
    format!("{}; {}", chain(error), error.remedy())
}

fn names(config: &str) -> Result<Vec<String>, String> {
    let conf = NetConf::parse(config.as_bytes(), &Args::default()).map_err(|e| e.to_string())?;
    let request = AttachRequest::of(&conf, sandbox("c1").unwrap());
    let attach = Attach::new(request).map_err(|e| printed(&e))?;
    let name = |one: &Attachment| format!("{} {} {}", one.reference, one.network, one.ifname);
    Ok(attach.attachments().iter().map(name).collect())
}

const HEAD: &str = r#"{"cniVersion":"1.1.0","name":"all","type":"plexus-cni","networks":["#;

#[test]
fn names_and_order() {
    let one = r#"{"cniVersion":"1.1.0","name":"blue","type":"plexus-cni","provider":"macvlan","master":"eth1"}"#;
    assert_eq!(names(one).unwrap(), ["0 blue eth0"]);
    let all = format!(
        r#"{HEAD}
        {{"name":"a","provider":"macvlan","master":"eth1"}},
        {{"name":"a","provider":"macvlan","master":"eth1"}},
        {{"name":"b","provider":"macvlan","master":"eth1","interface":"storage0"}},
        {{"name":"c","plugins":[{{"type":"ptp"}}]}}]}}"#
    );
    assert_eq!(
        names(&all).unwrap(),
        ["0 a eth0", "1 a net1", "2 b storage0", "3 c net3"]
    );
}

#[test]
fn a_reference_may_make_several_interfaces() {
    let all = format!(
        r#"{HEAD}
        {{"name":"a","provider":"macvlan","master":"eth1"}},
        {{"name":"b","provider":"macvlan","master":"eth1"}},
        {{"name":"c","provider":"macvlan","master":"eth1"}}]}}"#
    );
    let conf = NetConf::parse(all.as_bytes(), &Args::default()).unwrap();
    let mut request = AttachRequest::of(&conf, sandbox("c1").unwrap());
    let of_nics = request.references.split_off(1).into_iter();
    let of_nics = of_nics.map(|one| Network {
        name: "b".parse().unwrap(),
        ..one.networks.all()[0].clone()
    });
    request.references.push(ReferenceRequest {
        origin: None,
        networks: Networks::PerNic(of_nics.collect()),
    });
    let names = |request: &AttachRequest| {
        let attach = Attach::new(request.clone()).unwrap();
        let name = |one: &Attachment| format!("{}.{} {}", one.reference, one.ordinal, one.ifname);
        attach.attachments().iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(&request), ["0.0 eth0", "1.0 net1-0", "1.1 net1-1"]);
    // Plugin mode: the one reference, named by the runtime.
    let one: ReferenceRequest = request.references.remove(1);
    (request.references, request.default_gw) = (vec![one], None);
    assert_eq!(names(&request), ["0.0 eth0-0", "0.1 eth0-1"]);
}

#[test]
fn a_clash_names_both() {
    for other in ["eth0", "net1"] {
        let all = format!(
            r#"{HEAD}
            {{"name":"a","provider":"macvlan","master":"eth1"}},
            {{"name":"b","provider":"macvlan","master":"eth1"}},
            {{"name":"c","provider":"macvlan","master":"eth1","interface":"{other}"}}]}}"#
        );
        let error = names(&all).unwrap_err();
        let first = if other == "eth0" {
            "network a (number 0)"
        } else {
            "network b (number 1)"
        };
        assert!(
            error.contains(first) && error.contains("network c (number 2)"),
            "{error}"
        );
    }
}

#[test]
fn source_routing_of_a_delegate_is_not_ignored() {
    let all = format!(
        r#"{HEAD}
        {{"name":"a","provider":"macvlan","master":"eth1"}},
        {{"name":"b","sourceRouting":true,"plugins":[{{"type":"ptp"}}]}}]}}"#
    );
    let error = names(&all).unwrap_err();
    assert!(error.contains("sourceRouting"), "{error}");
}

/// One attachment, by what it has: addresses with gateways, and default routes.
struct Case {
    network: NetworkName,
    ifname: IfName,
    spec: NativeSpec,
    assigned: Assigned,
    outcome: Option<Outcome>,
}

fn case(name: &str, ips: &[(&str, Option<&str>)], delegate: bool, defaults: &[&str]) -> Case {
    let network = NetworkName::new(name).unwrap();
    let ifname = IfName::new(&format!("if-{name}")).unwrap();
    let macvlan = Macvlan {
        master: None,
        mode: MacvlanMode::Bridge,
        bcqueuelen: None,
    };
    let native = Native {
        provider: Provider::Macvlan(macvlan),
        ipam: None,
        mac: None,
        ips: vec![],
        mtu: None,
        dns: Dns::default(),
    };
    let spec = NativeSpec {
        index: 0,
        network: network.clone(),
        of_object: false,
        ifname: ifname.clone(),
        native,
        source_routing: false,
        several: true,
    };
    let ips = ips.iter().map(|(address, gateway)| AssignedIp {
        address: address.parse().unwrap(),
        gateway: gateway.map(|gateway| gateway.parse().unwrap()),
    });
    let routes = defaults.iter().map(|dst| RouteConf {
        dst: dst.parse().unwrap(),
        gw: None,
        mtu: None,
        advmss: None,
        priority: None,
        table: None,
        scope: None,
    });
    let assigned = Assigned {
        ips: ips.collect(),
        routes: routes.collect(),
        dns: Dns::default(),
    };
    let outcome = delegate.then(|| Outcome {
        ips: assigned
            .ips
            .iter()
            .map(|ip| plexus_api::cni::Ip {
                address: ip.address,
                gateway: ip.gateway,
                interface: None,
            })
            .collect(),
        routes: assigned.routes.clone(),
        ..Outcome::default()
    });
    Case {
        network,
        ifname,
        spec,
        assigned,
        outcome,
    }
}

/// `46.` for each: who has the default route of which family.
fn chosen(cases: &[Case], v4: Option<&str>, v6: Option<&str>) -> Result<Vec<String>, String> {
    let candidates: Vec<Candidate<'_>> = cases
        .iter()
        .map(|case| Candidate {
            network: &case.network,
            ifname: &case.ifname,
            provided: match &case.outcome {
                Some(outcome) => Provided::Plugins(outcome),
                None => Provided::Native(&case.spec, &case.assigned),
            },
        })
        .collect();
    let choice = DefaultGw {
        v4: v4.map(str::to_owned),
        v6: v6.map(str::to_owned),
    };
    let chosen = choose_default(&candidates, Some(&choice)).map_err(|e| printed(&e))?;
    assert_eq!(
        choose_default(&candidates, None).unwrap(),
        vec![DefaultRoute::AsConfigured; cases.len()]
    );
    let each = chosen.iter().map(|default| match default {
        DefaultRoute::Only { v4, v6 } => {
            format!(
                "{}{}",
                if *v4 { "4" } else { "-" },
                if *v6 { "6" } else { "-" }
            )
        }
        DefaultRoute::AsConfigured => "as configured".to_owned(),
    });
    Ok(each.collect())
}

#[test]
fn without_a_choice_the_first_that_brings_a_gateway() {
    let cases = [
        case("a", &[("10.0.0.2/24", None)], false, &[]),
        case(
            "b",
            &[("10.1.0.2/24", Some("10.1.0.1")), ("fd00::2/64", None)],
            false,
            &[],
        ),
        case("c", &[("fd01::2/64", None)], false, &["::/0"]),
        case(
            "d",
            &[
                ("10.2.0.2/24", Some("10.2.0.1")),
                ("fd02::2/64", Some("fd02::1")),
            ],
            false,
            &[],
        ),
    ];
    assert_eq!(
        chosen(&cases, None, None).unwrap(),
        ["--", "4-", "-6", "--"]
    );
    assert_eq!(
        chosen(&cases, Some("d"), None).unwrap(),
        ["--", "--", "-6", "4-"]
    );
    assert_eq!(
        chosen(&cases, Some("if-d"), Some("if-d")).unwrap(),
        ["--", "--", "--", "46"]
    );
}

#[test]
fn a_name_for_both_families_falls_back_for_the_one_that_is_lacking() {
    let cases = [
        case("a", &[("fd01::2/64", Some("fd01::1"))], false, &[]),
        case("b", &[("10.1.0.2/24", Some("10.1.0.1"))], false, &[]),
    ];
    assert_eq!(chosen(&cases, Some("b"), Some("b")).unwrap(), ["-6", "4-"]);
    let error = chosen(&cases, Some("a"), None).unwrap_err();
    assert!(error.contains("brings no IPv4 gateway"), "{error}");
}

#[test]
fn a_choice_that_cannot_be_is_refused() {
    let cases = [
        case("a", &[("10.0.0.2/24", None)], false, &[]),
        case("b", &[("10.1.0.2/24", Some("10.1.0.1"))], false, &[]),
        case("layer2", &[], false, &[]),
    ];
    for (name, text) in [
        ("a", "network a (interface if-a) brings no IPv4 gateway"),
        (
            "layer2",
            "network layer2 (interface if-layer2) brings no IPv4 gateway",
        ),
        (
            "z",
            "z is neither a network nor an interface of this container",
        ),
    ] {
        let error = chosen(&cases, Some(name), Some(name)).unwrap_err();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn a_delegate_can_have_it_and_cannot_be_made_to_give_it_up() {
    let cases = [
        case("a", &[("10.0.0.2/24", None)], false, &[]),
        case(
            "b",
            &[("10.1.0.2/24", Some("10.1.0.1"))],
            true,
            &["0.0.0.0/0"],
        ),
        case("c", &[("10.2.0.2/24", Some("10.2.0.1"))], false, &[]),
    ];
    assert_eq!(chosen(&cases, None, None).unwrap(), ["--", "4-", "--"]);
    let error = chosen(&cases, Some("c"), None).unwrap_err();
    assert!(
        error.contains("the plugins of network b (interface if-b) set an IPv4"),
        "{error}"
    );
}

#[test]
fn a_delegate_with_a_gateway_but_no_default_route_does_not_have_it() {
    let cases = [
        case("a", &[("10.1.0.2/24", Some("10.1.0.1"))], true, &[]),
        case("b", &[("10.2.0.2/24", Some("10.2.0.1"))], false, &[]),
    ];
    assert_eq!(chosen(&cases, None, None).unwrap(), ["--", "4-"]);
    let error = chosen(&cases, Some("a"), None).unwrap_err();
    assert!(
        error.contains("network a (interface if-a) brings no IPv4"),
        "{error}"
    );
}

#[test]
fn plugins_that_have_not_run_have_it_only_if_they_are_named() {
    let cases = [
        case("a", &[("10.0.0.2/24", Some("10.0.0.1"))], false, &[]),
        case("b", &[], false, &[]),
    ];
    let candidate = |case: &'static str, index: usize, provided| {
        let Case {
            network, ifname, ..
        } = &cases[index];
        assert_eq!(network.as_str(), case);
        Candidate {
            network,
            ifname,
            provided,
        }
    };
    let first = Provided::Native(&cases[0].spec, &cases[0].assigned);
    let candidates = [
        candidate("a", 0, first),
        candidate("b", 1, Provided::Unknown),
    ];
    let none = DefaultRoute::Only {
        v4: false,
        v6: false,
    };
    let chosen = choose_default(&candidates, Some(&DefaultGw::default())).unwrap();
    assert_eq!(
        chosen,
        [
            DefaultRoute::Only {
                v4: true,
                v6: false
            },
            none
        ]
    );
    let named = DefaultGw {
        v4: Some("b".to_owned()),
        v6: Some("b".to_owned()),
    };
    let chosen = choose_default(&candidates, Some(&named)).unwrap();
    assert_eq!(chosen, [none, DefaultRoute::Only { v4: true, v6: true }]);
}
