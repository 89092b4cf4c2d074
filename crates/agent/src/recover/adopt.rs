//! Links that carry our mark but have no record: the journal was lost. They are taken on as they
//! are and their addresses reserved; a DEL or GC removes them like any other.

use crate::addresses::Addresses;
use crate::agent::Agent;
use crate::failure;
use crate::journal::{
    AttachmentRecord, BackendRecord, Details, Journal, JournalError, Key, NativeRecord, Record,
};
use crate::span;
use crate::verb::del::log_warnings;
use plexus_api::cni::Error;
use plexus_core::attach::Lease;
use plexus_core::attachment::{Alias, Assigned, AssignedIp, derived_mac};
use plexus_core::ipam::PoolKey;
use plexus_core::plan::{
    self, Device, HostEnd, Link, LinkKind, NodePlan, ObservedLink, ObservedRule, RULE_PRIORITY,
    Rule, Stacked,
};
use plexus_kernel::observe::{self, What};
use plexus_kernel::{Netns, NodeSide, Socket, pod, scan};
use plexus_types::{ContainerId, IfName, NetnsCookie, NetworkName, RouterName};
use std::collections::{BTreeMap, BTreeSet};

impl Agent {
    /// Looks through every namespace that can be seen.
    pub(crate) fn adopt(&self) -> Result<(), Error> {
        let mut found: BTreeMap<Key, Vec<MarkedLink>> = BTreeMap::new();
        let ends = self.marked_ends();
        for namespace in scan::namespaces().found {
            let path = namespace.path.to_string_lossy();
            let (links, rules) = marked_links(&namespace.netns);
            for link in links {
                if let Some((key, one)) = MarkedLink::of(link, &rules, &path, namespace.cookie)
                    && one.alias.node == self.here
                    && one.cookie != self.here
                    && one.is_made_here(&ends)
                {
                    found.entry(key).or_default().push(one);
                }
            }
        }
        let journal = self.journal()?;
        for ((container, ifname), links) in found {
            let is_known = match journal.find(&container, &ifname) {
                Ok(stored) => stored.is_some(),
                // Its addresses are reserved all the same, and its DEL needs no record.
                Err(JournalError::Unreadable { .. }) => true,
                Err(error) => return Err(error.into()),
            };
            let _span = span::of_container("adopt", &container, &ifname).entered();
            if !is_known && let Err(error) = self.adopt_one(container, ifname, &links) {
                tracing::error!(%error, "cannot adopt interfaces that carry our mark");
            }
        }
        self.restore_devices(journal);
        Ok(())
    }

    /// Devices that are back on the node, because their pods' namespaces died, and have no record that says how they were.
    fn restore_devices(&self, journal: &Journal) {
        let (links, _) = marked_links(self.node.netns());
        let marks = links
            .iter()
            .filter_map(|link| Alias::parse(link.alias.as_deref()?));
        for mark in marks.filter(|mark| mark.moved.is_some() && mark.node == self.here) {
            let (Ok(container), Ok(ifname)) = (mark.container.parse(), mark.cni_ifname.parse())
            else {
                continue;
            };
            if !matches!(journal.find(&container, &ifname), Ok(None)) {
                continue;
            }
            tracing::warn!(%container, network = mark.network, "giving back a device whose pod is gone and has no record");
            let (container, ifname) = (container.as_str(), ifname.as_str());
            let restored = pod::remove_marked(None, self.here, container, ifname, &self.node);
            log_warnings(&restored);
            if let Err(error) = restored {
                tracing::error!(error = failure::chain(&error), "cannot give back a device");
            }
        }
    }

    fn adopt_one(
        &self,
        container: ContainerId,
        ifname: IfName,
        links: &[MarkedLink],
    ) -> Result<(), Error> {
        let Some(first) = links.first() else {
            return Ok(());
        };
        tracing::warn!(
            links = links.len(),
            "adopting interfaces that carry our mark but have no record"
        );
        let attachments = links.iter().enumerate();
        let attachments = attachments.map(|(index, link)| AttachmentRecord {
            reference: index,
            ordinal: 0,
            network: link.network.clone(),
            ifname: link.ifname.clone(),
            origin: None,
            backend: BackendRecord::Native(Box::new(
                link.native(link.planned(&container, &self.node), &self.addresses),
            )),
        });
        let record = Record {
            network: first.network.clone(),
            pod_uid: None,
            boot: self.boot.clone(),
            cookie: first.cookie,
            netns: first.netns.clone(),
            details: Details {
                adopted: true,
                group: first.link.group,
                ..Details::default()
            },
            attachments: attachments.collect(),
            container,
            ifname,
        };
        let reserved = record
            .pool_addresses()
            .into_iter()
            .try_for_each(|(pool, address, owner)| self.addresses.replay(pool, address, &owner));
        let adopted = reserved.and_then(|()| Ok(self.journal()?.adopt(&record)?));
        adopted.inspect_err(|_| {
            for attachment in &record.attachments {
                self.addresses.forget(&record, attachment);
            }
        })
    }

    /// The marks of the node's ends of veths, in the node's namespace and in the routers.
    fn marked_ends(&self) -> BTreeSet<String> {
        let marks = |netns: &Netns| {
            let (links, _) = marked_links(netns);
            links.into_iter().filter_map(|link| link.alias)
        };
        let routers = plexus_kernel::router::list(&self.options.routers()).unwrap_or_default();
        let routers = routers
            .iter()
            .filter_map(|name| self.node.router(name).ok());
        let in_routers = routers.flat_map(|netns| marks(&netns));
        in_routers.chain(marks(self.node.netns())).collect()
    }
}

/// A link of a pod with our mark.
struct MarkedLink {
    link: ObservedLink,
    netns: String,
    cookie: NetnsCookie,
    network: NetworkName,
    ifname: IfName,
    alias: Alias,
    rules: Vec<Rule>,
}

impl MarkedLink {
    /// None for the node's end of a veth, and for a mark that does not read as ours.
    fn of(
        link: ObservedLink,
        rules: &[ObservedRule],
        netns: &str,
        cookie: NetnsCookie,
    ) -> Option<(Key, Self)> {
        let alias = Alias::parse(link.alias.as_deref()?)?;
        if alias.ifname != link.name {
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
    /// must not take addresses from others by that.
    fn is_made_here(&self, ends: &BTreeSet<String>) -> bool {
        if self.alias.moved.is_some() {
            // A pod can make any other link and write what it likes on it; the node must not get that.
            return self.link.hardware.is_some();
        }
        if self.link.kind == HostEnd::LINK_KIND {
            let alias = self.link.alias.as_ref();
            return alias.is_some_and(|alias| ends.contains(alias));
        }
        self.link.parent_elsewhere && Stacked::observed(&self.link, &self.ifname).is_some()
    }

    fn native(&self, link: Option<Link>, addresses: &Addresses) -> NativeRecord {
        let pool = PoolKey::from_word(&self.alias.pool, &self.network);
        let ips = self.alias.addresses.iter().map(|address| AssignedIp {
            address: *address,
            gateway: None,
        });
        let lease = pool.and_then(|key| match key.ipam.as_str() {
            "host-local" => Some(Lease::HostLocal {
                directory: addresses.directory(key.data_dir.as_ref(), &key.network, key.apart),
                ifname: self.ifname.clone(),
            }),
            "plexus" | "blocks" => Some(Lease::Pool(key.to_string())),
            _ => None,
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
        let router = RouterName::of(&pool.data_dir);
        (pool.ipam == "blocks" && node.router(&router).is_ok()).then_some(router)
    }

    /// Enough of a plan to remove it.
    fn planned(&self, container: &ContainerId, node: &NodeSide) -> Option<Link> {
        let kind = match self.link.kind.as_str() {
            _ if let Some(moved) = &self.alias.moved => {
                LinkKind::Moved(Device::marked(&self.link, moved))
            }
            HostEnd::LINK_KIND => LinkKind::Veth(HostEnd {
                name: IfName::host_end(
                    container.as_str(),
                    &self.alias.cni_ifname,
                    self.ifname.as_str(),
                ),
                mac: derived_mac(container.as_str(), self.cookie, &self.ifname, "host"),
                mtu: None,
                alias: self.link.alias.clone().unwrap_or_default(),
                router: self.router(node),
                bridge: None,
                hairpin: false,
                source_check: false,
                settings: Vec::new(),
                routes: Vec::new(),
                neighbours: Vec::new(),
            }),
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

fn marked_links(netns: &Netns) -> (Vec<ObservedLink>, Vec<ObservedRule>) {
    let what = What {
        rules: (true, true),
        ..What::LINKS
    };
    let observed =
        Socket::open_in(netns).and_then(|mut socket| observe::observe(&mut socket, what));
    let mut observed = observed.unwrap_or_default();
    let is_marked = |link: &ObservedLink| Alias::parse(link.alias.as_deref()?);
    observed.links.retain(|link| is_marked(link).is_some());
    (observed.links, observed.rules)
}
