//! Any other plugin, which is executed below a link that we make. What its section means, only the plugin knows.

use crate::Fields;
use crate::cni::parse::native::Written;
use crate::cni::parse::request::RuntimeRequest;
use crate::cni::parse::{TOP_KEYS, chain, choice};
use crate::cni::{Chain, Executable, ExecutedIpam, ProviderKind};
use serde_json::{Map, Value, json};

/// Needs a daemon, and a link that is there before it.
const DHCP: &str = "dhcp";

/// Whether the plugin that `ipam` names can be executed alone. A name that no plugin can have is a problem. What is
/// written for us and looks like a kind of ours is probably meant to be that.
pub(super) fn may_be(fields: &mut Fields<'_>, name: &str, written: Written) -> bool {
    if name == DHCP || (written == Written::ForUs && choice::is_near_ipam(name)) {
        return false;
    }
    chain::plugin_type(fields);
    fields.is_sound()
}

/// The whole network's configuration is what the plugin gets.
pub(super) fn read(
    network: &Map<String, Value>,
    kind: &ProviderKind,
    written: Written,
    request: &RuntimeRequest,
) -> ExecutedIpam {
    let ours = chain::without_plugins(&[&TOP_KEYS[..], &["interface"]].concat());
    let mut plugin = chain::config(network, &ours, request);
    let empty = |value: &Value| value.is_null() || *value == "";
    if plugin.get("type").is_none_or(empty) {
        plugin.insert("type".to_owned(), kind.name.into());
    }
    // What is written for us has this capability without saying so.
    if written == Written::ForUs {
        let declared = plugin.entry("capabilities").or_insert_with(|| json!({}));
        match declared.as_object_mut() {
            Some(declared) => drop(declared.insert("ips".to_owned(), true.into())),
            None => *declared = json!({"ips": true}),
        }
    }
    ExecutedIpam {
        chain: Chain {
            executable: Executable::IpamType,
            version: request.version,
            plugins: vec![plugin],
            unsupported_key: None,
        },
        routes: Vec::new(),
    }
}
