//! Bodies as `kubectl` writes them, and as nobody should.

use super::{Unreadable, decode};
use crate::kinds::Kinds;
use proptest::prelude::*;
use serde_json::json;

fn number(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
    bytes
}

fn field(at: u64, content: &[u8]) -> Vec<u8> {
    let length = u64::try_from(content.len()).unwrap();
    [number(at << 3 | 2), number(length), content.to_vec()].concat()
}

fn varint(at: u64, value: u64) -> Vec<u8> {
    [number(at << 3), number(value)].concat()
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    let rest = [field(1, &meta), field(2, raw), field(3, b""), field(4, b"")].concat();
    [b"k8s\0".to_vec(), rest].concat()
}

/// As `kubectl create namespace x` writes it: empty texts and times are there.
fn metadata(name: &str) -> Vec<u8> {
    let texts = (2..=6).flat_map(|at| field(at, b""));
    let entry = [field(1, b"a"), field(2, b"b")].concat();
    [
        field(1, name.as_bytes()),
        texts.collect(),
        varint(7, 0),
        field(8, b""),
        field(11, &entry),
    ]
    .concat()
}

#[test]
fn a_namespace_is_read() {
    let raw = [
        field(1, &metadata("x")),
        field(2, b""),
        field(3, &field(1, b"")),
    ]
    .concat();
    let body = envelope("v1", "Namespace", &raw);
    let expected = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {}, "status": {},
    });
    assert_eq!(decode(&body).unwrap(), expected);
}

#[test]
fn a_config_map_is_read_with_all_that_metadata_can_have() {
    let owner = [
        field(1, b"Pod"),
        field(3, b"p"),
        field(4, b"u"),
        field(5, b"v1"),
        varint(6, 1),
        varint(7, 0),
    ]
    .concat();
    let managed = [
        field(1, b"kubectl"),
        field(4, &varint(1, 1_767_225_600)),
        field(7, &field(1, br#"{"f:data":{}}"#)),
    ]
    .concat();
    let meta = [
        metadata("m"),
        varint(10, 0),
        field(13, &owner),
        field(14, b"one"),
        field(14, b"two"),
        field(17, &managed),
    ]
    .concat();
    let raw = [
        field(1, &meta),
        field(2, &[field(1, b"k"), field(2, b"v")].concat()),
        field(2, &field(1, b"empty")),
        field(3, &[field(1, b"bin"), field(2, &[0xff, 0])].concat()),
        varint(4, 0),
        varint(99, 7),
    ]
    .concat();
    let map = decode(&envelope("v1", "ConfigMap", &raw)).unwrap();
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "m", "labels": {"a": "b"}, "deletionGracePeriodSeconds": 0, "finalizers": ["one", "two"],
            "ownerReferences": [{
                "kind": "Pod", "name": "p", "uid": "u", "apiVersion": "v1",
                "controller": true, "blockOwnerDeletion": false,
            }],
            "managedFields": [{"manager": "kubectl", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {}}}],
        },
        "data": {"k": "v", "empty": ""}, "binaryData": {"bin": "/wA="}, "immutable": false,
    });
    assert_eq!(map, expected);
    let kinds = Kinds::builtin().unwrap();
    kinds
        .get("", "v1", "configmaps")
        .unwrap()
        .check_typed(&map)
        .unwrap();
}

#[test]
fn reviews_and_options_are_read() {
    let attributes = [field(1, b"ns"), field(2, b"create"), field(5, b"pods")].concat();
    let raw = [
        field(1, b""),
        field(2, &field(1, &attributes)),
        field(3, &varint(1, 0)),
    ]
    .concat();
    let review = decode(&envelope(
        "authorization.k8s.io/v1",
        "SelfSubjectAccessReview",
        &raw,
    ))
    .unwrap();
    let expected =
        json!({"resourceAttributes": {"namespace": "ns", "verb": "create", "resource": "pods"}});
    assert_eq!(review["spec"], expected);
    let rules = envelope(
        "authorization.k8s.io/v1",
        "SelfSubjectRulesReview",
        &field(2, &field(1, b"ns")),
    );
    assert_eq!(decode(&rules).unwrap()["spec"]["namespace"], "ns");
    let whoami = envelope(
        "authentication.k8s.io/v1",
        "SelfSubjectReview",
        &field(1, b""),
    );
    assert_eq!(decode(&whoami).unwrap()["kind"], "SelfSubjectReview");
    let options = [
        varint(1, 0),
        field(2, &field(1, b"u")),
        field(4, b"Orphan"),
        field(5, b"All"),
    ]
    .concat();
    let options = decode(&envelope("v1", "DeleteOptions", &options)).unwrap();
    let expected = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"}, "propagationPolicy": "Orphan", "dryRun": ["All"],
    });
    assert_eq!(options, expected);
}

#[test]
fn another_kind_is_told_to_come_as_json() {
    let error = decode(&envelope("v1", "Pod", b"")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Pod (v1) is not read as protobuf; send it as application/json"
    );
    assert!(matches!(error, Unreadable::Kind { .. }));
}

#[test]
fn json_inside_an_envelope_is_json() {
    let meta = [field(1, b"v1"), field(2, b"ConfigMap")].concat();
    let body = |raw: &[u8], of: &[u8]| {
        [
            b"k8s\0".to_vec(),
            field(1, &meta),
            field(2, raw),
            field(4, of),
        ]
        .concat()
    };
    let map = decode(&body(br#"{"data":{"a":"b"}}"#, b"application/json")).unwrap();
    assert_eq!(
        map,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}})
    );
    decode(&body(b"[]", b"application/json")).unwrap_err();
    decode(&body(b"", b"text/plain")).unwrap_err();
}

#[test]
fn what_is_broken_is_refused() {
    let map = |raw: &[u8]| decode(&envelope("v1", "ConfigMap", raw));
    for (raw, expected) in [
        (vec![0x0a], "ends inside a field"),
        (vec![0x0a, 0x05, 1], "ends inside a field"),
        (
            [vec![0x0a], number(u64::MAX)].concat(),
            "ends inside a field",
        ),
        (vec![0xff; 11], "more than 64 bits"),
        (vec![0x0b], "unknown wire type 3"),
        (vec![0x00, 0x00], "number 0"),
        (varint(1, 1), "metadata: it has another wire type"),
        (field(4, b"x"), "immutable: it has another wire type"),
        (field(1, &field(1, &[0xff])), "name: a text is not UTF-8"),
        (
            field(1, &field(8, &varint(1, u64::MAX >> 1))),
            "creationTimestamp",
        ),
        (field(1, &field(17, &field(7, &field(1, b"{")))), "fieldsV1"),
    ] {
        let error = map(&raw).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    for body in [&b""[..], b"k8s", b"k8s\0\x0a", b"{}", b"k8s\0"] {
        decode(body).unwrap_err();
    }
}

proptest! {
    /// Whatever comes, there is an answer, and it is not much larger than the question.
    #[test]
    fn hostile_bytes_never_panic(kind in 0..4, raw in prop::collection::vec(any::<u8>(), 0..300)) {
        let (version, kind) = [
            ("v1", "ConfigMap"), ("v1", "Namespace"), ("v1", "DeleteOptions"),
            ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
        ][usize::try_from(kind).unwrap()];
        if let Ok(object) = decode(&envelope(version, kind, &raw)) {
            prop_assert!(object.to_string().len() <= 200 + 60 * raw.len());
        }
        let _ = decode(&raw);
    }

    /// A good body with one byte changed is read or refused.
    #[test]
    fn a_changed_byte_never_panics(at in 0_usize..80, byte in any::<u8>()) {
        let raw = [field(1, &metadata("name")), field(2, &[field(1, b"k"), field(2, b"v")].concat())].concat();
        let mut body = envelope("v1", "ConfigMap", &raw);
        let at = at % body.len();
        body[at] = byte;
        let _ = decode(&body);
    }
}
