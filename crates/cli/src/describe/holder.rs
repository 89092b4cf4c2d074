//! Who has interfaces and is no Pod, by the record.

use super::pod::{RequestedBy, interface};
use super::{Description, Section};
use crate::holder::Holder;
use crate::snapshot::{Snapshot, list, name, number, text};
use serde_json::Value;

/// Describes a container that is no pod, or a pod that the API no longer has.
pub fn describe_holder(snapshot: &Snapshot, holder: Holder<'_>) -> Description {
    let record = holder.record;
    let node = text(record, "/spec/node");
    let mut sections = vec![head(snapshot, &holder)];
    for attachment in list(record, "/status/attachments") {
        let requested_by = RequestedBy {
            by: asked_by(&holder, attachment),
            network: None,
        };
        sections.push(interface(snapshot, attachment, &requested_by, node));
    }
    Description(sections)
}

fn head(snapshot: &Snapshot, holder: &Holder<'_>) -> Section {
    let record = holder.record;
    let mut section = Section::new(holder.title());
    if !holder.container {
        let why = "gone from the API; its node has not seen it end: plexus diagnose pod tells why";
        section.line("phase", why);
    }
    section.line("node", text(record, "/spec/node"));
    section.line("age", crate::get::age_of(record, snapshot.now));
    section.line("record", format!("PodAttachments {}", name(record)));
    section.line("sandbox", text(record, "/status/sandbox"));
    section
}

fn asked_by(holder: &Holder<'_>, attachment: &Value) -> String {
    let number = |pointer: &str| number(attachment, pointer).unwrap_or_default();
    match holder.container {
        true => format!(
            "its runtime, by the network's name (number {} of {})",
            number("/index"),
            number("/total")
        ),
        false => String::new(),
    }
}
