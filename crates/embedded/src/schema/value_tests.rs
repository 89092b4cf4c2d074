//! Pruning, defaults, and reading schemas.

use super::Schema;
use serde_json::{Value, json};

fn schema(spec: Value) -> Schema {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    Schema::parse(&schema).unwrap()
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "n", "odd": 1}, "spec": spec})
}

fn pruned(schema: &Schema, spec: Value) -> (Value, Vec<String>) {
    let mut object = object(spec);
    let unknown = schema.prune(&mut object);
    assert_eq!(object["metadata"]["odd"], 1, "metadata is not the schema's");
    (object["spec"].take(), unknown)
}

#[test]
fn unknown_fields_go_and_are_named() {
    let item = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let schema = schema(json!({"type": "object", "properties": {
        "known": {"type": "integer"},
        "list": {"type": "array", "items": item},
        "map": {"type": "object", "additionalProperties": item},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"inner": item}},
        "any": {"type": "object", "additionalProperties": true},
        "template": {
            "type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        },
    }}));
    let (spec, unknown) = pruned(
        &schema,
        json!({
            "known": 1, "odd": 1, "list": [{"a": 1}, {"odd": 1}], "map": {"k": {"a": 1, "odd": {}}},
            "open": {"kept": {"deep": 1}, "inner": {"a": 1, "odd": 1}}, "any": {"kept": {"deep": 1}},
            "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {}}, "spec": {"x": 1, "odd": 1}, "odd": 1},
        }),
    );
    assert_eq!(
        unknown,
        [
            "spec.list[1].odd",
            "spec.map.k.odd",
            "spec.odd",
            "spec.open.inner.odd",
            "spec.template.odd",
            "spec.template.spec.odd"
        ]
    );
    assert_eq!(
        spec,
        json!({
            "known": 1, "list": [{"a": 1}, {}], "map": {"k": {"a": 1}},
            "open": {"kept": {"deep": 1}, "inner": {"a": 1}}, "any": {"kept": {"deep": 1}},
            "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {}}, "spec": {"x": 1}},
        })
    );
}

#[test]
fn values_of_another_type_are_left_for_validation() {
    let schema = schema(
        json!({"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}),
    );
    let (spec, unknown) = pruned(&schema, json!({"a": "text"}));
    assert_eq!((spec, unknown.len()), (json!({"a": "text"}), 0));
}

fn defaulted(schema: &Schema, spec: Value) -> Value {
    let mut object = object(spec);
    schema.default(&mut object);
    object["spec"].take()
}

#[test]
fn defaults_are_filled_in_wherever_there_is_a_place_for_them() {
    let item = json!({"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}});
    let schema = schema(json!({"type": "object", "properties": {
        "a": {"type": "string", "default": "x"},
        "nested": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 2}}},
        "absent": {"type": "object", "properties": {"c": {"type": "integer", "default": 3}}},
        "list": {"type": "array", "items": item},
        "map": {"type": "object", "additionalProperties": item},
    }}));
    assert_eq!(
        defaulted(&schema, json!({})),
        json!({"a": "x", "nested": {"b": 2}})
    );
    assert_eq!(
        defaulted(
            &schema,
            json!({"a": "y", "nested": {"b": 1}, "list": [{}, {"p": "UDP"}], "map": {"k": {}}})
        ),
        json!({"a": "y", "nested": {"b": 1}, "list": [{"p": "TCP"}, {"p": "UDP"}], "map": {"k": {"p": "TCP"}}})
    );
}

#[test]
fn null_is_a_value_only_where_it_may_be() {
    let schema = schema(json!({"type": "object", "properties": {
        "nullable": {"type": "string", "nullable": true, "default": "x"},
        "defaulted": {"type": "string", "default": "x"},
        "neither": {"type": "string"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}));
    let spec = json!({"nullable": null, "defaulted": null, "neither": null, "map": {"k": null}, "open": {"k": null}});
    assert_eq!(
        defaulted(&schema, spec),
        json!({"nullable": null, "defaulted": "x", "map": {}, "open": {"k": null}})
    );
}

#[test]
fn twice_is_once() {
    let schema = schema(json!({"type": "object", "properties": {
        "a": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 1}}},
    }}));
    let mut once = object(json!({"odd": 1}));
    assert_eq!(schema.prune(&mut once).len(), 1);
    schema.default(&mut once);
    let mut again = once.clone();
    assert!(schema.prune(&mut again).is_empty());
    schema.default(&mut again);
    assert_eq!(again, once);
}

#[test]
fn what_is_no_structural_schema_is_refused_with_its_place() {
    for (spec, location) in [
        (
            json!({"type": "objekt"}),
            "openAPIV3Schema.properties[spec].type",
        ),
        (
            json!({"$ref": "#/x"}),
            "openAPIV3Schema.properties[spec].$ref",
        ),
        (
            json!({"type": "string", "pattern": "("}),
            "openAPIV3Schema.properties[spec].pattern",
        ),
        (
            json!({"type": "array", "items": 5}),
            "openAPIV3Schema.properties[spec].items",
        ),
        (
            json!({"type": "array", "items": {}, "x-kubernetes-list-type": "map"}),
            "x-kubernetes-list-map-keys",
        ),
        (
            json!({"type": "array", "items": {}, "x-kubernetes-list-type": "bag"}),
            "x-kubernetes-list-type",
        ),
        (json!({"oneOf": [{"type": "x"}]}), "oneOf[0].type"),
    ] {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let error = Schema::parse(&schema).unwrap_err();
        assert!(error.contains(location), "{error}");
    }
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "array", "items": deep});
    }
    assert!(Schema::parse(&deep).unwrap_err().contains("deeper than"));
}
