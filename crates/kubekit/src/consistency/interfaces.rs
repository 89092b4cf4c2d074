//! A pod's interfaces as the kernel has them, the journal, its record and its annotation; and that
//! nobody has something of a pod that is not there.

use super::observed::{Attachment, ClusterState, Node, addresses, list, string};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

const STATUS: &str = "k8s.v1.cni.cncf.io/network-status";
const ASKED: [&str; 3] = [
    "k8s.v1.cni.cncf.io/networks",
    "opencontrail.org/network",
    "plexus.dev/networks",
];

/// Interface, MAC address, addresses.
type Interfaces = BTreeMap<String, (String, BTreeSet<IpAddr>)>;

pub(super) fn compare(
    state: &ClusterState,
    name: &str,
    node: &Node,
    report: &mut dyn FnMut(String),
) {
    let mut alive = BTreeSet::new();
    let mut uids = BTreeSet::new();
    for pod in state.pods.iter().filter(|pod| lives_on(pod, name)) {
        uids.insert(string(&pod["metadata"]["uid"]));
        let cni = cni_uid(pod);
        let mut own = node.sandboxes.iter().filter(|(_, one)| one.uid == cni);
        let (Some((id, sandbox)), None) = (own.next(), own.next()) else {
            report(format!("{} has no sandbox, or several", title(pod)));
            continue;
        };
        alive.insert(id.clone());
        let journal: Vec<&Attachment> = of_container(node, id).collect();
        one_pod(state, name, pod, id, &journal, report);
        if let (Some(record), Some(pod_routes)) =
            (record_of(state, pod), node.pod_routes.get(&sandbox.space))
        {
            let mut of_pod = |text: String| report(format!("{}: {text}", title(pod)));
            super::pod_routes::compare(record, pod_routes, &mut of_pod);
        }
        let real = node.spaces.get(&sandbox.space).into_iter().flatten();
        let real: Interfaces = real
            .filter(|link| link.name != "lo")
            .map(|link| (link.name.clone(), (link.mac.clone(), link.ips.clone())))
            .collect();
        differ(
            pod,
            "its namespace",
            &real,
            "the journal",
            &face_of(&journal),
            report,
        );
    }
    for (id, sandbox) in node.sandboxes.iter().filter(|(id, _)| !alive.contains(*id)) {
        report(format!(
            "sandbox {id} of pod UID {} runs, but no pod has it",
            sandbox.uid
        ));
    }
    for one in node
        .journal
        .iter()
        .filter(|one| !alive.contains(&one.container))
    {
        report(format!(
            "the journal has {} of {} in sandbox {}, which does not run",
            one.interface, one.pod, one.container
        ));
    }
    let records = state.records.iter();
    for record in records.filter(|record| record["spec"]["node"] == name) {
        if !uids.contains(&string(&record["metadata"]["name"])) {
            report(format!("record {} is of no pod", title(record)));
        }
    }
    if node.queued > 0 {
        report(format!("{} DELs wait in the queue", node.queued));
    }
}

fn one_pod(
    state: &ClusterState,
    node: &str,
    pod: &Value,
    sandbox: &str,
    journal: &[&Attachment],
    report: &mut dyn FnMut(String),
) {
    let requested = 1 + requested(pod);
    if journal.len() != requested || journal.iter().any(|one| !one.attached) {
        report(format!(
            "{} asked for {requested} interfaces, the journal has {} of {}",
            title(pod),
            journal.iter().filter(|one| one.attached).count(),
            journal.first().map_or(0, |one| one.total)
        ));
    }
    let known = face_of(journal);
    let Some(record) = record_of(state, pod) else {
        report(format!("{} has no record", title(pod)));
        return;
    };
    if record["spec"]["node"] != node || record["status"]["sandbox"] != sandbox {
        report(format!(
            "the record of {} is of node {} and sandbox {}, not {sandbox}",
            title(pod),
            record["spec"]["node"],
            record["status"]["sandbox"]
        ));
    }
    let owner = &record["metadata"]["ownerReferences"][0]["uid"];
    if *owner != pod["metadata"]["uid"] || list(&record["metadata"]["finalizers"]).is_empty() {
        report(format!(
            "the record of {} has no owner or no finalizer",
            title(pod)
        ));
    }
    let recorded = face(&record["status"]["attachments"]);
    differ(pod, "its record", &recorded, "the journal", &known, report);
    let status = pod["metadata"]["annotations"][STATUS].as_str();
    let status: Value = status
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    differ(
        pod,
        "network-status",
        &face(&status),
        "the journal",
        &known,
        report,
    );
}

fn record_of<'w>(state: &'w ClusterState, pod: &Value) -> Option<&'w Value> {
    state.records.iter().find(|record| {
        record["metadata"]["name"] == pod["metadata"]["uid"]
            && record["metadata"]["namespace"] == pod["metadata"]["namespace"]
    })
}

fn differ(
    pod: &Value,
    what: &str,
    one: &Interfaces,
    other_name: &str,
    other: &Interfaces,
    report: &mut dyn FnMut(String),
) {
    if one != other {
        report(format!(
            "{}: {what} has {}, {other_name} has {}",
            title(pod),
            text(one),
            text(other)
        ));
    }
}

fn face_of(journal: &[&Attachment]) -> Interfaces {
    journal
        .iter()
        .map(|one| (one.interface.clone(), (one.mac.clone(), one.ips.clone())))
        .collect()
}

/// Records and `network-status` use the same words.
fn face(entries: &Value) -> Interfaces {
    list(entries)
        .iter()
        .map(|one| {
            (
                string(&one["interface"]),
                (string(&one["mac"]), addresses(&one["ips"])),
            )
        })
        .collect()
}

fn text(face: &Interfaces) -> String {
    let one = |(name, (mac, ips)): (&String, &(String, BTreeSet<IpAddr>))| {
        let ips: Vec<String> = ips.iter().map(ToString::to_string).collect();
        format!("{name} {mac} {}", ips.join(" "))
    };
    let all: Vec<String> = face.iter().map(one).collect();
    format!("[{}]", all.join(", "))
}

fn of_container<'a>(node: &'a Node, id: &'a str) -> impl Iterator<Item = &'a Attachment> {
    node.journal.iter().filter(move |one| one.container == id)
}

/// One that should have interfaces of ours now.
fn lives_on(pod: &Value, node: &str) -> bool {
    let phase = pod["status"]["phase"].as_str();
    pod["spec"]["nodeName"] == node
        && pod["spec"]["hostNetwork"] != true
        && pod["metadata"]["deletionTimestamp"].is_null()
        && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// The kubelet's name for a static pod.
fn cni_uid(pod: &Value) -> String {
    let metadata = &pod["metadata"];
    let hash = &metadata["annotations"]["kubernetes.io/config.hash"];
    string(if hash.is_string() {
        hash
    } else {
        &metadata["uid"]
    })
}

/// How many networks the annotations name.
fn requested(pod: &Value) -> usize {
    let annotations = &pod["metadata"]["annotations"];
    let count = |key: &str| {
        let text = annotations[key].as_str().unwrap_or_default().trim();
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Array(all)) => all.len(),
            // One dictionary, perhaps with another language's quotes.
            _ if text.starts_with('{') => 1,
            _ => text.split(',').filter(|part| !part.is_empty()).count(),
        }
    };
    ASKED.into_iter().map(count).sum()
}

fn title(object: &Value) -> String {
    let metadata = &object["metadata"];
    format!(
        "{}/{}",
        string(&metadata["namespace"]),
        string(&metadata["name"])
    )
}
