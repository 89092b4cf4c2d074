//! The way of a request, step by step, without a node: what is done in which order, and what is answered.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]

use plexus_api::cni::{Args, NetConf, Outcome, RouteConf};
use plexus_core::attach::preview::sandbox;
use plexus_core::attach::{Attach, AttachError, AttachRequest, Backend, PreparationResult, Step};
use plexus_core::attachment::{Assigned, AssignedIp};
use plexus_core::plan::ObservedMacs;
use plexus_core::resolve::Networks;

fn request(config: &str) -> AttachRequest {
    let conf = NetConf::parse(config.as_bytes(), &Args::default()).unwrap();
    AttachRequest::of(&conf, sandbox("c1").unwrap())
}

/// Each interface that we make has an address of its own, with a gateway.
fn attach(request: AttachRequest) -> Attach {
    let mut attach = Attach::new(request).unwrap();
    let natives: Vec<usize> = attach.natives().map(|(index, _)| index).collect();
    for index in natives {
        let ip = AssignedIp {
            address: format!("10.{index}.0.2/24").parse().unwrap(),
            gateway: Some(format!("10.{index}.0.1").parse().unwrap()),
        };
        let addresses = Assigned {
            ips: vec![ip],
            ..Assigned::default()
        };
        attach.set_addresses(index, addresses, None);
    }
    attach
}

const MIXED: &str = r#"{"cniVersion":"1.1.0","name":"all","type":"plexus-cni","networks":[
    {"name":"a","provider":"bridge","bridge":"br0","ipam":{"type":"plexus","subnets":["10.0.0.0/24"]}},
    {"name":"b","provider":"bridge","bridge":"br1","ipam":{"type":"plexus","subnets":["10.1.0.0/24"]}},
    {"name":"c","plugins":[{"type":"first"},{"type":"second"}]},
    {"name":"d","provider":"bridge","bridge":"br3","ipam":{"type":"plexus","subnets":["10.3.0.0/24"]}}]}"#;

fn with_default_route() -> Outcome {
    let route = RouteConf {
        dst: "0.0.0.0/0".parse().unwrap(),
        gw: None,
        mtu: None,
        advmss: None,
        priority: None,
        table: None,
        scope: None,
    };
    Outcome {
        routes: vec![route],
        ..Outcome::default()
    }
}

fn has_default_route(attach: &Attach, index: usize) -> bool {
    let link = attach.attachments()[index].native().unwrap().link.as_ref();
    let mut routes = link.unwrap().routes.iter();
    routes.any(|route| route.dst.prefix_len() == 0)
}

#[test]
fn links_that_stand_together_are_one_step_and_each_plugin_is_one() {
    let mut attach = attach(request(MIXED));
    let first = attach.begin_step().unwrap().unwrap();
    assert_eq!(first, Step::Links(0..2));
    assert_eq!(attach.begin_step().unwrap(), Some(first), "asked again");
    assert_eq!(
        attach.pod_plan(0..4).links.len(),
        2,
        "only those that are planned"
    );
    attach.links_made(0..2, |_| ObservedMacs::default());
    for plugin in 0..2 {
        let step = Step::Plugin {
            attachment: 2,
            plugin,
        };
        assert_eq!(attach.begin_step().unwrap(), Some(step));
        attach.plugin_done(2, Outcome::default());
    }
    assert_eq!(attach.begin_step().unwrap(), Some(Step::Links(3..4)));
    attach.links_made(3..4, |_| ObservedMacs::default());
    assert_eq!(attach.begin_step().unwrap(), None);
    assert_eq!(attach.begin_step().unwrap(), None, "asked again");
    assert!(has_default_route(&attach, 0) && !has_default_route(&attach, 3));
    let names: Vec<String> = attach
        .answer()
        .unwrap()
        .interfaces
        .into_iter()
        .map(|i| i.name)
        .collect();
    assert!(
        names.contains(&"eth0".to_owned()) && !names.iter().any(|name| name.starts_with("net"))
    );
}

#[test]
fn what_a_plugin_brings_is_known_to_the_links_behind_it() {
    let mut request = request(MIXED);
    let named = Some("c".to_owned());
    request.default_gw.as_mut().unwrap().v4.clone_from(&named);
    let mut attach = attach(request);
    assert_eq!(attach.begin_step().unwrap(), Some(Step::Links(0..2)));
    assert!(!has_default_route(&attach, 0), "it is the plugin's");
    attach.links_made(0..2, |_| ObservedMacs::default());
    for _ in 0..2 {
        attach.begin_step().unwrap();
        attach.plugin_done(2, with_default_route());
    }
    assert_eq!(attach.begin_step().unwrap(), Some(Step::Links(3..4)));
    assert!(!has_default_route(&attach, 3));
    attach.links_made(3..4, |_| ObservedMacs::default());
    assert!(attach.answer().is_ok());
}

#[test]
fn a_default_gateway_that_a_plugin_does_not_bring_is_refused_once_that_is_known() {
    let mut request = request(MIXED);
    request.default_gw.as_mut().unwrap().v4 = Some("c".to_owned());
    let mut attach = attach(request);
    attach.begin_step().unwrap();
    attach.links_made(0..2, |_| ObservedMacs::default());
    for _ in 0..2 {
        attach.begin_step().unwrap();
        attach.plugin_done(2, Outcome::default());
    }
    let error = attach.begin_step().unwrap_err();
    assert!(matches!(&error, AttachError::DefaultRoute(_)), "{error}");
    assert!(
        error.to_string().contains("brings no IPv4 gateway"),
        "{error}"
    );
}

#[test]
fn plugin_mode_answers_all_interfaces_of_the_reference() {
    let one = r#"{"cniVersion":"1.1.0","name":"a","type":"plexus-cni","provider":"routed",
        "ipam":{"type":"plexus","subnets":["10.0.0.0/24"]}}"#;
    let mut request = request(one);
    let again = request.references[0].networks.all()[0].clone();
    request.references[0].networks = Networks::PerNic(vec![again.clone(), again]);
    request.previous = Some(with_default_route());
    let mut attach = attach(request);
    assert_eq!(attach.begin_step().unwrap(), Some(Step::Links(0..2)));
    attach.links_made(0..2, |_| ObservedMacs::default());
    let answer = attach.answer().unwrap();
    let inside = answer.interfaces.iter().filter(|i| i.sandbox.is_some());
    assert_eq!(
        inside.map(|i| i.name.as_str()).collect::<Vec<_>>(),
        ["eth0-0", "eth0-1"]
    );
    assert_eq!(answer.ips.len(), 2);
    for ip in &answer.ips {
        let interface = &answer.interfaces[ip.interface.unwrap()];
        assert!(
            interface.sandbox.is_some(),
            "an address is of an interface in the sandbox"
        );
    }
    assert_eq!(
        answer.routes[0].dst.prefix_len(),
        0,
        "what was there before us comes first"
    );
}

const EXECUTED_IPAM: &str = r#"{"cniVersion":"1.1.0","name":"all","type":"plexus-cni",
    "default-gw":{"4":"wide"},"networks":[
    {"name":"a","provider":"bridge","bridge":"br0","ipam":{"type":"plexus","subnets":["10.0.0.0/24"]}},
    {"name":"wide","provider":"bridge","bridge":"br1","ipam":{"type":"whereabouts","range":"10.40.0.0/24"}}]}"#;

/// An IPAM plugin comes before all links; with its answer it is known who has the default route.
#[test]
fn an_executed_ipam_plugin_comes_first_and_may_bring_the_default_route() {
    let answer = |text: &str| {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        PreparationResult::Addresses(Outcome::from_value(&value).unwrap())
    };
    let ready = || {
        let mut attach = attach(request(EXECUTED_IPAM));
        attach.set_addresses(1, Assigned::default(), None);
        let first = Step::Prepare {
            attachment: 1,
            preparation: 0,
        };
        assert_eq!(attach.begin_step().unwrap(), Some(first));
        attach
    };
    let mut made = ready();
    let given =
        r#"{"cniVersion":"1.0.0","ips":[{"address":"10.40.0.2/24","gateway":"10.40.0.1"}]}"#;
    made.prepared(1, answer(given)).unwrap();
    assert_eq!(made.begin_step().unwrap(), Some(Step::Links(0..2)));
    assert!(!has_default_route(&made, 0) && has_default_route(&made, 1));

    let mut without = ready();
    let given = r#"{"cniVersion":"1.0.0","ips":[{"address":"10.40.0.2/24"}]}"#;
    without.prepared(1, answer(given)).unwrap();
    let error = without.begin_step().unwrap_err().to_string();
    assert!(error.contains("brings no IPv4 gateway"), "{error}");

    let mut none = ready();
    let error = none.prepared(1, answer(r#"{"cniVersion":"1.0.0"}"#));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("whereabouts"), "{error}");
}

#[test]
fn the_plugin_may_take_over_from_its_provider_before_the_first_step() {
    let config = r#"{"cniVersion":"1.1.0","name":"all","type":"plexus-cni","networks":[
        {"name":"a","provider":"bridge","bridge":"br0","ipam":{"type":"plexus","subnets":["10.0.0.0/24"]}},
        {"name":"b","type":"host-device","pciBusID":"0000:3b:00.1"}]}"#;
    let mut attach = Attach::new(request(config)).unwrap();
    for index in [0, 1, 2] {
        attach.execute_plugin(index).unwrap();
    }
    assert_eq!(
        attach.natives().map(|(index, _)| index).collect::<Vec<_>>(),
        [0]
    );
    let Backend::Plugins(run) = &attach.attachments()[1].backend else {
        panic!("{attach:?}");
    };
    let plugin = &run.chain.plugins[0];
    assert_eq!(
        (&plugin["type"], &plugin["pciBusID"]),
        (&"host-device".into(), &"0000:3b:00.1".into())
    );
    assert_eq!(plugin.get("name"), None);
}
