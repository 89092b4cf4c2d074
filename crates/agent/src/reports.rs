//! What the API is told of this node's pods, after the fact: attachments, `network-status`, Events;
//! and what its side of the agent asks back.

use crate::call::Call;
use crate::cluster::{Attached, BlockUse, Change, Hooks, Journaled, PodName};
use crate::journal::{Record, State, Stored};
use crate::verbs::Agent;
use crate::view::{View, views};
use ipnet::IpNet;
use plexus_api::cni::Error;
use plexus_api::objects::{AttachmentState, AttachmentStatus, NetworkRef};
use plexus_types::{ContainerId, Family, IfName};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering::SeqCst;

impl Agent {
    /// A call's attachments are there and its answer is delivered.
    pub(crate) fn report_attached(&self, key: &(ContainerId, IfName)) {
        let Some(cluster) = self.cluster.get() else {
            return;
        };
        let stored = self.journal().ok().and_then(|journal| {
            let found = journal.find(&key.0, &key.1).ok()??;
            journal.of_pod(found.record.pod_uid.as_deref()?).ok()
        });
        for report in attached(&stored.unwrap_or_default()) {
            cluster.attached(report);
        }
    }

    /// What a record describes is gone; other attachments of the pod may be left.
    pub(crate) fn report_detached(&self, record: &Record) {
        let (Some(cluster), Some(pod)) = (self.cluster.get(), pod_of(record)) else {
            return;
        };
        let stored = self.journal().map(|journal| journal.of_pod(&pod.uid));
        let (false, Ok(Ok(stored))) = (record.body.references.is_empty(), stored) else {
            return;
        };
        let container = record.container.as_str();
        let mut left = attached(&stored).into_iter();
        match left.find(|one| one.sandbox == container) {
            Some(rest) => cluster.attached(rest),
            None => cluster.detached(&pod, container),
        }
    }

    /// An ADD failed: the pod's owner is told, with the same text.
    pub(crate) fn report_failed(&self, call: &Call<'_>, error: &Error) {
        if let (Some(cluster), Some(pod)) = (self.cluster.get(), pod_of_call(call)) {
            cluster.failed(&pod, &error.to_string());
        }
    }
}

impl Hooks for Agent {
    fn changed(&self, _: Change) {
        self.bell.ring();
    }

    fn pods(&self) -> Option<Journaled> {
        let stored = self.journal().ok()?.all().ok()?;
        let uids = stored.iter().filter_map(|one| one.record.pod_uid.clone());
        Some(Journaled {
            uids: uids.collect(),
            done: attached(&stored),
        })
    }

    fn usage(&self) -> Option<Vec<BlockUse>> {
        if !self.ready.load(SeqCst) {
            return None;
        }
        let cluster = self.cluster.get()?;
        let held = self.addresses.held_of_blocks();
        let each = cluster.own_blocks().into_iter();
        let each = each.map(|(network_uid, cidr)| BlockUse {
            allocated: held_in(&held, &network_uid, cidr),
            network_uid,
            cidr,
        });
        Some(each.collect())
    }

    fn in_use(&self, network_uid: &str, cidr: IpNet) -> Option<bool> {
        let ready = self.ready.load(SeqCst);
        ready.then(|| held_in(&self.addresses.held_of_blocks(), network_uid, cidr) > 0)
    }
}

fn held_in(held: &BTreeMap<String, Vec<IpAddr>>, network_uid: &str, cidr: IpNet) -> u64 {
    let of_network = held.get(network_uid).into_iter().flatten();
    of_network.filter(|held| cidr.contains(*held)).count() as u64
}

/// One report a pod and sandbox, of what is done.
fn attached(stored: &[Stored]) -> Vec<Attached> {
    let mut reports: BTreeMap<(PodName, String), (Vec<View>, bool)> = BTreeMap::new();
    for one in stored.iter().filter(|one| one.state == State::Done) {
        let record = &one.record;
        let Some(pod) = pod_of(record).filter(|_| !record.body.references.is_empty()) else {
            continue;
        };
        let key = (pod, record.container.to_string());
        let (all, standalone) = reports.entry(key).or_default();
        all.extend(views(one));
        *standalone |= record.body.standalone;
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
        ordinal: 0,
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
        state: AttachmentState::Attached,
        message: String::new(),
    }
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

fn pod_of(record: &Record) -> Option<PodName> {
    let (namespace, name) = record.body.pod.as_deref()?.split_once('/')?;
    Some(PodName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: record.pod_uid.clone()?,
    })
}

fn pod_of_call(call: &Call<'_>) -> Option<PodName> {
    Some(PodName {
        namespace: call.args.pod_namespace.clone()?,
        name: call.args.pod_name.clone()?,
        uid: call.args.pod_uid.clone()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_as_full_as_the_addresses_that_pods_hold_in_it() {
        let addresses = ["10.1.0.65", "10.1.0.66", "10.1.0.1", "fd00::1"];
        let addresses = addresses.map(|text| text.parse().unwrap()).to_vec();
        let held = BTreeMap::from([("gone-from-the-api".to_owned(), addresses)]);
        let count = |uid: &str, cidr: &str| held_in(&held, uid, cidr.parse().unwrap());
        assert_eq!(count("gone-from-the-api", "10.1.0.64/26"), 2);
        assert_eq!(count("gone-from-the-api", "10.1.0.128/26"), 0);
        assert_eq!(count("another", "10.1.0.64/26"), 0);
    }
}
