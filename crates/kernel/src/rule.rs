//! Rules: how one is set, removed and read.

use crate::address::family;
use crate::netlink::{Request, ip, u32_of};
use crate::observe::attribute;
use ipnet::IpNet;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::route::RouteProtocol;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use plexus_core::plan::{ObservedRule, PROTOCOL, Rule};
use plexus_types::Family;

pub(crate) fn add(rule: &Rule) -> Request {
    let what = format!("add rule from {} lookup {}", rule.from, rule.table);
    let message = message(rule.from, rule.table, rule.priority);
    Request::new(Message::NewRule(message), 0, what).exclusive()
}

pub(crate) fn delete(from: IpNet, table: u32, priority: u32) -> Request {
    let what = format!("delete rule from {from} lookup {table}");
    Request::new(Message::DelRule(message(from, table, priority)), 0, what)
}

pub(crate) fn list(of: Family) -> Request {
    let mut message = RuleMessage::default();
    message.header.family = family(of);
    Request::new(Message::GetRule(message), 0, format!("list {of} rules"))
}

/// Reads one rule from an answer, if it has a source prefix and a table.
pub(crate) fn read(payload: &[u8]) -> Option<ObservedRule> {
    const FRA_SRC: u16 = 2;
    const FRA_PRIORITY: u16 = 6;
    const FRA_TABLE: u16 = 15;
    let (header, attributes) = payload.split_at_checked(12)?;
    let from = attribute(attributes, FRA_SRC).and_then(ip);
    Some(ObservedRule {
        from: IpNet::new(from?, header[2]).ok()?,
        table: attribute(attributes, FRA_TABLE).map_or(u32::from(header[4]), u32_of),
        priority: attribute(attributes, FRA_PRIORITY).map_or(0, u32_of),
    })
}

fn message(from: IpNet, table: u32, priority: u32) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family(Family::of(from.addr()));
    message.header.src_len = from.prefix_len();
    message.header.action = RuleAction::ToTable;
    message.attributes = vec![
        RuleAttribute::Source(from.network()),
        RuleAttribute::Table(table),
        RuleAttribute::Priority(priority),
        RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL)),
    ];
    message
}
