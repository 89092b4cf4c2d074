//! Links that carry our mark but have no record: the journal was lost. They are taken on as they
//! are and their addresses reserved; a DEL or GC removes them like any other. Where somebody cannot be looked at, nobody is
//! served until he can: his addresses would be given out twice. Whose namespace is not found keeps the addresses that the
//! node's side shows.

use crate::agent::Agent;
use crate::failure;
use crate::journal::{
    AttachmentRecord, BackendRecord, Details, Journal, JournalError, Key, Record, owner_of,
};
use crate::recover::marks::{MarkedLink, NodeEnds, marked_links, stacked_marks};
use crate::span;
use crate::verb::del::log_warnings;
use plexus_api::cni::Error;
use plexus_core::attach::Lease;
use plexus_core::attachment::Alias;
use plexus_core::ipam::PoolKey;
use plexus_core::plan::HostPort;
use plexus_kernel::{Feature, nft, pod, scan};
use plexus_types::{IfName, NetnsCookie};
use std::collections::{BTreeMap, BTreeSet};

/// What to do about somebody who cannot be looked at.
const UNSEEN: &str = "is the agent allowed to enter every network namespace? it is tried again";

impl Agent {
    /// Looks through every namespace that can be seen. What can be adopted is, whatever fails with others; then it is to
    /// be repeated.
    pub(crate) fn adopt(&self) -> Result<(), Error> {
        let journal = self.journal()?;
        let ends = self.marked_ends()?;
        let stored = self.stored()?;
        let known: BTreeSet<NetnsCookie> = stored.iter().map(|one| one.record.cookie).collect();
        let mut found: BTreeMap<Key, Vec<MarkedLink>> = BTreeMap::new();
        let mut problems = Vec::new();
        for namespace in scan::namespaces().found {
            let path = namespace.path.display();
            match self.made_in(&namespace, &ends) {
                Ok(links) => links
                    .into_iter()
                    .for_each(|(key, link)| found.entry(key).or_default().push(link)),
                Err(error) => {
                    let error = failure::chain(&error);
                    tracing::warn!(%path, error, "cannot look for interfaces that carry our mark");
                    // The journal has what is in there.
                    if !known.contains(&namespace.cookie) {
                        problems.push(format!("namespace {path}: {error}"));
                    }
                }
            }
        }
        let seen = found.iter().flat_map(|(key, links)| {
            let links = links.iter();
            links.map(move |link| (key.clone(), link.ifname.clone()))
        });
        let seen: BTreeSet<(Key, IfName)> = seen.collect();
        let mut unrecorded = Vec::new();
        for (key, links) in found {
            match is_recorded(&key, journal) {
                Ok(true) => {}
                Ok(false) => unrecorded.push((key, links)),
                Err(error) => problems.push(error.to_string()),
            }
        }
        // If two say that they have an address, then the one of which no pod can have made it up.
        unrecorded.sort_by_key(|(_, links)| !links.iter().all(MarkedLink::has_node_end));
        let mut ports = match unrecorded.is_empty() {
            true => Vec::new(),
            false => self.ports_to_pods()?,
        };
        for (key, links) in unrecorded {
            let _span = span::of_container("adopt", &key.0, &key.1).entered();
            if let Err(error) = self.adopt_one(key, links, (&ends, &mut ports), journal) {
                tracing::error!(%error, "cannot adopt interfaces that carry our mark");
                problems.push(error.to_string());
            }
        }
        self.reserve_unseen(&ends, &seen, journal)?;
        self.restore_devices(journal)?;
        failure::all_of(&problems, UNSEEN)
    }

    /// All ports of the node that lead to pods, also to those that have no record.
    fn ports_to_pods(&self) -> Result<Vec<HostPort>, Error> {
        if !self.features.has(Feature::Masquerade) {
            return Ok(Vec::new());
        }
        let ports = nft::host_ports::list(&self.node);
        ports.map_err(|error| failure::failed(&error, "it is tried again"))
    }

    /// Devices that are back on the node, because their pods' namespaces died, and have no record that says how they were.
    fn restore_devices(&self, journal: &Journal) -> Result<(), Error> {
        let links = marked_links(self.node.netns()).map_err(|error| failure::netlink(&error))?;
        let marks = links.into_iter().map(|(_, mark)| mark);
        for mark in marks.filter(|mark| mark.moved.is_some() && mark.node == self.here) {
            let Some((container, ifname)) = key_of(&mark) else {
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
        Ok(())
    }

    /// Addresses that could be reserved stay so, whatever fails. Takes the ports that lead to the links out of `ports`.
    fn adopt_one(
        &self,
        (container, ifname): Key,
        links: Vec<MarkedLink>,
        (ends, ports): (&NodeEnds, &mut Vec<HostPort>),
        journal: &Journal,
    ) -> Result<(), Error> {
        let links = links.into_iter();
        let links = links.map(|link| (link.take_ports(ports, &self.node), link));
        let mut links: Vec<(Vec<HostPort>, MarkedLink)> = links.collect();
        // Ports lead to the first attachment of a record.
        links.sort_by_key(|(ports, _)| ports.is_empty());
        let Some((_, first)) = links.first() else {
            return Ok(());
        };
        tracing::warn!(
            links = links.len(),
            "adopting interfaces that carry our mark but have no record"
        );
        let attachments = links.iter().enumerate();
        let attachments = attachments.map(|(index, (_, link))| AttachmentRecord {
            reference: index,
            ordinal: 0,
            network: link.network.clone(),
            ifname: link.ifname.clone(),
            origin: None,
            backend: BackendRecord::Native(Box::new(
                link.native(link.planned(&container, ends, &self.node), &self.addresses),
            )),
        });
        let mut record = Record {
            network: first.network.clone(),
            pod_uid: None,
            boot: self.boot.clone(),
            cookie: first.cookie,
            netns: first.netns.clone(),
            details: Details {
                adopted: true,
                group: first.link.group,
                host_ports: links.iter().flat_map(|(ports, _)| ports.clone()).collect(),
                ..Details::default()
            },
            attachments: attachments.collect(),
            container,
            ifname,
        };
        self.reserve_each(&mut record);
        Ok(journal.adopt(&record)?)
    }

    /// Reserves each address of a record by itself: one that another has is that one's, and no longer the record's.
    fn reserve_each(&self, record: &mut Record) {
        for attachment in &mut record.attachments {
            let owner = owner_of(&record.container, &record.ifname, &attachment.ifname);
            let BackendRecord::Native(native) = &mut attachment.backend else {
                continue;
            };
            let native = &mut **native;
            let Some(Lease::Pool(pool)) = &native.lease else {
                continue;
            };
            native.addresses.ips.retain(|ip| {
                let reserved = self.addresses.replay(pool, ip.address.addr(), &owner);
                let reserved = reserved.inspect_err(
                    |error| tracing::error!(%error, "an address is adopted with another pod"),
                );
                reserved.is_ok()
            });
        }
    }

    /// Whose namespace nobody sees lives as long as its end on the node, or as long as the node's number for that
    /// namespace lists its links. Of a link without either, or under another name, the journal knows nothing, but nobody
    /// else may have its addresses, until a DEL comes or an agent that finds it gone.
    fn reserve_unseen(
        &self,
        ends: &NodeEnds,
        seen: &BTreeSet<(Key, IfName)>,
        journal: &Journal,
    ) -> Result<(), Error> {
        let stacked = stacked_marks(&self.node).map_err(|error| failure::netlink(&error))?;
        let stacked = stacked.iter().filter(|mark| mark.node == self.here);
        for mark in ends.values().map(|end| &end.mark).chain(stacked) {
            let (Some(key), Ok(ifname), Ok(network)) = (
                key_of(mark),
                mark.ifname.parse::<IfName>(),
                mark.network.parse(),
            ) else {
                continue;
            };
            let Some(pool) = PoolKey::from_word(&mark.pool, &network) else {
                continue;
            };
            let link = (key, ifname);
            if seen.contains(&link) || has_link(&link, journal)? {
                continue;
            }
            let (key, ifname) = link;
            let _span = span::of_container("adopt", &key.0, &key.1).entered();
            tracing::warn!(
                interface = %ifname,
                "an interface lives and has no record, and is not seen in its pod: its addresses stay taken"
            );
            let (pool, owner) = (pool.to_string(), owner_of(&key.0, &key.1, &ifname));
            for address in &mark.addresses {
                if let Err(error) = self.addresses.replay(&pool, address.addr(), &owner) {
                    tracing::error!(%error, "an address is another pod's");
                }
            }
        }
        Ok(())
    }
}

/// Whether a link's record has it: one that was adopted has only the links that were seen.
fn has_link((key, ifname): &(Key, IfName), journal: &Journal) -> Result<bool, Error> {
    match journal.find(&key.0, &key.1) {
        Ok(Some(stored)) if stored.record.details.adopted => {
            let mut attachments = stored.record.attachments.iter();
            Ok(attachments.any(|one| one.ifname == *ifname))
        }
        _ => is_recorded(key, journal),
    }
}

fn is_recorded((container, ifname): &Key, journal: &Journal) -> Result<bool, Error> {
    match journal.find(container, ifname) {
        Ok(stored) => Ok(stored.is_some()),
        // Its addresses are reserved all the same, and its DEL needs no record.
        Err(JournalError::Unreadable { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// The call that a marked link is of.
fn key_of(mark: &Alias) -> Option<Key> {
    Some((mark.container.parse().ok()?, mark.cni_ifname.parse().ok()?))
}
