//! One element of the Working Group's list.

use super::name;
use crate::Fields;
use crate::cni::{PortMapping, port_mappings};
use crate::text::quoted;
use plexus_types::{IfName, Mac};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// A network that a pod asks for, and what it asks of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NetworkSelection {
    /// Where the network is; the pod's own namespace unless written.
    pub namespace: String,
    /// The network.
    pub name: String,
    /// Name of the interface in the pod.
    pub interface: Option<IfName>,
    /// Addresses asked for, with a prefix length if one is written.
    pub ips: Vec<(IpAddr, Option<u8>)>,
    /// The MAC asked for.
    pub mac: Option<Mac>,
    /// `infiniband-guid`: eight bytes, lower case, with colons.
    pub infiniband_guid: Option<String>,
    /// Ports of the node that lead to this interface.
    pub port_mappings: Vec<PortMapping>,
    /// Limits.
    pub bandwidth: Option<Bandwidth>,
    /// `cni-args`: for `args.cni` of the plugins.
    pub cni_args: Map<String, Value>,
    /// `default-route`: the gateways; with an empty list the default route is here too, by the
    /// network's own gateway.
    pub default_route: Option<Vec<IpAddr>>,
    /// `ipam-claim-reference`.
    pub ipam_claim: Option<String>,
    /// `deviceID`.
    pub device_id: Option<String>,
    /// Keys with a dot, which are nobody's but whose domain they have.
    pub others: Map<String, Value>,
}

/// Bits, and bits per second; none is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bandwidth {
    /// `ingressRate`
    pub ingress_rate: Option<u64>,
    /// `ingressBurst`
    pub ingress_burst: Option<u64>,
    /// `egressRate`
    pub egress_rate: Option<u64>,
    /// `egressBurst`
    pub egress_burst: Option<u64>,
}

impl NetworkSelection {
    /// Just a network.
    pub fn named(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// `runtimeConfig` for plugins: what is asked, by the names of the capabilities.
    pub fn runtime_config(&self) -> Map<String, Value> {
        let ips: Vec<String> = self.ips.iter().map(written).collect();
        let ports = self.port_mappings.iter().map(PortMapping::to_json);
        let ports: Vec<Value> = ports.collect();
        let asked = [
            ("ips", (!ips.is_empty()).then(|| json!(ips))),
            ("mac", self.mac.map(|mac| json!(mac.to_string()))),
            (
                "infinibandGUID",
                self.infiniband_guid.as_ref().map(|guid| json!(guid)),
            ),
            ("portMappings", (!ports.is_empty()).then(|| json!(ports))),
            ("bandwidth", self.bandwidth.map(Bandwidth::to_json)),
            (
                "deviceID",
                self.device_id.as_ref().map(|device| json!(device)),
            ),
        ];
        let asked = asked.into_iter();
        asked
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect()
    }
}

impl Bandwidth {
    /// The limits that there are, by the names that they have in annotations and runtimeConfig.
    fn named(&self) -> [(&'static str, Option<u64>); 4] {
        [
            ("ingressRate", self.ingress_rate),
            ("ingressBurst", self.ingress_burst),
            ("egressRate", self.egress_rate),
            ("egressBurst", self.egress_burst),
        ]
    }

    fn to_json(self) -> Value {
        let limits = self.named().into_iter();
        let limits = limits.filter_map(|(key, limit)| Some((key.to_owned(), json!(limit?))));
        Value::Object(limits.collect())
    }
}

/// Reads an element whose keys are the Working Group's.
pub(super) fn read(fields: &mut Fields<'_>, pod_namespace: &str) -> Option<NetworkSelection> {
    let network = network(fields, pod_namespace);
    let one = NetworkSelection {
        interface: interface(fields),
        ips: ips(fields),
        mac: fields.parsed("mac"),
        infiniband_guid: guid(fields),
        port_mappings: {
            not_empty(fields, "portMappings", "a mapping");
            port_mappings(fields, true)
        },
        bandwidth: fields.object("bandwidth", bandwidth),
        cni_args: fields.map_of("cni-args").cloned().unwrap_or_default(),
        default_route: fields
            .has("default-route")
            .then(|| fields.parsed_list("default-route")),
        ipam_claim: claim(fields),
        device_id: fields.parsed("deviceID"),
        ..NetworkSelection::default()
    };
    fields.know(&["default-route"]);
    let (namespace, name) = network?;
    Some(NetworkSelection {
        namespace,
        name,
        ..one
    })
}

/// `name`, which may have the namespace in it, and `namespace`.
fn network(fields: &mut Fields<'_>, pod_namespace: &str) -> Option<(String, String)> {
    let name = fields.text("name").filter(|name| !name.is_empty());
    let namespace = fields.text("namespace").filter(|name| !name.is_empty());
    if let Some(Err(text)) = namespace.map(name::namespace) {
        fields.problem("namespace", text);
    }
    fields.require("name", "write the network's name");
    let (within, name) = match name::qualified(name?) {
        Ok(parts) => parts,
        Err(text) => {
            fields.problem("name", text);
            return None;
        }
    };
    if let (Some(within), Some(beside)) = (within, namespace)
        && within != beside
    {
        let (beside, within) = (quoted(beside), quoted(within));
        let text = format!("is {beside}, but \"name\" says {within}: keep one of them");
        fields.problem("namespace", text);
    }
    let namespace = within.or(namespace).unwrap_or(pod_namespace);
    Some((namespace.to_owned(), name.to_owned()))
}

/// `interface`, and what it was called before.
fn interface(fields: &mut Fields<'_>) -> Option<IfName> {
    let interface = fields.parsed::<IfName>("interface");
    let older = fields.parsed::<IfName>("interfaceRequest");
    match (interface, older) {
        (Some(a), Some(b)) if a != b => {
            let text = format!("is {b}, but \"interface\" is {a}: keep one of them");
            fields.problem("interfaceRequest", text);
            Some(a)
        }
        (interface, older) => interface.or(older),
    }
}

fn ips(fields: &mut Fields<'_>) -> Vec<(IpAddr, Option<u8>)> {
    not_empty(fields, "ips", "an address");
    let ips = fields.parsed_list::<(IpAddr, Option<u8>)>("ips");
    let mut seen = BTreeSet::new();
    for (ip, _) in &ips {
        if !seen.insert(*ip) {
            fields.problem("ips", format!("has {ip} twice: keep one"));
        }
    }
    ips
}

fn guid(fields: &mut Fields<'_>) -> Option<String> {
    let text = fields.text("infiniband-guid");
    let text = text.filter(|text| !text.is_empty())?;
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let byte = |part: &&str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    if parts.len() != 8 || !parts.iter().all(byte) {
        let text = format!(
            "{} is not a GUID: write eight bytes such as c2:11:22:33:44:55:66:77",
            quoted(text)
        );
        fields.problem("infiniband-guid", text);
        return None;
    }
    Some(parts.join(":").to_ascii_lowercase())
}

fn bandwidth(fields: &mut Fields<'_>) -> Bandwidth {
    let bandwidth = Bandwidth {
        ingress_rate: fields.count("ingressRate"),
        ingress_burst: fields.count("ingressBurst"),
        egress_rate: fields.count("egressRate"),
        egress_burst: fields.count("egressBurst"),
    };
    for (key, limit) in bandwidth.named() {
        if limit == Some(0) {
            fields.problem(key, "is 0: write a larger number, or leave it out");
        }
    }
    let [ingress, ingress_burst, egress, egress_burst] = bandwidth.named();
    for ((rate, limit), (burst, size)) in [(ingress, ingress_burst), (egress, egress_burst)] {
        if size.is_some() && limit.is_none() {
            fields.problem(burst, format!("needs {rate} beside it"));
        }
    }
    bandwidth
}

fn claim(fields: &mut Fields<'_>) -> Option<String> {
    let claim = fields.text("ipam-claim-reference");
    let claim = claim.filter(|name| !name.is_empty())?;
    if let Err(text) = name::object(claim) {
        fields.problem("ipam-claim-reference", text);
    }
    if fields.has("ips") {
        let text = "and \"ips\" exclude each other: the claim says which addresses";
        fields.problem("ipam-claim-reference", text);
    }
    Some(claim.to_owned())
}

/// Lists that are there must have something in them.
fn not_empty(fields: &mut Fields<'_>, key: &'static str, what: &str) {
    if fields.list(key).is_some_and(<[_]>::is_empty) {
        fields.problem(key, format!("is empty: write {what}, or leave it out"));
    }
}

fn written((ip, length): &(IpAddr, Option<u8>)) -> String {
    match length {
        Some(length) => format!("{ip}/{length}"),
        None => ip.to_string(),
    }
}
