//! Drops from a spec what this version does not know, before it is read strictly: what the API
//! server would drop if it had this version's definitions. Pure.
//!
//! During an upgrade the definitions may be newer than the agent: a field that it does not know must
//! not make a network, and every route of it, vanish. Values that make no sense stay errors.

use plexus_api::objects::crds;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// What is known of the specs of a kind.
pub(super) struct Schema(LazyLock<Value>);

pub(super) static NETWORK: Schema = Schema(LazyLock::new(|| schema("networks")));
pub(super) static BLOCK: Schema = Schema(LazyLock::new(|| schema("blocks")));
pub(super) static REQUEST: Schema = Schema(LazyLock::new(|| schema("blockrequests")));

impl Schema {
    /// A spec without what is not known; the paths of what was dropped.
    pub(super) fn prune(&self, spec: &Value) -> (Value, Vec<String>) {
        let mut spec = spec.clone();
        let mut dropped = Vec::new();
        prune(&mut spec, &self.0, "spec", &mut dropped);
        (spec, dropped)
    }
}

/// As deep as the schema is, whatever the value.
fn prune(value: &mut Value, schema: &Value, path: &str, dropped: &mut Vec<String>) {
    match value {
        Value::Object(map) => prune_map(map, schema, path, dropped),
        Value::Array(list) => {
            let Some(items) = schema.get("items") else {
                return;
            };
            for (number, item) in list.iter_mut().enumerate() {
                prune(item, items, &format!("{path}[{number}]"), dropped);
            }
        }
        _ => {}
    }
}

fn prune_map(map: &mut Map<String, Value>, schema: &Value, path: &str, dropped: &mut Vec<String>) {
    let known = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    if let (Some(known), None) = (known, others) {
        map.retain(|key, _| {
            let keep = known.contains_key(key);
            if !keep {
                dropped.push(format!("{path}.{key}"));
            }
            keep
        });
    }
    for (key, value) in map {
        let schema = known.and_then(|known| known.get(key)).or(others);
        if let Some(schema) = schema {
            prune(value, schema, &format!("{path}.{key}"), dropped);
        }
    }
}

/// Of the spec of a kind; null, by which nothing is dropped, if there is none.
fn schema(plural: &str) -> Value {
    let all = crds();
    let of_kind = all.iter().find(|one| one.spec.names.plural == plural);
    let versions = of_kind.and_then(|one| serde_json::to_value(&one.spec.versions).ok());
    let path = "/0/schema/openAPIV3Schema/properties/spec";
    let spec = versions.and_then(|mut versions| versions.pointer_mut(path).map(Value::take));
    spec.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_not_known_is_dropped() {
        let written = json!({
            "provider": "routed", "later": 1,
            "subnets": {"a": {"cidr": "10.1.0.0/16", "later": {}}, "b": 3},
            "routes": [{"dst": "10.2.0.0/16", "later": []}],
            "allowedNamespaces":
                {"from": "Selector", "selector": {"matchLabels": {"x": "y"}, "later": 1}},
            "config": {"anything": {"goes": 1}},
        });
        let (spec, mut dropped) = NETWORK.prune(&written);
        assert_eq!(
            spec,
            json!({
                "provider": "routed",
                "subnets": {"a": {"cidr": "10.1.0.0/16"}, "b": 3},
                "routes": [{"dst": "10.2.0.0/16"}],
                "allowedNamespaces": {"from": "Selector", "selector": {"matchLabels": {"x": "y"}}},
                "config": {"anything": {"goes": 1}},
            })
        );
        dropped.sort();
        assert_eq!(
            dropped,
            [
                "spec.allowedNamespaces.selector.later",
                "spec.later",
                "spec.routes[0].later",
                "spec.subnets.a.later",
            ]
        );
        let written = json!({"network": {"namespace": "a", "name": "b", "uid": "u", "later": 1},
            "cidr": "10.0.0.0/26", "node": "n", "nodeUID": "x", "later": 1});
        assert_eq!(BLOCK.prune(&written).1.len(), 2);
    }

    #[test]
    fn what_makes_no_sense_is_left_for_the_reader_to_refuse() {
        for odd in [
            json!(null),
            json!("text"),
            json!([1]),
            json!({"subnets": []}),
            json!({"routes": {"dst": 1}}),
        ] {
            assert_eq!(NETWORK.prune(&odd), (odd, Vec::new()));
        }
    }
}
