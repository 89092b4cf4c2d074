//! Contrail's annotations of a NAD: which subnets, which flags, or which network that is there.

use crate::Problems;
use crate::cni::{FqName, Overlay, Routed};
use crate::objects::{NetworkSpec, Subnet};
use crate::pod::{CONTRAIL_NETWORK, contrail_networks};
use crate::problem::fault;
use crate::text::{FromText, host_bits, quoted};
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
        let mut problems = Problems::default();
        let mut keep = |wrong: Problems| problems.0.extend(wrong.0);
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
            problems.add(CONTRAIL_NETWORK, text);
        }
        problems.unless_any(read)
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
    let is_foreign =
        |key: &&String| key.starts_with("opencontrail.org/") && !known.contains(&key.as_str());
    let foreign = annotations.keys().filter(is_foreign).take(8);
    let text = |key: &String| format!("annotation {} has no meaning here on a NAD", quoted(key));
    foreign.map(text).collect()
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
    let mut list = Vec::new();
    for (i, item) in inner.split(',').enumerate() {
        let read = IpNet::from_text(unquoted(item.trim()));
        match read.and_then(|cidr| check(cidr, &list)) {
            Ok(cidr) => list.push(cidr),
            Err(text) => problems.add(format!("{CIDR}[{i}]"), text),
        }
    }
    problems.unless_any(list)
}

fn check(cidr: IpNet, earlier: &[IpNet]) -> Result<IpNet, String> {
    match host_bits(&cidr) {
        Some(text) => Err(text),
        None if earlier.contains(&cidr) => Err(format!("{cidr} occurs twice: keep one")),
        None => Ok(cidr),
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
        _ => {
            let text = format!("is {}: write \"true\" or \"false\"", quoted(text));
            Err(fault(key, text))
        }
    }
}

fn network(text: &str) -> Result<Option<FqName>, Problems> {
    let text_of_many = "must name exactly one network: a NAD is one";
    <[FqName; 1]>::try_from(contrail_networks(text)?)
        .map(|[name]| Some(name))
        .map_err(|_| fault(CONTRAIL_NETWORK, text_of_many))
}
