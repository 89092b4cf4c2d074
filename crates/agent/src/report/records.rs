//! What the API is told of this node's pods, after the fact: attachments, `network-status`, Events.

use crate::agent::{Agent, NewAttachments};
use crate::cluster::{Attached, PodName, Subject};
use crate::journal::{Journal, Record, State, Stored};
use crate::report::owner::RecordOwners;
use crate::report::view::View;
use crate::serve::call::Call;
use plexus_api::cni::Error;
use plexus_api::objects::{AttachmentState, AttachmentStatus, NetworkRef};
use plexus_types::{ContainerId, Family};
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl Agent {
    /// A call's attachments are there and its answer is delivered.
    pub(crate) fn report_attached(&self, made: &NewAttachments) {
        let Some(cluster) = self.cluster.get() else {
            return;
        };
        let owners = self.owners();
        let stored = self
            .journal()
            .ok()
            .and_then(|journal| with_it(journal, owners, made.pod_uid.as_deref(), &made.container));
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
            stored.and_then(|journal| with_it(journal, owners, pod_uid, &record.container));
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
            cluster.event(Subject::pod(&pod), "FailedAttach", &error.to_string());
        }
    }

    pub(super) fn owners(&self) -> RecordOwners {
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

/// All that the journal has of whoever a record is about.
fn with_it(
    journal: &Journal,
    owners: RecordOwners,
    pod_uid: Option<&str>,
    container: &ContainerId,
) -> Option<Vec<Stored>> {
    let stored = match owners {
        RecordOwners::Pods => journal.of_pod(pod_uid?),
        RecordOwners::Containers => journal.of_container(container),
    };
    stored.ok()
}

/// One report a pod and sandbox, of what is done.
pub(super) fn attached(owners: RecordOwners, stored: &[Stored]) -> Vec<Attached> {
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

fn beyond(most: usize, all: &[String]) -> u32 {
    u32::try_from(all.len().saturating_sub(most)).unwrap_or(u32::MAX)
}

/// The annotation of the Network Plumbing Working Group.
fn network_status(all: &[View]) -> Value {
    let one = |view: &View| {
        let reference = &view.reference;
        let name = match reference.namespace.as_str() {
            "" => reference.name.clone(),
            namespace => format!("{namespace}/{}", reference.name),
        };
        let ips: Vec<String> = view.ips.iter().map(|ip| ip.addr().to_string()).collect();
        let mut entry = json!({
            "name": name, "interface": view.ifname, "ips": ips,
            "default": reference.index == 0, "dns": view.dns,
        });
        if let Some(mac) = &view.mac {
            entry["mac"] = json!(mac);
        }
        if let Some(mtu) = view.mtu {
            entry["mtu"] = json!(mtu);
        }
        if !view.gateways.is_empty() {
            entry["gateway"] = json!(view.gateways);
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
}
