//! A pod: every interface, with the annotation, the network, the subnet, the block and the routes
//! that it comes from.

use super::{Description, Section, events};
use crate::get::{network_of, record_of};
use crate::snapshot::{
    NodeView, Snapshot, blocks_of, cidr, find, list, name, namespace, network_spec, network_status,
    number, pod_facts, text, uid,
};
use ipnet::IpNet;
use plexus_api::cni::{Network, NetworkBackend, Provider, Runtime};
use plexus_core::resolve::{PodNetworks, Reference, pod_cidr_network, pod_networks};
use serde_json::Value;

/// Describes a pod by what the snapshot has.
pub fn describe_pod(snapshot: &Snapshot, pod: &Value) -> Description {
    let node = text(pod, "/spec/nodeName");
    let record = record_of(snapshot, pod);
    let mut sections = vec![head(snapshot, pod, record)];
    let planned = resolved(snapshot, pod, node);
    let attached = record.map(|record| list(record, "/status/attachments"));
    for attachment in attached.unwrap_or_default() {
        let requested_by = requested_by(planned.as_ref(), attachment);
        sections.push(interface(snapshot, attachment, &requested_by, node));
    }
    if record.is_none() {
        sections.push(requested_networks(snapshot, pod, planned.as_ref()));
    }
    let events = events(snapshot, "Pod", pod);
    if !events.is_empty() {
        sections.push(events);
    }
    Description(sections)
}

fn head(snapshot: &Snapshot, pod: &Value, record: Option<&Value>) -> Section {
    let mut section = Section::new(format!("Pod {}/{}", namespace(pod), name(pod)));
    section.line("phase", crate::get::phase(pod).text());
    section.line("node", text(pod, "/spec/nodeName"));
    section.line("age", crate::get::age_of(pod, snapshot.now));
    if pod.pointer("/spec/hostNetwork") == Some(&Value::Bool(true)) {
        section.line(
            "hostNetwork",
            "true: it has the node's interfaces, and no others",
        );
    }
    for key in plexus_api::pod::ANNOTATIONS {
        let annotations = pod.pointer("/metadata/annotations");
        let value = annotations.and_then(|all| all.get(key)?.as_str());
        let value = value.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "));
        section.line(
            "asks",
            value.map(|v| format!("{key}: {v}")).unwrap_or_default(),
        );
    }
    match record {
        Some(record) => {
            section.line("record", format!("PodAttachments {}", name(record)));
            section.line("sandbox", text(record, "/status/sandbox"));
        }
        None => section.line(
            "record",
            match snapshot.hidden("attachments", Some(namespace(pod))) {
                Some(why) => format!("not known: {why}"),
                None => {
                    "none: nothing is attached, or nothing was said; plexus diagnose pod tells why"
                        .to_owned()
                }
            },
        ),
    }
    section
}

/// What the pod's annotations mean now, after the cluster-wide default network.
fn resolved(snapshot: &Snapshot, pod: &Value, node: &str) -> Option<PodNetworks> {
    let own = snapshot.nodes.iter().find(|one| name(one) == node);
    let cidrs = own.map(|node| list(node, "/spec/podCIDRs"));
    let cidrs = cidrs.unwrap_or_default().iter();
    let cidrs: Vec<IpNet> = cidrs
        .filter_map(|cidr| cidr.as_str()?.parse().ok())
        .collect();
    let first = pod_cidr_network(&cidrs, &[]).ok()?;
    let seen = NodeView::from(snapshot, node);
    let facts = pod_facts(pod);
    pod_networks(
        &facts,
        first,
        &Runtime::default(),
        &snapshot.settings(Vec::new()),
        &seen,
    )
    .ok()
}

/// What an interface was asked for by, as far as that is known now.
pub(super) struct RequestedBy<'a> {
    /// In words.
    pub(super) by: String,
    /// The network, as it would be attached today.
    pub(super) network: Option<&'a Network>,
}

fn requested_by<'a>(planned: Option<&'a PodNetworks>, attachment: &Value) -> RequestedBy<'a> {
    let index = number(attachment, "/index").unwrap_or_default();
    let total = number(attachment, "/total").unwrap_or_default();
    let at = usize::try_from(index).unwrap_or(usize::MAX);
    // Annotations may have been edited since: what they ask for now tells nothing of another network.
    let now = planned.and_then(|all| all.references.get(at));
    let now = now.filter(|one| means(&one.reference, attachment));
    let ordinal = number(attachment, "/ordinal").unwrap_or_default();
    let ordinal = usize::try_from(ordinal).unwrap_or(usize::MAX);
    RequestedBy {
        by: source(now.map(|one| &one.reference), index, total),
        network: now.and_then(|one| one.networks.all().get(ordinal)),
    }
}

pub(super) fn interface(
    snapshot: &Snapshot,
    attachment: &Value,
    requested_by: &RequestedBy<'_>,
    node: &str,
) -> Section {
    let ifname = text(attachment, "/interface");
    let state = text(attachment, "/state");
    let mut section = Section::new(format!("{ifname}: {state}"));
    section.line("why", text(attachment, "/message"));
    section.line("asked for by", requested_by.by.as_str());
    section.line("network", described_network(snapshot, attachment));
    section.line(
        "provider",
        provider(snapshot, attachment, requested_by.network),
    );
    section.line("MAC", text(attachment, "/mac"));
    let ips = nets(attachment);
    section.lines(
        "address",
        ips.iter().map(|ip| address(snapshot, attachment, ip, node)),
    );
    section.line("gateways", joined(attachment, "/gateways"));
    section.line("default route", joined(attachment, "/defaultRoute"));
    section.lines("route", routes(attachment));
    section.lines("rule", lines(attachment, "/rules", "/rulesLeftOut"));
    section.line("id", text(attachment, "/id"));
    section
}

/// Whether a reference leads to what is attached.
fn means(reference: &Reference, attachment: &Value) -> bool {
    let namespace = text(attachment, "/network/namespace");
    let first = reference.namespace.is_empty() && namespace.is_empty();
    let named = text(attachment, "/network/name");
    first || (reference.namespace == namespace && reference.name == named)
}

fn source(reference: Option<&Reference>, index: u64, total: u64) -> String {
    let location = format!("number {index} of {total}");
    match reference.map(|reference| reference.source.as_str()) {
        _ if index == 0 => format!("every pod (the cluster-wide default network, {location})"),
        Some(source) if !source.is_empty() => format!("annotation {source} ({location})"),
        _ => format!("{location}; the pod's annotations no longer say so: they were edited"),
    }
}

fn described_network(snapshot: &Snapshot, attachment: &Value) -> String {
    let (in_namespace, named) = (
        text(attachment, "/network/namespace"),
        text(attachment, "/network/name"),
    );
    let network_name = network_of(attachment);
    let kind = match () {
        () if in_namespace.is_empty() => return network_name,
        () if find(&snapshot.nads, in_namespace, named).is_some() => "NetworkAttachmentDefinition ",
        () if find(&snapshot.networks, in_namespace, named).is_some() => "Network ",
        () => "",
    };
    match text(attachment, "/network/uuid") {
        "" => format!("{kind}{network_name}"),
        uuid => format!("{kind}{network_name}, identity {uuid}"),
    }
}

/// The Network object that an attachment is on, by its identity.
fn object<'w>(snapshot: &'w Snapshot, attachment: &Value) -> Option<&'w Value> {
    let uuid = text(attachment, "/network/uuid");
    let is_it = |network: &&Value| {
        !uuid.is_empty() && (uid(network) == uuid || text(network, "/spec/uuid") == uuid)
    };
    snapshot.networks.iter().find(is_it)
}

fn provider(snapshot: &Snapshot, attachment: &Value, network: Option<&Network>) -> String {
    if let Some(object) = object(snapshot, attachment) {
        let name = match text(object, "/spec/provider") {
            "" => Provider::DEFAULT,
            provider => provider,
        };
        return match network_status(object).vni {
            Some(vni) => format!("{name}, VNI {vni}"),
            None => name.to_owned(),
        };
    }
    match network.map(|network| &network.backend) {
        Some(NetworkBackend::Native(native)) => {
            // Without a Network these are the node's podCIDRs, which are said beside the addresses.
            let ipam = native
                .ipam
                .as_ref()
                .filter(|_| native.block_ipam().is_none());
            let by = ipam.map(|ipam| format!(", addresses by {}", ipam.name()));
            let executed = native.executed_ipam().map_or("", |_| ", executed");
            format!(
                "{}{}{executed}",
                native.provider.name(),
                by.unwrap_or_default()
            )
        }
        Some(NetworkBackend::Delegate(chain)) => {
            let names: Vec<&str> = chain.executables().collect();
            format!("executed: {}", names.join(", "))
        }
        None => String::new(),
    }
}

/// An address, with the subnet and the block that it is from.
fn address(snapshot: &Snapshot, attachment: &Value, ip: &IpNet, node: &str) -> String {
    let Some(object) = object(snapshot, attachment) else {
        return match pod_cidr(snapshot, node, ip) {
            Some(cidr) => format!("{ip}, from podCIDR {cidr} of node {node}"),
            None => ip.to_string(),
        };
    };
    let subnets = network_spec(object)
        .map(|spec| spec.subnets)
        .unwrap_or_default();
    let subnet = subnets
        .iter()
        .find(|(_, subnet)| subnet.cidr.contains(&ip.addr()));
    let subnet = subnet.map(|(key, subnet)| format!(", subnet {key} ({})", subnet.cidr));
    let block = blocks_of(snapshot, &uid(object))
        .filter_map(|block| Some((cidr(block)?, block)))
        .filter(|(cidr, _)| cidr.contains(&ip.addr()))
        .max_by_key(|(cidr, _)| cidr.prefix_len());
    let block =
        block.map(|(cidr, block)| format!(", block {cidr} of node {}", text(block, "/spec/node")));
    format!(
        "{ip}{}{}",
        subnet.unwrap_or_default(),
        block.unwrap_or_default()
    )
}

fn pod_cidr(snapshot: &Snapshot, node: &str, ip: &IpNet) -> Option<IpNet> {
    let node = snapshot.nodes.iter().find(|one| name(one) == node)?;
    let cidrs = list(node, "/spec/podCIDRs").iter();
    let mut cidrs = cidrs.filter_map(|cidr| cidr.as_str()?.parse::<IpNet>().ok());
    cidrs.find(|cidr| cidr.contains(&ip.addr()))
}

/// What the pod would get, where nothing is recorded.
fn requested_networks(snapshot: &Snapshot, pod: &Value, planned: Option<&PodNetworks>) -> Section {
    let title = match snapshot.hidden("attachments", Some(namespace(pod))) {
        Some(_) => "Whether it is attached is not known",
        None => "Not attached yet",
    };
    let mut section = Section::new(title);
    let mut needed = ["networks", "nads", "namespaces"].iter();
    let hidden = needed.find_map(|list| snapshot.unknown.get(list));
    match (planned, hidden) {
        (None, Some(why)) => section.line("would get", format!("not known: {why}")),
        (None, None) => section.line(
            "would get",
            "nothing: plexus diagnose pod tells what is missing",
        ),
        (Some(all), _) => {
            for one in &all.references {
                let reference = &one.reference;
                let first = one.networks.all().first();
                let ifname = match first.and_then(|network| network.interface.as_ref()) {
                    Some(ifname) => ifname.to_string(),
                    None => "eth0".to_owned(),
                };
                let origin = match reference.source.as_str() {
                    "" => "the cluster-wide default network".to_owned(),
                    source => format!("{}/{}, by {source}", reference.namespace, reference.name),
                };
                section.line("would get", format!("{ifname}: {origin}"));
            }
        }
    }
    section
}

fn nets(attachment: &Value) -> Vec<IpNet> {
    let ips = list(attachment, "/ips").iter();
    ips.filter_map(|ip| ip.as_str()?.parse().ok()).collect()
}

/// As recorded when it was attached: its network may have others by now.
fn routes(attachment: &Value) -> Vec<String> {
    let mut all = lines(attachment, "/routes", "/routesLeftOut");
    match attachment.get("routes") {
        None => all.push("not known: its record is of an earlier version".to_owned()),
        Some(_) if attachment.get("delegated") == Some(&Value::Bool(true)) => {
            all.push("as its plugins told; there may be more".to_owned());
        }
        Some(_) => {}
    }
    all
}

/// What a record has of a list, and how much it left out.
fn lines(attachment: &Value, listed: &str, left_out: &str) -> Vec<String> {
    let mut all: Vec<String> = texts(attachment, listed).map(str::to_owned).collect();
    let more = attachment.pointer(left_out).and_then(Value::as_u64);
    all.extend(more.map(|more| format!("and {more} more, which its record leaves out")));
    all
}

fn joined(attachment: &Value, pointer: &str) -> String {
    texts(attachment, pointer).collect::<Vec<_>>().join(", ")
}

fn texts<'a>(attachment: &'a Value, pointer: &str) -> impl Iterator<Item = &'a str> {
    let items = list(attachment, pointer).iter();
    items.filter_map(Value::as_str)
}
