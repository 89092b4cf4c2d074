//! One attachment, as everybody outside sees it: the record in the API, `network-status`, the
//! queries. Made from the journal alone.

use crate::journal::{
    AttachmentRecord, BackendRecord, NativeRecord, PluginsRecord, Record, State, Stored,
};
use ipnet::IpNet;
use plexus_api::cni::{Dns, Outcome};
use plexus_core::plan::{Link, reported_route};
use plexus_core::resolve::Reference;
use plexus_types::{Family, Mac};
use std::net::IpAddr;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    /// Where it came from; for an inline configuration made of what is known.
    pub(crate) reference: Reference,
    /// Which of the interfaces that its reference makes.
    pub(crate) ordinal: u32,
    pub(crate) id: String,
    pub(crate) ifname: String,
    pub(crate) mac: Option<String>,
    /// Its addresses with the prefix length of their subnet.
    pub(crate) ips: Vec<IpNet>,
    pub(crate) gateways: Vec<IpAddr>,
    /// The families whose default route is here.
    pub(crate) default_route: Vec<Family>,
    /// Its routes, as `ip` writes them.
    pub(crate) routes: Vec<String>,
    pub(crate) rules: Vec<String>,
    pub(crate) dns: Dns,
    pub(crate) mtu: Option<u32>,
    pub(crate) delegated: bool,
}

/// Namespace and name of the pod that a record is of.
pub(crate) fn pod_of(record: &Record) -> Option<(&str, &str)> {
    record.details.pod.as_deref()?.split_once('/')
}

/// The identity of an attachment: the same for the same pod, sandbox, network and interface, in the
/// form of a UUID (version 8).
pub(crate) fn attachment_id(pod: &str, sandbox: &str, network: &str, ifname: &str) -> String {
    let bytes = |salt: &str| {
        let parts = ["attachment", salt, pod, sandbox, network, ifname];
        Mac::derived(&parts).bytes()
    };
    let mut id = [0_u8; 16];
    for (slot, byte) in id
        .iter_mut()
        .zip([bytes("a"), bytes("b"), bytes("c")].concat())
    {
        *slot = byte;
    }
    if let (Some(version), Some(variant)) = (id.get(6).copied(), id.get(8).copied()) {
        id[6] = version & 0x0f | 0x80;
        id[8] = variant & 0x3f | 0x80;
    }
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |range| hex.get(range).unwrap_or_default();
    format!(
        "{}-{}-{}-{}-{}",
        part(0..8),
        part(8..12),
        part(12..16),
        part(16..20),
        part(20..32)
    )
}

/// The attachments of a record, in order; none unless it is done.
pub(crate) fn views(stored: &Stored) -> Vec<View> {
    if stored.state != State::Done {
        return Vec::new();
    }
    let record = &stored.record;
    let all = record.attachments.iter();
    let all = all.map(|one| match &one.backend {
        BackendRecord::Native(made) => native(record, one, made),
        BackendRecord::Plugins(made) => plugins(record, one, made),
    });
    all.collect()
}

fn native(record: &Record, attachment: &AttachmentRecord, native: &NativeRecord) -> View {
    let link = native.link.as_ref();
    let addresses = &native.addresses;
    let reference = reference(record, attachment);
    View {
        id: id(record, &reference, attachment.ifname.as_str()),
        gateways: gateways(&reference, addresses.ips.iter().filter_map(|ip| ip.gateway)),
        reference,
        ordinal: attachment.ordinal,
        ifname: attachment.ifname.to_string(),
        mac: link.and_then(|link| link.mac).map(|mac| mac.to_string()),
        ips: addresses.ips.iter().map(|ip| ip.address).collect(),
        default_route: link.map(defaults).unwrap_or_default(),
        routes: link.map(Link::routes_text).unwrap_or_default(),
        rules: link.map(rules).unwrap_or_default(),
        dns: addresses.dns.clone(),
        mtu: link.and_then(|link| link.mtu),
        delegated: false,
    }
}

fn plugins(record: &Record, attachment: &AttachmentRecord, plugins: &PluginsRecord) -> View {
    let nothing = Outcome::default();
    let result = plugins.results.last().unwrap_or(&nothing);
    let reference = reference(record, attachment);
    let inside = result.interfaces.iter().find(|i| i.sandbox.is_some());
    let default_route = Family::ALL.into_iter().filter(|family| {
        let mut routes = result.routes.iter();
        routes.any(|route| route.dst == family.everything())
    });
    View {
        id: id(record, &reference, attachment.ifname.as_str()),
        gateways: gateways(&reference, result.ips.iter().filter_map(|ip| ip.gateway)),
        reference,
        ordinal: attachment.ordinal,
        ifname: attachment.ifname.to_string(),
        mac: inside.and_then(|interface| interface.mac.clone()),
        ips: result.ips.iter().map(|ip| ip.address).collect(),
        default_route: default_route.collect(),
        routes: reported_routes(result),
        rules: Vec::new(),
        dns: result.dns.clone(),
        mtu: None,
        delegated: true,
    }
}

/// A routed pod's next hop is link-local; people mean the subnet's gateway.
fn gateways(reference: &Reference, assigned: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
    let of_subnets: Vec<IpAddr> = reference.subnets.iter().filter_map(|(_, g)| *g).collect();
    match of_subnets.is_empty() {
        true => assigned.collect(),
        false => of_subnets,
    }
}

fn reference(record: &Record, attachment: &AttachmentRecord) -> Reference {
    let last = record.attachments.iter().map(|one| one.reference).max();
    let total = last.map_or(0, |last| last + 1);
    let known = attachment.origin.clone();
    known.unwrap_or_else(|| Reference {
        index: u32::try_from(attachment.reference).unwrap_or(u32::MAX),
        total: u32::try_from(total).unwrap_or(u32::MAX),
        namespace: String::new(),
        name: attachment.network.to_string(),
        uuid: String::new(),
        source: String::new(),
        subnets: Vec::new(),
    })
}

fn id(record: &Record, reference: &Reference, ifname: &str) -> String {
    let pod = record.pod_uid.as_deref().unwrap_or_default();
    let network = match reference.uuid.as_str() {
        "" => reference.name.as_str(),
        uuid => uuid,
    };
    attachment_id(pod, record.container.as_str(), network, ifname)
}

fn defaults(link: &Link) -> Vec<Family> {
    let has = |family: &Family| {
        let mut routes = link.routes.iter();
        routes.any(|route| route.dst == family.everything() && route.table.is_none())
    };
    Family::ALL.into_iter().filter(has).collect()
}

fn reported_routes(result: &Outcome) -> Vec<String> {
    let text = |route| reported_route(route, &result.ips).to_string();
    result.routes.iter().map(text).collect()
}

fn rules(link: &Link) -> Vec<String> {
    link.rules.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::{Outcome, attachment_id, reported_routes};
    use serde_json::json;

    #[test]
    fn a_plugins_routes_are_what_it_means_by_them() {
        let ips = json!([{"address": "fd00::5/64", "gateway": "fd00::1"},
            {"address": "10.1.0.5/24", "gateway": "10.1.0.1"}]);
        let routes = json!([
            {"dst": "10.9.0.0/16"}, {"dst": "10.8.0.0/16", "gw": "0.0.0.0"}, {"dst": "fd01::/64"},
            {"dst": "0.0.0.0/0", "gw": "10.1.0.2", "mtu": 1400, "priority": 7, "table": 254},
            {"dst": "10.7.0.0/16", "table": 100, "mtu": 0},
        ]);
        let result = Outcome {
            ips: serde_json::from_value(ips).unwrap(),
            routes: serde_json::from_value(routes).unwrap(),
            ..Outcome::default()
        };
        let expected = [
            "10.9.0.0/16 via 10.1.0.1",
            "10.8.0.0/16",
            "fd01::/64 via fd00::1",
            "default via 10.1.0.2 metric 7 mtu 1400",
            "10.7.0.0/16 via 10.1.0.1 table 100",
        ];
        assert_eq!(reported_routes(&result), expected);
    }

    #[test]
    fn an_id_is_a_uuid_and_tells_attachments_apart() {
        let id = attachment_id("pod", "sandbox", "blue", "net1");
        assert_eq!(id, attachment_id("pod", "sandbox", "blue", "net1"));
        assert_eq!(id.len(), 36);
        assert_eq!((&id[14..15], &id[8..9]), ("8", "-"));
        assert!("89ab".contains(&id[19..20]), "{id}");
        for other in [
            attachment_id("pod", "sandbox", "blue", "net2"),
            attachment_id("pod", "sandbo", "xblue", "net1"),
            attachment_id("pod2", "sandbox", "blue", "net1"),
        ] {
            assert_ne!(id, other);
        }
    }
}
