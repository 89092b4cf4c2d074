//! `plexus plan`: the commands that the pods of some files amount to, on a node that is only
//! described. Nothing is asked and nothing is changed.

use crate::diagnose::{Answer, Reason, State, diagnose_pod};
use crate::snapshot::{NodeView, Snapshot, list, name, namespace, pod_facts, text};
use crate::text::{Paint, Screen};
use ipnet::IpNet;
use plexus_api::cni::{Args, Chain, Error, Executable, NetConf, Network, NetworkBackend, Version};
use plexus_api::translate;
use plexus_core::attach::preview::{Issued, Preview, Uplink, preview, sandbox};
use plexus_core::attach::{AttachError, AttachRequest, Attachment, Backend, NativeWork};
use plexus_core::plan::{LinkFacts, PodPlan, Underlay, node_text, pod_text, ports_text};
use plexus_core::refusal::Refusal;
use plexus_core::resolve::{Reference, pod_cidr_network, pod_networks};
use plexus_types::{IfName, Invalid, chain};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The node that is described.
#[derive(Debug, Clone)]
pub struct DescribedNode {
    /// Its name.
    pub node: String,
    /// Its address on the underlay.
    pub node_ip: IpAddr,
    /// The link of its default route.
    pub uplink: IfName,
    /// MTU of that link.
    pub mtu: u32,
    /// Its podCIDRs; empty: another CNI makes the first interface.
    pub pod_cidrs: Vec<IpNet>,
    /// The cluster's pod and service CIDRs.
    pub cluster_cidrs: Vec<IpNet>,
    /// `--cluster-name` of its agents.
    pub cluster_name: String,
}

/// What was planned, and whether all of it could be.
#[derive(Debug, Clone, Default)]
pub struct Planned {
    /// The commands, with comments.
    pub text: String,
    /// Pods that would not start.
    pub failed: usize,
    /// Pods there are.
    pub pods: usize,
}

/// Plans every pod among the objects, with the networks that are there too.
pub fn plan(objects: Vec<Value>, described: &DescribedNode, screen: Screen) -> Planned {
    let mut messages = Vec::new();
    let objects: Vec<Value> = objects
        .into_iter()
        .map(|mut object| {
            match translate(&mut object) {
                Ok(notes) => messages.extend(notes),
                Err(problem) => messages.push(format!("spec.networks {problem}")),
            }
            object
        })
        .collect();
    let pods: Vec<Value> = objects.iter().filter_map(pod_of).collect();
    let mut snapshot = Snapshot::of_files(objects);
    snapshot.cluster_name = Some(described.cluster_name.clone());
    let mut planned = Planned {
        pods: pods.len(),
        text: comment(screen, &assumed(described)),
        ..Planned::default()
    };
    for messages in messages {
        planned.text.push_str(&comment(screen, &messages));
    }
    let mut nodes: BTreeMap<String, OnNode> = BTreeMap::new();
    for pod in &pods {
        let node = match text(pod, "/spec/nodeName") {
            "" => described.node.clone(),
            named => named.to_owned(),
        };
        let there = nodes.entry(node.clone()).or_default();
        let title = format!("pod {}/{} on node {node}", namespace(pod), name(pod));
        planned.text.push('\n');
        planned
            .text
            .push_str(&screen.paint(Paint::Strong, &format!("# {title}")));
        planned.text.push('\n');
        if pod.pointer("/spec/hostNetwork") == Some(&Value::Bool(true)) {
            let text = "hostNetwork: it has the node's interfaces, nothing is made";
            planned.text.push_str(&comment(screen, text));
            continue;
        }
        let answers = diagnose_pod(&snapshot, pod).answers;
        for text in not_known(&answers) {
            planned.text.push_str(&comment(screen, &text));
        }
        let waits = waits(answers);
        if !waits.is_empty() {
            planned.failed += 1;
            for text in waits {
                planned.text.push_str(&comment(screen, &text));
            }
            continue;
        }
        match one(pod, &snapshot, described, &node, &mut there.issued) {
            Ok((made, warnings)) => {
                for warning in warnings {
                    let text = format!("warning: {warning}");
                    planned.text.push_str(&comment(screen, &text));
                }
                let new = there.new_lines(&node_text(&made.node));
                planned.text.push_str(&node_commands(&new, screen));
                planned.text.push_str(&commands(&made, screen));
            }
            Err(error) => {
                planned.failed += 1;
                let text = format!("it would not start: {}", error.why);
                planned.text.push_str(&comment(screen, &text));
                planned
                    .text
                    .push_str(&comment(screen, &format!("next: {}", error.next)));
            }
        }
    }
    planned
}

/// Claims that these files do not tell whose they are, or what.
fn not_known(answers: &[Answer]) -> Vec<String> {
    let unclear = answers
        .iter()
        .filter(|answer| matches!(answer.reason, Reason::ClassUnknown | Reason::NotSeen));
    let messages = unclear.map(|answer| {
        format!(
            "not known: whether it would wait for {}: {}",
            answer.about, answer.why
        )
    });
    messages.collect()
}

/// What of a pod later versions serve, and what is wrong besides, in the words of `diagnose`; nothing if nothing
/// waits for that.
fn waits(mut answers: Vec<Answer>) -> Vec<String> {
    // A node is assumed.
    answers.retain(|answer| {
        let wrong = answer.state == State::Wrong && answer.reason != Reason::NodeGone;
        wrong || answer.reason == Reason::Later
    });
    if !answers.iter().any(|answer| answer.reason == Reason::Later) {
        return Vec::new();
    }
    let messages = answers.into_iter().map(|answer| {
        let what = match answer.state {
            State::Wrong => "it would not start",
            State::Waits | State::Good => "it would wait",
        };
        format!("{what}: {}: {}", answer.about, answer.why)
    });
    messages.collect()
}

/// What the pods before have made on a node.
#[derive(Default)]
struct OnNode {
    issued: Issued,
    node_commands: BTreeSet<String>,
}

impl OnNode {
    /// The commands that no pod before needed.
    fn new_lines(&mut self, text: &str) -> String {
        let new = text
            .lines()
            .filter(|line| self.node_commands.insert((*line).to_owned()));
        new.map(|line| format!("{line}\n")).collect()
    }
}

/// What networks keep on the node.
fn node_commands(commands: &str, screen: Screen) -> String {
    if commands.is_empty() {
        return String::new();
    }
    let text = "what its networks keep on the node: made with the first pod, kept after the last";
    format!("{}{commands}", comment(screen, text))
}

/// A pod, or the pod that a workload makes.
fn pod_of(object: &Value) -> Option<Value> {
    let path = match (text(object, "/apiVersion"), text(object, "/kind")) {
        ("v1", "Pod") => return Some(object.clone()),
        ("apps/v1", _) | ("batch/v1", "Job") => "/spec/template",
        ("batch/v1", "CronJob") => "/spec/jobTemplate/spec/template",
        _ => return None,
    };
    let mut pod = object.pointer(path)?.clone();
    let metadata = pod.as_object_mut()?.entry("metadata").or_insert(json!({}));
    let metadata = metadata.as_object_mut()?;
    metadata.insert("name".to_owned(), json!(format!("{}-0", name(object))));
    metadata.insert("namespace".to_owned(), json!(namespace(object)));
    Some(pod)
}

type Made = (Preview, Vec<String>);

/// Why a pod has no plan, and what helps.
struct Refused {
    why: String,
    next: String,
}

impl Refused {
    fn by(error: &impl Refusal) -> Self {
        Self {
            why: chain(error),
            next: error.remedy().into_owned(),
        }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self {
            why: error.msg,
            next: error.details,
        }
    }
}

impl From<Invalid> for Refused {
    fn from(invalid: Invalid) -> Self {
        Self {
            why: invalid.to_string(),
            next: "use a name of letters, digits and \"-\"".to_owned(),
        }
    }
}

fn one(
    pod: &Value,
    snapshot: &Snapshot,
    described: &DescribedNode,
    node: &str,
    issued: &mut Issued,
) -> Result<Made, Refused> {
    let text = json!({
        "cniVersion": "1.1.0", "name": "plexus", "type": "plexus-cni", "networks": "pod",
        "runtimeConfig": {"portMappings": ports(pod)},
    });
    let conf = NetConf::parse(text.to_string().as_bytes(), &Args::default())?;
    let first = first(described)?;
    let seen = NodeView::rehearsal(snapshot, node);
    let settings = snapshot.settings(described.cluster_cidrs.clone());
    let all = pod_networks(&pod_facts(pod), first, &conf.runtime, &settings, &seen);
    let all = all.map_err(|error| Refused::by(&error))?;
    let uplink = Uplink {
        underlay: Underlay {
            node: node.to_owned(),
            address: described.node_ip,
            mtu: described.mtu,
        },
        uplink: LinkFacts {
            name: described.uplink.clone(),
            index: 2,
            mtu: described.mtu,
            kind: String::new(),
        },
    };
    let container = format!("{}.{}", namespace(pod), name(pod));
    let warnings = all.warnings.clone();
    let request = AttachRequest::of_pod(&conf, all, sandbox(&container)?);
    let facts = |spec: &_| uplink.facts(spec);
    let made = preview(request, &facts, &seen, issued).map_err(|error| match error {
        AttachError::Plan { source, .. } => Refused::by(&source),
        error => Refused::by(&error),
    })?;
    Ok((made, warnings))
}

/// Index 0: ours, or another CNI's.
fn first(described: &DescribedNode) -> Result<(Network, Reference), Refused> {
    let (network, reference) = pod_cidr_network(&described.pod_cidrs, &described.cluster_cidrs)?;
    if !described.pod_cidrs.is_empty() {
        return Ok((network, reference));
    }
    let plugin = Map::from_iter([("type".to_owned(), json!("the-cluster's-other-CNI"))]);
    let chain = Chain {
        executable: Executable::Type,
        version: Version::V1_1_0,
        plugins: vec![plugin],
        unsupported_key: None,
    };
    let network = Network {
        backend: NetworkBackend::Delegate(chain),
        ..network
    };
    Ok((network, reference))
}

/// What a runtime would tell of the containers' ports.
fn ports(pod: &Value) -> Vec<Value> {
    let containers = list(pod, "/spec/containers").iter();
    let ports = containers.flat_map(|container| list(container, "/ports"));
    let mapped = ports.filter_map(|port| {
        let protocol = match text(port, "/protocol") {
            "" => "tcp".to_owned(),
            protocol => protocol.to_ascii_lowercase(),
        };
        let mut mapping = json!({
            "hostPort": port.get("hostPort")?.as_u64()?,
            "containerPort": port.get("containerPort")?.as_u64()?,
            "protocol": protocol,
        });
        if let Some(address) = port.get("hostIP") {
            mapping["hostIP"] = address.clone();
        }
        Some(mapping)
    });
    mapped.collect()
}

fn commands(made: &Preview, screen: Screen) -> String {
    let mut out = String::new();
    let mut routed = BTreeSet::new();
    for attachment in made.attach.attachments() {
        let origin = attachment.origin.as_ref().map(origin).unwrap_or_default();
        match &attachment.backend {
            Backend::Native(work) => {
                out.push_str(&comment(screen, &native(attachment, work, &origin)));
                let links = made.pod.links.iter();
                let links = links.filter(|link| link.name == attachment.ifname);
                let alone = PodPlan {
                    group: made.pod.group,
                    links: links.cloned().collect(),
                    host_ports: Vec::new(),
                };
                out.push_str(&beside_others(&pod_text(&alone), &mut routed));
            }
            Backend::Plugins(run) => {
                let names: Vec<&str> = run.chain.executables().collect();
                let text = format!(
                    "{}: {origin}: made by executing {}; what that does is not known beforehand",
                    attachment.ifname,
                    names.join(", then ")
                );
                out.push_str(&comment(screen, &text));
            }
        }
    }
    if !made.pod.host_ports.is_empty() {
        out.push_str(&comment(screen, "ports of the node that lead to it"));
        out.push_str(&ports_text(&made.pod));
    }
    out
}

/// Several interfaces may have a route to one destination, each through itself; `ip` wants to be
/// told that the next is meant to stand beside the first.
fn beside_others(commands: &str, routed: &mut BTreeSet<String>) -> String {
    const ADD: &str = "ip -n pod route add ";
    let each = commands.lines().map(|line| {
        let destination = line
            .strip_prefix(ADD)
            .and_then(|rest| rest.split(' ').next());
        let fresh = destination.is_none_or(|destination| {
            // Both families have a default route.
            let family = if line.contains(':') { "6" } else { "4" };
            routed.insert(format!("{family} {destination}"))
        });
        match fresh {
            true => format!("{line}\n"),
            false => format!("{}\n", line.replacen("route add", "route append", 1)),
        }
    });
    each.collect()
}

fn native(attachment: &Attachment, work: &NativeWork, origin: &str) -> String {
    let addresses: Vec<String> = work
        .addresses
        .ips
        .iter()
        .map(|ip| ip.address.addr().to_string())
        .collect();
    let addresses = match work.spec.native.executed_ipam() {
        Some(ipam) => format!(
            "addresses by executing {}; what it gives is not known beforehand",
            ipam.name()
        ),
        _ if addresses.is_empty() => "no address".to_owned(),
        _ => addresses.join(", "),
    };
    let provider = work.spec.native.provider.name();
    format!("{}: {origin}: {provider}, {addresses}", attachment.ifname)
}

fn origin(reference: &Reference) -> String {
    match (reference.namespace.as_str(), reference.source.as_str()) {
        ("", _) => "the cluster-wide default network".to_owned(),
        (namespace, source) => format!("{namespace}/{}, by {source}", reference.name),
    }
}

fn assumed(described: &DescribedNode) -> String {
    let first = match described.pod_cidrs.as_slice() {
        [] => "another CNI makes the first interface".to_owned(),
        cidrs => {
            let cidrs: Vec<String> = cidrs.iter().map(IpNet::to_string).collect();
            format!("podCIDRs {}", cidrs.join(", "))
        }
    };
    format!(
        "assumed: a node has address {} on {} (MTU {}), {first}; nothing is there yet, a network has \
         VNI 4097 and the node its first block unless the files say otherwise; the namespace of each \
         pod is called pod, those of overlay networks px-…",
        described.node_ip, described.uplink, described.mtu
    )
}

fn comment(screen: Screen, text: &str) -> String {
    let line = format!("# {text}");
    format!("{}\n", screen.paint(Paint::Faint, &line))
}
