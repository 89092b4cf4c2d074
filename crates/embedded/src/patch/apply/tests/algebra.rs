//! Sets of fields: their wire form, and the laws of sets.

use crate::patch::apply::fields::Fields;
use crate::patch::apply::step::Step;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

#[test]
fn the_wire_form_is_read_and_written() {
    let wire = json!({
        "f:metadata": {"f:labels": {".": {}, "f:a.b/c:d": {}}, "f:finalizers": {"v:\"x/y\"": {}}},
        "f:spec": {"f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}},
        "f:list": {"i:3": {}},
        "f:numbers": {"v:1": {}, "v:true": {}},
    });
    let fields = Fields::parse(&wire).unwrap();
    assert_eq!(fields.wire(), wire);
    let paths = fields.paths(100);
    assert_eq!(fields.paths(3), paths[..3]);
    for path in [
        ".metadata.labels",
        ".metadata.labels.a.b/c:d",
        ".metadata.finalizers[=\"x/y\"]",
        ".spec.ports[containerPort=80,protocol=\"TCP\"]",
        ".list[3]",
    ] {
        assert!(paths.contains(&path.to_owned()), "{path} in {paths:?}");
    }
}

#[test]
fn numbers_are_the_same_however_they_are_spelled() {
    let one = Fields::parse(&json!({"k:{\"a\":1}": {}})).unwrap();
    let other = Fields::parse(&json!({"k:{\"a\":1.0}": {}})).unwrap();
    assert_eq!(one, other);
}

#[test]
fn nonsense_is_not_read() {
    for wire in [
        json!([]),
        json!({"x:y": {}}),
        json!({"spec": {}}),
        json!({"k:[]": {}}),
        json!({"v:{": {}}),
        json!({"i:x": {}}),
        json!({"f:a": 1}),
    ] {
        assert_eq!(Fields::parse(&wire), None, "{wire}");
    }
}

#[test]
fn a_parent_and_what_is_below_it_are_different_members() {
    let parent = Fields::parse(&json!({"f:a": {}})).unwrap();
    let child = Fields::parse(&json!({"f:a": {"f:b": {}}})).unwrap();
    assert!(parent.intersection(&child).is_empty());
    assert_eq!(child.difference(&parent), child);
    assert_eq!(
        parent.union(&child).wire(),
        json!({"f:a": {".": {}, "f:b": {}}})
    );
}

fn fields() -> impl Strategy<Value = Fields> {
    let path = prop::collection::vec("[abc]", 1..4);
    prop::collection::vec(path, 0..6).prop_map(|paths| {
        let mut fields = Fields::default();
        for path in paths {
            let mut below = Fields::default();
            for (depth, name) in path.iter().rev().enumerate() {
                let mut here = Fields::default();
                here.add(Step::Field(name.clone()), depth == 0, below);
                below = here;
            }
            fields = fields.union(&below);
        }
        fields
    })
}

proptest! {
    #[test]
    fn sets_are_sets(a in fields(), b in fields(), c in fields()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.union(&a), a.clone());
        prop_assert!(a.difference(&a).is_empty());
    }

    #[test]
    fn the_wire_form_loses_nothing(a in fields()) {
        prop_assert_eq!(Fields::parse(&a.wire()), Some(a.clone()));
        let paths = a.paths(100);
        let each: BTreeSet<&String> = paths.iter().collect();
        prop_assert_eq!(each.len(), paths.len());
        prop_assert_eq!(paths.is_empty(), a.is_empty());
    }
}
