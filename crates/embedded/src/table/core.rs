//! The columns of core kinds, as `kubectl get` has always shown them.

use super::cells::Heading;
use super::{age, node, pod};
use crate::kinds::Kind;
use serde_json::{Value, json};

/// Name, type and priority.
type Column = (&'static str, &'static str, i64, &'static str);

const NAME: Column = (
    "Name",
    "string",
    0,
    "Unique in its namespace, for its kind.",
);
const AGE: Column = ("Age", "string", 0, "How long ago it was made.");

const EVENT: &[Column] = &[
    ("Last Seen", "string", 0, "How long ago it happened last."),
    ("Type", "string", 0, "Normal or Warning."),
    ("Reason", "string", 0, "One word."),
    ("Object", "string", 0, "What it is about."),
    ("Subobject", "string", 1, "Which part of that."),
    ("Source", "string", 1, "Who says it."),
    ("Message", "string", 0, "For people."),
    ("First Seen", "string", 1, "How long ago it happened first."),
    ("Count", "integer", 1, "How often it happened."),
    ("Name", "string", 1, "The name of the event."),
];
const NAMESPACE: &[Column] = &[NAME, ("Status", "string", 0, "Active or Terminating."), AGE];
const CONFIG_MAP: &[Column] = &[NAME, ("Data", "string", 0, "How many keys it has."), AGE];
const LEASE: &[Column] = &[NAME, ("Holder", "string", 0, "Who holds it."), AGE];
const DEFINITION: &[Column] = &[NAME, ("Created At", "date", 0, "When it was made.")];
const CLAIM: &[Column] = &[
    NAME,
    ("State", "string", 0, "Whether it is allocated."),
    AGE,
];
const OTHER: &[Column] = &[NAME, AGE];

pub(super) fn headings(kind: &Kind) -> Vec<Heading> {
    let columns = match kind.kind.as_str() {
        "Pod" => pod::COLUMNS,
        "Node" => node::COLUMNS,
        "Event" => EVENT,
        "Namespace" => NAMESPACE,
        "ConfigMap" => CONFIG_MAP,
        "Lease" => LEASE,
        "CustomResourceDefinition" => DEFINITION,
        "ResourceClaim" => CLAIM,
        _ => OTHER,
    };
    columns
        .iter()
        .map(|&(name, kind, priority, description)| Heading::new(name, kind, priority, description))
        .collect()
}

pub(super) fn cells(kind: &Kind, object: &Value, now: i64) -> Vec<Value> {
    let name = text(object, "/metadata/name");
    let made = text(object, "/metadata/creationTimestamp");
    let age = ago(made, now);
    let one = |cell: Value| vec![name.into(), cell, age.clone().into()];
    match kind.kind.as_str() {
        "Pod" => pod::cells(object, now),
        "Node" => node::cells(object, now),
        "Event" => event(kind, object, now),
        "Namespace" => one(text(object, "/status/phase").into()),
        "ConfigMap" => {
            let keys = |at: &str| object[at].as_object().map_or(0, serde_json::Map::len);
            one((keys("data") + keys("binaryData")).into())
        }
        "Lease" => one(text(object, "/spec/holderIdentity").into()),
        "CustomResourceDefinition" => vec![name.into(), made.into()],
        "ResourceClaim" => one(claim_state(object).into()),
        _ => vec![name.into(), age.into()],
    }
}

/// How long ago, or that nobody knows.
pub(super) fn ago(time: &str, now: i64) -> String {
    if time.is_empty() {
        "<unknown>".to_owned()
    } else {
        age::since(time, now)
    }
}

/// The text at a place, or an empty one.
pub(super) fn text<'a>(object: &'a Value, at: &str) -> &'a str {
    object
        .pointer(at)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The first that is not empty.
pub(super) fn either<'a>(first: &'a str, second: &'a str) -> &'a str {
    if first.is_empty() { second } else { first }
}

fn claim_state(object: &Value) -> String {
    let mut states = Vec::new();
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        states.push("deleted");
    }
    let allocated = object.pointer("/status/allocation").is_some();
    states.push(if allocated { "allocated" } else { "pending" });
    let reserved = object
        .pointer("/status/reservedFor")
        .and_then(Value::as_array);
    if reserved.is_some_and(|pods| !pods.is_empty()) {
        states.push("reserved");
    }
    states.join(",")
}

fn event(kind: &Kind, object: &Value, now: i64) -> Vec<Value> {
    let core;
    let event = if kind.group.is_empty() {
        object
    } else {
        core = crate::events::to_core(object);
        &core
    };
    let about = &event["involvedObject"];
    let first = either(text(event, "/firstTimestamp"), text(event, "/eventTime"));
    let last = either(
        text(event, "/series/lastObservedTime"),
        text(event, "/lastTimestamp"),
    );
    let count = event
        .pointer("/series/count")
        .or_else(|| event.get("count"));
    let source = either(
        text(event, "/source/component"),
        text(event, "/reportingComponent"),
    );
    let host = either(
        text(event, "/source/host"),
        text(event, "/reportingInstance"),
    );
    let source = match host {
        "" => source.to_owned(),
        host => format!("{source}, {host}"),
    };
    vec![
        ago(either(last, first), now).into(),
        text(event, "/type").into(),
        text(event, "/reason").into(),
        format!(
            "{}/{}",
            text(about, "/kind").to_lowercase(),
            text(about, "/name")
        )
        .into(),
        text(about, "/fieldPath").into(),
        source.into(),
        text(event, "/message").trim().into(),
        ago(first, now).into(),
        count.cloned().unwrap_or(json!(1)),
        text(event, "/metadata/name").into(),
    ]
}
