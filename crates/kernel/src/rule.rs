//! Rules: how one is set, removed and read.

use crate::address::family;
use crate::netlink::{Request, attributes, ip, u32_of};
use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::route::RouteProtocol;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use plexus_core::plan::{ObservedRule, PROTOCOL, Rule};
use plexus_types::Family;

/// Sets a rule.
pub(crate) fn add(rule: &Rule) -> Request {
    let what = format!("add rule from {} lookup {}", rule.from, rule.table);
    Request::new(
        Message::NewRule(message(rule)),
        NLM_F_CREATE | NLM_F_EXCL,
        what,
    )
}

/// Takes a rule away.
pub(crate) fn delete(rule: &Rule) -> Request {
    let what = format!("delete rule from {} lookup {}", rule.from, rule.table);
    Request::new(Message::DelRule(message(rule)), 0, what)
}

/// Asks for all rules of a family.
pub(crate) fn list(family: Family) -> Request {
    let mut message = RuleMessage::default();
    message.header.family = crate::address::family(family.everything().addr());
    Request::new(Message::GetRule(message), 0, format!("list {family} rules"))
}

/// Reads one rule from an answer, if it has a source prefix and a table.
pub(crate) fn read(payload: &[u8]) -> Option<ObservedRule> {
    const FRA_SRC: u16 = 2;
    const FRA_PRIORITY: u16 = 6;
    const FRA_TABLE: u16 = 15;
    let header = payload.get(..12)?;
    let (mut from, mut table, mut priority) = (None, u32::from(header[4]), 0);
    for (kind, value) in attributes(&payload[12..]) {
        match kind {
            FRA_SRC => from = ip(value),
            FRA_TABLE => table = u32_of(value),
            FRA_PRIORITY => priority = u32_of(value),
            _ => {}
        }
    }
    Some(ObservedRule {
        from: IpNet::new(from?, header[2]).ok()?,
        table,
        priority,
    })
}

fn message(rule: &Rule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family(rule.from.addr());
    message.header.src_len = rule.from.prefix_len();
    message.header.action = RuleAction::ToTable;
    message.attributes = vec![
        RuleAttribute::Source(rule.from.network()),
        RuleAttribute::Table(rule.table),
        RuleAttribute::Priority(rule.priority),
        RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL)),
    ];
    message
}
