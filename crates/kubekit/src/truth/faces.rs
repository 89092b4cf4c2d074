//! A pod's interfaces as the kernel has them, the journal, its record and its annotation; and that
//! nobody has something of a pod that is not there.

use super::seen::{Attachment, Node, World, addresses, list, string};
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
type Face = BTreeMap<String, (String, BTreeSet<IpAddr>)>;

pub(super) fn compare(world: &World, name: &str, node: &Node, said: &mut dyn FnMut(String)) {
    let mut alive = BTreeSet::new();
    let mut uids = BTreeSet::new();
    for pod in world.pods.iter().filter(|pod| lives_on(pod, name)) {
        uids.insert(string(&pod["metadata"]["uid"]));
        let cni = cni_uid(pod);
        let mut own = node.sandboxes.iter().filter(|(_, one)| one.uid == cni);
        let (Some((id, sandbox)), None) = (own.next(), own.next()) else {
            said(format!("{} has no sandbox, or several", title(pod)));
            continue;
        };
        alive.insert(id.clone());
        let journal: Vec<&Attachment> = of_container(node, id).collect();
        one_pod(world, name, pod, id, &journal, said);
        if let (Some(record), Some(ways)) = (record_of(world, pod), node.ways.get(&sandbox.space)) {
            let mut of_pod = |text: String| said(format!("{}: {text}", title(pod)));
            super::ways::compare(record, ways, &mut of_pod);
        }
        let real = node.spaces.get(&sandbox.space).into_iter().flatten();
        let real: Face = real
            .filter(|link| link.name != "lo")
            .map(|link| (link.name.clone(), (link.mac.clone(), link.ips.clone())))
            .collect();
        differ(
            pod,
            "its namespace",
            &real,
            "the journal",
            &face_of(&journal),
            said,
        );
    }
    for (id, sandbox) in node.sandboxes.iter().filter(|(id, _)| !alive.contains(*id)) {
        said(format!(
            "sandbox {id} of pod UID {} runs, but no pod has it",
            sandbox.uid
        ));
    }
    for one in node
        .journal
        .iter()
        .filter(|one| !alive.contains(&one.container))
    {
        said(format!(
            "the journal has {} of {} in sandbox {}, which does not run",
            one.interface, one.pod, one.container
        ));
    }
    let records = world.records.iter();
    for record in records.filter(|record| record["spec"]["node"] == name) {
        if !uids.contains(&string(&record["metadata"]["name"])) {
            said(format!("record {} is of no pod", title(record)));
        }
    }
    if node.queued > 0 {
        said(format!("{} DELs wait in the queue", node.queued));
    }
}

fn one_pod(
    world: &World,
    node: &str,
    pod: &Value,
    sandbox: &str,
    journal: &[&Attachment],
    said: &mut dyn FnMut(String),
) {
    let asked = 1 + asked(pod);
    if journal.len() != asked || journal.iter().any(|one| !one.attached) {
        said(format!(
            "{} asked for {asked} interfaces, the journal has {} of {}",
            title(pod),
            journal.iter().filter(|one| one.attached).count(),
            journal.first().map_or(0, |one| one.total)
        ));
    }
    let known = face_of(journal);
    let Some(record) = record_of(world, pod) else {
        said(format!("{} has no record", title(pod)));
        return;
    };
    if record["spec"]["node"] != node || record["status"]["sandbox"] != sandbox {
        said(format!(
            "the record of {} is of node {} and sandbox {}, not {sandbox}",
            title(pod),
            record["spec"]["node"],
            record["status"]["sandbox"]
        ));
    }
    let owner = &record["metadata"]["ownerReferences"][0]["uid"];
    if *owner != pod["metadata"]["uid"] || list(&record["metadata"]["finalizers"]).is_empty() {
        said(format!(
            "the record of {} has no owner or no finalizer",
            title(pod)
        ));
    }
    let recorded = face(&record["status"]["attachments"]);
    differ(pod, "its record", &recorded, "the journal", &known, said);
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
        said,
    );
}

fn record_of<'w>(world: &'w World, pod: &Value) -> Option<&'w Value> {
    world.records.iter().find(|record| {
        record["metadata"]["name"] == pod["metadata"]["uid"]
            && record["metadata"]["namespace"] == pod["metadata"]["namespace"]
    })
}

fn differ(
    pod: &Value,
    what: &str,
    one: &Face,
    other_name: &str,
    other: &Face,
    said: &mut dyn FnMut(String),
) {
    if one != other {
        said(format!(
            "{}: {what} has {}, {other_name} has {}",
            title(pod),
            text(one),
            text(other)
        ));
    }
}

fn face_of(journal: &[&Attachment]) -> Face {
    journal
        .iter()
        .map(|one| (one.interface.clone(), (one.mac.clone(), one.ips.clone())))
        .collect()
}

/// Records and `network-status` use the same words.
fn face(entries: &Value) -> Face {
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

fn text(face: &Face) -> String {
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
fn asked(pod: &Value) -> usize {
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
