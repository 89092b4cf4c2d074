//! The options of a native network, written for `provider` or for a reference plugin's `type`. Owns
//! those that all providers have; the others are in the provider's own file.

use super::request::RuntimeRequest;
use super::{choice, common, ipam};
use crate::cni::{Ipam, Native, Provider, ProviderKind, Requests};
use crate::text::shortened;
use crate::{Fields, Problem, Problems};

/// Who the options are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Us: a key that we do not understand is an error.
    ForUs,
    /// The reference plugin: such a key makes us execute it.
    ForPlugin,
}

/// The keys that all native networks have.
const COMMON_KEYS: [&str; 5] = ["mtu", "ipam", "dns", "sourceRouting", "args"];

/// Every key that some native network has; for messages about networks of no known kind.
pub(super) fn all_keys() -> impl Iterator<Item = &'static str> {
    let own = Provider::KINDS.iter();
    let own = own.flat_map(|kind| kind.keys.iter().chain(kind.own_keys).copied());
    COMMON_KEYS.into_iter().chain(own)
}

/// Reads the options of one native network. `request` is what the request adds to them.
pub(crate) fn read(
    fields: &mut Fields<'_>,
    kind: &ProviderKind,
    written: Written,
    request: &RuntimeRequest,
) -> Option<Native> {
    let mtu = common::mtu(fields);
    let dns = fields.object("dns", common::dns).unwrap_or_default();
    let owned = written == Written::ForUs && kind.own_keys.contains(&"mac");
    let has_mac = owned || kind.keys.contains(&"mac");
    let mac = if has_mac { fields.parsed("mac") } else { None };
    let provider = Provider::read(kind, fields, request);
    let ipam =
        (kind.in_config || kind.is_plugin).then(|| ipam::read(fields, kind, written, request));
    let ipam = ipam.flatten();
    let requests = ipam.as_ref().map(Ipam::requests);
    check_request(fields, kind, requests, request);
    let ips = match requests {
        Some(Requests::Written | Requests::Passed) => Vec::new(),
        Some(Requests::Chosen) | None => request.ips().to_vec(),
    };
    Some(Native {
        provider: provider?,
        ipam,
        mac: request.mac.or(mac),
        ips,
        mtu,
        dns,
    })
}

/// What is asked for must have a place in the network. What we do not know in `args.cni` may be for a plugin that is
/// executed.
fn check_request(
    fields: &mut Fields<'_>,
    kind: &ProviderKind,
    requests: Option<Requests>,
    request: &RuntimeRequest,
) {
    if let (Some(mac), false) = (request.mac, kind.capabilities.contains(&"mac")) {
        let name = kind.name;
        let text =
            format!("{mac} is asked for, but every {name} has the MAC of its master: ask for none");
        fields.problem("mac", text);
    }
    let addressed = fields.has("ipam") || request.has_subnets;
    if let (Some((ip, _)), false) = (request.ips().first(), addressed) {
        let text = format!("is missing, but the address {ip} is asked for: write one");
        fields.problem("ipam", text);
    }
    if requests == Some(Requests::Passed) {
        return;
    }
    for key in &request.unknown {
        fields.absorb(Problems(vec![Problem {
            path: format!("args.cni.{}", shortened(key)),
            text: "is not a known key: ips, mac and labels are".to_owned(),
            unknown_key: true,
        }]));
    }
}

/// Flags of the plugin that we understand only when they are off.
pub(crate) fn not_native(fields: &mut Fields<'_>, kind: &ProviderKind, keys: &[&'static str]) {
    for key in keys {
        if fields.flag(key) {
            not_ours(fields, kind, key, "true");
        }
    }
}

/// A key of the plugin, or a value of it, that we do not have.
pub(crate) fn not_ours(fields: &mut Fields<'_>, kind: &ProviderKind, key: &str, value: &str) {
    let real = choice::real_plugin(kind.name, fields.path());
    let text = format!("is {value}, which is not native: leave it out, or {real}");
    fields.unsupported(key, text);
}
