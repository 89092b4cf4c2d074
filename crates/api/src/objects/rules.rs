//! What the API server itself checks of our objects, in its own language (CEL). Repeats the part of
//! [`NetworkSpec::problems`](super::NetworkSpec::problems) that it can express, so that a mistake is
//! refused when it is applied; the rest becomes a condition.

use super::check::{DELEGATE, providers};
use crate::cni::ProviderKind;
use serde::Serialize;
use serde_json::{Value, json};

/// A rule, and what is said if it does not hold.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Rule {
    rule: &'static str,
    message: &'static str,
}

/// Which providers a network may have.
pub fn provider_rule() -> String {
    let names = providers().join("', '");
    format!("!has(self.provider) || self.provider.contains('/') || self.provider in ['{names}']")
}

/// Of the spec of a network.
pub(super) fn network() -> Vec<Value> {
    let names = ProviderKind::names(|_| true).join(", ");
    let mut rules: Vec<Value> = NETWORK.iter().map(|rule| json!(rule)).collect();
    rules.push(json!({
        "rule": provider_rule(),
        "message": format!(
            "provider is not known: write {names} or {DELEGATE}, or an external provider's name with /"
        ),
    }));
    rules
}

const NETWORK: [Rule; 3] = [
    Rule {
        rule: "!has(oldSelf.provider) || (has(self.provider) && self.provider == oldSelf.provider)",
        message: "provider cannot be changed: make another network",
    },
    Rule {
        rule: "!has(oldSelf.uuid) || (has(self.uuid) && self.uuid == oldSelf.uuid)",
        message: "uuid cannot be changed: make another network",
    },
    Rule {
        rule: "has(self.blockSize) == has(oldSelf.blockSize) && (!has(self.blockSize) || self.blockSize == oldSelf.blockSize)",
        message: "blockSize cannot be changed: make another network",
    },
];

/// Of a subnet.
pub(super) const SUBNET: [Rule; 4] = [
    Rule {
        rule: "self.cidr == oldSelf.cidr",
        message: "the cidr of a subnet cannot be changed, as addresses of it may be in use: add another subnet",
    },
    Rule {
        rule: "isCIDR(self.cidr) && cidr(self.cidr) == cidr(self.cidr).masked()",
        message: "cidr must be a prefix without host bits, such as 10.1.0.0/16",
    },
    Rule {
        rule: "!has(self.gateway) || (isIP(self.gateway) && isCIDR(self.cidr) && cidr(self.cidr).containsIP(self.gateway))",
        message: "gateway must be an address of cidr",
    },
    Rule {
        rule: "!has(self.exclude) || !isCIDR(self.cidr) || self.exclude.all(e, isCIDR(e) ? cidr(self.cidr).containsCIDR(e) : isIP(e) && cidr(self.cidr).containsIP(e))",
        message: "exclude must have prefixes and addresses inside cidr",
    },
];

/// Of a route.
pub(super) const ROUTE: [Rule; 2] = [
    Rule {
        rule: "isCIDR(self.dst) && cidr(self.dst) == cidr(self.dst).masked()",
        message: "dst must be a prefix without host bits, such as 192.168.0.0/16",
    },
    Rule {
        rule: "!has(self.gw) || (isIP(self.gw) && isCIDR(self.dst) && ip(self.gw).family() == cidr(self.dst).ip().family())",
        message: "gw must be an address of the family of dst",
    },
];

/// Of `allowedNamespaces`.
pub(super) const NAMESPACES: [Rule; 1] = [Rule {
    rule: "(self.from == 'Selector') == has(self.selector)",
    message: "selector must be there if, and only if, from is Selector",
}];

/// Of the selector of namespaces.
pub(super) const SELECTOR: [Rule; 1] = [Rule {
    rule: "(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
    message: "an empty selector means nobody: write matchLabels or matchExpressions, or from: All",
}];

/// Of a requirement of a selector.
pub(super) const REQUIREMENT: [Rule; 1] = [Rule {
    rule: "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
    message: "values must be there if, and only if, operator is In or NotIn",
}];

/// Of the spec of a block.
pub(super) const BLOCK: [Rule; 3] = [
    Rule {
        rule: "self.network == oldSelf.network && self.cidr == oldSelf.cidr && self.node == oldSelf.node",
        message: "a block cannot be changed, but for the UID of its Node: its name says what it is",
    },
    Rule {
        rule: "isCIDR(self.cidr) && cidr(self.cidr) == cidr(self.cidr).masked()",
        message: "cidr must be a prefix without host bits",
    },
    Rule {
        rule: "has(self.nic) == has(oldSelf.nic) && (!has(self.nic) || (self.nic.netAddress == oldSelf.nic.netAddress && self.nic.interfaceIndex == oldSelf.nic.interfaceIndex && self.nic.hostIndex == oldSelf.nic.hostIndex))",
        message: "of nic only interface, via and retired can be changed: the rest says which block it is",
    },
];

/// Of the spec of a MultiNicNetwork.
pub(super) const MULTI_NIC_NETWORK: [Rule; 4] = [
    Rule {
        rule: "!has(oldSelf.subnet) || oldSelf.subnet == '' || (has(self.subnet) && self.subnet == oldSelf.subnet)",
        message: "subnet cannot be changed, as addresses of it may be in use: make another network",
    },
    Rule {
        rule: r#"!oldSelf.ipam.matches('"vlanMode"\\s*:\\s*"l3s?"') || self.ipam.matches('"vlanMode"\\s*:\\s*"l3s?"')"#,
        message: "vlanMode l3 and l3s cannot be changed to l2, as pods may need the nodes' routes: make another network",
    },
    Rule {
        rule: "!has(self.subnet) || self.subnet == '' || self.subnet.split(',').all(s, isCIDR(s) && cidr(s) == cidr(s).masked())",
        message: "subnet must be a prefix without host bits, such as 192.168.0.0/16, or one of each family with a comma between",
    },
    Rule {
        rule: "!has(self.masterNets) || self.masterNets.all(n, isCIDR(n))",
        message: "masterNets must have prefixes, such as 10.0.1.0/24",
    },
];

/// Of the spec of a request for a part of a block.
pub(super) const BLOCK_REQUEST: [Rule; 1] = [Rule {
    rule: "self == oldSelf",
    message: "a request cannot be changed: delete it and make another",
}];

/// Of the spec of a pod's record.
pub(super) const ATTACHMENTS: [Rule; 1] = [Rule {
    rule: "self == oldSelf",
    message: "whose record it is cannot be changed",
}];
