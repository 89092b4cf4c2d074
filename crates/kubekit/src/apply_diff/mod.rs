//! Random sequences of writes to one object by several managers (apply with and without force, merge patch,
//! PUT), and what must be equal after each of them on two servers. Needs nothing but JSON: whoever
//! has two servers, or one implementation and some invariants, brings what does the writing
//! (`tests/apply_differential.rs` here, `tests/apply_sequences.rs` of `embedded`).
//!
//! Left out of the comparison: what a server sets (times, versions, UIDs), what others write, the order of
//! lists whose items have an identity, and containers that are empty.

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
}

/// All of them.
pub const SUBJECTS: [Subject; 3] = [Subject::ConfigMap, Subject::Network, Subject::NetworkStatus];

/// How something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Server-side apply; what others own is a conflict.
    Apply,
    /// Server-side apply by force.
    Force,
    /// A merge patch.
    Merge,
    /// PUT of what the object is, with the body's parts in place of its own.
    Replace,
}

/// One write. The body has neither name nor namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// Who.
    pub manager: &'static str,
    /// How.
    pub how: How,
    /// What.
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
    let content: &[&str] = match subject {
        Subject::ConfigMap => &["data", "binaryData"],
        Subject::Network => &["spec"],
        Subject::NetworkStatus => &["status"],
    };
    for name in content {
        part.insert((*name).to_owned(), object[*name].clone());
    }
    let mut part = Value::Object(part);
    normalise(&mut part);
    json!({"content": part, "owned": owned(object)})
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
                if let ("finalizers" | "conditions", Value::Array(items)) = (name.as_str(), member)
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
        for subject in SUBJECTS {
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
