//! What the API is told of this node's pods, after the fact: attachments, `network-status`, Events;
//! and what its side of the agent asks back.

use crate::agent::{Agent, NewAttachments};
use crate::cluster::{
    Attached, BlockUse, Change, Hooks, Journaled, PartRequest, PodName, RecordOutcome,
};
use crate::journal::{Journal, JournalError, Record, State, Stored};
use crate::report::owner::RecordOwners;
use crate::report::view::View;
use crate::serve::call::Call;
use ipnet::IpNet;
use plexus_api::cni::{BlockIpam, Error};
use plexus_api::objects::{AttachmentState, AttachmentStatus, NetworkRef};
use plexus_core::ipam::{Donation, NodeBlocks};
use plexus_types::{ContainerId, Family};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::Ordering::SeqCst;

impl Agent {
    /// A call's attachments are there and its answer is delivered.
    pub(crate) fn report_attached(&self, made: &NewAttachments) {
        let Some(cluster) = self.cluster.get() else {
            return;
        };
        let owners = self.owners();
        let stored = self.journal().ok().and_then(|journal| {
            let pod_uid = made.pod_uid.as_deref();
            with_it(journal, owners, pod_uid, &made.container)?.ok()
        });
        for report in attached(owners, &stored.unwrap_or_default()) {
            cluster.attached(report);
        }
    }

    /// What a record describes is gone; other attachments of the pod may be left.
    pub(crate) fn report_detached(&self, record: &Record) {
        let owners = self.owners();
        let (Some(cluster), Some(pod)) = (self.cluster.get(), owners.of(record)) else {
            return;
        };
        let stored = self.journal().ok();
        let pod_uid = record.pod_uid.as_deref();
        let stored =
            stored.and_then(|journal| with_it(journal, owners, pod_uid, &record.container)?.ok());
        let Some(stored) = stored else {
            return;
        };
        let container = record.container.as_str();
        let mut gone = true;
        for rest in attached(owners, &stored) {
            if rest.sandbox == container {
                gone &= rest.pod != pod;
                cluster.attached(rest);
            }
        }
        if gone {
            cluster.detached(&pod, container);
        }
    }

    /// An ADD failed: the pod's owner is told, with the same text.
    pub(crate) fn report_failed(&self, call: &Call<'_>, error: &Error) {
        if let (Some(cluster), Some(pod)) = (self.cluster.get(), self.pod_of_call(call)) {
            cluster.failed(&pod, &error.to_string());
        }
    }

    /// Whose records are written.
    fn owners(&self) -> RecordOwners {
        let kubernetes = self.options.kubernetes.as_ref();
        match kubernetes.is_some_and(|kubernetes| kubernetes.containers) {
            true => RecordOwners::Containers,
            false => RecordOwners::Pods,
        }
    }

    /// The pod that the API knows; none for containers that are none.
    fn pod_of_call(&self, call: &Call<'_>) -> Option<PodName> {
        let is_pod = self.owners() == RecordOwners::Pods;
        Some(PodName {
            namespace: call.args.pod_namespace.clone().filter(|_| is_pod)?,
            name: call.args.pod_name.clone()?,
            uid: call.args.pod_uid.clone()?,
            container: false,
        })
    }
}

impl Hooks for Agent {
    fn changed(&self, what: Change) {
        self.tasks.fabric.wake();
        if what == Change::Networks {
            self.tasks.conflists.wake();
        }
    }

    fn pods(&self) -> Option<Journaled> {
        let stored = self.journal().ok()?.all().ok()?;
        let owners = self.owners();
        let uids = stored.iter().filter_map(|one| match owners {
            RecordOwners::Pods => one.record.pod_uid.clone(),
            RecordOwners::Containers => owners.of(&one.record).map(|container| container.key()),
        });
        Some(Journaled {
            uids: uids.collect(),
            done: attached(owners, &stored),
            is_partial: !self.is_journal_readable(),
        })
    }

    fn usage(&self) -> Option<Vec<BlockUse>> {
        if !self.ready.load(SeqCst) {
            return None;
        }
        let cluster = self.cluster.get()?;
        let held = self.addresses.held_of_blocks();
        let own = cluster.own_blocks();
        let each = own.iter().map(|(network_uid, cidr)| BlockUse {
            allocated: held_in(&held, &own, network_uid, *cidr),
            network_uid: network_uid.clone(),
            cidr: *cidr,
        });
        Some(each.collect())
    }

    fn in_use(&self, network_uid: &str, cidr: IpNet) -> Option<bool> {
        let own = self.ready.load(SeqCst).then_some(self.cluster.get()?)?;
        let held = self.addresses.held_of_blocks();
        Some(held_in(&held, &own.own_blocks(), network_uid, cidr) > 0)
    }

    fn donate(
        &self,
        config: &BlockIpam,
        own: &NodeBlocks,
        request: &PartRequest<'_>,
    ) -> Option<Donation> {
        self.donate_part(config, own, request)
    }

    fn donations(&self) -> Option<Vec<Donation>> {
        self.journaled_donations()
    }

    fn record_donation(&self, donation: &Donation, given_back: &[IpNet]) -> RecordOutcome {
        self.journal_donation(donation, given_back)
    }

    fn delete_donation(&self, donation: &Donation) {
        self.drop_donation(donation);
    }
}

/// Each address counts once: in the smallest of the node's blocks that it is in.
fn held_in(
    held: &BTreeMap<String, Vec<IpAddr>>,
    own: &BTreeSet<(String, IpNet)>,
    network_uid: &str,
    cidr: IpNet,
) -> u64 {
    let of_network = own.iter().filter(|(uid, _)| uid == network_uid);
    let inside = of_network.map(|(_, block)| block);
    let inside: Vec<&IpNet> = inside
        .filter(|block| cidr.contains(*block) && **block != cidr)
        .collect();
    let of_network = held.get(network_uid).into_iter().flatten();
    let counts = |address: &&IpAddr| {
        cidr.contains(*address) && !inside.iter().any(|block| block.contains(*address))
    };
    of_network.filter(counts).count() as u64
}

/// All that the journal has of whoever a record is about.
fn with_it(
    journal: &Journal,
    owners: RecordOwners,
    pod_uid: Option<&str>,
    container: &ContainerId,
) -> Option<Result<Vec<Stored>, JournalError>> {
    Some(match owners {
        RecordOwners::Pods => journal.of_pod(pod_uid?),
        RecordOwners::Containers => journal.of_container(container),
    })
}

/// One report a pod and sandbox, of what is done.
fn attached(owners: RecordOwners, stored: &[Stored]) -> Vec<Attached> {
    let mut reports: BTreeMap<(PodName, String), (Vec<View>, bool)> = BTreeMap::new();
    let done = stored.iter().filter(|one| one.state == State::Done);
    for (one, views) in owners.views(done) {
        let Some(pod) = owners.of(&one.record) else {
            continue;
        };
        let key = (pod, one.record.container.to_string());
        let (all, standalone) = reports.entry(key).or_default();
        all.extend(views);
        *standalone |= one.record.details.standalone && owners == RecordOwners::Pods;
    }
    let finish = |((pod, sandbox), (mut all, standalone)): (_, (Vec<View>, bool))| {
        all.sort_by_key(|view| view.reference.index);
        Attached {
            pod,
            sandbox,
            network_status: standalone.then(|| network_status(&all)),
            attachments: all.iter().map(status).collect(),
        }
    };
    reports.into_iter().map(finish).collect()
}

fn status(view: &View) -> AttachmentStatus {
    let reference = &view.reference;
    let family = |family: &Family| match family {
        Family::V4 => "ipv4".to_owned(),
        Family::V6 => "ipv6".to_owned(),
    };
    AttachmentStatus {
        index: reference.index,
        total: reference.total,
        ordinal: view.ordinal,
        id: view.id.clone(),
        network: NetworkRef {
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
            uuid: reference.uuid.clone(),
        },
        interface: view.ifname.clone(),
        mac: view.mac.clone().unwrap_or_default(),
        ips: view.ips.iter().map(ToString::to_string).collect(),
        gateways: view.gateways.iter().map(ToString::to_string).collect(),
        default_route: view.default_route.iter().map(family).collect(),
        routes: first(MOST_ROUTES, &view.routes),
        routes_left_out: beyond(MOST_ROUTES, &view.routes),
        rules: first(MOST_ROUTES, &view.rules),
        rules_left_out: beyond(MOST_ROUTES, &view.rules),
        delegated: view.delegated,
        state: AttachmentState::Attached,
        message: String::new(),
    }
}

/// With as many networks as a pod may have, a record is still one that every API server takes.
const MOST_ROUTES: usize = 128;

fn first(most: usize, all: &[String]) -> Vec<String> {
    all.iter().take(most).cloned().collect()
}

/// How many there are beside the first.
fn beyond(most: usize, all: &[String]) -> u32 {
    u32::try_from(all.len().saturating_sub(most)).unwrap_or(u32::MAX)
}

/// The annotation of the Network Plumbing Working Group.
fn network_status(all: &[View]) -> Value {
    let one = |view: &View| {
        let reference = &view.reference;
        let name = if reference.namespace.is_empty() {
            reference.name.clone()
        } else {
            format!("{}/{}", reference.namespace, reference.name)
        };
        let ips: Vec<String> = view.ips.iter().map(|ip| ip.addr().to_string()).collect();
        let mut entry = json!({
            "name": name, "interface": view.ifname, "ips": ips,
            "default": reference.index == 0, "dns": view.dns,
        });
        let mut add = |key: &str, value: Value| {
            if let Some(map) = entry.as_object_mut() {
                map.insert(key.to_owned(), value);
            }
        };
        if let Some(mac) = &view.mac {
            add("mac", json!(mac));
        }
        if let Some(mtu) = view.mtu {
            add("mtu", json!(mtu));
        }
        if !view.gateways.is_empty() {
            add("gateway", json!(view.gateways));
        }
        entry
    };
    Value::Array(all.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        let all = ["a", "b", "c"].map(str::to_owned);
        assert_eq!((first(3, &all), beyond(3, &all)), (all.to_vec(), 0));
        assert_eq!((first(1, &all), beyond(1, &all)), (vec!["a".into()], 2));
    }

    #[test]
    fn a_block_is_as_full_as_the_addresses_that_pods_hold_in_it() {
        let addresses = ["10.1.0.65", "10.1.0.66", "10.1.0.1", "fd00::1"];
        let addresses = addresses.map(|text| text.parse().unwrap()).to_vec();
        let held = BTreeMap::from([("gone-from-the-api".to_owned(), addresses)]);
        let mut own = BTreeSet::new();
        let count = |own: &BTreeSet<_>, uid: &str, cidr: &str| {
            held_in(&held, own, uid, cidr.parse().unwrap())
        };
        assert_eq!(count(&own, "gone-from-the-api", "10.1.0.64/26"), 2);
        assert_eq!(count(&own, "gone-from-the-api", "10.1.0.128/26"), 0);
        assert_eq!(count(&own, "another", "10.1.0.64/26"), 0);
        // A part that is a block of its own is not counted with the whole as well.
        for cidr in ["10.1.0.64/26", "10.1.0.66/31"] {
            own.insert(("gone-from-the-api".to_owned(), cidr.parse().unwrap()));
        }
        assert_eq!(count(&own, "gone-from-the-api", "10.1.0.64/26"), 1);
        assert_eq!(count(&own, "gone-from-the-api", "10.1.0.66/31"), 1);
    }
}
