//! Why a pod is as it is.

use super::nad::later;
use super::{Answer, Diagnosis, Reason, cluster, not_seen, reference};
use crate::get::{network_of, record_of};
use crate::holder::Holder;
use crate::snapshot::{NodeView, Snapshot, list, name, namespace, pod_facts, text, texts};
use plexus_api::cni::Runtime;
use plexus_core::attach::preview;
use plexus_core::attach::{Attach, AttachRequest};
use plexus_core::refusal::Refusal as _;
use plexus_core::resolve::{
    Examined, Named, ResolveError, examine, pod_cidr_network, pod_networks,
};
use plexus_types::chain;
use serde_json::Value;
use std::collections::BTreeSet;

/// What the shim says when nobody answers it.
const NO_AGENT: &str = "the agent does not answer on";
/// The part of a message that tells that a node does not have a plugin.
const NO_PLUGIN: &str = "no executable file";

/// Diagnoses a pod by what the snapshot has.
pub fn diagnose_pod(snapshot: &Snapshot, pod: &Value) -> Diagnosis {
    let node = text(pod, "/spec/nodeName");
    let on_node = match node {
        "" => String::new(),
        node => format!(" on node {node}"),
    };
    let subject = format!("Pod {}/{}{on_node}", namespace(pod), name(pod));
    Diagnosis::new(subject, answers(snapshot, pod, node))
}

/// Diagnoses whoever has interfaces and is no Pod.
pub fn diagnose_holder(snapshot: &Snapshot, holder: Holder<'_>) -> Diagnosis {
    let node = text(holder.record, "/spec/node");
    let node_problem = cluster::node(snapshot, node);
    let mut all = match holder.container {
        true => node_problem.into_iter().collect(),
        false => vec![left_on(node_problem)],
    };
    all.extend(interfaces(holder.record));
    Diagnosis::new(format!("{} on node {node}", holder.title()), all)
}

/// Why a pod that the API no longer has still has a record.
fn left_on(node_problem: Option<Answer>) -> Answer {
    let why = "the API no longer has this pod, and its node has not seen it end";
    let (why, next) = match node_problem {
        None => (
            why.to_owned(),
            "its node removes its interfaces, then the record goes by itself",
        ),
        Some(node_problem) if node_problem.reason == Reason::NodeGone => (
            format!("{why}; the Node is gone as well"),
            "the controller releases what it had a while after the Node has gone",
        ),
        Some(node_problem) => (
            format!("{why}: {}: {}", node_problem.about, node_problem.why),
            "it ends as soon as its node can be asked; if that never comes back, delete its Node",
        ),
    };
    Answer::waits(Reason::Going, "", why, next)
}

fn answers(snapshot: &Snapshot, pod: &Value, node: &str) -> Vec<Answer> {
    if let Some(answer) = ended(snapshot, pod, node) {
        return vec![answer];
    }
    let mut all = misspelled_annotations(pod);
    all.extend(claims(snapshot, pod));
    match node {
        "" => all.push(not_scheduled(snapshot, pod)),
        node => all.extend(cluster::node(snapshot, node)),
    }
    if let Some(why) = snapshot.hidden("attachments", Some(namespace(pod))) {
        all.push(not_seen("its interfaces", why));
        return all;
    }
    let examined_networks = examine(
        &pod_facts(pod),
        &snapshot.settings(Vec::new()),
        &NodeView::from(snapshot, node),
    );
    let record = record_of(snapshot, pod);
    let attached = record.is_some_and(|record| !list(record, "/status/attachments").is_empty());
    match (&examined_networks, record.filter(|_| attached)) {
        (Err(error), None) => all.push(Answer::wrong(
            Reason::BadAnnotation,
            "its annotations",
            chain(error),
            error.remedy(),
        )),
        (examined_networks, Some(record)) => {
            all.extend(interfaces(record));
            if !is_unresolved(snapshot, examined_networks) {
                all.extend(changed(record, examined_networks));
            }
            all.extend(containers(pod));
        }
        (Ok(examined_networks), None) => {
            not_attached(snapshot, pod, node, examined_networks, &mut all)
        }
    }
    all
}

/// Annotations that nobody reads, and that somebody must have meant otherwise.
fn misspelled_annotations(pod: &Value) -> Vec<Answer> {
    let annotations = texts(pod, "/metadata/annotations");
    let wrong = annotations.keys().filter_map(|key| {
        let meant = plexus_api::pod::misspelt(key)?;
        Some(Answer::wrong(
            Reason::BadAnnotation,
            format!("annotation {key}"),
            "nobody reads it",
            format!("did you mean {meant}? Correct it, and create the pod again"),
        ))
    });
    wrong.collect()
}

/// Pods about whose networks there is nothing to say.
fn ended(snapshot: &Snapshot, pod: &Value, node: &str) -> Option<Answer> {
    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        let why = match record_of(snapshot, pod) {
            Some(_) => "it is being deleted; its interfaces are still recorded",
            None => "it is being deleted",
        };
        let next = match cluster::node(snapshot, node) {
            Some(node_problem) => format!("{}: {}", node_problem.about, node_problem.why),
            None => "its node removes its interfaces, then the record goes by itself".to_owned(),
        };
        return Some(Answer::waits(Reason::Going, "", why, next));
    }
    if let phase @ ("Succeeded" | "Failed") = text(pod, "/status/phase") {
        let why = format!("it has ended ({phase}): its interfaces are gone with its sandbox");
        return Some(Answer::good(Reason::Finished, "", why));
    }
    if pod.pointer("/spec/hostNetwork") == Some(&Value::Bool(true)) {
        let asks = plexus_api::pod::ANNOTATIONS
            .into_iter()
            .find(|key| texts(pod, "/metadata/annotations").contains_key(*key));
        let why = "it has hostNetwork: it uses the node's interfaces, and gets no others";
        return Some(match asks {
            None => Answer::good(Reason::HostNetwork, "", why),
            Some(key) => Answer::wrong(
                Reason::HostNetwork,
                format!("annotation {key}"),
                why,
                "remove the annotation, or hostNetwork",
            ),
        });
    }
    None
}

fn not_scheduled(snapshot: &Snapshot, pod: &Value) -> Answer {
    if !snapshot.nodes.is_empty() && snapshot.nodes.iter().all(cluster::runs_no_pods) {
        return cluster::nobody_runs_pods("this machine");
    }
    let scheduled = crate::snapshot::condition(pod, "PodScheduled");
    let why = scheduled.map_or("", |condition| text(condition, "/message"));
    let why = match why {
        "" => "no node has been chosen for it yet".to_owned(),
        why => format!("no node was chosen for it: {why}"),
    };
    let next =
        "the scheduler chooses one as soon as one fits; spec.nodeName says which, without it";
    Answer::waits(Reason::NotScheduled, "", why, next)
}

/// Claims that wait for the driver, or are not there.
fn claims(snapshot: &Snapshot, pod: &Value) -> Vec<Answer> {
    let claims = list(pod, "/spec/resourceClaims").iter();
    let waiting = claims.filter_map(|claim| {
        let direct = text(claim, "/resourceClaimName");
        let template = text(claim, "/resourceClaimTemplateName");
        let (kind, named) = match direct {
            "" => ("ResourceClaimTemplate", template),
            direct => ("ResourceClaim", direct),
        };
        let about = format!("{kind} {}/{named}", namespace(pod));
        let mut all = snapshot.waiting.iter();
        let found = all.find(|object| {
            let on_node = (namespace(object), name(object));
            text(object, "/kind") == kind && on_node == (namespace(pod), named)
        });
        let Some(found) = found else {
            // A template is needed until the claim is made of it.
            let made = list(pod, "/status/resourceClaimStatuses").iter();
            let mut made = made.map(|one| text(one, "/name"));
            let is_made = made.any(|one| one == text(claim, "/name"));
            if is_made {
                return None;
            }
            if let Some(why) = snapshot.hidden("waiting", Some(namespace(pod))) {
                return Some(not_seen(about, why));
            }
            let why = "the pod asks for it, and it is not there";
            let next = format!("create it, in namespace {}", namespace(pod));
            return Some(Answer::wrong(Reason::ClaimMissing, about, why, next));
        };
        later(snapshot, found, about)
    });
    waiting.collect()
}

/// What the record says of each interface.
fn interfaces(record: &Value) -> Vec<Answer> {
    let each = list(record, "/status/attachments").iter().map(|one| {
        let about = format!("{} on {}", text(one, "/interface"), network_of(one));
        let ips: Vec<&str> = list(one, "/ips").iter().filter_map(Value::as_str).collect();
        let routes: Vec<&str> = list(one, "/defaultRoute")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let mut why = match ips.is_empty() {
            true => "attached, without addresses".to_owned(),
            false => format!("attached, {}", ips.join(", ")),
        };
        if !routes.is_empty() {
            why += &format!("; has the default route ({})", routes.join(", "));
        }
        Answer::good(Reason::Attached, about, why)
    });
    each.collect()
}

/// Whether a reference may mean something that we are not shown.
fn is_unresolved(
    snapshot: &Snapshot,
    examined_networks: &Result<Vec<Examined>, ResolveError>,
) -> bool {
    let hidden = ["networks", "nads"].map(|list| snapshot.hidden(list, None).is_some());
    let unclear =
        |examined_networks: &Vec<Examined>| examined_networks.iter().any(|one| one.place.is_none());
    hidden.contains(&true) && examined_networks.as_ref().is_ok_and(unclear)
}

/// Whether the pod's annotations ask for something else than it has.
fn changed(
    record: &Value,
    examined_networks: &Result<Vec<Examined>, ResolveError>,
) -> Option<Answer> {
    let attached = list(record, "/status/attachments");
    let extra = attached
        .iter()
        .filter(|one| crate::snapshot::number(one, "/index").is_some_and(|index| index > 0));
    let next = "a pod's networks do not change while it runs: delete it, and create it again";
    let examined_networks = match examined_networks {
        Ok(examined_networks) => examined_networks,
        Err(error) => {
            let why = format!("its annotations have changed since, and cannot be read: {error}");
            return Some(Answer::wrong(Reason::Changed, "", why, next));
        }
    };
    let examined_networks = examined_networks.iter().filter(|one| one.index > 0);
    let requested: BTreeSet<String> = examined_networks.filter_map(requested).collect();
    let has = extra.map(|one| format!("{} on {}", text(one, "/interface"), network_of(one)));
    let has: BTreeSet<String> = has.collect();
    if requested == has {
        return None;
    }
    let listed = |all: &BTreeSet<String>| match all.is_empty() {
        true => "none".to_owned(),
        false => all
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let why = format!(
        "its annotations ask for {} beside eth0, and it has {}",
        listed(&requested),
        listed(&has)
    );
    Some(Answer::wrong(Reason::Changed, "", why, next))
}

/// The interface and the network that a reference asks for, in the words of a record.
fn requested(examined_networks: &Examined) -> Option<String> {
    let ifname = examined_networks.ifname.as_ref()?;
    let (namespace, name) = match (&examined_networks.place, &examined_networks.target) {
        (Some((namespace, name)), _) => (namespace, name),
        (None, Named::Nad(namespace, name) | Named::Network(namespace, name)) => (namespace, name),
        (None, Named::FqName(fq)) => (&fq.project, &fq.name),
    };
    Some(format!("{ifname} on {namespace}/{name}"))
}

/// Containers that wait although the networks are there.
fn containers(pod: &Value) -> Vec<Answer> {
    let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let all = statuses.into_iter().flat_map(|pointer| list(pod, pointer));
    let waiting = all.filter_map(|container| {
        let reason = text(container, "/state/waiting/reason");
        if matches!(reason, "" | "ContainerCreating" | "PodInitializing") {
            return None;
        }
        let about = format!("container {}", text(container, "/name"));
        let why = format!("{reason}: {}", text(container, "/state/waiting/message"));
        let next = "this is not about networks: kubectl describe and kubectl logs say more";
        Some(Answer::waits(Reason::ContainersWait, about, why, next))
    });
    waiting.collect()
}

fn not_attached(
    snapshot: &Snapshot,
    pod: &Value,
    node: &str,
    examined_networks: &[Examined],
    all: &mut Vec<Answer>,
) {
    // Whoever waits for claims has not got to its networks.
    let waits_for_claims = all.iter().any(|answer| answer.reason == Reason::Later);
    let before = all.len();
    for examined in examined_networks {
        match &examined.networks {
            Err(error) => all.push(reference::missing(
                snapshot,
                namespace(pod),
                examined,
                error,
            )),
            Ok(networks) => {
                let each = networks.all().iter();
                all.extend(each.filter_map(|one| reference::found(snapshot, examined, one, node)));
            }
        }
    }
    if all.len() == before {
        all.extend(addresses_for_all(snapshot, pod, node));
    }
    let diagnosed = all.len() > before || waits_for_claims;
    all.extend(sandbox(snapshot, pod, node, diagnosed));
    if all.is_empty() {
        all.push(nothing_missing(snapshot, pod, node));
    }
}

/// What is wrong with all references together, if each by itself is fine.
fn addresses_for_all(snapshot: &Snapshot, pod: &Value, node: &str) -> Option<Answer> {
    let first = pod_cidr_network(&["10.0.0.0/24".parse().ok()?], &[]).ok()?;
    let seen = NodeView::from(snapshot, node);
    let facts = pod_facts(pod);
    let all = pod_networks(
        &facts,
        first,
        &Runtime::default(),
        &snapshot.settings(Vec::new()),
        &seen,
    );
    let names =
        |why: &str, next: &str| Answer::wrong(Reason::BadTogether, "its annotations", why, next);
    let all = match all {
        Ok(all) => all,
        Err(error) => return Some(names(&chain(&error), &error.remedy())),
    };
    let conf = plexus_api::cni::NetConf::parse(
        br#"{"cniVersion":"1.1.0","name":"plexus","type":"plexus-cni","networks":"pod"}"#,
        &Default::default(),
    )
    .ok()?;
    let request = AttachRequest::of_pod(&conf, all, preview::sandbox("pod").ok()?);
    let error = Attach::new(request).err()?;
    Some(names(&chain(&error), &error.remedy()))
}

/// What the runtime, or the agent, said last.
fn sandbox(snapshot: &Snapshot, pod: &Value, node: &str, diagnosed: bool) -> Option<Answer> {
    let warnings = cluster::warnings(snapshot, pod);
    let last = warnings.first()?;
    let message = text(last, "/message");
    let why = format!("{message}{}", cluster::ago(last, snapshot.now));
    if message.contains(NO_AGENT) {
        return Some(cluster::away(
            node,
            why,
            "start the agent; on the node: plexus doctor",
        ));
    }
    if message.contains(NO_PLUGIN) {
        let next = format!(
            "put the plugin into the plugin directory of node {node}, or name another network"
        );
        return Some(Answer::wrong(Reason::UnknownPlugin, "", why, next));
    }
    // Why no node was chosen is in the pod's status too.
    if diagnosed || text(last, "/reason") == "FailedScheduling" {
        return None;
    }
    let about = format!("event {}", text(last, "/reason"));
    let next = "the runtime tries again by itself; the agent's log on the node says more";
    Some(Answer::waits(Reason::SandboxFailed, about, why, next))
}

fn nothing_missing(snapshot: &Snapshot, pod: &Value, node: &str) -> Answer {
    let mut nodes = snapshot.nodes.iter().filter(|one| name(one) == node);
    if nodes.any(cluster::runs_no_pods) {
        return cluster::nobody_runs_pods(&format!("node {node}"));
    }
    if text(pod, "/status/phase") == "Running" {
        return Answer::waits(
            Reason::NoRecord,
            "",
            "it runs, but there is no record of its interfaces: another CNI made them, or the agent \
             has not reached the API server since",
            "on its node: plexus agent attachments --pod … and plexus doctor",
        );
    }
    let why = "every network that it names can be had; its runtime has not asked for them yet";
    let next = "wait a moment; then kubectl describe pod for what the kubelet says";
    Answer::waits(Reason::Starting, "", why, next)
}
