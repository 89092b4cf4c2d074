//! A configuration that only names a network: one of our types, and nothing that says how. What the
//! network is, the cluster knows. Owns when that is so, and what such a configuration may have.

use super::TOP_KEYS;
use super::native::all_keys;
use crate::Fields;
use crate::cni::FqName;
use crate::fields::nearest;
use crate::pod::fq_name;
use serde_json::{Map, Value};

/// The names that such a configuration has as its `type`.
pub(crate) const NAMED_TYPES: [&str; 2] = ["plexus-cni", "contrail-k8s-cni"];

/// What the original's plugin has under `contrail`, of which nothing has a meaning here: there is
/// one agent, and it is found by `agentSocket`.
const ORIGINAL: [&str; 13] = [
    "cluster-name",
    "mode",
    "meta-plugin",
    "vif-type",
    "parent-interface",
    "mtu",
    "vrouter-ip",
    "vrouter-port",
    "config-dir",
    "poll-timeout",
    "poll-retries",
    "log-level",
    "log-file",
];

/// The type of a configuration that names a MultiNicNetwork.
pub(crate) const MULTI_NIC: &str = "multi-nic";
/// What such a configuration repeats of the MultiNicNetwork, which counts.
const OF_MULTI_NIC: [&str; 11] = [
    "ipam",
    "dns",
    "plugin",
    "subnet",
    "masterNets",
    "multiNICIPAM",
    "attachPolicy",
    "daemonIP",
    "daemonPort",
    "masters",
    "deviceIDs",
];

/// Whether it names a MultiNicNetwork.
pub(crate) fn is_multi_nic(config: &Map<String, Value>) -> bool {
    let says_how = ["provider", "plugins", "networks"];
    let plugin = config.get("type").and_then(Value::as_str);
    plugin == Some(MULTI_NIC) && !says_how.iter().any(|key| config.contains_key(*key))
}

/// Whether it is one. A key of a native network, or one that was probably meant to say how the
/// network is made, makes it an inline configuration with a mistake.
pub(crate) fn is_named(config: &Map<String, Value>) -> bool {
    let plugin = config.get("type").and_then(Value::as_str);
    let named = plugin.is_some_and(|name| NAMED_TYPES.contains(&name));
    let says_how = |(key, value): (&String, &Value)| match key.as_str() {
        _ if value.is_null() => false,
        "network" => value.is_array(),
        "contrail" | "args" => false,
        key if TOP_KEYS.contains(&key) => false,
        key if all_keys().any(|own| own == key) => true,
        key => nearest(key, &["provider", "plugins", "networks"]).is_some(),
    };
    is_multi_nic(config) || (named && !config.iter().any(says_how))
}

/// Reads what it has of its own: `network`, and `contrail`, about which the second part warns.
pub(super) fn read(fields: &mut Fields<'_>) -> (Option<FqName>, Vec<String>) {
    if is_multi_nic(fields.map()) {
        fields.know(&OF_MULTI_NIC);
        return (None, Vec::new());
    }
    let fq_name = fields.object("network", fq_name).flatten();
    let contrail = fields.object("contrail", |contrail| {
        contrail.know(&ORIGINAL);
        for (key, value) in contrail.map() {
            if value.is_object() || value.is_array() {
                contrail.problem(key, "must be text or a number");
            }
        }
    });
    if fields.flag("sourceRouting") {
        let text = "is for inline configurations: leave it out";
        fields.unsupported("sourceRouting", text);
    }
    let warning = contrail.map(|()| unused());
    (fq_name, warning.into_iter().collect())
}

/// What is said of the original's options.
pub(crate) fn unused() -> String {
    "\"contrail\" has options of the original's agent, which have no meaning here".to_owned()
}

/// The same of a NAD's configuration, whose top is known but not used.
pub(crate) fn in_nad(fields: &mut Fields<'_>) -> Option<FqName> {
    fields.know(&TOP_KEYS);
    if let Err(error) = super::version_or_newest(fields.map()) {
        fields.problem("cniVersion", error.msg);
    }
    read(fields).0
}
