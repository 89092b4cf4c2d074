//! What must be seen, from what the pods are attached to. Decides; measures nothing.

use ipnet::IpNet;
use serde::Serialize;
use std::net::IpAddr;

/// What must be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Expected {
    /// It is reached.
    Yes,
    /// It is not.
    No,
    /// Depends on what only the administrator knows: not judged.
    Either,
}

/// What a network does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Part of the nodes' own network: whoever is on such a network reaches all of them.
    Routed,
    /// Apart from everything else.
    Overlay,
    /// One layer-2 network on all nodes.
    Shared,
    /// One layer-2 network per node.
    OnNode,
    /// Anything else.
    Other,
}

/// A pod, with what it is attached to.
#[derive(Debug, Clone)]
pub(super) struct Member {
    /// `namespace/name`, or the name alone in `default`.
    pub(super) pod: String,
    pub(super) node: String,
    pub(super) netns: String,
    pub(super) attachments: Vec<Attachment>,
}

/// One interface of a pod.
#[derive(Debug, Clone)]
pub(super) struct Attachment {
    /// As the pod names it: `namespace/name`.
    pub(super) network: String,
    /// What it is whoever names it.
    pub(super) identity: String,
    pub(super) kind: Kind,
    pub(super) interface: String,
    pub(super) addresses: Vec<IpAddr>,
    /// Of the network.
    pub(super) subnets: Vec<IpNet>,
}

/// Whether a pod must reach the addresses of another pod's interface.
pub(super) fn expected(from: &Member, to: &Member, on: &Attachment) -> Expected {
    let member = from.attachments.iter().any(|a| a.identity == on.identity);
    let routed = from.attachments.iter().any(|a| a.kind == Kind::Routed);
    match on.kind {
        // A pod on two networks that share addresses cannot know which one is meant.
        _ if member && [from, to].iter().any(|pod| is_torn(pod, on)) => Expected::Either,
        Kind::Overlay if member => Expected::Yes,
        Kind::Overlay => Expected::No,
        Kind::Routed if routed => Expected::Yes,
        Kind::Shared if member => Expected::Yes,
        Kind::OnNode if member && from.node == to.node => Expected::Yes,
        _ => Expected::Either,
    }
}

/// Whether a pod is on another network with the same addresses.
fn is_torn(pod: &Member, on: &Attachment) -> bool {
    let overlap = |a: &IpNet, b: &IpNet| a.contains(b) || b.contains(a);
    let others = pod.attachments.iter().filter(|a| a.identity != on.identity);
    let mut theirs = others.flat_map(|other| &other.subnets);
    theirs.any(|one| on.subnets.iter().any(|own| overlap(one, own)))
}

/// By which of its links a pod pings such an address of another one: a member by its link on that network,
/// whoever is not by every link that it has, and as its routes say (none). Links on a layer-2 network that
/// both are on do not count: there Linux answers for all addresses of a pod, whatever link they are on.
pub(super) fn ways(from: &Member, to: &Member, on: &Attachment) -> Vec<Option<String>> {
    let of = |wanted: &dyn Fn(&Attachment) -> bool| {
        let found = from.attachments.iter().find(|a| wanted(a));
        found.map(|attachment| vec![Some(attachment.interface.clone())])
    };
    let as_member = of(&|a| a.identity == on.identity);
    let as_routed = || (on.kind == Kind::Routed).then(|| of(&|a| a.kind == Kind::Routed))?;
    as_member.or_else(as_routed).unwrap_or_else(|| {
        let apart = from.attachments.iter().filter(|a| {
            let of_layer_2 = !matches!(a.kind, Kind::Routed | Kind::Overlay);
            let shared = to.attachments.iter().any(|b| a.identity == b.identity);
            !(of_layer_2 && shared)
        });
        let links = apart.map(|a| Some(a.interface.clone()));
        links.chain([None]).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(node: &str, attachments: &[(&str, Kind)]) -> Member {
        Member {
            pod: String::new(),
            node: node.to_owned(),
            netns: String::new(),
            attachments: attachments
                .iter()
                .enumerate()
                .map(|(index, (network, kind))| Attachment {
                    network: format!("{node}'s {network}"),
                    identity: (*network).to_owned(),
                    kind: *kind,
                    interface: format!("net{index}"),
                    addresses: vec![],
                    subnets: match *network {
                        "blue" | "red" => vec!["10.1.0.0/16".parse().unwrap()],
                        _ => vec![],
                    },
                })
                .collect(),
        }
    }

    #[test]
    fn overlays_are_apart() {
        let a = member("n1", &[("d", Kind::Routed), ("blue", Kind::Overlay)]);
        let b = member("n2", &[("d", Kind::Routed), ("red", Kind::Overlay)]);
        let c = member("n2", &[("d", Kind::Routed), ("blue", Kind::Overlay)]);
        assert_eq!(expected(&a, &b, &b.attachments[0]), Expected::Yes);
        assert_eq!(expected(&a, &b, &b.attachments[1]), Expected::No);
        assert_eq!(expected(&a, &c, &c.attachments[1]), Expected::Yes);
        assert_eq!(ways(&a, &c, &c.attachments[1]), [Some("net1".to_owned())]);
        let all = [Some("net0".to_owned()), Some("net1".to_owned()), None];
        assert_eq!(ways(&a, &b, &b.attachments[1]), all, "every way is tried");
    }

    #[test]
    fn a_pod_on_two_networks_with_the_same_addresses_is_not_judged() {
        let a = member("n1", &[("blue", Kind::Overlay)]);
        let both = member("n2", &[("blue", Kind::Overlay), ("red", Kind::Overlay)]);
        let blue = &both.attachments[0];
        assert_eq!(expected(&a, &both, blue), Expected::Either);
        assert_eq!(expected(&both, &a, &a.attachments[0]), Expected::Either);
        // But nobody reaches a network that he is not on.
        assert_eq!(expected(&a, &both, &both.attachments[1]), Expected::No);
    }

    #[test]
    fn a_layer_2_network_that_both_are_on_is_no_way_to_another_one() {
        let a = member("n1", &[("blue", Kind::Overlay), ("lan", Kind::Shared)]);
        let b = member("n2", &[("red", Kind::Overlay), ("lan", Kind::Shared)]);
        let c = member("n2", &[("red", Kind::Overlay)]);
        let net = |number: u8| Some(format!("net{number}"));
        assert_eq!(ways(&a, &b, &b.attachments[0]), [net(0), None]);
        assert_eq!(ways(&a, &c, &c.attachments[0]), [net(0), net(1), None]);
    }

    #[test]
    fn routed_networks_are_one() {
        let a = member("n1", &[("d", Kind::Routed)]);
        let b = member("n2", &[("e", Kind::Routed)]);
        let only = member("n1", &[("blue", Kind::Overlay)]);
        assert_eq!(expected(&a, &b, &b.attachments[0]), Expected::Yes);
        assert_eq!(ways(&a, &b, &b.attachments[0]), [Some("net0".to_owned())]);
        assert_eq!(expected(&only, &b, &b.attachments[0]), Expected::Either);
    }

    #[test]
    fn what_depends_is_not_judged() {
        let a = member(
            "n1",
            &[("x", Kind::OnNode), ("y", Kind::Shared), ("z", Kind::Other)],
        );
        let near = a.clone();
        let far = member(
            "n2",
            &[("x", Kind::OnNode), ("y", Kind::Shared), ("z", Kind::Other)],
        );
        let judged = |from, to: &Member| {
            to.attachments
                .iter()
                .map(|on| expected(from, to, on))
                .collect::<Vec<_>>()
        };
        use Expected::{Either, Yes};
        assert_eq!(judged(&a, &near), [Yes, Yes, Either]);
        assert_eq!(judged(&a, &far), [Either, Yes, Either]);
    }
}
