//! What Kubernetes 1.37.1 itself makes of applies, plain writes and objects against a schema, recorded
//! (`vectors/*.json`), must come out here: objects, owners, refusals and every word of every cause.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

use plexus_embedded::kinds::{Kind, Kinds};
use plexus_embedded::patch::Shape;
use plexus_embedded::patch::apply::{Writer, apply, update};
use plexus_embedded::status::Cause;
use serde_json::Value;
use std::sync::Arc;

const NOW: &str = "2025-11-16T03:49:30Z";

fn thing(vectors: &Value) -> Arc<Kind> {
    let kinds = Kinds::builtin().unwrap();
    let kinds = kinds.with_crd(&vectors["definition"]).unwrap();
    kinds.get("x.dev", "v1", "things").unwrap().clone()
}

#[test]
fn applies_and_writes() {
    let vectors: Value = serde_json::from_str(include_str!("vectors/apply.json")).unwrap();
    let kind = thing(&vectors);
    let mut steps = 0;
    for (number, sequence) in vectors["sequences"].as_array().unwrap().iter().enumerate() {
        let mut live: Option<Value> = None;
        for (step, write) in sequence.as_array().unwrap().iter().enumerate() {
            steps += 1;
            let result = written(&kind, live.as_ref(), write);
            let location = format!("sequence {number}, step {step}: {}", write["new"]);
            match write.get("error") {
                Some(error) => {
                    assert_eq!(result.unwrap_err(), error.as_str().unwrap(), "{location}")
                }
                None => {
                    assert_eq!(result.as_ref(), Ok(&write["object"]), "{location}");
                    live = result.ok();
                }
            }
        }
    }
    assert!(steps > 80, "{steps}");
}

/// One recorded write, done here.
fn written(kind: &Kind, live: Option<&Value>, write: &Value) -> Result<Value, String> {
    let text = |name: &str| write[name].as_str().unwrap_or_default();
    let writer = Writer {
        manager: text("manager"),
        api_version: "x.dev/v1",
        subresource: text("sub"),
        status_apart: true,
        now: NOW,
    };
    let mut object = write["new"].clone();
    if text("do") == "apply" {
        let force = write["force"] == true;
        object = apply(Shape::of(kind), live, &object, &writer, force)
            .map_err(|error| error.to_string())?;
        kind.schema.as_ref().unwrap().default(&mut object);
    } else {
        update(Shape::of(kind), live, &mut object, &writer);
    }
    object["metadata"]["uid"] = "u".into();
    Ok(object)
}

#[test]
fn objects_against_a_schema() {
    let vectors: Value = serde_json::from_str(include_str!("vectors/schema.json")).unwrap();
    let kind = thing(&vectors);
    let schema = kind.schema.as_ref().unwrap();
    let mut count = 0;
    for case in vectors["cases"].as_array().unwrap() {
        let mut object = case["new"].clone();
        let unknown = schema.prune(&mut object);
        schema.default(&mut object);
        let causes = match case.get("old") {
            Some(old) => schema.validate_update(old, &object),
            None => schema.validate(&object),
        };
        assert_eq!(object, case["object"], "{case}");
        assert_eq!(Value::from(unknown), case["unknown"], "{case}");
        assert_eq!(messages(causes), expected(case), "{case}");
        count += case["causes"].as_array().unwrap().len();
    }
    assert!(count > 200, "{count}");
}

/// In no particular order: the real server has none.
fn messages(causes: Vec<Cause>) -> Vec<String> {
    let line = |cause: Cause| format!("{}: {}: {}", cause.field, cause.reason, cause.message);
    let mut lines: Vec<String> = causes.into_iter().map(line).collect();
    lines.sort();
    lines
}

fn expected(case: &Value) -> Vec<String> {
    let causes = case["causes"].as_array().unwrap().iter();
    let mut lines: Vec<String> = causes
        .map(|cause| cause.as_str().unwrap().to_owned())
        .collect();
    lines.sort();
    lines
}
