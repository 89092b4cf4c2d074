//! Subnets that collide: who must wait. Addresses of `routed` networks are in the nodes' own
//! routing tables, so no two of them may overlap, nor a MultiNicNetwork, a Node's pods, address, the Services or the API server.
//! `overlay` networks are apart and may overlap with anything but the cluster's own: a pod is in both, and
//! what its second interface leads to, it cannot reach through its first.

use ipnet::IpNet;
use std::fmt;

/// Decides which of several networks with the same addresses comes first: the smaller one does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Precedence {
    /// Whether it is not both active and used: one that is comes first, whatever its age.
    pub(crate) unsettled: bool,
    /// Its age.
    pub(crate) age: Age,
}

/// Decides which of two networks was there first: the smaller one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    /// When it was created, RFC 3339: to the second.
    pub(crate) created: String,
    /// Whether it has no blocks and was never active. Of the same second, one that has or was comes first.
    pub(crate) newcomer: bool,
    /// Decides among equals.
    pub(crate) uid: String,
}

/// The owner of a prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AddressOwner {
    /// A Network, by namespace and name.
    Network(crate::cache::Name),
    /// A MultiNicNetwork, by its name.
    MultiNic(crate::cache::Name),
    /// The pods of a Node: its `podCIDRs`.
    Pods(String),
    /// A Node itself.
    Node(String),
    /// Services, by the name of the ServiceCIDR.
    Services(String),
    /// The API server: by the name of an EndpointSlice of Service `default/kubernetes`, or none: where the controller
    /// reaches it.
    ApiServer(Option<String>),
}

impl fmt::Display for AddressOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressOwner::Network(name) => write!(f, "Network {name}"),
            AddressOwner::MultiNic(name) => write!(f, "MultiNicNetwork {name}"),
            AddressOwner::Pods(node) => write!(f, "podCIDR of Node {node}"),
            AddressOwner::Node(node) => write!(f, "address of Node {node}"),
            AddressOwner::Services(name) => write!(f, "ServiceCIDR {name}"),
            AddressOwner::ApiServer(Some(name)) => {
                write!(f, "the API server (EndpointSlice default/{name})")
            }
            AddressOwner::ApiServer(None) => f.write_str("the API server"),
        }
    }
}

/// An owner of overlapping addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rival {
    pub(crate) owner: AddressOwner,
    /// Ours and theirs.
    pub(crate) nets: (IpNet, IpNet),
    /// Whether it was there first.
    pub(crate) precedes: bool,
}

/// Whether `rival` comes before `me`; none: it is no network, and was always there. Each with
/// whether its nodes have blocks of the addresses in question: who alone has, has them, whatever else
/// somebody has been edited to want.
pub(crate) fn precedes(rival: Option<(&Precedence, bool)>, me: (&Precedence, bool)) -> bool {
    rival.is_none_or(|(rival, has)| if has == me.1 { rival < me.0 } else { has })
}

/// Whether a network must wait for its rivals: no new pod uses it meanwhile. Those that it has run
/// on, with their blocks and routes.
pub(crate) fn must_wait(rivals: &[Rival]) -> bool {
    rivals.iter().any(|rival| rival.precedes)
}

/// How many rivals a message names.
const MAX_NAMED: usize = 10;

/// Who they are, for people.
pub(crate) fn describe(rivals: &[Rival]) -> String {
    let named = rivals.iter().take(MAX_NAMED).map(|rival| {
        let (ours, theirs) = rival.nets;
        format!("{ours} overlaps {theirs} of {}", rival.owner)
    });
    let mut text = named.collect::<Vec<_>>().join("; ");
    if rivals.len() > MAX_NAMED {
        text += &format!("; and {} more", rivals.len() - MAX_NAMED);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Name;

    fn precedence(settled: bool, created: &str, uid: &str) -> Precedence {
        Precedence {
            unsettled: !settled,
            age: Age {
                created: created.to_owned(),
                newcomer: true,
                uid: uid.to_owned(),
            },
        }
    }

    fn rival(precedes: bool) -> Rival {
        let net = "10.0.0.0/8".parse().unwrap();
        Rival {
            owner: AddressOwner::Network(Name::new("a", "b")),
            nets: (net, net),
            precedes,
        }
    }

    #[test]
    fn the_younger_waits_and_who_is_used_comes_first() {
        let old = precedence(false, "2026-01-01T00:00:00Z", "b");
        let young = precedence(false, "2026-01-02T00:00:00Z", "a");
        assert!(precedes(Some((&old, false)), (&young, false)));
        assert!(!precedes(Some((&young, false)), (&old, false)));
        let used = precedence(true, "2026-01-03T00:00:00Z", "c");
        assert!(precedes(Some((&used, false)), (&old, false)));
        assert!(must_wait(&[rival(false), rival(true)]));
        assert!(!must_wait(&[rival(false)]));
    }

    #[test]
    fn of_two_in_use_the_one_with_blocks_there_has_the_addresses() {
        let old = precedence(true, "2026-01-01T00:00:00Z", "b");
        let young = precedence(true, "2026-01-02T00:00:00Z", "a");
        // The older was edited to want what the younger has.
        assert!(precedes(Some((&young, true)), (&old, false)));
        assert!(!precedes(Some((&old, false)), (&young, true)));
        assert!(precedes(Some((&old, true)), (&young, true)));
        // What is no network was there before anybody.
        assert!(precedes(None, (&old, true)));
    }

    #[test]
    fn of_the_same_second_the_uid_decides_and_exactly_one_waits() {
        let (a, b) = (precedence(false, "t", "a"), precedence(false, "t", "b"));
        let waits = |rival, me| precedes(Some((rival, false)), (me, false));
        assert!(waits(&a, &b) != waits(&b, &a));
        // One that is active already is not overtaken.
        let mut active = b.clone();
        active.age.newcomer = false;
        assert!(waits(&active, &a) && !waits(&a, &active));
    }

    #[test]
    fn a_thousand_rivals_fit_in_a_message() {
        let text = describe(&vec![rival(true); 1000]);
        assert!(
            text.ends_with("and 990 more") && text.len() < 1000,
            "{text}"
        );
    }
}
