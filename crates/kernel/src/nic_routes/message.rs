//! Routes through next hops and the rules that lead to their tables, as messages: made here, like those of next
//! hops, so that all of them go in one send.

use crate::netlink::{Raw, Request, ip, u32_of};
use crate::nexthop::{family_of, push, push_ip};
use crate::observe::attribute;
use ipnet::IpNet;
use plexus_core::nic_routes::{FIRST_TABLE, LAST_TABLE, NextHop};
use plexus_core::plan::{PROTOCOL, RULE_PRIORITY};
use plexus_types::Family;

const RTN_UNSPEC: u8 = 0;
const RTN_UNICAST: u8 = 1;
const SCOPE_UNIVERSE: u8 = 0;
/// Of a route that is to be deleted: any.
const SCOPE_NOWHERE: u8 = 255;
const RTA_NH_ID: u16 = 30;
const FRA_SRC: u16 = 2;
const FRA_PRIORITY: u16 = 6;
const FRA_TABLE: u16 = 15;
const FRA_PROTOCOL: u16 = 21;
const FR_ACT_TO_TBL: u8 = 1;
/// The length of a route's header, and of a rule's.
const HEADER: usize = 12;

/// A route of ours, by what makes it another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnRoute {
    pub(super) table: u32,
    pub(super) dst: IpNet,
}

/// A rule of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnRule {
    pub(super) table: u32,
    pub(super) from: IpNet,
}

impl OwnRoute {
    pub(super) fn new(table: u32, dst: IpNet) -> Self {
        let dst = dst.trunc();
        Self { table, dst }
    }
}

impl OwnRule {
    pub(super) fn new(from: IpNet, table: u32) -> Self {
        let from = from.trunc();
        Self { table, from }
    }
}

/// Sets a route: in place of the one to that destination, or where none is.
pub(super) fn set_route(route: &OwnRoute, id: u32, hop: &NextHop, instead: bool) -> Request<Raw> {
    let mut body = route_header(route, RTN_UNICAST, SCOPE_UNIVERSE);
    push(&mut body, RTA_NH_ID, &id.to_ne_bytes());
    let kind = libc::RTM_NEWROUTE;
    let what = format!("set route {} {hop} in table {}", route.dst, route.table);
    let request = Request::new(Raw { kind, body }, 0, what);
    match instead {
        true => request.replacing(),
        false => request.exclusive(),
    }
}

pub(super) fn delete_route(route: &OwnRoute) -> Request<Raw> {
    let body = route_header(route, RTN_UNSPEC, SCOPE_NOWHERE);
    let kind = libc::RTM_DELROUTE;
    let what = format!("delete route {} in table {}", route.dst, route.table);
    Request::new(Raw { kind, body }, 0, what)
}

/// Asks for all routes of our protocol, in whichever table.
pub(super) fn list_routes(family: Family) -> Request<Raw> {
    let mut body = vec![0; HEADER];
    body[0] = number(family);
    body[5] = PROTOCOL;
    let kind = libc::RTM_GETROUTE;
    let what = format!("list our {family} routes");
    Request::new(Raw { kind, body }, 0, what)
}

/// Reads a route in one of our tables, with its next hop's id.
pub(crate) fn read_route(payload: &[u8]) -> Option<(OwnRoute, u32)> {
    let (header, attributes) = payload.split_at_checked(HEADER)?;
    let find = |kind| attribute(attributes, kind);
    let table = find(libc::RTA_TABLE).map_or(u32::from(header[4]), u32_of);
    if header[5] != PROTOCOL || !is_ours(table) {
        return None;
    }
    let dst = match find(libc::RTA_DST) {
        Some(dst) => IpNet::new(ip(dst)?, header[1]).ok()?,
        None => crate::route::family_of(header[0])?.everything(),
    };
    // Without a next hop of its own it is not as we make it: it is replaced, or removed.
    let id = find(RTA_NH_ID).map_or(0, u32_of);
    Some((OwnRoute::new(table, dst), id))
}

pub(super) fn add_rule(rule: &OwnRule) -> Request<Raw> {
    let (kind, body) = (libc::RTM_NEWRULE, rule_body(rule));
    let what = format!("add rule from {} lookup {}", rule.from, rule.table);
    Request::new(Raw { kind, body }, 0, what).exclusive()
}

pub(super) fn delete_rule(rule: &OwnRule) -> Request<Raw> {
    let (kind, body) = (libc::RTM_DELRULE, rule_body(rule));
    let what = format!("delete rule from {} lookup {}", rule.from, rule.table);
    Request::new(Raw { kind, body }, 0, what)
}

pub(super) fn list_rules(family: Family) -> Request<Raw> {
    let mut body = vec![0; HEADER];
    body[0] = number(family);
    let kind = libc::RTM_GETRULE;
    Request::new(Raw { kind, body }, 0, format!("list {family} rules"))
}

/// Reads a rule of ours that leads to one of our tables.
pub(crate) fn read_rule(payload: &[u8]) -> Option<OwnRule> {
    let (header, attributes) = payload.split_at_checked(HEADER)?;
    let find = |kind| attribute(attributes, kind);
    let table = find(FRA_TABLE).map_or(u32::from(header[4]), u32_of);
    let ours = find(FRA_PROTOCOL) == Some(&[PROTOCOL]);
    let priority = find(FRA_PRIORITY).map_or(0, u32_of);
    if !ours || !is_ours(table) || priority != RULE_PRIORITY {
        return None;
    }
    let from = find(FRA_SRC).and_then(ip)?;
    Some(OwnRule::new(IpNet::new(from, header[2]).ok()?, table))
}

fn is_ours(table: u32) -> bool {
    (FIRST_TABLE..=LAST_TABLE).contains(&table)
}

fn number(family: Family) -> u8 {
    family_of(family.everything().addr())
}

fn route_header(route: &OwnRoute, kind: u8, scope: u8) -> Vec<u8> {
    let mut body = Vec::with_capacity(HEADER + 36);
    // Family, lengths of destination and source, type of service, table (below), protocol, scope, type, flags.
    body.extend([
        family_of(route.dst.addr()),
        route.dst.prefix_len(),
        0,
        0,
        0,
        PROTOCOL,
        scope,
        kind,
    ]);
    body.extend([0; 4]);
    if route.dst.prefix_len() > 0 {
        push_ip(&mut body, libc::RTA_DST, route.dst.network());
    }
    push(&mut body, libc::RTA_TABLE, &route.table.to_ne_bytes());
    body
}

fn rule_body(rule: &OwnRule) -> Vec<u8> {
    // Family, lengths of destination and source, type of service, table (below), nothing, action, flags.
    let mut body = vec![
        family_of(rule.from.addr()),
        0,
        rule.from.prefix_len(),
        0,
        0,
        0,
        0,
    ];
    body.push(FR_ACT_TO_TBL);
    body.extend([0; 4]);
    if rule.from.prefix_len() > 0 {
        push_ip(&mut body, FRA_SRC, rule.from.network());
    }
    push(&mut body, FRA_TABLE, &rule.table.to_ne_bytes());
    push(&mut body, FRA_PRIORITY, &RULE_PRIORITY.to_ne_bytes());
    push(&mut body, FRA_PROTOCOL, &[PROTOCOL]);
    body
}
