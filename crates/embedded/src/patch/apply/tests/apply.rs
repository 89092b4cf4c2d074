//! Applying: what is merged, who owns it, what goes, what is refused.

use super::{NOW, Thing, conflicts, object, shape, writer};
use crate::patch::apply::{ApplyError, Writer, apply, keep_times};
use serde_json::json;

#[test]
fn it_creates_and_says_who_owns_what() {
    let made = Thing::default().apply(
        "one",
        json!({
            "size": 1, "nested": {"a": 1}, "list": ["x"], "set": ["x"], "entries": {"k": "v"},
            "items": [{"name": "i", "a": 1}], "free": {"deep": {"er": [1]}},
        }),
    );
    let wanted = json!([{
        "manager": "one", "operation": "Apply", "apiVersion": "x.example/v1", "time": NOW,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {
            "f:size": {}, "f:nested": {"f:a": {}}, "f:list": {}, "f:set": {"v:\"x\"": {}},
            "f:entries": {"f:k": {}},
            "f:items": {"k:{\"name\":\"i\"}": {".": {}, "f:a": {}, "f:name": {}}},
            "f:free": {"f:deep": {".": {}, "f:er": {}}},
        }},
    }]);
    assert_eq!(made.object()["metadata"]["managedFields"], wanted);
}

#[test]
fn repeating_it_changes_nothing() {
    let spec = json!({"size": 1, "items": [{"name": "i", "a": 1}], "set": ["x", "y"]});
    let once = Thing::default().apply("one", spec.clone());
    let later = Writer {
        now: "2030-01-01T00:00:00Z",
        ..writer("one")
    };
    let again = apply(&shape(), once.0.as_ref(), &object(spec), &later, false).unwrap();
    assert_eq!(&again, once.object());
}

#[test]
fn only_another_value_is_a_conflict_and_force_takes_it() {
    let one = Thing::default().apply("one", json!({"size": 1, "name": "x"}));
    let both = one.apply("two", json!({"size": 1}));
    assert_eq!(
        both.owned("two", "Apply"),
        json!({"f:spec": {"f:size": {}}})
    );
    let refused = conflicts(both.try_apply("three", json!({"size": 2, "name": "y"}), false));
    assert_eq!(
        refused,
        [
            "conflict with \"one\": .spec.name",
            "conflict with \"one\": .spec.size",
            "conflict with \"two\": .spec.size",
        ]
    );
    let taken = both.force("three", json!({"size": 2}));
    assert_eq!(taken.spec(), json!({"size": 2, "name": "x"}));
    assert_eq!(
        taken.owned("one", "Apply"),
        json!({"f:spec": {"f:name": {}}})
    );
    assert!(
        taken.owned("two", "Apply").is_null(),
        "who owns nothing is forgotten"
    );
}

#[test]
fn conflicts_are_said_as_the_real_server_says_them() {
    let plain = Thing::default().put(
        "kubectl-edit",
        json!({"size": 1, "items": [{"name": "i", "a": 1}]}),
    );
    let error = plain
        .try_apply("one", json!({"size": 2}), false)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using x.example/v1: .spec.size"
    );
    let two = json!({"size": 2, "items": [{"name": "i", "a": 2}]});
    let error = plain.try_apply("one", two, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"kubectl-edit\" using x.example/v1:\n\
         - .spec.size\n- .spec.items[name=\"i\"].a"
    );
}

#[test]
fn what_is_no_longer_said_goes_unless_another_says_it() {
    let made = Thing::default().apply("one", json!({
        "size": 1, "name": "x", "nested": {"a": 1, "b": 1}, "set": ["x", "y"], "entries": {"k": "1", "l": "1"},
        "items": [{"name": "i", "a": 1}, {"name": "j", "a": 1}],
    }));
    let shared = made.apply("two", json!({
        "name": "x", "nested": {"b": 1}, "set": ["y"], "entries": {"l": "1"}, "items": [{"name": "j"}],
    }));
    let left = shared.apply("one", json!({}));
    assert_eq!(
        left.spec(),
        json!({
            "name": "x", "nested": {"b": 1}, "set": ["y"], "entries": {"l": "1"}, "items": [{"name": "j"}],
        })
    );
    assert_eq!(left.apply("two", json!({})).spec(), json!({}));
}

#[test]
fn a_map_that_another_owns_is_empty_then_or_null_where_it_may_be() {
    let made = Thing::default().put("other", json!({"nested": {}, "maybe": {}}));
    let filled = made.apply("one", json!({"nested": {"a": 1}, "maybe": {"a": 1}}));
    let left = filled.apply("one", json!({}));
    let spec = &left.object()["spec"];
    assert_eq!(*spec, json!({"nested": {}, "maybe": null}));
}

#[test]
fn an_item_goes_when_nobody_else_owns_it_whatever_others_own_inside() {
    let made = Thing::default().apply("one", json!({"items": [{"name": "i", "a": 1}]}));
    let mut changed = made.object().clone();
    changed["spec"]["items"][0]["b"] = json!(2);
    crate::patch::apply::update(&shape(), made.0.as_ref(), &mut changed, &writer("other"));
    let with = Thing(Some(changed));
    let inside = json!({"f:spec": {"f:items": {"k:{\"name\":\"i\"}": {"f:b": {}}}}});
    assert_eq!(with.owned("other", "Update"), inside);
    let left = with.apply("one", json!({"size": 1}));
    assert_eq!(left.spec(), json!({"size": 1, "items": []}));
}

#[test]
fn an_empty_map_owns_itself_and_an_empty_list_owns_nothing() {
    let made = Thing::default().apply(
        "one",
        json!({"entries": {}, "set": [], "items": [], "nested": {}}),
    );
    let wanted = json!({"f:spec": {"f:entries": {}, "f:nested": {}}});
    assert_eq!(made.owned("one", "Apply"), wanted);
    let filled = made.apply("two", json!({"entries": {"k": "v"}, "nested": {"a": 1}}));
    assert_eq!(filled.spec()["entries"], json!({"k": "v"}), "no conflict");
}

#[test]
fn dropping_an_empty_map_leaves_what_others_have_in_it() {
    let made = Thing::default().apply("one", json!({}));
    assert_eq!(made.owned("one", "Apply"), json!({"f:spec": {}}));
    let filled = made.apply("two", json!({"size": 1, "nested": {"a": 1}}));
    let mut nothing = object(json!({}));
    nothing.as_object_mut().unwrap().remove("spec");
    let left = apply(&shape(), filled.0.as_ref(), &nothing, &writer("one"), false).unwrap();
    assert_eq!(left["spec"], json!({"size": 1, "nested": {"a": 1}}));
}

#[test]
fn what_was_there_before_anybody_applied_belongs_to_nobody_in_particular() {
    let live = json!({
        "apiVersion": "x.example/v1", "kind": "Thing",
        "metadata": {"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "7"}, "spec": {"size": 1},
    });
    let live = Thing(Some(live));
    let refused = conflicts(live.try_apply("one", json!({"size": 2}), false));
    assert_eq!(
        refused,
        ["conflict with \"before-first-apply\" using x.example/v1: .spec.size"]
    );
    let done = live.apply("one", json!({"name": "x"}));
    let before = json!({"f:spec": {".": {}, "f:size": {}}});
    assert_eq!(done.owned("before-first-apply", "Update"), before);
}

#[test]
fn the_status_is_apart() {
    let made = Thing::default().apply("one", json!({"size": 1}));
    let mut applied = object(json!({"size": 5}));
    applied["status"] = json!({"n": 1});
    applied["metadata"]["labels"] = json!({"sneaked": "in"});
    let status = Writer {
        subresource: "status",
        ..writer("one")
    };
    let with = apply(&shape(), made.0.as_ref(), &applied, &status, false).unwrap();
    assert_eq!(
        (&with["spec"], &with["status"]),
        (&json!({"size": 1}), &json!({"n": 1}))
    );
    assert!(with["metadata"].get("labels").is_none());
    let entries = with["metadata"]["managedFields"].as_array().unwrap();
    let subresources: Vec<&str> = entries
        .iter()
        .filter_map(|e| e["subresource"].as_str())
        .collect();
    assert_eq!((entries.len(), subresources), (2, vec!["status"]));
    let mut main = object(json!({"name": "x"}));
    main["status"] = json!({"n": 9});
    let after = apply(&shape(), Some(&with), &main, &writer("one"), false).unwrap();
    assert_eq!(
        (&after["spec"], &after["status"]),
        (&json!({"name": "x"}), &json!({"n": 1}))
    );
}

#[test]
fn what_is_not_of_the_kind_is_refused() {
    for (spec, why) in [
        (
            json!({"sise": 1}),
            ".spec.sise: field not declared in schema",
        ),
        (
            json!({"size": "big"}),
            ".spec.size: expected numeric (int or float), got &{big}",
        ),
        (
            json!({"set": ["x", "x"]}),
            ".spec.set: duplicate entries for key [=\"x\"]",
        ),
        (
            json!({"items": [{"a": 1}]}),
            "element 0: associative list with keys has an element that omits all key fields",
        ),
        (
            json!({"items": {}}),
            ".spec.items: expected list, got &{{}}",
        ),
    ] {
        let answer = Thing::default().try_apply("one", spec, false);
        let Err(ApplyError::Untyped(applied)) = answer else {
            panic!("{answer:?}")
        };
        assert!(
            applied.starts_with(
                "failed to create typed patch object (ns/n; x.example/v1, Kind=Thing): "
            )
        );
        assert!(applied.contains(why), "{applied}");
    }
    let mut applied = object(json!({}));
    applied["metadata"]["managedFields"] = json!([]);
    let answer = apply(&shape(), None, &applied, &writer("one"), false);
    assert_eq!(
        answer,
        Err(ApplyError::Malformed(
            "metadata.managedFields must be nil".to_owned()
        ))
    );
}

#[test]
fn times_alone_are_no_change() {
    let made = Thing::default().apply("one", json!({"size": 1}));
    let mut later = made.object().clone();
    later["metadata"]["managedFields"][0]["time"] = json!("2030-01-01T00:00:00Z");
    keep_times(made.object(), &mut later);
    assert_eq!(&later, made.object());
    later["spec"]["size"] = json!(2);
    let changed = later.clone();
    keep_times(made.object(), &mut later);
    assert_eq!(later, changed);
}
