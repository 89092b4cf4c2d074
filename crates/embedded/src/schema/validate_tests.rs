//! Validation, in the words of the real API server. More of them, recorded, are in `tests/schema_vectors.rs`.

use super::Schema;
use crate::status::Cause;
use serde_json::{Value, json};

fn schema(value: Value) -> Schema {
    let spec = json!({"type": "object", "properties": {"f": value}});
    Schema::parse(&json!({"type": "object", "properties": {"spec": spec}})).unwrap()
}

fn object(value: Value) -> Value {
    json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "n"}, "spec": {"f": value}})
}

fn messages(causes: &[Cause]) -> Vec<String> {
    causes.iter().map(Cause::to_string).collect()
}

/// What is said of a value of `spec.f`.
fn problems(schema: Value, value: Value) -> Vec<String> {
    messages(&self::schema(schema).validate(&object(value)))
}

#[test]
fn types() {
    for (schema, value, problem) in [
        (
            json!({"type": "integer"}),
            json!("x"),
            "Invalid value: \"string\": spec.f in body must be of type integer: \"string\"",
        ),
        (
            json!({"type": "object"}),
            json!([]),
            "Invalid value: \"array\": spec.f in body must be of type object: \"array\"",
        ),
        (
            json!({"type": "string"}),
            json!(null),
            "Invalid value: \"null\": spec.f in body must be of type string: \"null\"",
        ),
        (
            json!({"type": "string"}),
            json!(1),
            "Invalid value: \"integer\": spec.f in body must be of type string: \"integer\"",
        ),
        (
            json!({"type": "integer", "format": "int64"}),
            json!(true),
            "Invalid value: \"\": spec.f in body must be of type int64: \"\"",
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!({}),
            "Invalid value: \"object\": spec.f in body must be of type integer,string: \"object\"",
        ),
    ] {
        assert_eq!(problems(schema, value), [format!("spec.f: {problem}")]);
    }
    for (schema, value) in [
        (json!({"type": "integer"}), json!(5.0)),
        (json!({"type": "number"}), json!(5)),
        (json!({"type": "string", "nullable": true}), json!(null)),
        (json!({"x-kubernetes-int-or-string": true}), json!("80")),
        (json!({"x-kubernetes-int-or-string": true}), json!(80)),
        (json!({}), json!([{"anything": 1}])),
    ] {
        assert!(
            problems(schema.clone(), value.clone()).is_empty(),
            "{schema} {value}"
        );
    }
}

#[test]
fn limits() {
    for (schema, value, problem) in [
        (
            json!({"type": "integer", "maximum": 65535.0}),
            json!(70000),
            "Invalid value: 70000: spec.f in body should be less than or equal to 65535",
        ),
        (
            json!({"type": "integer", "minimum": 576}),
            json!(1),
            "Invalid value: 1: spec.f in body should be greater than or equal to 576",
        ),
        (
            json!({"type": "integer", "minimum": 5, "exclusiveMinimum": true}),
            json!(5),
            "Invalid value: 5: spec.f in body should be greater than 5",
        ),
        (
            json!({"type": "number", "maximum": 1.5, "exclusiveMaximum": true}),
            json!(1.5),
            "Invalid value: 1.5: spec.f in body should be less than 1.5",
        ),
        (
            json!({"type": "number", "maximum": 1e6}),
            json!(1e7),
            "Invalid value: 1e+07: spec.f in body should be less than or equal to 1e+06",
        ),
        (
            json!({"type": "integer", "multipleOf": 2}),
            json!(3),
            "Invalid value: 3: spec.f in body should be a multiple of 2",
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("äöü"),
            "Too long: may not be more than 2 bytes",
        ),
        (
            json!({"type": "string", "minLength": 1}),
            json!(""),
            "Invalid value: \"\": spec.f in body should be at least 1 chars long",
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b"),
            "Invalid value: \"b\": spec.f in body should match '^a+$'",
        ),
        (
            json!({"type": "string", "enum": ["A", "B"]}),
            json!("C"),
            "Unsupported value: \"C\": supported values: \"A\", \"B\"",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
            json!(["a", "b"]),
            "Too many: 2: must have at most 1 item",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            json!([]),
            "Invalid value: 0: spec.f in body should have at least 1 items",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            json!(["a", "a"]),
            "Invalid value: \"\": spec.f in body shouldn't contain duplicates",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1}),
            json!({"a": "", "b": ""}),
            "Too many: 2: must have at most 1 item",
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("now"),
            "Invalid value: \"now\": spec.f in body must be of type date-time: \"now\"",
        ),
    ] {
        assert_eq!(problems(schema, value), [format!("spec.f: {problem}")]);
    }
}

#[test]
fn all_problems_are_said_with_their_place() {
    let subnet = json!({"type": "object", "required": ["cidr"], "properties": {"cidr": {"type": "string", "maxLength": 3}}});
    let schema = json!({"type": "object", "required": ["x"], "properties": {
        "subnets": {"type": "object", "additionalProperties": subnet},
        "list": {"type": "array", "items": subnet},
    }});
    let value = json!({"subnets": {"a": {}, "b": {"cidr": "1234"}}, "list": [{"cidr": 5}]});
    assert_eq!(
        problems(schema, value),
        [
            "spec.f.list[0].cidr: Invalid value: \"integer\": spec.f.list[0].cidr in body must be of type string: \"integer\"",
            "spec.f.subnets.a.cidr: Required value",
            "spec.f.subnets.b.cidr: Too long: may not be more than 3 bytes",
            "spec.f.x: Required value",
        ]
    );
}

#[test]
fn items_of_sets_and_maps_occur_once() {
    let set =
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
    assert_eq!(
        problems(set, json!(["a", "b", "a", "a"])),
        ["spec.f[2]: Duplicate value: \"a\""]
    );
    let map = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}},
    });
    let value = json!([{"k": "a", "v": "1"}, {"k": "b"}, {"k": "a", "v": "2"}]);
    assert_eq!(
        problems(map, value),
        ["spec.f[2]: Duplicate value: {\"k\":\"a\"}"]
    );
}

#[test]
fn embedded_resources_say_what_they_are() {
    let schema = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(
        problems(schema, json!({"kind": ""})),
        [
            "spec.f.apiVersion: Required value",
            "spec.f.kind: Invalid value: \"\": must not be empty",
        ]
    );
}

#[test]
fn combinations_of_schemas() {
    let one = json!({"type": "object", "properties": {"p": {}, "q": {}}, "oneOf": [{"required": ["p"]}, {"required": ["q"]}]});
    assert!(problems(one.clone(), json!({"p": 1})).is_empty());
    let none = problems(one.clone(), json!({}));
    assert_eq!(
        none[0],
        "<nil>: Invalid value: \"\": \"spec.f\" must validate one and only one schema (oneOf). Found none valid"
    );
    assert_eq!(problems(one, json!({"p": 1, "q": 1})).len(), 1);
    let any = json!({"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]});
    assert!(problems(any.clone(), json!("bx")).is_empty() && !problems(any, json!("c")).is_empty());
    let all = json!({"type": "string", "allOf": [{"pattern": "^a"}, {"maxLength": 1}]});
    assert!(problems(all.clone(), json!("a")).is_empty() && !problems(all, json!("ab")).is_empty());
    let not = json!({"type": "string", "not": {"enum": ["bad"]}});
    assert!(
        problems(not.clone(), json!("good")).is_empty() && !problems(not, json!("bad")).is_empty()
    );
}

#[test]
fn formats() {
    for (format, good, bad) in [
        (
            "date-time",
            &["2025-11-16T03:49:30Z", "2025-11-16T03:49:30.123456+01:00"][..],
            &["2025-11-16", "2025-13-16T03:49:30Z", "2025-11-16T03:49:30"][..],
        ),
        ("date", &["2024-02-29"], &["2025-02-29", "x"]),
        ("ipv4", &["192.0.2.1"], &["::1", "192.0.2"]),
        ("ipv6", &["::1"], &["192.0.2.1", ":::"]),
        (
            "cidr",
            &["10.0.0.0/8", "fd00::/8"],
            &["10.0.0.0", "10.0.0.0/33"],
        ),
        (
            "mac",
            &["aa:bb:cc:dd:ee:ff"],
            &["aa:bb", "gg:bb:cc:dd:ee:ff"],
        ),
        (
            "uuid",
            &[
                "5b0c2b54-0000-4000-8000-000000000001",
                "5B0C2B54000040008000000000000001",
            ],
            &["5b0c2b54", "5b0c2b-540000-4000-8000-000000000001"],
        ),
        ("byte", &["YQ=="], &["!", "YQ"]),
        ("hostname", &["example", "a.example"], &["-a", "a b"]),
        (
            "duration",
            &["1h30m", "300 ms", "-2.5s"],
            &["x", "1 parsec", ""],
        ),
        ("nobody-knows", &["anything"], &[]),
    ] {
        let schema = json!({"type": "string", "format": format});
        for good in good {
            assert!(
                problems(schema.clone(), json!(good)).is_empty(),
                "{format} {good}"
            );
        }
        for bad in bad {
            assert_eq!(
                problems(schema.clone(), json!(bad)).len(),
                1,
                "{format} {bad}"
            );
        }
    }
}

#[test]
fn what_was_wrong_before_and_is_unchanged_is_let_through() {
    let schema = schema(json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1}, "b": {"type": "string", "maxLength": 1},
        "items": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}}},
        },
    }}));
    let old = object(json!({"a": "long", "b": "x", "items": [{"k": "i", "v": "long"}]}));
    let new =
        object(json!({"a": "long", "b": "longer", "items": [{"k": "j"}, {"k": "i", "v": "long"}]}));
    let causes = schema.validate_update(&old, &new);
    assert_eq!(
        messages(&causes),
        ["spec.f.b: Too long: may not be more than 1 byte"]
    );
    assert_eq!(schema.validate(&new).len(), 3);
}

#[test]
fn what_is_immutable_stays() {
    let rule = json!([{"rule": "self == oldSelf", "message": "it cannot be changed"}, {"rule": "self.a > 1"}]);
    let schema = schema(
        json!({"type": "object", "x-kubernetes-validations": rule, "properties": {
            "a": {"type": "integer"}, "s": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
        }}),
    );
    let old = object(json!({"a": 1, "s": "x"}));
    assert!(schema.validate_update(&old, &old).is_empty());
    let causes = schema.validate_update(&old, &object(json!({"a": 1, "s": "y"})));
    assert_eq!(
        messages(&causes),
        [
            "spec.f: Invalid value: it cannot be changed",
            "spec.f.s: Invalid value: \"y\": failed rule: self == oldSelf",
        ]
    );
    let wrong = schema.validate_update(&old, &object(json!({"a": "x", "s": "x"})));
    assert_eq!(
        wrong.len(),
        1,
        "{wrong:?}: rules are not asked about values of the wrong type"
    );
    assert!(Schema::blocks_rules(&wrong) && !Schema::blocks_rules(&causes));
    let before = json!({"apiVersion": "x/v1", "kind": "X", "spec": {}});
    assert!(
        schema.validate_update(&before, &old).is_empty(),
        "it may come later"
    );
}
