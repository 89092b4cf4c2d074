//! `static`: addresses that are written down, in the configuration or in the request.

use crate::Fields;
use crate::cni::parse::common;
use crate::cni::parse::request::RuntimeRequest;
use crate::cni::{Static, StaticAddress};
use ipnet::IpNet;
use plexus_types::Family;
use std::collections::BTreeSet;
use std::net::IpAddr;

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
