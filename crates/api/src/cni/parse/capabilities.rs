//! Does somebody take what the runtime sends? A native network takes what its provider says; whatever
//! else is declared or sent must be taken by a plugin that is executed. Where the cluster says which
//! networks there are, that is judged when it has.

use super::{Head, OWN_TYPES};
use crate::cni::{Body, Native, Network, NetworkBackend, POD_ANNOTATIONS};
use crate::text::shortened;
use crate::{Fields, go_folds};

/// What a configuration may declare that leaves its networks to the cluster.
const USUAL: [&str; 12] = [
    "ips",
    "mac",
    POD_ANNOTATIONS,
    "portMappings",
    "bandwidth",
    "dns",
    "cgroupPath",
    "ipRanges",
    "aliases",
    "infinibandGUID",
    "deviceID",
    "CNIDeviceInfoFile",
];

pub(super) fn check(fields: &mut Fields<'_>, head: &Head, body: &Body) {
    if matches!(body, Body::Pod | Body::Named(_)) {
        return check_usual(fields, head);
    }
    // A reference plugin's configuration declares what that plugin takes.
    let plugin = head.plugin.as_ref();
    let ours = plugin.is_some_and(|name| OWN_TYPES.contains(&name.as_str()));
    for name in head.capabilities.iter().filter(|_| ours) {
        let natively = |network: &Network| match &network.backend {
            NetworkBackend::Native(native) => takes(native, name),
            NetworkBackend::Delegate(_) => is_own(name),
        };
        if !body.networks().iter().any(natively) && !body.takes(name) {
            let text = "is taken by no plugin here: remove it, or declare it in the plugin that \
                        takes it";
            fields.unsupported(&format!("capabilities.{name}"), text);
        }
    }
    for (name, value) in &head.runtime.raw {
        let taken = match body.networks().first().map(|network| &network.backend) {
            Some(NetworkBackend::Native(native)) if takes(native, name) => true,
            Some(NetworkBackend::Delegate(chain)) if is_own(name) => {
                super::chain::takes(chain, name)
            }
            _ => body.takes(name),
        };
        if !taken && !value.is_null() {
            let natively = taken_natively(body).join(" and ");
            let text = format!("is taken by no plugin here: a native network takes {natively}");
            let name = shortened(name);
            fields.unsupported(&format!("runtimeConfig.{name}"), text);
        }
    }
}

fn check_usual(fields: &mut Fields<'_>, head: &Head) {
    let declared = head.capabilities.iter().map(|name| ("capabilities", name));
    let sent = head
        .runtime
        .raw
        .iter()
        .filter(|(_, value)| !value.is_null());
    let sent = sent.map(|(name, _)| ("runtimeConfig", name));
    for (section, name) in declared.chain(sent) {
        if !USUAL.iter().any(|usual| go_folds(usual, name)) {
            let name = shortened(name);
            let text = format!("is not known: {} are", USUAL.join(", "));
            fields.unsupported(&format!("{section}.{name}"), text);
        }
    }
}

/// Whether it is for the first interface alone, whoever makes that.
fn is_own(name: &str) -> bool {
    let mut own = ["ips", "mac"].iter();
    own.any(|own| go_folds(own, name))
}

/// What the first network takes, if it is native; else what any may.
fn taken_natively(body: &Body) -> &'static [&'static str] {
    match body.networks().first().map(|network| &network.backend) {
        Some(NetworkBackend::Native(native)) => native.provider.kind().capabilities,
        _ => &["ips", "mac"],
    }
}

/// Addresses that are asked for are given by whoever gives addresses.
fn takes(native: &Native, name: &str) -> bool {
    if let Some(ipam) = native.executed_ipam()
        && go_folds("ips", name)
    {
        return super::chain::takes(&ipam.chain, name);
    }
    let mut taken = native.provider.kind().capabilities.iter();
    taken.any(|taken| go_folds(taken, name))
}
