//! The sysctls of an interface: those that the reference plugins set, under the same conditions,
//! and ours: no router advertisements, and a reverse-path filter that works with several
//! interfaces.

use super::{Setting, provider};
use crate::attachment::{Assigned, NativeSpec};
use plexus_types::{Family, IfName};

/// Of the pod's interface.
pub(super) fn of_pod(spec: &NativeSpec, assigned: &Assigned) -> Vec<Setting> {
    let ifname = &spec.ifname;
    let v4 = |name: &str, value: &str| setting("ipv4", ifname.as_str(), name, value);
    let v6 = |name: &str, value: &str| setting("ipv6", ifname.as_str(), name, value);
    let mut settings = Vec::with_capacity(7);
    if assigned.has(Family::V6) {
        settings.push(setting("ipv6", "lo", "disable_ipv6", "0"));
        settings.push(v6("disable_ipv6", "0"));
        settings.push(v6("keep_addr_on_down", "1"));
    }
    settings.push(v6("accept_ra", "0"));
    if !assigned.ips.is_empty() {
        let own = provider::of(&spec.native.provider).sysctls().iter();
        settings
            .extend(own.map(|(family, name, value)| setting(family, ifname.as_str(), name, value)));
    }
    if spec.several {
        settings.push(v4("rp_filter", "2"));
    }
    settings
}

/// Of a link on the node: the pod's host end, or a bridge.
pub(super) fn of_node_link(name: &IfName) -> Vec<Setting> {
    vec![setting("ipv6", name.as_str(), "accept_ra", "0")]
}

/// Forwarding, for the families of the addresses.
pub(super) fn forwarding(assigned: &Assigned) -> Vec<Setting> {
    let mut settings = Vec::with_capacity(2);
    if assigned.has(Family::V4) {
        settings.push(Setting {
            key: "net/ipv4/ip_forward".to_owned(),
            value: "1".to_owned(),
        });
    }
    if assigned.has(Family::V6) {
        settings.push(setting("ipv6", "all", "forwarding", "1"));
    }
    settings
}

fn setting(family: &str, interface: &str, name: &str, value: &str) -> Setting {
    Setting {
        key: format!("net/{family}/conf/{interface}/{name}"),
        value: value.to_owned(),
    }
}
