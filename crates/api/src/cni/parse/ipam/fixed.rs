//! `static`: addresses that are written down, in the configuration or in the request.

use crate::Fields;
use crate::cni::parse::common;
use crate::cni::parse::request::RuntimeRequest;
use crate::cni::{Static, StaticAddress};
use ipnet::IpNet;
use plexus_types::Family;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The capability by which pods ask for addresses.
const IPS: &str = "ips";

pub(super) fn read(fields: &mut Fields<'_>, request: &RuntimeRequest) -> Static {
    let addresses = fields.objects("addresses", |fields, _| address_of(fields));
    let mut addresses = addresses.unwrap_or_default();
    let mut by_env = with_prefix(fields, &request.env_ips, "CNI_ARGS IP");
    apply_gateways(fields, &mut by_env, request);
    addresses.extend(by_env);
    if !request.args_ips.is_empty() {
        addresses = with_prefix(fields, &request.args_ips, "args.cni.ips");
    }
    if !request.runtime_ips.is_empty() {
        addresses = with_prefix(fields, &request.runtime_ips, "runtimeConfig.ips");
    }
    let mut seen = BTreeSet::new();
    for address in &addresses {
        if !seen.insert(address.address.addr()) {
            let text = format!("{} occurs twice", address.address.addr());
            fields.problem("addresses", text);
        }
    }
    Static {
        addresses,
        routes: common::routes(fields),
        dns: fields.object("dns", common::dns).unwrap_or_default(),
    }
}

/// `static` gives whatever address is asked for. So that a pod takes no other's, the network must declare that pods
/// may ask, and have the address in a subnet of those that it has written down. `fields` are the network's;
/// what it declares is read whoever asks.
pub(crate) fn check_pod(fields: &mut Fields<'_>, request: &RuntimeRequest) {
    let Some(ipam) = section(fields.map()) else {
        return;
    };
    let declared = common::capabilities(fields).iter().any(|name| name == IPS);
    let asked = &request.pod_ips;
    fields.absorb(asked.problems.clone());
    if asked.all.is_empty() {
        return;
    }
    if !declared && !request.declares_ips {
        let text = "is asked for by the pod, but not declared: write it as true there";
        fields.problem(&format!("capabilities.{IPS}"), text);
    }
    let written = ipam.get("addresses").and_then(Value::as_array);
    let written = written.into_iter().flatten();
    let subnets = written.filter_map(|one| one.get("address")?.as_str()?.parse::<IpNet>().ok());
    let subnets: Vec<IpNet> = subnets.collect();
    for (ip, length) in &asked.all {
        let whole = Family::of(*ip).bits();
        let net = IpNet::new(*ip, length.unwrap_or(whole));
        if !net.is_ok_and(|net| subnets.iter().any(|subnet| subnet.contains(&net))) {
            let text = format!(
                "{ip} is asked for by the pod, but is in the subnet of none of them: write one with that subnet's prefix length, or let the pod ask for another"
            );
            fields.problem("ipam.addresses", text);
        }
    }
}

/// Whether a network or plugin has its addresses from `static`.
pub(crate) fn is_asked_of(network: &Map<String, Value>) -> bool {
    section(network).is_some()
}

fn section(network: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let ipam = network.get("ipam")?.as_object()?;
    (ipam.get("type")?.as_str()? == "static").then_some(ipam)
}

fn address_of(fields: &mut Fields<'_>) -> Option<StaticAddress> {
    let address = fields.parsed::<IpNet>("address");
    let gateway = fields.parsed::<IpAddr>("gateway");
    let remedy = "write it with its prefix length, such as 10.0.0.5/24";
    fields.require("address", remedy);
    let address = address?;
    if address.addr().is_unspecified() || address.addr().is_multicast() {
        let text = format!("{address} is no address that an interface can have");
        fields.problem("address", text);
    }
    if let Some(gateway) = gateway
        && Family::of(gateway) != Family::of(address.addr())
    {
        let text = format!("{gateway} is not of the family of {address}");
        fields.problem("gateway", text);
    }
    Some(StaticAddress { address, gateway })
}

/// Addresses of a request; each must say how long its prefix is.
fn with_prefix(
    fields: &mut Fields<'_>,
    ips: &[(IpAddr, Option<u8>)],
    origin: &str,
) -> Vec<StaticAddress> {
    let mut addresses = Vec::new();
    for (ip, length) in ips {
        match length.and_then(|length| IpNet::new(*ip, length).ok()) {
            Some(address) => addresses.push(StaticAddress {
                address,
                gateway: None,
            }),
            None => {
                let text = format!("{ip}, asked for by {origin}, needs a prefix length: {ip}/24");
                fields.problem("addresses", text);
            }
        }
    }
    addresses
}

/// GATEWAY of CNI_ARGS belongs to the address of CNI_ARGS whose subnet it is in, and to no other.
fn apply_gateways(
    fields: &mut Fields<'_>,
    addresses: &mut [StaticAddress],
    request: &RuntimeRequest,
) {
    for gateway in &request.gateways {
        let mut used = false;
        for address in addresses.iter_mut().filter(|a| a.address.contains(gateway)) {
            address.gateway = Some(*gateway);
            used = true;
        }
        if !used && !request.ignore_unknown {
            let text = format!("GATEWAY={gateway} of CNI_ARGS is in the subnet of no IP= there");
            fields.problem("addresses", text);
        }
    }
}
