//! Server-side apply, case by case. What random sequences of writes must keep true is in
//! `tests/apply_sequences.rs`; what the real server made of others, in `tests/apply_vectors.rs`.

mod algebra;
mod apply;
mod kubectl;
mod order;
mod update;

use super::{ApplyError, Writer, apply, update};
use crate::patch::Shape;
use crate::schema::Schema;
use serde_json::{Value, json};

const NOW: &str = "2025-11-16T03:49:30Z";

/// An object of a kind that has a bit of everything.
fn shape() -> Shape {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": number, "name": text,
            "nested": {"type": "object", "properties": {"a": number, "b": number}},
            "maybe": {"type": "object", "nullable": true, "properties": {"a": number}},
            "list": {"type": "array", "items": text},
            "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
            "entries": {"type": "object", "additionalProperties": text},
            "items": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": text, "a": number, "b": number}, "required": ["name"]},
            },
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
        "status": {"type": "object", "properties": {"n": number}},
    }});
    Schema::parse(&schema).unwrap().shape().clone()
}

fn object(spec: Value) -> Value {
    json!({
        "apiVersion": "x.example/v1", "kind": "Thing",
        "metadata": {"name": "n", "namespace": "ns"}, "spec": spec,
    })
}

fn writer(manager: &str) -> Writer<'_> {
    Writer {
        manager,
        api_version: "x.example/v1",
        subresource: "",
        status_apart: true,
        now: NOW,
    }
}

/// An object in its life.
#[derive(Clone, Debug, Default)]
struct Thing(Option<Value>);

impl Thing {
    fn try_apply(&self, manager: &str, spec: Value, force: bool) -> Result<Self, ApplyError> {
        let live = self.0.as_ref();
        let new = apply(&shape(), live, &object(spec), &writer(manager), force)?;
        Ok(Self(Some(new)))
    }

    fn apply(&self, manager: &str, spec: Value) -> Self {
        self.try_apply(manager, spec, false).unwrap()
    }

    fn force(&self, manager: &str, spec: Value) -> Self {
        self.try_apply(manager, spec, true).unwrap()
    }

    /// PUT.
    fn put(&self, manager: &str, spec: Value) -> Self {
        let mut after = object(spec);
        update(&shape(), self.0.as_ref(), &mut after, &writer(manager));
        Self(Some(after))
    }

    fn object(&self) -> &Value {
        self.0.as_ref().unwrap()
    }

    /// Nulls are as good as absent; the schema drops them later.
    fn spec(&self) -> Value {
        let mut spec = self.object().get("spec").cloned().unwrap_or_default();
        drop_nulls(&mut spec);
        spec
    }

    /// The fields of a manager.
    fn owned(&self, manager: &str, operation: &str) -> Value {
        let entries = self.object().pointer("/metadata/managedFields");
        let entries = entries.and_then(Value::as_array).into_iter().flatten();
        let mut found = entries.filter(|e| e["manager"] == manager && e["operation"] == operation);
        found
            .next()
            .map_or(Value::Null, |entry| entry["fieldsV1"].clone())
    }
}

fn conflicts(answer: Result<Thing, ApplyError>) -> Vec<String> {
    match answer {
        Err(ApplyError::Conflicts(causes)) => causes
            .iter()
            .map(|cause| format!("{}: {}", cause.message, cause.field))
            .collect(),
        other => panic!("no conflict: {other:?}"),
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
