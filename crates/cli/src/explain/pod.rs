//! Why a pod is as it is.

use super::nad::later;
use super::{Answer, Because, Explanation, cluster, not_seen, reference};
use crate::get::{network_of, record_of};
use crate::holder::Holder;
use crate::world::{Seen, World, list, name, namespace, pod_facts, text, texts};
use plexus_api::cni::{Error, Runtime};
use plexus_core::attach::preview::{self, cluster_network};
use plexus_core::attach::{Attach, AttachError, AttachRequest};
use plexus_core::resolve::{Examined, Named, examine, pod_networks};
use serde_json::Value;
use std::collections::BTreeSet;

/// What the shim says when nobody answers it.
const NO_AGENT: &str = "the agent does not answer on";
/// What is said of a plugin that a node does not have.
const NO_PLUGIN: &str = "no executable file";

/// Explains a pod by what the world has.
pub fn explain_pod(world: &World, pod: &Value) -> Explanation {
    let node = text(pod, "/spec/nodeName");
    let place = match node {
        "" => String::new(),
        node => format!(" on node {node}"),
    };
    let subject = format!("Pod {}/{}{place}", namespace(pod), name(pod));
    Explanation::new(subject, answers(world, pod, node))
}

/// Explains whoever has interfaces and is no Pod.
pub fn explain_holder(world: &World, holder: Holder<'_>) -> Explanation {
    let node = text(holder.record, "/spec/node");
    let trouble = cluster::node(world, node);
    let mut all = match holder.container {
        true => trouble.into_iter().collect(),
        false => vec![left_on(trouble)],
    };
    all.extend(interfaces(holder.record));
    Explanation::new(format!("{} on node {node}", holder.title()), all)
}

/// Why a pod that the API no longer has still has a record.
fn left_on(trouble: Option<Answer>) -> Answer {
    let why = "the API no longer has this pod, and its node has not seen it end";
    let (why, next) = match trouble {
        None => (
            why.to_owned(),
            "its node removes its interfaces, then the record goes by itself",
        ),
        Some(trouble) if trouble.because == Because::NodeGone => (
            format!("{why}; the Node is gone as well"),
            "the controller releases what it had a while after the Node has gone",
        ),
        Some(trouble) => (
            format!("{why}: {}: {}", trouble.about, trouble.why),
            "it ends as soon as its node can be asked; if that never comes back, delete its Node",
        ),
    };
    Answer::waits(Because::Going, "", why, next)
}

fn answers(world: &World, pod: &Value, node: &str) -> Vec<Answer> {
    if let Some(answer) = ended(world, pod, node) {
        return vec![answer];
    }
    let mut all = misspelt(pod);
    all.extend(claims(world, pod));
    match node {
        "" => all.push(not_scheduled(world, pod)),
        node => all.extend(cluster::node(world, node)),
    }
    if let Some(why) = world.hidden("attachments", Some(namespace(pod))) {
        all.push(not_seen("its interfaces", why));
        return all;
    }
    let asked = examine(
        &pod_facts(pod),
        &world.settings(Vec::new()),
        &Seen::from(world, node),
    );
    let record = record_of(world, pod);
    let attached = record.is_some_and(|record| !list(record, "/status/attachments").is_empty());
    match (&asked, record.filter(|_| attached)) {
        (Err(error), None) => all.push(Answer::wrong(
            Because::BadAnnotation,
            "its annotations",
            error.msg.as_str(),
            error.details.as_str(),
        )),
        (asked, Some(record)) => {
            all.extend(interfaces(record));
            if !leads_nowhere(world, asked) {
                all.extend(changed(record, asked));
            }
            all.extend(containers(pod));
        }
        (Ok(asked), None) => not_attached(world, pod, node, asked, &mut all),
    }
    all
}

/// Annotations that nobody reads, and that somebody must have meant otherwise.
fn misspelt(pod: &Value) -> Vec<Answer> {
    let annotations = texts(pod, "/metadata/annotations");
    let wrong = annotations.keys().filter_map(|key| {
        let meant = plexus_api::pod::misspelt(key)?;
        Some(Answer::wrong(
            Because::BadAnnotation,
            format!("annotation {key}"),
            "nobody reads it",
            format!("did you mean {meant}? Correct it, and create the pod again"),
        ))
    });
    wrong.collect()
}

/// Pods about whose networks there is nothing to say.
fn ended(world: &World, pod: &Value, node: &str) -> Option<Answer> {
    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        let why = match record_of(world, pod) {
            Some(_) => "it is being deleted; its interfaces are still recorded",
            None => "it is being deleted",
        };
        let next = match cluster::node(world, node) {
            Some(trouble) => format!("{}: {}", trouble.about, trouble.why),
            None => "its node removes its interfaces, then the record goes by itself".to_owned(),
        };
        return Some(Answer::waits(Because::Going, "", why, next));
    }
    if let phase @ ("Succeeded" | "Failed") = text(pod, "/status/phase") {
        let why = format!("it has ended ({phase}): its interfaces are gone with its sandbox");
        return Some(Answer::good(Because::Finished, "", why));
    }
    if pod.pointer("/spec/hostNetwork") == Some(&Value::Bool(true)) {
        let asks = plexus_api::pod::ANNOTATIONS
            .into_iter()
            .find(|key| texts(pod, "/metadata/annotations").contains_key(*key));
        let why = "it has hostNetwork: it uses the node's interfaces, and gets no others";
        return Some(match asks {
            None => Answer::good(Because::HostNetwork, "", why),
            Some(key) => Answer::wrong(
                Because::HostNetwork,
                format!("annotation {key}"),
                why,
                "remove the annotation, or hostNetwork",
            ),
        });
    }
    None
}

fn not_scheduled(world: &World, pod: &Value) -> Answer {
    if !world.nodes.is_empty() && world.nodes.iter().all(cluster::runs_no_pods) {
        return cluster::nobody_runs_pods("this machine");
    }
    let scheduled = crate::world::condition(pod, "PodScheduled");
    let why = scheduled.map_or("", |condition| text(condition, "/message"));
    let why = match why {
        "" => "no node has been chosen for it yet".to_owned(),
        why => format!("no node was chosen for it: {why}"),
    };
    let next =
        "the scheduler chooses one as soon as one fits; spec.nodeName says which, without it";
    Answer::waits(Because::NotScheduled, "", why, next)
}

/// Claims that wait for the driver, or are not there.
fn claims(world: &World, pod: &Value) -> Vec<Answer> {
    let claims = list(pod, "/spec/resourceClaims").iter();
    let waiting = claims.filter_map(|claim| {
        let direct = text(claim, "/resourceClaimName");
        let template = text(claim, "/resourceClaimTemplateName");
        let (kind, named) = match direct {
            "" => ("ResourceClaimTemplate", template),
            direct => ("ResourceClaim", direct),
        };
        let about = format!("{kind} {}/{named}", namespace(pod));
        let mut all = world.waiting.iter();
        let found = all.find(|object| {
            let place = (namespace(object), name(object));
            text(object, "/kind") == kind && place == (namespace(pod), named)
        });
        let Some(found) = found else {
            // A template is needed until the claim is made of it.
            let made = list(pod, "/status/resourceClaimStatuses").iter();
            let mut made = made.map(|one| text(one, "/name"));
            let is_made = made.any(|one| one == text(claim, "/name"));
            if is_made {
                return None;
            }
            if let Some(why) = world.hidden("waiting", Some(namespace(pod))) {
                return Some(not_seen(about, why));
            }
            let why = "the pod asks for it, and it is not there";
            let next = format!("create it, in namespace {}", namespace(pod));
            return Some(Answer::wrong(Because::ClaimMissing, about, why, next));
        };
        later(world, found, about)
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
        Answer::good(Because::Attached, about, why)
    });
    each.collect()
}

/// Whether a reference may mean something that we are not shown.
fn leads_nowhere(world: &World, asked: &Result<Vec<Examined>, Error>) -> bool {
    let hidden = ["networks", "nads"].map(|list| world.hidden(list, None).is_some());
    let unclear = |asked: &Vec<Examined>| asked.iter().any(|one| one.place.is_none());
    hidden.contains(&true) && asked.as_ref().is_ok_and(unclear)
}

/// Whether the pod's annotations ask for something else than it has.
fn changed(record: &Value, asked: &Result<Vec<Examined>, Error>) -> Option<Answer> {
    let attached = list(record, "/status/attachments");
    let extra = attached
        .iter()
        .filter(|one| crate::world::number(one, "/index").is_some_and(|index| index > 0));
    let next = "a pod's networks do not change while it runs: delete it, and create it again";
    let asked = match asked {
        Ok(asked) => asked,
        Err(error) => {
            let why = format!("its annotations have changed since, and cannot be read: {error}");
            return Some(Answer::wrong(Because::Changed, "", why, next));
        }
    };
    let asked = asked.iter().filter(|one| one.index > 0);
    let wanted: BTreeSet<String> = asked.filter_map(wanted).collect();
    let has = extra.map(|one| format!("{} on {}", text(one, "/interface"), network_of(one)));
    let has: BTreeSet<String> = has.collect();
    if wanted == has {
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
        listed(&wanted),
        listed(&has)
    );
    Some(Answer::wrong(Because::Changed, "", why, next))
}

/// The interface and the network that a reference asks for, in the words of a record.
fn wanted(asked: &Examined) -> Option<String> {
    let ifname = asked.ifname.as_ref()?;
    let (namespace, name) = match (&asked.place, &asked.target) {
        (Some((namespace, name)), _) => (namespace, name),
        (None, Named::Nad(namespace, name) | Named::Network(namespace, name)) => (namespace, name),
        (None, Named::FqName(project, name)) => (project, name),
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
        Some(Answer::waits(Because::ContainersWait, about, why, next))
    });
    waiting.collect()
}

fn not_attached(world: &World, pod: &Value, node: &str, asked: &[Examined], all: &mut Vec<Answer>) {
    // Whoever waits for claims has not got to its networks.
    let waits_for_claims = all.iter().any(|answer| answer.because == Because::Later);
    let before = all.len();
    for examined in asked {
        match &examined.network {
            Err(error) => all.push(reference::missing(world, namespace(pod), examined, error)),
            Ok(network) => all.extend(reference::found(world, examined, network, node)),
        }
    }
    if all.len() == before {
        all.extend(together(world, pod, node));
    }
    let explained = all.len() > before || waits_for_claims;
    all.extend(sandbox(world, pod, node, explained));
    if all.is_empty() {
        all.push(nothing_missing(world, pod, node));
    }
}

/// What is wrong with all references together, if each by itself is fine.
fn together(world: &World, pod: &Value, node: &str) -> Option<Answer> {
    let first = cluster_network(&["10.0.0.0/24".parse().ok()?], &[]).ok()?;
    let seen = Seen::from(world, node);
    let facts = pod_facts(pod);
    let all = pod_networks(
        &facts,
        first,
        &Runtime::default(),
        &world.settings(Vec::new()),
        &seen,
    );
    let names = |error: &Error| {
        Answer::wrong(
            Because::BadTogether,
            "its annotations",
            error.msg.as_str(),
            error.details.as_str(),
        )
    };
    let body = match all {
        Ok(all) => all.body,
        Err(error) => return Some(names(&error)),
    };
    let conf = plexus_api::cni::NetConf::parse(
        br#"{"cniVersion":"1.1.0","name":"plexus","type":"plexus-cni","networks":"pod"}"#,
        &Default::default(),
    )
    .ok()?;
    let conf = plexus_api::cni::NetConf { body, ..conf };
    let request = AttachRequest::of(&conf, &[], preview::sandbox("pod").ok()?);
    match Attach::new(request).err()? {
        AttachError::Refused(error) => Some(names(&error)),
        AttachError::Plan { .. } => None,
    }
}

/// What the runtime, or the agent, said last.
fn sandbox(world: &World, pod: &Value, node: &str, explained: bool) -> Option<Answer> {
    let warnings = cluster::warnings(world, pod);
    let last = warnings.first()?;
    let message = text(last, "/message");
    let why = format!("{message}{}", cluster::ago(last, world.now));
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
        return Some(Answer::wrong(Because::UnknownPlugin, "", why, next));
    }
    // Why no node was chosen is in the pod's status too.
    if explained || text(last, "/reason") == "FailedScheduling" {
        return None;
    }
    let about = format!("event {}", text(last, "/reason"));
    let next = "the runtime tries again by itself; the agent's log on the node says more";
    Some(Answer::waits(Because::SandboxFailed, about, why, next))
}

fn nothing_missing(world: &World, pod: &Value, node: &str) -> Answer {
    let mut nodes = world.nodes.iter().filter(|one| name(one) == node);
    if nodes.any(cluster::runs_no_pods) {
        return cluster::nobody_runs_pods(&format!("node {node}"));
    }
    if text(pod, "/status/phase") == "Running" {
        return Answer::waits(
            Because::NoRecord,
            "",
            "it runs, but there is no record of its interfaces: another CNI made them, or the agent \
             has not reached the API server since",
            "on its node: plexus ask '/attachments?pod=…' and plexus doctor",
        );
    }
    let why = "every network that it names can be had; its runtime has not asked for them yet";
    let next = "wait a moment; then kubectl describe pod for what the kubelet says";
    Answer::waits(Because::Starting, "", why, next)
}
