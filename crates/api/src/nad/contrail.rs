//! Contrail's annotations of a NAD: which subnets, which flags, or which network that is there.

use crate::Problems;
use crate::cni::{FqName, Overlay, Routed};
use crate::fault::fault;
use crate::objects::{NetworkSpec, Subnet};
use crate::pod::{CONTRAIL_NETWORK, contrail_networks};
use crate::text::{FromText, quoted};
use ipnet::IpNet;
use std::collections::BTreeMap;

/// The subnets.
pub const CIDR: &str = "opencontrail.org/cidr";
/// Traffic to elsewhere leaves under the node's address.
pub const SNAT: &str = "opencontrail.org/ip_fabric_snat";
/// The network's addresses are routed by the nodes themselves; wins over the other flag.
pub const FORWARDING: &str = "opencontrail.org/ip_fabric_forwarding";

/// More than anyone writes.
const MAX_CIDRS: usize = 64;

/// Contrail's annotations of a NAD.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contrail {
    /// `opencontrail.org/cidr`, in order.
    pub cidrs: Vec<IpNet>,
    /// `opencontrail.org/ip_fabric_snat`
    pub snat: bool,
    /// `opencontrail.org/ip_fabric_forwarding`
    pub forwarding: bool,
    /// `opencontrail.org/network`: a network that is there already.
    pub network: Option<FqName>,
    /// What users must be told though it works.
    pub warnings: Vec<String>,
}

impl Contrail {
    /// Reads them; annotations of others are not looked at.
    pub fn read(annotations: &BTreeMap<String, String>) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        let mut keep = |wrong: Problems| problems.extend(wrong.0);
        let text = |key: &str| annotations.get(key).map(String::as_str);
        let cidrs = text(CIDR).map_or(Ok(Vec::new()), cidrs);
        let flag = |key: &str| text(key).map_or(Ok(false), |text| flag(key, text));
        let network = text(CONTRAIL_NETWORK).map_or(Ok(None), network);
        let read = Self {
            cidrs: cidrs.map_err(&mut keep).unwrap_or_default(),
            snat: flag(SNAT).map_err(&mut keep).unwrap_or_default(),
            forwarding: flag(FORWARDING).map_err(&mut keep).unwrap_or_default(),
            network: network.map_err(&mut keep).unwrap_or_default(),
            warnings: warnings(annotations),
        };
        if read.network.is_some() && text(CIDR).is_some() {
            let text = format!("and {CIDR} exclude each other: that network has its own subnets");
            problems.extend(fault(CONTRAIL_NETWORK, text).0);
        }
        match problems.is_empty() {
            true => Ok(read),
            false => Err(Problems(problems)),
        }
    }

    /// The network that they describe: forwarding wins, then the other flag. Subnets keep their order.
    pub fn spec(&self) -> NetworkSpec {
        let provider = match self.forwarding {
            true => Routed::KIND,
            false => Overlay::KIND,
        };
        let subnets = self.cidrs.iter().enumerate().map(|(i, cidr)| {
            let subnet = Subnet {
                cidr: *cidr,
                gateway: None,
                exclude: Vec::new(),
            };
            (format!("cidr-{i:02}"), subnet)
        });
        NetworkSpec {
            provider: Some(provider.name.to_owned()),
            subnets: subnets.collect(),
            snat: self.snat && !self.forwarding,
            source_check: true,
            ..NetworkSpec::default()
        }
    }
}

fn warnings(annotations: &BTreeMap<String, String>) -> Vec<String> {
    let known = [CIDR, SNAT, FORWARDING, CONTRAIL_NETWORK];
    let foreign = annotations
        .keys()
        .filter(|key| key.starts_with("opencontrail.org/") && !known.contains(&key.as_str()));
    foreign
        .take(8)
        .map(|key| format!("annotation {} has no meaning here on a NAD", quoted(key)))
        .collect()
}

/// One subnet, or several with commas between; in brackets or not, in quotes or not.
fn cidrs(text: &str) -> Result<Vec<IpNet>, Problems> {
    let text = text.trim();
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let inner = inner.unwrap_or(text).trim().trim_end_matches(',');
    let count = inner.split(',').count();
    if inner.is_empty() || count > MAX_CIDRS {
        let text = format!("must have 1 to {MAX_CIDRS} subnets, such as ['10.1.1.0/24']");
        return Err(fault(CIDR, text));
    }
    let mut problems = Problems::default();
    let mut list: Vec<IpNet> = Vec::new();
    for (i, item) in inner.split(',').enumerate() {
        let text = unquoted(item.trim());
        match IpNet::from_text(text) {
            Ok(cidr) if cidr.addr() != cidr.network() => {
                let text = format!("{cidr} has host bits set: write {}", cidr.trunc());
                problems.0.extend(fault(format!("{CIDR}[{i}]"), text).0);
            }
            Ok(cidr) if list.contains(&cidr) => {
                let text = format!("{cidr} occurs twice: keep one");
                problems.0.extend(fault(format!("{CIDR}[{i}]"), text).0);
            }
            Ok(cidr) => list.push(cidr),
            Err(text) => problems.0.extend(fault(format!("{CIDR}[{i}]"), text).0),
        }
    }
    match problems.0.is_empty() {
        true => Ok(list),
        false => Err(problems),
    }
}

fn unquoted(text: &str) -> &str {
    let pairs = [
        ('\'', '\''),
        ('"', '"'),
        ('\u{201c}', '\u{201d}'),
        ('\u{2018}', '\u{2019}'),
    ];
    let within = |(open, close)| text.strip_prefix(open)?.strip_suffix(close);
    pairs.into_iter().find_map(within).unwrap_or(text)
}

fn flag(key: &str, text: &str) -> Result<bool, Problems> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(fault(
            key,
            format!("is {}: write \"true\" or \"false\"", quoted(text)),
        )),
    }
}

fn network(text: &str) -> Result<Option<FqName>, Problems> {
    let mut names = contrail_networks(text)?;
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(Some(name)),
        _ => Err(fault(
            CONTRAIL_NETWORK,
            "must name exactly one network: a NAD is one",
        )),
    }
}
