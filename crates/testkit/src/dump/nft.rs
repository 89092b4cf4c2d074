//! The nftables ruleset of the thread's namespace, by `nft`.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// One line per table, chain, set, and rule (numbered within its chain).
pub(super) fn lines() -> Vec<String> {
    let output = Command::new("nft")
        .args(["-j", "list", "ruleset"])
        .stdin(Stdio::null())
        .output()
        .expect("nft runs");
    let ruleset: Value = serde_json::from_slice(&output.stdout).expect("nft prints JSON");
    let mut rules = BTreeMap::new();
    let mut lines = Vec::new();
    for object in ruleset["nftables"].as_array().into_iter().flatten() {
        let Some((kind, body)) = object.as_object().and_then(|object| object.iter().next()) else {
            continue;
        };
        match kind.as_str() {
            "metainfo" => {}
            "rule" => {
                let chain = format!("{} {} {}", body["family"], body["table"], body["chain"]);
                let number = rules.entry(chain).and_modify(|n| *n += 1).or_insert(1);
                lines.push(format!("nft rule {number} {}", plain(body)));
            }
            _ => lines.push(format!("nft {kind} {}", plain(body))),
        }
    }
    lines
}

/// Without handles and counts; elements of sets in order.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept: Map<String, Value> = map
                .iter()
                .filter(|(key, _)| *key != "handle")
                .map(|(key, value)| match key.as_str() {
                    "counter" => (key.clone(), Value::Null),
                    "elem" => (key.clone(), sorted(value)),
                    _ => (key.clone(), plain(value)),
                })
                .collect();
            Value::Object(kept)
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

fn sorted(elements: &Value) -> Value {
    let mut elements: Vec<Value> = match elements {
        Value::Array(items) => items.iter().map(plain).collect(),
        other => return plain(other),
    };
    elements.sort_by_key(Value::to_string);
    Value::Array(elements)
}
