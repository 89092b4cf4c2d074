//! Committed rows are read, and written again byte for byte: every kind of link, lease, preparation and step.

use super::super::record::{AttachmentRecord, BackendRecord, Details, PreparationRecord};
use super::*;
use plexus_core::attach::{AwaitedLink, Lease};
use plexus_core::plan::LinkKind;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

const ATTACHMENTS: [&str; 6] = [
    include_str!("golden/stacked.json"),
    include_str!("golden/veth.json"),
    include_str!("golden/moved.json"),
    include_str!("golden/begun.json"),
    include_str!("golden/plugins.json"),
    include_str!("golden/small.json"),
];
const REQUESTS: [&str; 2] = [
    include_str!("golden/request.json"),
    include_str!("golden/small_request.json"),
];
const NODE_PLAN: &str = include_str!("golden/node_plan.json");

fn again<T: DeserializeOwned + Serialize>(text: &str) -> T {
    let text = text.trim_end();
    let value: T = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(serde_json::to_string(&value).unwrap(), text);
    value
}

/// Without a wildcard: a new kind needs a row here.
fn kinds(record: &AttachmentRecord) -> Vec<&'static str> {
    let native = match &record.backend {
        BackendRecord::Native(native) => native,
        BackendRecord::Plugins(_) => return vec!["plugins"],
    };
    let link = native.link.as_ref().map(|link| match &link.kind {
        LinkKind::Stacked(_) => "stacked",
        LinkKind::Veth(_) => "veth",
        LinkKind::Moved(_) => "moved",
    });
    let lease = native.lease.as_ref().map(|lease| match lease {
        Lease::Pool(_) => "pool",
        Lease::HostLocal { .. } => "host-local",
    });
    let steps = native.preparations.iter().map(|one| match one {
        PreparationRecord::Ipam(_) => "ipam",
        PreparationRecord::Wait(AwaitedLink::Name(_)) => "wait for a name",
        PreparationRecord::Wait(AwaitedLink::Mac(_)) => "wait for a MAC",
        PreparationRecord::Call { answer: None, .. } => "call",
        PreparationRecord::Call { .. } => "answered call",
    });
    steps.chain(link).chain(lease).collect()
}

#[test]
fn committed_rows_are_read_and_written_byte_for_byte() {
    let records = ATTACHMENTS.map(again::<AttachmentRecord>);
    let seen: BTreeSet<_> = records.iter().flat_map(kinds).collect();
    let all = [
        "answered call",
        "call",
        "host-local",
        "ipam",
        "moved",
        "plugins",
        "pool",
        "stacked",
        "veth",
        "wait for a MAC",
        "wait for a name",
    ];
    assert_eq!(seen, BTreeSet::from(all));
    REQUESTS
        .iter()
        .for_each(|text| drop(again::<Details>(text)));
    let plan = parse::<NodePlanRow>(NODE_PLAN).unwrap();
    assert_eq!(text::<NodePlanRow>(&plan), NODE_PLAN.trim_end());
}

/// At whatever depth: an older agent must not act on half of what a newer one meant.
#[test]
fn a_word_or_field_that_this_version_does_not_know_makes_the_row_unreadable() {
    let names = |text: &str, name: &str| text.matches(&format!("{name}\":")).count();
    for (text, name) in [
        (ATTACHMENTS[0], "parent"),
        (ATTACHMENTS[0], "stacked"),
        (ATTACHMENTS[0], "metric"),
        (ATTACHMENTS[1], "hairpin"),
        (ATTACHMENTS[2], "hardware"),
        (ATTACHMENTS[2], "altnames"),
        (ATTACHMENTS[3], "socket"),
        (ATTACHMENTS[3], "answer"),
        (ATTACHMENTS[4], "begun"),
        (ATTACHMENTS[1], "whole"),
    ] {
        assert!(names(text, name) > 0, "{name}");
        let newer = text.replace(&format!("\"{name}\":"), &format!("\"{name}2\":"));
        let read = serde_json::from_str::<AttachmentRecord>(&newer);
        assert!(read.is_err(), "{newer}");
    }
    let newer = REQUESTS[0].replace("\"sctp\"", "\"quic\"");
    assert!(serde_json::from_str::<Details>(&newer).is_err());
    let newer = NODE_PLAN.replace("\"snat\"", "\"nat\"");
    assert!(parse::<NodePlanRow>(&newer).is_err());
}
