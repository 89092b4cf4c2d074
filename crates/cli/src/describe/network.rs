//! A Network: what it is, what became of it, who has parts of it and who is on it.

use super::{Description, Section, events};
use crate::ipam;
use crate::snapshot::{
    Snapshot, list, name, namespace, network_spec, network_status, number, text, uid,
};
use crate::text::{Screen, bar};
use plexus_api::objects::{From, NetworkSpec};
use serde_json::Value;

/// Describes a Network by what the snapshot has.
pub fn describe_network(snapshot: &Snapshot, network: &Value, screen: Screen) -> Description {
    let mut sections = vec![head(snapshot, network)];
    match network_spec(network) {
        Ok(spec) => sections.push(settings(network, &spec)),
        Err(error) => {
            let mut section = Section::new("Spec");
            section.line("cannot be read", error);
            sections.push(section);
        }
    }
    sections.push(conditions(network));
    sections.push(addresses(snapshot, network, screen));
    sections.push(users(snapshot, network));
    sections.push(events(snapshot, "Network", network));
    sections.retain(|section| !section.is_empty());
    Description(sections)
}

fn head(snapshot: &Snapshot, network: &Value) -> Section {
    let status = network_status(network);
    let mut section = Section::new(format!("Network {}/{}", namespace(network), name(network)));
    section.line("phase", crate::get::phase(network).text());
    section.line(
        "identity",
        match text(network, "/spec/uuid") {
            "" => uid(network),
            uuid => format!("{uuid} (spec.uuid; the object's UID is {})", uid(network)),
        },
    );
    section.line(
        "VNI",
        status.vni.map(|vni| vni.to_string()).unwrap_or_default(),
    );
    let mut owners = list(network, "/metadata/ownerReferences").iter();
    let nad = owners.find(|owner| text(owner, "/kind") == "NetworkAttachmentDefinition");
    section.line(
        "made from",
        nad.map(|nad| format!("NetworkAttachmentDefinition {}", text(nad, "/name")))
            .unwrap_or_default(),
    );
    section.line("age", crate::get::age_of(network, snapshot.now));
    let (seen, now) = (
        status.observed_generation,
        number(network, "/metadata/generation"),
    );
    if let (Some(seen), Some(now)) = (seen, now)
        && u64::try_from(seen).is_ok_and(|seen| seen < now)
    {
        let text = "the status is about an earlier spec: the controller has not looked since";
        section.line("stale", text);
    }
    section
}

fn settings(network: &Value, spec: &NetworkSpec) -> Section {
    let mut section = Section::new("Spec");
    let written = text(network, "/spec/provider").is_empty();
    section.line(
        "provider",
        match written {
            true => format!("{} (by default)", spec.provider_name()),
            false => spec.provider_name().to_owned(),
        },
    );
    section.lines(
        "subnet",
        spec.subnets.iter().map(|(key, subnet)| {
            let gateway = match subnet.gateway {
                Some(gateway) => format!("gateway {gateway}"),
                None => format!("gateway {} (by default)", spec.gateway_of(subnet)),
            };
            let exclude: Vec<String> = subnet.exclude.iter().map(ToString::to_string).collect();
            let exclude = match exclude.is_empty() {
                true => String::new(),
                false => format!(", without {}", exclude.join(", ")),
            };
            let block = spec.block_length_of(subnet);
            format!(
                "{key}: {}, {gateway}, blocks of /{block}{exclude}",
                subnet.cidr
            )
        }),
    );
    section.line(
        "MTU",
        spec.mtu
            .map_or("from the underlay".to_owned(), |mtu| mtu.to_string()),
    );
    section.lines(
        "route",
        spec.routes.iter().map(|route| match route.gw {
            Some(gw) => format!("{} via {gw}", route.dst),
            None => route.dst.to_string(),
        }),
    );
    section.line(
        "SNAT",
        if spec.snat {
            "to the node's address"
        } else {
            ""
        },
    );
    let check = if spec.source_check {
        ""
    } else {
        "off: pods may send from any address"
    };
    section.line("source check", check);
    section.line("for pods of", pods_of(network, spec));
    if !spec.config.is_empty() {
        section.line("config", Value::Object(spec.config.clone()).to_string());
    }
    section
}

/// Whose pods may use it.
fn pods_of(network: &Value, spec: &NetworkSpec) -> String {
    let Some(allowed) = &spec.allowed_namespaces else {
        return "all namespaces, unless the administrator decided otherwise".to_owned();
    };
    match (allowed.from, &allowed.selector) {
        (From::All, _) => "all namespaces".to_owned(),
        (From::Same, _) => format!("namespace {}", namespace(network)),
        (From::Selector, selector) => {
            let selector = selector.as_ref().filter(|one| !one.is_empty());
            let named = |one| format!("namespaces with {one}");
            selector.map_or_else(|| "nobody: its selector is empty".to_owned(), named)
        }
    }
}

fn conditions(network: &Value) -> Section {
    let mut section = Section::new("Conditions");
    for condition in network_status(network).conditions {
        let value = format!(
            "{}, {}: {}",
            condition.status, condition.reason, condition.message
        );
        section.line(&condition.kind, value);
    }
    section
}

fn addresses(snapshot: &Snapshot, network: &Value, screen: Screen) -> Section {
    let mut section = Section::new("Addresses");
    let Ok(fullness) = ipam::fullness(network, snapshot) else {
        return section;
    };
    if fullness.subnets.is_empty() {
        return section;
    }
    if let Some(why) = snapshot.hidden("blocks", None) {
        section.line("in use", format!("not known: {why}"));
        return section;
    }
    let in_use = fullness.families().into_iter().map(|(family, share)| {
        let bar = bar(share.used, share.capacity, 20, screen);
        format!("{} {family} {bar}", ipam::of(share))
    });
    section.lines("in use", in_use);
    section.lines(
        "block",
        fullness.blocks.iter().map(|block| {
            format!(
                "{} of node {}: {} of {}",
                block.cidr, block.node, block.used, block.capacity
            )
        }),
    );
    section
}

fn users(snapshot: &Snapshot, network: &Value) -> Section {
    let mut section = Section::new("Pods");
    let identities = [uid(network), text(network, "/spec/uuid").to_owned()];
    let mut records: Vec<&Value> = snapshot.records.iter().collect();
    records.sort_by_key(|record| (namespace(record), text(record, "/spec/pod/name")));
    for record in records {
        for one in list(record, "/status/attachments") {
            let uuid = text(one, "/network/uuid");
            if uuid.is_empty() || !identities.iter().any(|own| own == uuid) {
                continue;
            }
            let ips: Vec<&str> = list(one, "/ips").iter().filter_map(Value::as_str).collect();
            section.line(
                text(one, "/interface"),
                format!(
                    "{}/{} on node {}: {}",
                    namespace(record),
                    text(record, "/spec/pod/name"),
                    text(record, "/spec/node"),
                    ips.join(", ")
                ),
            );
        }
    }
    if let Some(why) = snapshot.hidden("attachments", None) {
        section.line("others", format!("not known: {why}"));
    }
    section
}
