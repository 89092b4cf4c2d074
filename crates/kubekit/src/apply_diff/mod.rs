//! Random sequences of writes to one object by several managers (apply with and without force, merge patch,
//! strategic merge patch, PUT), and what must be equal after each of them on two servers. Needs nothing but JSON: whoever
//! has two servers, or one implementation and some invariants, brings what does the writing
//! (`tests/apply_differential.rs` here, `tests/apply_sequences.rs` of `embedded`).
//!
//! Left out of the comparison: what a server sets (times, versions, UIDs), what others write, the order of
//! lists whose items have an identity, and containers that are empty.

mod core;
mod dice;

use dice::Dice;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Who writes. Only what these own is compared.
pub const MANAGERS: [&str; 3] = ["diff-one", "diff-two", "diff-three"];

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A core kind without generation.
    ConfigMap,
    /// Our kind with a schema: maps of objects, lists that are whole, free fields, defaults.
    Network,
    /// Its status, where a list is a map by key.
    NetworkStatus,
    /// A core kind of the whole cluster.
    Node,
    /// Its status: lists by key, in the table of core kinds.
    NodeStatus,
    /// A core kind with containers by name, of which little may change.
    Pod,
}

impl Subject {
    /// Whether it is the status that is written.
    pub fn is_status(self) -> bool {
        matches!(self, Self::NetworkStatus | Self::NodeStatus)
    }

    /// What is there before the first write, if something must be.
    pub fn base(self) -> Option<Value> {
        let container = |name: &str| json!({"name": name, "image": "x"});
        match self {
            Self::ConfigMap | Self::Network => None,
            Self::NetworkStatus => Some(json!({"spec": {"provider": "diff.example/none"}})),
            // Something is owned from the first, as it is on a cluster, whose admission adds to a Node.
            Self::Node | Self::NodeStatus => Some(json!({"spec": {"providerID": "diff"}})),
            // Nobody binds it, and nothing is mounted into it.
            Self::Pod => Some(json!({"spec": {
                "schedulerName": "nobody", "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 0,
                "containers": [container("a"), container("b")],
            }})),
        }
    }
}

/// Those of core kinds whose lists are merged by a table of ours.
pub const CORE: [Subject; 3] = [Subject::Node, Subject::NodeStatus, Subject::Pod];

/// Those without strategic patches.
pub const SUBJECTS: [Subject; 3] = [Subject::ConfigMap, Subject::Network, Subject::NetworkStatus];

/// How something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// Server-side apply; what others own is a conflict.
    Apply,
    /// Server-side apply by force.
    Force,
    /// A merge patch.
    Merge,
    /// A strategic merge patch.
    Strategic,
    /// PUT of what the object is, with the body's parts in place of its own.
    Replace,
}

/// One write. The body has neither name nor namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The field manager.
    pub manager: &'static str,
    /// The kind of the request.
    pub kind: WriteKind,
    /// The body of the request.
    pub body: Value,
}

/// Several writes to one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// What makes it again.
    pub seed: u64,
    /// What is written.
    pub subject: Subject,
    /// In this order.
    pub writes: Vec<Write>,
}

impl Sequence {
    /// The same seed gives the same sequence.
    pub fn new(seed: u64, subject: Subject) -> Self {
        let mut dice = Dice::new(seed);
        let length = 4 + dice.below(9);
        let writes = (0..length).map(|_| dice.write(subject)).collect();
        Self {
            seed,
            subject,
            writes,
        }
    }
}

/// The part of an object that must be equal on both servers, in one order.
pub fn comparable(subject: Subject, object: &Value) -> Value {
    let mut part = Map::new();
    for name in ["labels", "annotations", "finalizers"] {
        part.insert(name.to_owned(), object["metadata"][name].clone());
    }
    if matches!(subject, Subject::Node | Subject::NodeStatus) {
        // A cluster's own controllers annotate Nodes.
        let _ = part.remove("annotations");
    }
    let content: &[&str] = match subject {
        Subject::ConfigMap => &["/data", "/binaryData"],
        Subject::Network => &["/spec"],
        Subject::NetworkStatus => &["/status"],
        // The rest of these has other writers and defaults.
        Subject::Node => &["/spec/unschedulable"],
        Subject::NodeStatus => &[
            "/status/conditions",
            "/status/addresses",
            "/status/allocatable",
        ],
        Subject::Pod => &[
            "/spec/containers/0/name",
            "/spec/containers/0/image",
            "/spec/containers/1/name",
            "/spec/containers/1/image",
            "/spec/containers/2",
        ],
    };
    for pointer in content {
        let value = object.pointer(pointer).cloned();
        part.insert((*pointer).to_owned(), value.unwrap_or_default());
    }
    let mut part = Value::Object(part);
    let mut owned = owned(object);
    if CORE.contains(&subject) {
        without_empty_texts(&mut part);
        // A real server's core kinds have these from the first, so that nobody makes them.
        owned.retain(|line| !line.ends_with(" f:spec") && !line.ends_with(" f:status"));
    }
    normalise(&mut part);
    json!({"content": part, "owned": owned})
}

/// Who of [`MANAGERS`] owns what, as lines such as `diff-one Apply .spec.mtu`.
pub fn owned(object: &Value) -> BTreeSet<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    let mut lines = BTreeSet::new();
    for entry in entries.into_iter().flatten() {
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        if MANAGERS.contains(&text("manager")) {
            let who = [text("manager"), text("operation"), text("subresource")].join(" ");
            for path in paths(&entry["fieldsV1"]) {
                lines.insert(format!("{who} {}", path.join("/")));
            }
        }
    }
    lines
}

/// The members of a `fieldsV1`, as paths of its keys: `f:spec`, `k:{"type":"Ready"}`.
pub fn paths(fields: &Value) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let members = fields.as_object();
    for (key, below) in members.into_iter().flatten().filter(|(key, _)| *key != ".") {
        let deeper = self::paths(below);
        if deeper.is_empty() || below.get(".").is_some() {
            paths.push(vec![key.clone()]);
        }
        for mut path in deeper {
            path.insert(0, key.clone());
            paths.push(path);
        }
    }
    paths
}

/// The value at such a path.
pub fn at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |here, step| {
        let (kind, rest) = step.split_once(':')?;
        match kind {
            "f" => here.get(rest),
            "k" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
                let is = |item: &&Value| keys.iter().all(|(name, key)| item.get(name) == Some(key));
                here.as_array()?.iter().find(is)
            }
            "v" => {
                let value: Value = serde_json::from_str(rest).ok()?;
                here.as_array()?.iter().find(|item| **item == value)
            }
            _ => None,
        }
    })
}

/// What is left of an item of a core kind whose fields have gone has empty texts on a real server.
fn without_empty_texts(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| member != "");
            members.values_mut().for_each(without_empty_texts);
        }
        Value::Array(items) => items.iter_mut().for_each(without_empty_texts),
        _ => {}
    }
}

/// Empty containers and nulls go; lists of which the order does not count are sorted.
fn normalise(value: &mut Value) {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                normalise(member);
                let name = name.trim_start_matches("/status/");
                if let ("finalizers" | "conditions" | "addresses", Value::Array(items)) =
                    (name, member)
                {
                    items.sort_by_key(Value::to_string);
                }
            }
            members.retain(|_, member| !empty(member));
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_seeds_differ() {
        for subject in SUBJECTS.into_iter().chain(CORE) {
            assert_eq!(Sequence::new(7, subject), Sequence::new(7, subject));
            assert_ne!(Sequence::new(7, subject), Sequence::new(8, subject));
        }
    }

    #[test]
    fn order_of_items_and_empty_containers_do_not_count_but_values_do() {
        let one = json!({"metadata": {"finalizers": ["b", "a"], "labels": {}}, "data": {"x": "1"}});
        let other = json!({"metadata": {"finalizers": ["a", "b"]}, "data": {"x": "1"}});
        let same = |one: &Value, other: &Value| {
            comparable(Subject::ConfigMap, one) == comparable(Subject::ConfigMap, other)
        };
        assert!(same(&one, &other));
        assert!(!same(
            &one,
            &json!({"metadata": {"finalizers": ["a", "b"]}})
        ));
    }

    #[test]
    fn owners_and_their_paths_are_read() {
        let fields = json!({"f:status": {"f:conditions": {"k:{\"type\":\"A\"}": {".": {}, "f:status": {}}}}});
        let entry = json!({"manager": "diff-one", "operation": "Apply", "fieldsV1": fields});
        let object = json!({
            "metadata": {"managedFields": [entry]},
            "status": {"conditions": [{"type": "A", "status": "True"}]},
        });
        assert_eq!(owned(&object).len(), 2);
        let found: Vec<Value> = paths(&fields)
            .iter()
            .filter_map(|path| at(&object, path).cloned())
            .collect();
        assert_eq!(
            found,
            [object["status"]["conditions"][0].clone(), json!("True")]
        );
    }
}
