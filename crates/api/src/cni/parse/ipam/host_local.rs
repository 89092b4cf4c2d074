//! `host-local`: read and completed exactly as the reference plugin does, so that both can share a
//! range.

use super::span::{Span, address, number, overlaps};
use crate::Fields;
use crate::cni::parse::common;
use crate::cni::{HostLocal, Range};
use crate::text::host_bits;
use ipnet::IpNet;
use plexus_types::Family;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Where the reference plugin keeps its files.
pub(crate) const DATA_DIR: &str = "/var/lib/cni/networks";

pub(super) fn read(fields: &mut Fields<'_>) -> HostLocal {
    let ranges = fields.object_lists("ranges", |range, _| range_of(range));
    let mut ranges = ranges.unwrap_or_default();
    for (i, set) in ranges.iter().enumerate() {
        let families = set.iter().map(|range| Family::of(range.start));
        if families.collect::<BTreeSet<_>>().len() > 1 {
            let text = "mixes IPv4 and IPv6: write one list for each family";
            fields.problem(&format!("ranges[{i}]"), text);
        }
    }
    empty_sets(fields);
    if fields.lacks("subnet") {
        for key in ["rangeStart", "rangeEnd", "gateway"] {
            if !fields.lacks(key) {
                fields.problem(key, "has no \"subnet\" beside it: write one");
            }
        }
        fields.know(&["subnet", "rangeStart", "rangeEnd", "gateway"]);
        fields.require("ranges", "write [[{\"subnet\": \"10.0.0.0/24\"}]]");
    } else if let Some(range) = range_of(fields) {
        ranges.insert(0, vec![range]);
    }
    refuse_overlaps(fields, &ranges);
    HostLocal {
        ranges,
        routes: common::routes(fields),
        data_dir: fields.parsed("dataDir").unwrap_or_else(|| DATA_DIR.into()),
        resolv_conf: fields.parsed("resolvConf"),
    }
}

/// `subnet`, `rangeStart`, `rangeEnd`, `gateway`, completed.
fn range_of(fields: &mut Fields<'_>) -> Option<Range> {
    let subnet = fields.parsed::<IpNet>("subnet");
    let start = fields.parsed::<IpAddr>("rangeStart");
    let end = fields.parsed::<IpAddr>("rangeEnd");
    let gateway = fields.parsed::<IpAddr>("gateway");
    fields.require("subnet", "write it as 10.0.0.0/24 or fd00::/64");
    let subnet = subnet?;
    let all = Span::of(&subnet);
    if let Some(text) = host_bits(&subnet) {
        fields.problem("subnet", text);
        return None;
    }
    if subnet.prefix_len() + 2 > all.family.bits() {
        let text = format!("{subnet} is too small: write one of at least four addresses");
        fields.problem("subnet", text);
        return None;
    }
    let first = address(all.family, all.first + 1);
    let last = address(all.family, all.last - u128::from(all.family == Family::V4));
    let range = Range {
        subnet,
        start: start.unwrap_or(first),
        end: end.unwrap_or(last),
        gateway: gateway.unwrap_or(first),
    };
    for (key, value) in [("rangeStart", range.start), ("rangeEnd", range.end)] {
        if !all.holds(value) {
            let text = format!("{value} is not in {subnet}: write an address that is");
            fields.problem(key, text);
            return None;
        }
    }
    if number(range.start) > number(range.end) {
        let Range { start, end, .. } = range;
        let text = format!("{start} comes after the last address, {end}");
        fields.problem("rangeStart", text);
        return None;
    }
    if Family::of(range.gateway) != all.family {
        let text = format!("{} is not of the family of {subnet}", range.gateway);
        fields.problem("gateway", text);
    }
    Some(range)
}

fn empty_sets(fields: &mut Fields<'_>) {
    let Some(sets) = fields.list("ranges") else {
        return;
    };
    for (i, set) in sets.iter().enumerate() {
        if set.as_array().is_some_and(Vec::is_empty) {
            let text = "is empty: write a range with a \"subnet\"";
            fields.problem(&format!("ranges[{i}]"), text);
        }
    }
    if sets.is_empty() && fields.lacks("subnet") {
        let text = "is empty: write [[{\"subnet\": \"10.0.0.0/24\"}]]";
        fields.problem("ranges", text);
    }
}

/// Ranges must not overlap, in a set or across sets; that they share a subnet is legal.
fn refuse_overlaps(fields: &mut Fields<'_>, ranges: &[Vec<Range>]) {
    let ranges: Vec<&Range> = ranges.iter().flatten().collect();
    let span = |range: &&Range| Span {
        family: Family::of(range.start),
        first: number(range.start),
        last: number(range.end),
    };
    let spans: Vec<Span> = ranges.iter().map(span).collect();
    for (i, j) in overlaps(&spans) {
        if let (Some(a), Some(b)) = (ranges.get(i), ranges.get(j)) {
            let text = format!(
                "{}-{} and {}-{} overlap: an address may be in one range only",
                a.start, a.end, b.start, b.end
            );
            fields.problem("ranges", text);
        }
    }
}
