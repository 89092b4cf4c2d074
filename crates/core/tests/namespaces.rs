//! Whose networks a pod may use, as the administrator of the cluster decides for all of them: by default those that say
//! nothing are for everybody; `Same` and isolation close them, however the pod names them.

#![allow(clippy::unwrap_used, reason = "a test that fails panics")]
#![allow(dead_code, reason = "the cluster has more than is asked here")]

mod cluster;

use cluster::{Case, answered};
use plexus_api::cni::{Args, Code, Error, NetConf, Runtime};
use plexus_core::resolve::{PodNetworks, named_network};
use plexus_types::IfName;
use serde_json::{Value, json};

const PLEXUS: &str = "plexus.dev/networks";
const NPWG: &str = "k8s.v1.cni.cncf.io/networks";

/// A pod in `team-a`, its own network, and what others have.
fn case(rules: &Value, annotations: &Value) -> Case {
    let bridge =
        |more: Value| json!({"spec": {"provider": "bridge", "allowedNamespaces": more["allowed"]}});
    let bridge_nad = json!({"config": {"cniVersion": "1.0.0", "type": "bridge", "bridge": "b0"}});
    let refers = |project: &str| {
        json!({"config": {"cniVersion": "1.0.0", "type": "plexus-cni"},
        "annotations": {"opencontrail.org/network":
            json!({"domain": "default-domain", "project": project, "name": "open"}).to_string()}})
    };
    let mut case = json!({
        "namespace": "team-a", "annotations": annotations,
        "namespaces": {"team-a": {}, "team-b": {}, "shared": {}},
        "networks": {
            "team-a/own": bridge(json!({})), "team-b/unset": bridge(json!({})), "shared/unset": bridge(json!({})),
            "team-b/open": bridge(json!({"allowed": {"from": "All"}})),
            "shared/open": bridge(json!({"allowed": {"from": "All"}})),
        },
        "nads": {
            "team-a/own": bridge_nad, "team-b/theirs": bridge_nad, "shared/nad": bridge_nad,
            "team-a/refers": refers("team-b"), "team-b/back": refers("team-a"),
        },
        "blocks": {},
    });
    let all = case.as_object_mut().unwrap();
    all.extend(rules.as_object().unwrap().clone());
    Case(case)
}

fn conf() -> NetConf {
    let text =
        json!({"cniVersion": "1.1.0", "name": "plexus", "type": "plexus-cni", "networks": "pod"});
    NetConf::parse(text.to_string().as_bytes(), &Args::default()).unwrap()
}

fn pod(rules: &Value, annotation: &str, text: &str) -> Result<PodNetworks, Error> {
    case(rules, &json!({annotation: text})).networks(&conf())
}

#[track_caller]
fn refused(found: Result<PodNetworks, Error>, words: &[&str]) {
    let error = found.unwrap_err();
    let text = error.to_string();
    assert_eq!(error.code, Code::InvalidConfig, "{text}");
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn who_is_not_said_is_everybody_or_the_networks_own_namespace() {
    let all = json!({});
    for network in ["own", "team-b/unset", "team-b/open", "shared/unset"] {
        pod(&all, PLEXUS, network).unwrap();
    }
    let same = json!({"unset": "Same"});
    for network in ["own", "team-b/open", "shared/open"] {
        pod(&same, PLEXUS, network).unwrap();
    }
    for network in ["team-b/unset", "shared/unset"] {
        let words = ["its own namespace", "has no allowedNamespaces", "team-a"];
        refused(pod(&same, PLEXUS, network), &words);
    }
    // What a NAD holds itself is nobody's Network.
    pod(&same, NPWG, "team-b/theirs").unwrap();
}

#[test]
fn isolated_pods_use_nothing_of_another_namespace() {
    let isolated = json!({"isolated": ["shared"]});
    for (annotation, network) in [
        (PLEXUS, "own"),
        (PLEXUS, "shared/open"),
        (PLEXUS, "shared/unset"),
        (NPWG, "own"),
        (NPWG, "shared/nad"),
    ] {
        pod(&isolated, annotation, network).unwrap();
    }
    for (annotation, network) in [
        (PLEXUS, "team-b/open"),
        (PLEXUS, "team-b/unset"),
        (PLEXUS, "team-b/absent"),
        (NPWG, "team-b/theirs"),
        (NPWG, "team-b/absent"),
        // By a NAD of one's own, and by another's that leads back.
        (NPWG, "refers"),
        (NPWG, "team-b/back"),
        ("v1.multus-cni.io/default-network", "team-b/theirs"),
        (
            "opencontrail.org/network",
            r#"[{"domain": "default-domain", "project": "team-b", "name": "open"}]"#,
        ),
    ] {
        let words = ["team-b/", "pods of team-a", "isolation-exceptions"];
        refused(pod(&isolated, annotation, network), &words);
    }
}

#[test]
fn isolation_holds_under_a_delegating_plugin_too() {
    let isolated = json!({"isolated": []});
    let case = case(&isolated, &json!({NPWG: "team-b/back"}));
    let (runtime, ifname) = (Runtime::default(), IfName::new("net1").unwrap());
    let found = named_network(
        &case.pod(),
        "back",
        None,
        &ifname,
        &runtime,
        &case.settings(),
        &case,
    );
    refused(found.map_err(|error| answered(&error)), &["team-b/back"]);
}
