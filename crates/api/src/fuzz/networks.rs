//! What definitions and objects say of a network, together with what a pod asks of it.

use super::{failed, refused, sized, target};
use crate::cni::{Network, ObjectFacts, ParsedNetwork};
use crate::nad;
use crate::objects::{MultiNicNetworkSpec, NetworkSpec};
use crate::pod::{NetworkSelection, networks};
use plexus_fuzz::{Kind, bounded};
use plexus_types::NetworkName;
use serde_json::{Map, Value, json};

const WORDS: &[&str] = &[
    "config",
    "asks",
    "cniVersion",
    "name",
    "type",
    "provider",
    "plugins",
    "ipam",
    "capabilities",
    "ips",
    "mac",
    "portMappings",
    "bandwidth",
    "deviceID",
    "infinibandGUID",
    "bridge",
    "macvlan",
    "ipvlan",
    "vlan",
    "host-device",
    "plexus-cni",
    "contrail-k8s-cni",
    "multi-nic",
    "multi-nic-ipam",
    "host-local",
    "static",
    "subnet",
    "ranges",
    "addresses",
    "address",
    "gateway",
    "routes",
    "dst",
    "gw",
    "cni-args",
    "default-route",
    "10.0.0.0/24",
    "10.0.0.5/24",
    "fd00::/64",
    "fd00::5",
    "1.0.0",
    "network",
    "contrail",
    "prevResult",
    "runtimeConfig",
    "args",
    "cni",
    "dns",
    "isGateway",
    "ipMasq",
    "master",
    "mtu",
    "overlay",
    "routed",
    "subnets",
    "cidr",
    "exclude",
    "snat",
    "sourceCheck",
    "blockSize",
    "allowedNamespaces",
    "All",
    "Same",
    "Selector",
    "selector",
    "matchLabels",
    "matchExpressions",
    "uuid",
    "spec",
    "hostBlock",
    "interfaceBlock",
    "vlanMode",
    "l3",
    "excludeCIDRs",
    "masterNets",
    "multiNICIPAM",
    "namespaces",
    "plugin",
    "attachPolicy",
    "strategy",
    "onNicDown",
    "vlanId",
    "peers",
];

fn name() -> NetworkName {
    NetworkName::new("team-a.blue").unwrap()
}

/// `{"config": …, "asks": …}`: the configuration of a definition, and an element of the pod's list.
#[test]
fn definition() {
    target("definition", Kind::Json)
        .words(WORDS)
        .inputs(250)
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            let _ = nad::config(&text).map_err(|problems| refused(&problems));
            let Ok(Value::Object(mut both)) = serde_json::from_str(&text) else {
                return String::new();
            };
            let asks = both.remove("asks").unwrap_or_default();
            let asked = json!([asks]).to_string();
            let asked = networks(&asked, "here").ok().and_then(|mut all| all.pop());
            let config = both.remove("config").unwrap_or_default().to_string();
            let config = match nad::config(&config) {
                Ok((config, warnings)) => {
                    let again = nad::config(&Value::Object(config.clone()).to_string());
                    assert_eq!(
                        again.map(|(again, _)| again),
                        Ok(config.clone()),
                        "a list in a list"
                    );
                    warnings
                        .iter()
                        .for_each(|warning| bounded("a warning", warning, 1_000));
                    config
                }
                Err(problems) => return refused(&problems),
            };
            if nad::is_named(&config) {
                return nad::named(&config).map_or_else(
                    |problems| refused(&problems),
                    |name| format!("{}", name.is_some()),
                );
            }
            read_once(input, &config, &asked.unwrap_or_default())
        });
}

/// What is read once and asked of later is what is read together.
fn read_once(input: &[u8], config: &Map<String, Value>, asked: &NetworkSelection) -> String {
    let together = Network::from_config(&name(), config, asked);
    let parsed = match ParsedNetwork::of_config(&name(), config) {
        Ok(parsed) => parsed,
        Err(error) => return failed(&error),
    };
    if let Some(network) = parsed.with_request(asked) {
        sized(&format!("{network:?}"), input);
        assert_eq!(Ok(network), together, "it depends on when the pod asks");
    }
    match together {
        Ok(network) => {
            let executed = network.backend.executed().map(|chain| chain.plugins.len());
            format!("{executed:?} {:?}", asked.runtime_config().keys()).replace('"', "'")
        }
        Err(error) => failed(&error),
    }
}

/// `{"spec": …, "asks": …}`: that of a Network.
#[test]
fn network_object() {
    target("network_object", Kind::Json)
        .words(WORDS)
        .inputs(300)
        .run(|input| {
            let Ok(Value::Object(mut both)) = serde_json::from_slice(input) else {
                return String::new();
            };
            let asks = json!([both.remove("asks").unwrap_or_default()]).to_string();
            let asked = networks(&asks, "here")
                .ok()
                .and_then(|mut all| all.pop())
                .unwrap_or_default();
            let spec = match serde_json::from_value::<NetworkSpec>(
                both.remove("spec").unwrap_or_default(),
            ) {
                Ok(spec) => spec,
                Err(error) => return error.to_string(),
            };
            let written = serde_json::to_value(&spec).unwrap();
            assert_eq!(
                serde_json::from_value::<NetworkSpec>(written).unwrap(),
                spec
            );
            let problems = spec.problems();
            let facts = ObjectFacts {
                vni: Some(4097),
                ..ObjectFacts::default()
            };
            let together = Network::from_spec(&name(), &spec, &facts, &asked);
            if !problems.0.is_empty() {
                assert!(together.is_err(), "{problems}");
                return refused(&problems);
            }
            for subnet in spec.subnets.values() {
                assert!(subnet.cidr.contains(&spec.gateway_of(subnet)), "{subnet:?}");
                let length = spec.block_length_of(subnet);
                assert!(
                    (subnet.cidr.prefix_len()..=subnet.cidr.max_prefix_len()).contains(&length)
                );
            }
            let parsed = match ParsedNetwork::of_spec(&name(), &spec, &facts) {
                Ok(parsed) => parsed,
                Err(error) => return failed(&error),
            };
            if let Some(network) = parsed.with_request(&asked) {
                sized(&format!("{network:?}"), input);
                assert_eq!(Ok(network), together, "it depends on when the pod asks");
            }
            match together {
                Ok(network) => {
                    let executed = network.backend.executed().is_some();
                    format!(
                        "{executed} {:?} {}",
                        spec.provider,
                        spec.subnets.len().min(3)
                    )
                }
                Err(error) => failed(&error),
            }
        });
}

/// The spec of a MultiNicNetwork, the text of whose `ipam` is JSON too.
#[test]
fn multi_nic() {
    target("multi_nic", Kind::Json)
        .words(WORDS)
        .inputs(300)
        .run(|input| {
            let spec = match serde_json::from_slice::<MultiNicNetworkSpec>(input) {
                Ok(spec) => spec,
                Err(error) => return error.to_string(),
            };
            match spec.meaning() {
                Ok(meaning) => {
                    sized(&format!("{meaning:?}"), input);
                    let config = spec.nad_config("blue");
                    let (config, _) = nad::config(&config)
                        .unwrap_or_else(|problems| panic!("{problems}: {config}"));
                    assert!(
                        nad::is_multi_nic(&config),
                        "the definition that we write is not ours: {config:?}"
                    );
                    format!(
                        "{:?} {} {:?}",
                        meaning.plugin,
                        meaning.subnets.len(),
                        meaning.bits().map(|bits| bits.mode)
                    )
                }
                Err(problems) => refused(&problems),
            }
        });
}
