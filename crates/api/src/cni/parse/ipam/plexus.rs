//! `plexus`: subnets, exclusions and gateways that must fit together.

use super::span::{Span, address, overlaps};
use crate::Fields;
use crate::cni::PlexusIpam;
use crate::cni::parse::common;
use crate::text::{NetOrAddress, host_bits};
use ipnet::IpNet;
use std::net::IpAddr;

/// More than anyone writes by hand; keeps the checks cheap.
const MAX_SUBNETS: usize = 64;
const MAX_EXCLUDE: usize = 4096;

pub(super) fn read(fields: &mut Fields<'_>) -> PlexusIpam {
    let subnets = fields.parsed_list::<IpNet>("subnets");
    let exclude = fields.parsed_list::<NetOrAddress>("exclude").into_iter();
    let exclude: Vec<IpNet> = exclude.map(|NetOrAddress(net)| net).collect();
    let gateway = fields.parsed_list::<IpAddr>("gateway");
    let routes = common::routes(fields);
    if fields.lacks("subnets") {
        fields.missing("subnets", "write a list such as [\"10.0.0.0/24\"]");
    } else if fields.list("subnets").is_some_and(<[_]>::is_empty) {
        let text = "is empty: write at least one, such as 10.0.0.0/24";
        fields.problem("subnets", text);
    }
    let few = [
        ("subnets", subnets.len(), MAX_SUBNETS),
        ("exclude", exclude.len(), MAX_EXCLUDE),
        ("gateway", gateway.len(), MAX_SUBNETS),
    ];
    for (key, count, most) in few {
        if count > most {
            fields.problem(key, format!("has {count} elements: write at most {most}"));
        }
    }
    if few.iter().all(|(_, count, most)| count <= most) {
        check_subnets(fields, &subnets);
        check_excludes(fields, &subnets, &exclude);
        check_gateways(fields, &subnets, &gateway);
        check_space(fields, &subnets, &exclude, &gateway);
    }
    PlexusIpam {
        subnets: subnets.iter().map(IpNet::trunc).collect(),
        exclude,
        gateway,
        routes,
    }
}

fn check_subnets(fields: &mut Fields<'_>, subnets: &[IpNet]) {
    for text in subnets.iter().filter_map(host_bits) {
        fields.problem("subnets", text);
    }
    let spans: Vec<Span> = subnets.iter().map(Span::of).collect();
    for (i, j) in overlaps(&spans) {
        if let (Some(a), Some(b)) = (subnets.get(i), subnets.get(j)) {
            fields.problem("subnets", format!("{a} and {b} overlap: keep one of them"));
        }
    }
}

fn check_excludes(fields: &mut Fields<'_>, subnets: &[IpNet], exclude: &[IpNet]) {
    for net in exclude {
        if let Some(text) = host_bits(net) {
            fields.problem("exclude", text);
        }
        if !subnets.iter().any(|subnet| subnet.contains(net)) {
            let text = format!("{net} is in no subnet: write a part of one, or leave it out");
            fields.problem("exclude", text);
        }
    }
    let spans: Vec<Span> = exclude.iter().map(Span::of).collect();
    for (i, j) in overlaps(&spans) {
        if let (Some(a), Some(b)) = (exclude.get(i), exclude.get(j)) {
            let text = format!("{a} and {b} overlap: keep the larger one");
            fields.problem("exclude", text);
        }
    }
}

fn check_gateways(fields: &mut Fields<'_>, subnets: &[IpNet], gateways: &[IpAddr]) {
    for gateway in gateways {
        match subnets.iter().find(|subnet| subnet.contains(gateway)) {
            None => {
                let text = format!("{gateway} is in no subnet: write an address that is");
                fields.problem("gateway", text);
            }
            Some(subnet) if !Span::usable(subnet).holds(*gateway) => {
                let text = format!("{gateway} is the network or broadcast address of {subnet}");
                fields.problem("gateway", text);
            }
            Some(_) => {}
        }
    }
    for subnet in subnets {
        let mut inside = gateways.iter().filter(|gateway| subnet.contains(*gateway));
        if let (Some(a), Some(b)) = (inside.next(), inside.next()) {
            let text = format!("{a} and {b} are both in {subnet}: keep one");
            fields.problem("gateway", text);
        }
    }
}

/// Every subnet must have an address to hand out: its usable ones without the excluded ones and
/// the gateway, given or reserved. In a subnet of one address none is reserved.
fn check_space(fields: &mut Fields<'_>, subnets: &[IpNet], exclude: &[IpNet], gateways: &[IpAddr]) {
    for subnet in subnets {
        let usable = Span::usable(subnet);
        let gone = exclude
            .iter()
            .filter_map(|net| usable.shared(&Span::of(net)));
        let gone = gone.fold(0_u128, |sum, span| sum.saturating_add(span.len()));
        let given = gateways
            .iter()
            .copied()
            .find(|gateway| usable.holds(*gateway));
        let reserved = (usable.len() > 1).then(|| address(usable.family, usable.first));
        let excluded = |gateway: &IpAddr| exclude.iter().any(|net| net.contains(gateway));
        let gateway = given.or(reserved).filter(|gateway| !excluded(gateway));
        if gone.saturating_add(u128::from(gateway.is_some())) >= usable.len() {
            let text = format!(
                "{subnet} has no address to hand out beside its gateway and what is excluded: \
                 write a larger one, or exclude less"
            );
            fields.problem("subnets", text);
        }
    }
}
