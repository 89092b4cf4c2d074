//! Which `Network` objects no pod may use, whatever their status says: those that would put into the nodes' own routing
//! tables what is not theirs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]
#![allow(dead_code, reason = "the cluster has more than is asked here")]

mod cluster;

use cluster::{Case, answered};
use plexus_api::cni::Code;
use plexus_core::allowed_subnets::AllowedSubnets;
use plexus_core::resolve::{PodFacts, Settings, pod_networks};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a pod on a Network with this spec is told; none: it may use it.
fn refused(spec: &Value, settings: &Settings) -> Option<String> {
    let case = Case(json!({
        "networks": {"default/blue": {"vni": 4097, "spec": spec}},
        "taken": {"10.60.0.7": "the address 10.60.0.7 of the API server"},
    }));
    let annotation = ("plexus.dev/networks".to_owned(), "blue".to_owned());
    let pod = PodFacts {
        annotations: BTreeMap::from([annotation]),
        ..case.pod()
    };
    let runtime = Default::default();
    let error = pod_networks(&pod, case.first(), &runtime, settings, &case).err()?;
    let error = answered(&error);
    assert_eq!(error.code, Code::Failed, "{error}");
    Some(error.to_string())
}

fn usual() -> Settings {
    Case(json!({})).settings()
}

fn spec(provider: &str, cidr: &str) -> Value {
    json!({"provider": provider, "subnets": {"a": {"cidr": cidr}}})
}

#[test]
fn a_routed_network_outside_of_what_is_allowed_is_of_no_use() {
    assert_eq!(refused(&spec("routed", "10.61.0.0/16"), &usual()), None);
    for spec in [
        spec("routed", "8.8.8.0/24"),
        spec("routed", "2001:db8::/64"),
    ] {
        let why = refused(&spec, &usual()).unwrap_or_default();
        for word in ["default/blue", "--allowed-subnets"] {
            assert!(why.contains(word), "{spec}: {why}");
        }
        let mut open = usual();
        open.allowed_subnets = AllowedSubnets::everything();
        assert_eq!(refused(&spec, &open), None, "{spec}");
    }
}

#[test]
fn a_routed_network_around_an_address_of_the_cluster_is_of_no_use() {
    let why = refused(&spec("routed", "10.60.0.0/16"), &usual()).unwrap_or_default();
    assert!(why.contains("10.60.0.7 of the API server"), "{why}");
}

/// They touch no table of the node.
#[test]
fn overlays_may_have_any_addresses() {
    for cidr in ["8.8.8.0/24", "10.60.0.0/16"] {
        assert_eq!(refused(&spec("overlay", cidr), &usual()), None, "{cidr}");
    }
}
