//! Random sequences of writes by several managers, and what must hold after each of them. The
//! sequences are those that `kubekit` runs on two servers (`tests/apply_differential.rs` there).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    dead_code,
    unreachable_pub,
    reason = "a test that cannot go on ends; the generator has more than is used here"
)]

#[path = "../../kubekit/src/apply_diff/mod.rs"]
mod apply_diff;

use apply_diff::{
    MANAGERS, SUBJECTS, Sequence, Subject, Write, WriteKind, at, comparable, owned, paths,
};
use plexus_embedded::kinds::{Kind, Kinds};
use plexus_embedded::patch::apply::{ApplyError, Writer, apply, keep_times, update};
use plexus_embedded::patch::{Shape, merge, strategic};
use serde_json::{Value, json};
use std::sync::Arc;

const SEEDS: u64 = 80;

/// Where objects of one kind live: as a server has them, without the server.
struct Fixture {
    kind: Arc<Kind>,
    subject: Subject,
}

impl Fixture {
    fn new(subject: Subject) -> Self {
        let definition = include_str!("../../../deploy/crds/networks.plexus.dev.yaml");
        let definition: Value = serde_yaml_ng::from_str(definition).unwrap();
        let kinds = Kinds::builtin().unwrap().with_crd(&definition).unwrap();
        let kind = match subject {
            Subject::ConfigMap => kinds.get("", "v1", "configmaps"),
            _ => kinds.get("plexus.dev", "v1alpha1", "networks"),
        };
        Self {
            kind: kind.unwrap().clone(),
            subject,
        }
    }

    /// What is there before the first write.
    fn start(&self) -> Option<Value> {
        if self.subject != Subject::NetworkStatus {
            return None;
        }
        let write = Write {
            manager: "base",
            kind: WriteKind::Replace,
            body: json!({"spec": {"provider": "diff.example/none"}}),
        };
        let network = Fixture::new(Subject::Network).write(None, &write);
        Some(network.unwrap())
    }

    fn write(&self, live: Option<&Value>, write: &Write) -> Result<Value, ApplyError> {
        let version = self.kind.api_version();
        let writer = Writer {
            manager: write.manager,
            api_version: &version,
            subresource: match self.subject {
                Subject::NetworkStatus => "status",
                _ => "",
            },
            status_apart: self.kind.has_status,
            now: "2025-11-16T03:49:30Z",
        };
        let shape = Shape::of(&self.kind);
        let body = self.named(write.body.clone());
        let mut after = match (write.kind, live) {
            (WriteKind::Apply | WriteKind::Force, _) => {
                apply(shape, live, &body, &writer, write.kind == WriteKind::Force)?
            }
            (WriteKind::Merge, Some(live)) => {
                let mut after = live.clone();
                merge(&mut after, &write.body);
                after
            }
            (WriteKind::Strategic, Some(live)) => {
                let mut after = live.clone();
                strategic(shape, &mut after, &write.body).unwrap();
                after
            }
            (_, None) => body,
            (WriteKind::Replace, Some(live)) => replaced(live, &write.body),
        };
        after = self.complete(after);
        if !matches!(write.kind, WriteKind::Apply | WriteKind::Force) {
            update(shape, live, &mut after, &writer);
        }
        if let Some(live) = live {
            keep_times(live, &mut after);
        }
        Ok(after)
    }

    fn named(&self, mut object: Value) -> Value {
        object["apiVersion"] = self.kind.api_version().into();
        object["kind"] = self.kind.kind.as_str().into();
        object["metadata"]["name"] = "n".into();
        object
    }

    fn complete(&self, object: Value) -> Value {
        let mut object = self.named(object);
        object["metadata"]["uid"] = "u".into();
        match &self.kind.schema {
            Some(schema) => schema.default(&mut object),
            None => drop_nulls(&mut object),
        }
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.retain(|_, member| !only_empty(member));
        object
    }
}

/// Types have no null.
fn drop_nulls(value: &mut Value) {
    if let Value::Object(members) = value {
        members.retain(|_, member| !member.is_null());
        members.values_mut().for_each(drop_nulls);
    }
}

fn replaced(live: &Value, body: &Value) -> Value {
    let mut after = live.clone();
    for (part, value) in body.as_object().unwrap() {
        if part == "metadata" {
            for name in ["labels", "annotations", "finalizers"] {
                let _ = after["metadata"].as_object_mut().unwrap().remove(name);
                if let Some(value) = value.get(name) {
                    after["metadata"][name] = value.clone();
                }
            }
        } else {
            after[part] = value.clone();
        }
    }
    after
}

/// Runs every sequence; `check` gets the object before, the write, and what came of it.
fn every_step(mut check: impl FnMut(&Fixture, Option<&Value>, &Write, &Result<Value, ApplyError>)) {
    for subject in SUBJECTS {
        let fixture = Fixture::new(subject);
        for seed in 0..SEEDS {
            let mut live = fixture.start();
            for write in Sequence::new(seed, subject).writes {
                let result = fixture.write(live.as_ref(), &write);
                check(&fixture, live.as_ref(), &write, &result);
                if let Ok(after) = result {
                    live = Some(after);
                }
            }
        }
    }
}

#[test]
fn repeating_an_apply_changes_nothing() {
    every_step(|fixture, _, write, result| {
        if let (WriteKind::Apply | WriteKind::Force, Ok(after)) = (write.kind, result) {
            match fixture.write(Some(after), write) {
                // An empty list where there was none is the only thing that a repetition may bring.
                Ok(again) => {
                    let content = |object| comparable(fixture.subject, object)["content"].take();
                    assert_eq!(content(&again), content(after), "{write:?}");
                    assert_eq!(fixture.write(Some(&again), write), Ok(again), "{write:?}");
                }
                // A map that became empty is gone, and to say again that it is empty is a conflict with
                // others who say so.
                Err(ApplyError::Conflicts(causes)) => {
                    let empty = |field: &str| {
                        let expected = field
                            .split('.')
                            .skip(1)
                            .try_fold(&write.body, |v, k| v.get(k));
                        expected.is_some_and(only_empty)
                    };
                    assert!(
                        causes.iter().all(|cause| empty(&cause.field)),
                        "{causes:?} {write:?}"
                    );
                }
                Err(other) => panic!("{write:?}: {other}"),
            }
        }
    });
}

#[test]
fn what_is_applied_is_there_and_owned() {
    every_step(|fixture, _, write, result| {
        if let (WriteKind::Apply | WriteKind::Force, Ok(after)) = (write.kind, result) {
            assert_there(&write.body, after, write);
            let mine = format!("{} Apply", write.manager);
            let says_something = write.body != json!({"metadata": {}});
            let owns = owned(after).iter().any(|line| line.starts_with(&mine));
            assert!(
                owns || !says_something || only_empty(&write.body),
                "{write:?} {after}"
            );
            let _ = fixture;
        }
    });
}

#[test]
fn conflicts_are_with_others_and_force_has_none() {
    let mut conflicts = 0;
    every_step(|_, _, write, result| {
        if let Err(error) = result {
            let ApplyError::Conflicts(causes) = error else {
                panic!("{write:?}: {error}");
            };
            assert_eq!(write.kind, WriteKind::Apply, "{write:?}");
            let me = format!("conflict with {:?}", write.manager);
            // One's own plain writes are another's; what one applied oneself is not.
            assert!(causes.iter().all(|cause| cause.message != me), "{causes:?}");
            conflicts += 1;
        }
    });
    assert!(conflicts > 50, "{conflicts}");
}

#[test]
fn nobody_owns_what_is_not_there() {
    every_step(|_, _, write, result| {
        let Ok(after) = result else { return };
        let entries = after["metadata"]["managedFields"].as_array();
        for entry in entries.into_iter().flatten() {
            for path in paths(&entry["fieldsV1"]) {
                // A container that became empty is dropped by the schema after the owners are known.
                let found = (1..=path.len())
                    .rev()
                    .find_map(|end| at(after, &path[..end]));
                let there = at(after, &path).is_some() || found.is_some_and(Value::is_object);
                assert!(
                    there,
                    "{} owns {path:?} after {write:?} in {after}",
                    entry["manager"]
                );
            }
        }
    });
}

#[test]
fn what_is_no_longer_said_goes_unless_somebody_owns_it() {
    let mut gone = 0;
    every_step(|_, live, write, result| {
        let (WriteKind::Apply | WriteKind::Force, Some(live), Ok(after)) =
            (write.kind, live, result)
        else {
            return;
        };
        let mine = format!("{} Apply", write.manager);
        let before = owned(live)
            .into_iter()
            .filter(|line| line.starts_with(&mine));
        for line in before {
            let path = line.rsplit_once(' ').unwrap().1;
            if owned(after).iter().any(|line| line.ends_with(path)) {
                continue;
            }
            let steps: Vec<String> = path.split('/').map(str::to_owned).collect();
            // Values with a slash in them cannot be looked up this way.
            if path.contains("diff.example") || path.contains("v:") {
                continue;
            }
            match at(after, &steps) {
                None => gone += 1,
                // What others have inside of it stays.
                Some(Value::Object(members)) if !members.is_empty() => {}
                // Defaults come back.
                Some(value) => {
                    assert!(is_default(path, value), "{path} is {value} after {write:?}")
                }
            }
        }
    });
    assert!(gone > 50, "{gone}");
}

#[test]
fn everybody_can_take_everything_back() {
    for subject in SUBJECTS {
        let fixture = Fixture::new(subject);
        for seed in 0..SEEDS {
            let mut live = fixture.start();
            for mut write in Sequence::new(seed, subject).writes {
                write.kind = WriteKind::Force;
                live = fixture.write(live.as_ref(), &write).ok();
            }
            for manager in MANAGERS {
                let body = json!({"metadata": {}});
                let write = Write {
                    manager,
                    kind: WriteKind::Apply,
                    body,
                };
                live = Some(fixture.write(live.as_ref(), &write).unwrap());
            }
            let left = owned(live.as_ref().unwrap());
            assert!(left.is_empty(), "{subject:?} {seed}: {left:?}");
        }
    }
}

/// Everything said is so; lists with identity have at least the items said.
fn assert_there(expected: &Value, object: &Value, write: &Write) {
    match expected {
        Value::Object(members) => {
            for (name, value) in members {
                match object.get(name) {
                    Some(object) => assert_there(value, object, write),
                    None => assert!(only_empty(value), "{name} is missing after {write:?}"),
                }
            }
        }
        Value::Array(items) => {
            let there = object.as_array().map_or(&[][..], Vec::as_slice);
            for item in items {
                let matches = |other: &Value| match item.get("type") {
                    Some(kind) => other.get("type") == Some(kind),
                    None => other == item,
                };
                let found = there.iter().find(|other| matches(other));
                let Some(found) = found else {
                    panic!("{item} is missing in {object} after {write:?}");
                };
                assert_there(item, found, write);
            }
        }
        scalar => assert_eq!(object, scalar, "{write:?}"),
    }
}

fn only_empty(body: &Value) -> bool {
    match body {
        Value::Object(members) => members.values().all(only_empty),
        Value::Array(items) => items.is_empty(),
        other => other.is_null(),
    }
}

fn is_default(path: &str, value: &Value) -> bool {
    matches!(
        (path, value.to_string().as_str()),
        ("f:spec/f:provider", "\"overlay\"") | ("f:spec/f:snat", "false") | ("f:spec", _)
    )
}
