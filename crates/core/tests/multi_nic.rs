//! What pods get of a MultiNicNetwork: one interface on each of the node's NICs, by what they ask in `cni-args`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]

#[allow(dead_code, reason = "other tests use more of it")]
mod cluster;

use cluster::Case;
use plexus_api::cni::{Args, Code, Error, Ipam, NetConf};
use plexus_core::attach::preview::sandbox;
use plexus_core::attach::{Attach, Attachment};
use serde_json::{Value, json};

/// Interfaces of a pod that asks this of the network `rails`, which the change is made to.
fn interfaces(element: Value, change: impl Fn(&mut Value)) -> Result<Vec<String>, Error> {
    let link = |one: &Attachment| {
        let native = &one.native().unwrap().spec.native;
        let ips: Vec<String> = native.ips.iter().map(|(ip, _)| ip.to_string()).collect();
        format!("{} {} {}", one.ifname, options(native), ips.join(","))
    };
    let all = attachments(element, change)?;
    let texts = all.iter().map(link);
    Ok(texts.map(|text| text.trim().to_owned()).collect())
}

/// The attachments beside the cluster's own.
fn attachments(element: Value, change: impl Fn(&mut Value)) -> Result<Vec<Attachment>, Error> {
    let mut element = element;
    element["name"] = json!("rails");
    let ipam =
        json!({"type": "multi-nic-ipam", "hostBlock": 6, "interfaceBlock": 2, "vlanMode": "l2"});
    let mut cluster = json!({
        "annotations": {"k8s.v1.cni.cncf.io/networks": json!([element]).to_string()},
        "nads": {"default/rails": {"config": {"cniVersion": "0.3.1", "name": "rails", "type": "multi-nic"}}},
        "multiNicNetworks": {"rails": {
            "spec": {"subnet": "192.168.0.0/16", "ipam": ipam.to_string()},
            "nics": [
                {"name": "eth1", "index": 0, "blocks": ["192.168.0.0/24"]},
                {"name": "eth2", "index": 1, "blocks": ["192.168.64.0/24"]},
                {"name": "eth3", "index": 2, "blocks": ["192.168.128.0/24"]},
            ],
        }},
    });
    change(&mut cluster);
    let case = Case(cluster);
    let request = case.request(sandbox("c1").unwrap())?;
    let attach = Attach::new(request).unwrap();
    Ok(attach.attachments().iter().skip(1).cloned().collect())
}

/// The provider's word for its master.
fn options(native: &plexus_api::cni::Native) -> String {
    let text = format!("{:?}", native.provider);
    let (_, rest) = text.split_once("master: Some(").unwrap();
    let inner = rest.split(')').next().unwrap();
    inner
        .trim_start_matches("IfName(")
        .trim_matches('"')
        .to_owned()
}

fn unchanged(_: &mut Value) {}

#[track_caller]
fn refused(result: Result<Vec<String>, Error>, code: Code, words: &str) {
    let error = result.unwrap_err();
    let text = format!("{}; {}", error.msg, error.details);
    assert!(text.contains(words), "{text}");
    assert_eq!(error.code, code, "{text}");
}

#[test]
fn a_pod_gets_an_interface_on_each_nic_or_on_those_that_it_names() {
    let all = interfaces(json!({}), unchanged).unwrap();
    assert_eq!(all, ["net1-0 eth1", "net1-1 eth2", "net1-2 eth3"]);
    let two = interfaces(json!({"cni-args": {"nics": 2}}), unchanged).unwrap();
    assert_eq!(two, ["net1-0 eth1", "net1-1 eth2"]);
    let one = json!({"cni-args": {"masters": ["eth3"]}, "interface": "rail"});
    assert_eq!(interfaces(one, unchanged).unwrap(), ["rail-0 eth3"]);
    let order = json!({"cni-args": {"masters": ["eth3", "eth1"]}});
    let order = interfaces(order, unchanged).unwrap();
    assert_eq!(order, ["net1-0 eth3", "net1-1 eth1"]);
}

#[test]
fn addresses_go_to_the_nics_that_they_belong_to() {
    let ips = json!({"ips": ["192.168.64.7", "192.168.0.9"], "cni-args": {"nics": 2}});
    let both = interfaces(ips, unchanged).unwrap();
    assert_eq!(
        both,
        ["net1-0 eth1 192.168.0.9", "net1-1 eth2 192.168.64.7"]
    );
    let elsewhere = json!({"ips": ["192.168.128.7"], "cni-args": {"nics": 2}});
    refused(
        interfaces(elsewhere, unchanged),
        Code::InvalidConfig,
        "192.168.128.7 is in no block",
    );
}

#[test]
fn what_cannot_be_had_is_refused_with_the_reason() {
    let unknown = json!({"cni-args": {"masters": ["eth9"]}});
    refused(interfaces(unknown, unchanged), Code::InvalidConfig, "eth9");
    for (args, word) in [
        (json!({"nics": "two"}), "nics"),
        (json!({"masters": "eth1"}), "masters"),
    ] {
        let result = interfaces(json!({"cni-args": args}), unchanged);
        refused(result, Code::InvalidConfig, word);
    }
    let other = json!({"cni-args": {"class": "fast"}});
    refused(interfaces(other, unchanged), Code::InvalidConfig, "class");
    let without = |cluster: &mut Value| cluster["multiNicNetworks"] = json!({});
    refused(
        interfaces(json!({}), without),
        Code::TryAgainLater,
        "MultiNicNetwork rails",
    );
    let no_nics = |cluster: &mut Value| cluster["multiNicNetworks"]["rails"]["nics"] = json!([]);
    refused(
        interfaces(json!({}), no_nics),
        Code::TryAgainLater,
        "no block",
    );
    let elsewhere = |cluster: &mut Value| {
        cluster["multiNicNetworks"]["rails"]["spec"]["namespaces"] = json!(["team-a"]);
    };
    refused(
        interfaces(json!({}), elsewhere),
        Code::InvalidConfig,
        "spec.namespaces",
    );
    let other = |cluster: &mut Value| {
        let spec = &mut cluster["multiNicNetworks"]["rails"]["spec"];
        *spec = json!({"ipam": r#"{"type": "whereabouts"}"#, "multiNICIPAM": false});
    };
    refused(
        interfaces(json!({}), other),
        Code::InvalidConfig,
        "another IPAM",
    );
    let wrong = |cluster: &mut Value| {
        cluster["multiNicNetworks"]["rails"]["spec"]["attachPolicy"] =
            json!({"strategy": "costOpt"});
    };
    refused(interfaces(json!({}), wrong), Code::InvalidConfig, "costOpt");
}

#[test]
fn a_nic_that_is_down_is_an_error_unless_the_network_says_skip() {
    let down = |cluster: &mut Value| {
        cluster["multiNicNetworks"]["rails"]["nics"][1]["up"] = json!(false);
    };
    refused(interfaces(json!({}), down), Code::Failed, "eth2 is down");
    let first = interfaces(json!({"cni-args": {"nics": 1}}), down).unwrap();
    assert_eq!(
        first,
        ["net1-0 eth1"],
        "a NIC that the pod does not get may be down"
    );
    let skip = |cluster: &mut Value| {
        down(cluster);
        cluster["multiNicNetworks"]["rails"]["spec"]["onNicDown"] = json!("skip");
    };
    let rest = interfaces(json!({}), skip).unwrap();
    assert_eq!(rest, ["net1-0 eth1", "net1-1 eth3"]);
}

/// The routes of each interface, in a network that has these.
fn routes(written: Value, change: impl Fn(&mut Value)) -> Vec<String> {
    let with_routes = |cluster: &mut Value| {
        let ipam = &mut cluster["multiNicNetworks"]["rails"]["spec"]["ipam"];
        let mut read: Value = serde_json::from_str(ipam.as_str().unwrap()).unwrap();
        read["routes"] = written.clone();
        *ipam = json!(read.to_string());
        change(cluster);
    };
    let all = attachments(json!({}), with_routes).unwrap();
    let texts = all.iter().map(|one| {
        let Some(Ipam::Blocks(ipam)) = &one.native().unwrap().spec.native.ipam else {
            panic!("{one:?}")
        };
        let routes = ipam.routes.iter().map(|route| match route.gw {
            Some(gw) => format!("{} via {gw}", route.dst),
            None => route.dst.to_string(),
        });
        let routes: Vec<_> = routes.collect();
        format!("{} {}", one.ifname, routes.join(", "))
    });
    texts.collect()
}

#[test]
fn a_route_is_of_the_interface_on_which_its_gateway_is() {
    let of_two = json!([
        {"dst": "172.16.0.0/12", "gw": "192.168.1.1"},
        {"dst": "172.17.0.0/16", "gw": "192.168.66.1"},
        {"dst": "10.9.0.0/16"},
    ]);
    assert_eq!(
        routes(of_two, unchanged),
        [
            "net1-0 172.16.0.0/12 via 192.168.1.1, 10.9.0.0/16",
            "net1-1 172.17.0.0/16 via 192.168.66.1, 10.9.0.0/16",
            "net1-2 10.9.0.0/16",
        ]
    );
    // A NIC that this node does not have.
    let nowhere = json!([{"dst": "172.16.0.0/12", "gw": "192.168.200.1"}]);
    assert_eq!(
        routes(nowhere, unchanged),
        ["net1-0 ", "net1-1 ", "net1-2 "]
    );
    // One that another route leads to.
    let behind = json!([{"dst": "10.9.0.0/16"}, {"dst": "172.16.0.0/12", "gw": "10.9.0.1"}]);
    let all = "10.9.0.0/16, 172.16.0.0/12 via 10.9.0.1";
    assert_eq!(
        routes(behind, unchanged),
        [0, 1, 2].map(|at| format!("net1-{at} {all}"))
    );
}

#[test]
fn an_interface_without_ipv6_has_no_route_by_an_ipv6_gateway() {
    let both = |cluster: &mut Value| {
        let network = &mut cluster["multiNicNetworks"]["rails"];
        network["spec"]["subnet"] = json!("192.168.0.0/16,fd00:192::/48");
        network["nics"][1]["blocks"] = json!(["192.168.64.0/24", "fd00:192:0:4000::/56"]);
    };
    let written = json!([
        {"dst": "fd00:9::/32", "gw": "fd00:192:0:4000::7"},
        {"dst": "fd00:8::/32", "gw": "fd00:192::7"},
    ]);
    assert_eq!(
        routes(written, both),
        [
            "net1-0 ",
            "net1-1 fd00:9::/32 via fd00:192:0:4000::7",
            "net1-2 "
        ]
    );
}

#[test]
fn under_a_delegating_plugin_the_call_has_all_of_them() {
    let conf = NetConf::parse(
        br#"{"cniVersion":"0.3.1","name":"rails","type":"multi-nic"}"#,
        &Args::default(),
    );
    assert!(conf.is_ok(), "{conf:?}");
}
