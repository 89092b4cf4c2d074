//! The configuration that a plugin gets, derived from what the user wrote.

use plexus_api::cni::{Outcome, ValidAttachment, Version};
use plexus_api::go_folds;
use plexus_types::NetworkName;
use serde_json::{Map, Value, json};

/// What is added to a plugin's own keys.
#[derive(Clone, Copy)]
pub(super) struct Extras<'a> {
    pub(super) network: &'a NetworkName,
    pub(super) version: Version,
    /// The result so far (ADD), or of all (CHECK, DEL).
    pub(super) prev: Option<&'a Outcome>,
    /// What the runtime gives; each plugin gets what it declares in `capabilities`.
    pub(super) runtime: Option<&'a Map<String, Value>>,
    /// GC's list.
    pub(super) valid: Option<&'a [ValidAttachment]>,
}

/// Keeps everything as written, except for the keys that are the runtime's to write.
pub(super) fn derive(plugin: &Map<String, Value>, extras: Extras<'_>) -> String {
    let mut config = plugin.clone();
    let capabilities = config.remove("capabilities");
    for key in [
        "runtimeConfig",
        "prevResult",
        "cni.dev/valid-attachments",
        "cni.dev/attachments",
    ] {
        config.remove(key);
    }
    config.insert("cniVersion".to_owned(), extras.version.as_str().into());
    config.insert("name".to_owned(), extras.network.as_str().into());
    if let Some(prev) = extras.prev {
        let prev = serde_json::from_str(&prev.to_json(extras.version)).unwrap_or_default();
        config.insert("prevResult".to_owned(), prev);
    }
    let runtime = runtime_config(capabilities.as_ref(), extras.runtime);
    if !runtime.is_empty() {
        config.insert("runtimeConfig".to_owned(), Value::Object(runtime));
    }
    if let Some(valid) = extras.valid {
        let list = valid
            .iter()
            .map(|v| json!({"containerID": v.container, "ifname": v.ifname}));
        config.insert("cni.dev/valid-attachments".to_owned(), list.collect());
    }
    Value::Object(config).to_string()
}

/// The keys that the plugin declares, of those that the runtime gives; in any case, as Go reads
/// them.
fn runtime_config(
    capabilities: Option<&Value>,
    given: Option<&Map<String, Value>>,
) -> Map<String, Value> {
    let (Some(Value::Object(declared)), Some(given)) = (capabilities, given) else {
        return Map::new();
    };
    let takes = |name: &str| {
        let same = |(declared, on): (&String, &Value)| {
            go_folds(declared, name) && *on == Value::Bool(true)
        };
        declared.iter().any(same)
    };
    let wanted = given.iter().filter(|(name, _)| takes(name));
    wanted
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_api::cni::{Interface, Ip};
    use plexus_types::{ContainerId, IfName};

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn derived(
        plugin: Value,
        prev: Option<&Outcome>,
        runtime: Option<&Map<String, Value>>,
        valid: Option<&[ValidAttachment]>,
    ) -> Value {
        let network = NetworkName::new("blue").unwrap();
        let version = Version::V0_4_0;
        let extras = Extras {
            network: &network,
            version,
            prev,
            runtime,
            valid,
        };
        serde_json::from_str(&derive(&object(plugin), extras)).unwrap()
    }

    #[test]
    fn keeps_what_is_written() {
        let plugin = json!({"type":"x","name":"old","cniVersion":"0.1.0","a":{"b":[1,null]},
            "prevResult":{},"runtimeConfig":{"mac":"x"},"capabilities":{"mac":true}});
        let expected = json!({"type":"x","name":"blue","cniVersion":"0.4.0","a":{"b":[1,null]}});
        assert_eq!(derived(plugin, None, None, None), expected);
    }

    #[test]
    fn a_capability_is_given_if_declared_and_present() {
        let given =
            object(json!({"mac":"02:00:00:00:00:01","portMappings":[],"ips":["10.0.0.1/8"]}));
        let plugin = json!({"type":"x",
            "capabilities":{"MAC":true,"portMappings":false,"bandwidth":true,"ips":"true"}});
        let config = derived(plugin, None, Some(&given), None);
        assert_eq!(config["runtimeConfig"], json!({"mac":"02:00:00:00:00:01"}));
        assert_eq!(config.get("capabilities"), None);
        // Two letters beyond ASCII are ASCII ones for Go.
        let plugin = json!({"type":"x","capabilities":{"ipſ":true}});
        let config = derived(plugin, None, Some(&given), None);
        assert_eq!(config["runtimeConfig"], json!({"ips":["10.0.0.1/8"]}));
    }

    #[test]
    fn prev_result_is_in_the_plugins_version() {
        let outcome = Outcome {
            interfaces: vec![Interface::new(
                "eth0",
                None,
                Some(1400),
                Some("/run/netns/a"),
            )],
            ips: vec![Ip {
                address: "10.0.0.2/24".parse().unwrap(),
                gateway: None,
                interface: Some(0),
            }],
            ..Outcome::default()
        };
        let config = derived(json!({"type":"x"}), Some(&outcome), None, None);
        assert_eq!(config["prevResult"]["cniVersion"], "0.4.0");
        assert_eq!(config["prevResult"]["ips"][0]["version"], "4");
        assert_eq!(config["prevResult"]["interfaces"][0].get("mtu"), None);
    }

    #[test]
    fn an_empty_list_is_a_list() {
        let none = derived(json!({"type":"x"}), None, None, None);
        assert_eq!(none.get("cni.dev/valid-attachments"), None);
        let empty = derived(json!({"type":"x"}), None, None, Some(&[]));
        assert_eq!(empty["cni.dev/valid-attachments"], json!([]));
        let valid = [ValidAttachment {
            container: ContainerId::new("c1").unwrap(),
            ifname: IfName::new("eth0").unwrap(),
        }];
        let one = derived(json!({"type":"x"}), None, None, Some(&valid));
        let expected = json!([{"containerID":"c1","ifname":"eth0"}]);
        assert_eq!(one["cni.dev/valid-attachments"], expected);
    }
}
