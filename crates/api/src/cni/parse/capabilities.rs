//! Does somebody take what the runtime sends? A native network takes `ips` and `mac`; whatever
//! else is declared or sent must be taken by a plugin that is executed.

use super::{Head, OWN_TYPES};
use crate::Fields;
use crate::cni::{Body, How};

pub(super) fn check(fields: &mut Fields<'_>, head: &Head, body: &Body) {
    // A reference plugin's configuration declares what that plugin takes.
    let ours = head
        .plugin
        .as_ref()
        .is_some_and(|name| OWN_TYPES.contains(&name.as_str()));
    for name in head.capabilities.iter().filter(|_| ours) {
        if !is_own(name) && !body.takes(name) {
            let text = "is taken by no plugin here: remove it, or declare it in the plugin that \
                        takes it";
            fields.unsupported(&format!("capabilities.{name}"), text);
        }
    }
    for (name, value) in &head.runtime.raw {
        let taken = match body.networks().first().map(|network| &network.how) {
            Some(How::Native(_)) if is_own(name) => true,
            Some(How::Delegate(chain)) if is_own(name) => super::chain::takes(chain, name),
            _ => body.takes(name),
        };
        if !taken && !value.is_null() {
            let text = "is taken by no plugin here: a native network takes ips and mac";
            let name: String = name.chars().take(64).collect();
            fields.unsupported(&format!("runtimeConfig.{name}"), text);
        }
    }
}

fn is_own(name: &str) -> bool {
    ["ips", "mac"]
        .iter()
        .any(|own| own.eq_ignore_ascii_case(name))
}
