//! Marks on links as evidence: which links carry ours, and of which of them the node's side says the same. Owns what is
//! read of namespaces when the journal was lost; reserves nothing and records nothing.

use crate::addresses::Addresses;
use crate::agent::Agent;
use crate::failure;
use crate::journal::{Key, NativeRecord};
use plexus_api::cni::Error;
use plexus_core::attach::Lease;
use plexus_core::attachment::{Alias, Assigned, AssignedIp, derived_mac};
use plexus_core::ipam::PoolKey;
use plexus_core::plan::{
    self, Device, HostEnd, HostPort, Link, LinkKind, NodePlan, ObservedLink, ObservedRule,
    RULE_PRIORITY, Rule, Stacked,
};
use plexus_kernel::observe::{self, What};
use plexus_kernel::scan::FoundNamespace;
use plexus_kernel::{NetlinkError, Netns, NodeSide, Socket, pod, router};
use plexus_types::{ContainerId, IfName, NetnsCookie, NetworkName, RouterName};
use std::collections::BTreeMap;

/// The node's ends of veths by their marks, as text.
pub(super) type NodeEnds = BTreeMap<String, NodeEnd>;

/// The node's end of a veth.
pub(super) struct NodeEnd {
    pub(super) mark: Alias,
    /// The bridge that it is a port of; in a router nobody asks.
    bridge: Option<IfName>,
    /// Whether the node's rules check who sends by it.
    source_check: bool,
}

impl Agent {
    /// The marks of the node's ends of veths, in the node's namespace and in the routers.
    pub(super) fn marked_ends(&self) -> Result<NodeEnds, Error> {
        let mut ends = NodeEnds::new();
        let mut look = |netns: &Netns| -> Result<(), Error> {
            let links = Socket::open_in(netns).and_then(|mut socket| observe::links(&mut socket));
            let links = links.map_err(|error| failure::netlink(&error))?;
            let names = links.iter().map(|link| (link.index, link.name.clone()));
            let names: BTreeMap<u32, String> = names.collect();
            let ours = marked(links)
                .into_iter()
                .filter(|(_, mark)| mark.node == self.here);
            ends.extend(ours.filter_map(|(link, mark)| {
                let bridge = link
                    .master
                    .and_then(|master| names.get(&master)?.parse().ok());
                let source_check = link.group == HostEnd::CHECKED_GROUP;
                Some((
                    link.alias?,
                    NodeEnd {
                        mark,
                        bridge,
                        source_check,
                    },
                ))
            }));
            Ok(())
        };
        look(self.node.netns())?;
        let routers = router::list(&self.options.routers());
        for name in routers.map_err(|error| failure::failed(&error, ""))? {
            match self.node.router(&name) {
                Ok(netns) => look(&netns)?,
                Err(error) if error.is_gone() => {}
                Err(error) => return Err(failure::failed(&error, "")),
            }
        }
        Ok(ends)
    }

    /// The links of a pod's namespace that were made by this node, by the call that they are of.
    pub(super) fn made_in(
        &self,
        namespace: &FoundNamespace,
        ends: &NodeEnds,
    ) -> Result<Vec<(Key, MarkedLink)>, NetlinkError> {
        let mut socket = Socket::open_in(&namespace.netns)?;
        let links = marked(observe::links(&mut socket)?);
        if namespace.cookie == self.here || links.is_empty() {
            return Ok(Vec::new());
        }
        let what = What {
            rules: (true, true),
            ..What::LINKS
        };
        let rules = observe::observe(&mut socket, what)?.rules;
        let here = self.node.number_in(&mut socket)?;
        let path = namespace.path.to_string_lossy();
        let links = links.into_iter();
        let of_pod = links
            .filter_map(|(link, mark)| MarkedLink::of(link, mark, &rules, &path, namespace.cookie));
        let made =
            of_pod.filter(|(_, one)| one.alias.node == self.here && one.is_made_here(ends, here));
        Ok(made.collect())
    }
}

/// The marks of links on links of the node, also in namespaces that nothing shows: by the numbers that the node has for
/// these.
pub(super) fn stacked_marks(node: &NodeSide) -> Result<Vec<Alias>, NetlinkError> {
    let is_stacked = |(link, mark): (ObservedLink, Alias)| {
        let name = mark.ifname.parse().ok()?;
        let is_stacked = mark.moved.is_none() && Stacked::observed(&link, &name).is_some();
        is_stacked.then_some(mark)
    };
    let links = marked(pod::on_node(node)?);
    Ok(links.into_iter().filter_map(is_stacked).collect())
}

/// The links of a namespace that carry a mark that reads as ours.
pub(super) fn marked_links(netns: &Netns) -> Result<Vec<(ObservedLink, Alias)>, NetlinkError> {
    Ok(marked(observe::links(&mut Socket::open_in(netns)?)?))
}

fn marked(links: Vec<ObservedLink>) -> Vec<(ObservedLink, Alias)> {
    let marked = links.into_iter().filter_map(|link| {
        let mark = Alias::parse(link.alias.as_deref()?)?;
        Some((link, mark))
    });
    marked.collect()
}

/// A link of a pod with our mark.
pub(super) struct MarkedLink {
    pub(super) link: ObservedLink,
    pub(super) netns: String,
    pub(super) cookie: NetnsCookie,
    pub(super) network: NetworkName,
    pub(super) ifname: IfName,
    alias: Alias,
    rules: Vec<Rule>,
}

impl MarkedLink {
    /// None for the node's end of a veth, and for a mark of another link than this.
    fn of(
        link: ObservedLink,
        alias: Alias,
        rules: &[ObservedRule],
        netns: &str,
        cookie: NetnsCookie,
    ) -> Option<(Key, Self)> {
        // A link on a link of the node has no end there that could have its name: the pod may have given it another one.
        // Both ends of a veth have a peer elsewhere, and one mark: a router's is no pod's.
        let may_be_renamed = link.is_parent_elsewhere() && link.kind != HostEnd::LINK_KIND;
        if alias.ifname != link.name && !may_be_renamed {
            return None;
        }
        let container = alias.container.parse().ok()?;
        let cni_ifname = alias.cni_ifname.parse().ok()?;
        let is_its = |rule: &&ObservedRule| {
            let mut addresses = alias.addresses.iter();
            rule.priority == RULE_PRIORITY && addresses.any(|net| net.addr() == rule.from.addr())
        };
        let rules = rules.iter().filter(is_its).map(|rule| Rule {
            from: rule.from,
            table: rule.table,
            priority: rule.priority,
        });
        let marked = Self {
            rules: rules.collect(),
            netns: netns.to_owned(),
            cookie,
            network: alias.network.parse().ok()?,
            ifname: alias.ifname.parse().ok()?,
            link,
            alias,
        };
        Some(((container, cni_ifname), marked))
    }

    /// Whether the node's side says the same: a pod may write what it likes on links of its own, and
    /// must not take addresses from others by that. `here` is the node's number in the pod's namespace.
    fn is_made_here(&self, ends: &NodeEnds, here: Option<i32>) -> bool {
        if self.alias.moved.is_some() {
            // A pod can make any other link and write what it likes on it; the node must not get that.
            return self.link.hardware.is_some();
        }
        if self.has_node_end() {
            let alias = self.link.alias.as_ref();
            return alias.is_some_and(|alias| ends.contains_key(alias));
        }
        // In a namespace that the pod made itself there are links on links of the pod.
        let is_on_node = here.is_some() && self.link.parent_netns == here;
        is_on_node && Stacked::observed(&self.link, &self.ifname).is_some()
    }

    /// Whether the node has its other end, which no pod can make.
    pub(super) fn has_node_end(&self) -> bool {
        self.link.kind == HostEnd::LINK_KIND
    }

    /// What a record says of it.
    pub(super) fn native(&self, link: Option<Link>, addresses: &Addresses) -> NativeRecord {
        let pool = PoolKey::from_word(&self.alias.pool, &self.network);
        let ips = self.alias.addresses.iter().map(|address| AssignedIp {
            address: *address,
            gateway: None,
        });
        let lease = pool.and_then(|key| match key.is_directory() {
            true => Some(Lease::HostLocal {
                directory: addresses.directory(key.data_dir.as_ref(), &key.network, key.apart),
                ifname: self.ifname.clone(),
            }),
            false => key.is_in_memory().then(|| Lease::Pool(key.to_string())),
        });
        let provider = link.as_ref().and_then(|link| plan::provider_of(&link.kind));
        NativeRecord {
            provider: provider.unwrap_or("none").to_owned(),
            addresses: Assigned {
                ips: ips.collect(),
                ..Assigned::default()
            },
            lease,
            preparations: Vec::new(),
            link,
            node: NodePlan::default(),
            outcome: None,
        }
    }

    /// The router of its network, where there is one: an overlay's other end is in there.
    fn router(&self, node: &NodeSide) -> Option<RouterName> {
        let pool = PoolKey::from_word(&self.alias.pool, &self.network)?;
        let router = RouterName::of(pool.network_uid()?);
        node.router(&router).is_ok().then_some(router)
    }

    /// The ports of the node that lead to it, out of all that lead to pods: of who has its end on the node, which alone
    /// can have any.
    pub(super) fn take_ports(&self, all: &mut Vec<HostPort>, node: &NodeSide) -> Vec<HostPort> {
        if !self.has_node_end() || self.router(node).is_some() {
            return Vec::new();
        }
        let leads_here = |port: &mut HostPort| {
            let mut own = self.alias.addresses.iter();
            own.any(|net| net.addr() == port.to.ip())
        };
        all.extract_if(.., leads_here).collect()
    }

    /// Enough of a plan to remove it, and to lead ports of the node to it.
    pub(super) fn planned(
        &self,
        container: &ContainerId,
        ends: &NodeEnds,
        node: &NodeSide,
    ) -> Option<Link> {
        let kind = match self.link.kind.as_str() {
            _ if let Some(moved) = &self.alias.moved => {
                LinkKind::Moved(Device::marked(&self.link, moved))
            }
            HostEnd::LINK_KIND if let Some(end) = ends.get(self.link.alias.as_ref()?) => {
                LinkKind::Veth(HostEnd {
                    name: IfName::host_end(
                        container.as_str(),
                        &self.alias.cni_ifname,
                        self.ifname.as_str(),
                    ),
                    mac: derived_mac(container.as_str(), self.cookie, &self.ifname, "host"),
                    mtu: None,
                    alias: self.link.alias.clone().unwrap_or_default(),
                    router: self.router(node),
                    bridge: end.bridge.clone(),
                    hairpin: false,
                    source_check: end.source_check,
                    settings: Vec::new(),
                    routes: Vec::new(),
                    neighbours: Vec::new(),
                })
            }
            _ => LinkKind::Stacked(Stacked::observed(&self.link, &self.ifname)?),
        };
        Some(Link {
            name: self.ifname.clone(),
            kind,
            mac: self.link.mac,
            mtu: None,
            alias: self.link.alias.clone().unwrap_or_default(),
            settings: Vec::new(),
            addresses: self
                .alias
                .addresses
                .iter()
                .map(|net| plan::Address { net: *net })
                .collect(),
            neighbours: Vec::new(),
            routes: Vec::new(),
            rules: self.rules.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is taken of a link of that kind and name, whose mark says `eth0`, and whose parent or peer is elsewhere.
    fn taken(kind: &str, name: &str) -> Option<IfName> {
        let alias = Alias {
            node: NetnsCookie(7),
            container: "c1".to_owned(),
            cni_ifname: "eth0".to_owned(),
            network: "blue".to_owned(),
            ifname: "eth0".to_owned(),
            pool: "-".to_owned(),
            moved: None,
            addresses: Vec::new(),
        };
        let link = ObservedLink {
            index: 2,
            name: name.to_owned(),
            kind: kind.to_owned(),
            options: Vec::new(),
            mac: None,
            mtu: 1500,
            up: true,
            group: 0,
            alias: Some(alias.render()),
            master: None,
            parent: Some(3),
            parent_netns: Some(0),
            promisc: false,
            altnames: Vec::new(),
            hardware: None,
        };
        let marked = MarkedLink::of(link, alias, &[], "/run/netns/x", NetnsCookie(8));
        marked.map(|(_, marked)| marked.ifname)
    }

    /// The kernel says of a veth, too, in which namespace its peer is; in a router there is the pod's peer, with its mark.
    #[test]
    fn the_end_of_a_veth_in_a_router_is_no_link_of_the_pod() {
        let eth0: Option<IfName> = "eth0".parse().ok();
        assert_eq!(taken("veth", "eth0"), eth0);
        assert_eq!(taken("veth", "px0123456789ab"), None);
        assert_eq!(taken("macvlan", "own0"), eth0);
    }
}
