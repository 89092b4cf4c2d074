//! What a diagnosis needs to know of the cluster around an object: its node, the node's agent,
//! the controller, and the Events about it.

use super::{Answer, Reason};
use crate::snapshot::{Snapshot, condition, list, name, namespace, text};
use crate::text::{age, seconds_since};
use plexus_api::objects::REGISTERED_BY_AGENT;
use serde_json::Value;

/// How old the controller's lease may be; it is renewed every few seconds.
const LEASE: i64 = 60;

/// What is wrong with the node of a pod.
pub(super) fn node(snapshot: &Snapshot, node: &str) -> Option<Answer> {
    if snapshot.unknown.contains_key("nodes") {
        return None;
    }
    let about = format!("node {node}");
    let Some(found) = snapshot.nodes.iter().find(|one| name(one) == node) else {
        return Some(Answer::wrong(
            Reason::NodeGone,
            about,
            "there is no such Node, or none any more, so that nobody runs the pod",
            "delete the pod; create it again without spec.nodeName, if nothing else does that",
        ));
    };
    if let Some(ready) = condition(found, "Ready").filter(|ready| text(ready, "/status") != "True")
    {
        let why = match text(ready, "/message") {
            "" => "it is not Ready".to_owned(),
            message => format!("it is not Ready: {message}"),
        };
        // The kubelet says so of a node whose agent is away: that is what to mend.
        let by_network = text(ready, "/message").contains("NetworkPluginNotReady");
        if let Some(away) = agent(snapshot, node).filter(|_| by_network) {
            return Some(away);
        }
        return Some(Answer::waits(
            Reason::NodeNotReady,
            about,
            why,
            "see why: is the machine up, do its kubelet and runtime run? On it: plexus doctor",
        ));
    }
    agent(snapshot, node)
}

/// Whether a Node was registered by an agent, as `plexus up` does: there is no kubelet.
pub(super) fn runs_no_pods(node: &Value) -> bool {
    condition(node, "Ready").is_some_and(|ready| text(ready, "/reason") == REGISTERED_BY_AGENT)
}

/// The answer for pods on a node that runs no pods.
pub(super) fn nobody_runs_pods(about: &str) -> Answer {
    Answer::wrong(
        Reason::NobodyRunsPods,
        about,
        "plexus up runs no Pods: containers there are started by Podman or containerd",
        "delete the pod, and start a container on the network (podman run --network …); a lab \
         (plexus lab up) or Kubernetes runs Pods",
    )
}

/// Whether the agent of a node is away: its pod is not there or not ready. Where no agent runs as a
/// pod (`plexus up`, a lab) nothing can be told by this.
fn agent(snapshot: &Snapshot, node: &str) -> Option<Answer> {
    let mut agents = snapshot.pods.iter().filter(|pod| is_agent(pod)).peekable();
    agents.peek()?;
    let own = agents.find(|pod| text(pod, "/spec/nodeName") == node);
    let ready =
        |pod: &Value| condition(pod, "Ready").is_some_and(|ready| text(ready, "/status") == "True");
    let (why, next) = match own {
        Some(pod) if ready(pod) => return None,
        Some(pod) => {
            let waiting = list(pod, "/status/containerStatuses")
                .iter()
                .map(|container| text(container, "/state/waiting/reason"))
                .find(|reason| !reason.is_empty());
            let why = format!(
                "the agent of this node is not ready ({}/{}{})",
                namespace(pod),
                name(pod),
                waiting
                    .map(|reason| format!(": {reason}"))
                    .unwrap_or_default()
            );
            let next = format!("kubectl -n {} logs {}", namespace(pod), name(pod));
            (why, next)
        }
        None => (
            "no agent runs on this node".to_owned(),
            "does the DaemonSet plexus-agent tolerate the node's taints? kubectl -n plexus-system \
             get pods -o wide"
                .to_owned(),
        ),
    };
    Some(away(node, why, next))
}

/// The agent of a node does not run.
pub(super) fn away(node: &str, why: impl Into<String>, next: impl Into<String>) -> Answer {
    let about = format!("node {node}");
    Answer::waits(Reason::AgentAway, about, why, next)
}

fn is_agent(pod: &Value) -> bool {
    let label = |key: &str| {
        let labels = pod.pointer("/metadata/labels");
        labels.and_then(|labels| labels.get(key)?.as_str())
    };
    label("app.kubernetes.io/name") == Some("plexus")
        && label("app.kubernetes.io/component") == Some("agent")
}

/// Why the controller might not have looked at something.
pub(super) fn controller(snapshot: &Snapshot) -> String {
    if snapshot.unknown.contains_key("leases") {
        return "is the controller running?".to_owned();
    }
    let renewed = snapshot
        .leases
        .iter()
        .filter_map(|lease| seconds_since(text(lease, "/spec/renewTime"), snapshot.now))
        .min();
    match renewed {
        None => "no controller has ever run here: start one (`plexus up`, deploy/install.yaml, or \
                 plexus controller)"
            .to_owned(),
        Some(seconds) if seconds > LEASE => format!(
            "the controller was last seen {} ago: start it, or see its log",
            age(seconds)
        ),
        Some(_) => "the controller runs: it should take a moment only; see its log".to_owned(),
    }
}

/// Warnings about an object, newest first.
pub(super) fn warnings<'w>(snapshot: &'w Snapshot, object: &Value) -> Vec<&'w Value> {
    let uid = text(object, "/metadata/uid");
    let kind = text(object, "/kind");
    let about = |event: &&Value| {
        let involved = |key: &str| text(event, &format!("/involvedObject/{key}"));
        let same_uid = !uid.is_empty() && involved("uid") == uid;
        let same_name = involved("name") == name(object)
            && involved("namespace") == namespace(object)
            && (kind.is_empty() || involved("kind") == kind);
        text(event, "/type") == "Warning" && (same_uid || (same_name && involved("uid").is_empty()))
    };
    let mut found: Vec<&Value> = snapshot.events.iter().filter(about).collect();
    found.sort_by_key(|event| std::cmp::Reverse(when(event).to_owned()));
    found
}

fn when(event: &Value) -> &str {
    let times = [
        "/lastTimestamp",
        "/eventTime",
        "/metadata/creationTimestamp",
    ];
    let mut times = times.into_iter().map(|pointer| text(event, pointer));
    times.find(|time| !time.is_empty()).unwrap_or_default()
}

/// `3m ago`, if it is known when.
pub(super) fn ago(event: &Value, now: i64) -> String {
    match seconds_since(when(event), now) {
        Some(seconds) => format!(" ({} ago)", age(seconds)),
        None => String::new(),
    }
}
