//! Ownership after writes that are no apply.

use super::{NOW, Thing, conflicts, object, shape, writer};
use crate::patch::apply::{Writer, update};
use crate::patch::shape::core_kind;
use serde_json::{Value, json};

#[test]
fn who_creates_owns_everything_but_what_the_server_sets() {
    let made = Thing::default().put("one", json!({"size": 1, "items": [{"name": "i"}]}));
    assert_eq!(
        made.owned("one", "Update"),
        json!({"f:spec": {
            ".": {}, "f:size": {},
            "f:items": {".": {}, "k:{\"name\":\"i\"}": {".": {}, "f:name": {}}},
        }})
    );
}

#[test]
fn what_a_write_changes_is_its_writers_and_what_it_removes_is_nobodys() {
    let made = Thing::default().apply("one", json!({"size": 1, "name": "x", "set": ["a", "b"]}));
    let after = made.put("two", json!({"size": 2, "name": "x", "set": ["b"]}));
    let left = json!({"f:spec": {"f:name": {}, "f:set": {"v:\"b\"": {}}}});
    assert_eq!(after.owned("one", "Apply"), left);
    assert_eq!(
        after.owned("two", "Update"),
        json!({"f:spec": {"f:size": {}}})
    );
    let refused = conflicts(after.try_apply("one", json!({"size": 1}), false));
    assert_eq!(
        refused,
        ["conflict with \"two\" using x.example/v1: .spec.size"]
    );
}

#[test]
fn a_write_that_changes_nothing_changes_no_owner() {
    let made = Thing::default().apply("one", json!({"size": 1}));
    assert_eq!(made.put("two", json!({"size": 1})).object(), made.object());
}

#[test]
fn managed_fields_are_kept_taken_or_forgotten() {
    let made = Thing::default().apply("one", json!({"size": 1}));
    let write = |managed: Option<Value>, subresource: &str| {
        let mut after = object(json!({"size": 1}));
        if let Some(managed) = managed {
            after["metadata"]["managedFields"] = managed;
        }
        let writer = Writer {
            subresource,
            ..writer("two")
        };
        update(&shape(), made.0.as_ref(), &mut after, &writer);
        after["metadata"].get("managedFields").cloned()
    };
    let known = Some(made.object()["metadata"]["managedFields"].clone());
    assert_eq!(write(None, ""), known);
    assert_eq!(write(Some(json!("nonsense")), ""), known);
    assert_eq!(write(Some(json!([])), ""), None);
    assert_eq!(write(Some(json!([{}])), ""), None);
    assert_eq!(
        write(Some(json!([])), "status"),
        known,
        "a subresource cannot"
    );
    let mut given = known.clone().unwrap();
    given[0]["manager"] = json!("three");
    assert_eq!(write(Some(given.clone()), ""), Some(given));
}

#[test]
fn an_object_without_owners_stays_so() {
    let live = object(json!({"size": 1}));
    let mut after = object(json!({"size": 2}));
    update(&shape(), Some(&live), &mut after, &writer("one"));
    assert!(after["metadata"].get("managedFields").is_none());
}

#[test]
fn writers_are_told_apart_by_subresource_and_a_name_is_always_there() {
    let made = Thing::default().put("", json!({"size": 1}));
    let mut after = made.object().clone();
    after["status"] = json!({"n": 1});
    let status = Writer {
        subresource: "status",
        ..writer("")
    };
    update(&shape(), made.0.as_ref(), &mut after, &status);
    let entries = after["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(entries.len(), 2);
    assert!(entries.iter().all(|entry| entry["manager"] == "unknown"));
    assert_eq!(
        entries[1]["fieldsV1"],
        json!({"f:status": {".": {}, "f:n": {}}})
    );
}

#[test]
fn of_many_writers_the_oldest_are_put_together() {
    let mut live = Thing::default().put("m00", json!({"entries": {}}));
    for number in 1..15 {
        let now = format!("2025-11-16T03:50:{number:02}Z");
        let name = format!("m{number:02}");
        let mut after = live.object().clone();
        after["spec"]["entries"][&name] = json!("1");
        let writer = Writer {
            now: &now,
            ..writer(&name)
        };
        update(&shape(), live.0.as_ref(), &mut after, &writer);
        live = Thing(Some(after));
    }
    let entries = live.object()["metadata"]["managedFields"]
        .as_array()
        .unwrap();
    assert_eq!(entries.len(), 10);
    let ancient = live.owned("ancient-changes", "Update");
    let fields = ancient["f:spec"]["f:entries"].as_object().unwrap();
    assert!(
        fields.contains_key("f:m01") && fields.contains_key("f:m05"),
        "{ancient}"
    );
    assert_eq!(
        live.owned("m14", "Update"),
        json!({"f:spec": {"f:entries": {"f:m14": {}}}})
    );
}

#[test]
fn the_entries_have_an_order() {
    let plain = Thing::default().put("z", json!({"size": 1}));
    let both = plain
        .apply("b", json!({"name": "x"}))
        .apply("a", json!({"set": ["x"]}));
    let entries = both.object()["metadata"]["managedFields"]
        .as_array()
        .unwrap();
    let names: Vec<&Value> = entries.iter().map(|entry| &entry["manager"]).collect();
    assert_eq!(names, ["a", "b", "z"]);
}

#[test]
fn core_kinds_have_their_parts_from_the_start() {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "1"}},
        "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}, "status": {"phase": "Pending"},
    });
    let writer = Writer {
        api_version: "v1",
        status_apart: false,
        now: NOW,
        manager: "m",
        subresource: "",
    };
    update(core_kind("", "Pod"), None, &mut pod, &writer);
    assert_eq!(
        pod["metadata"]["managedFields"][0]["fieldsV1"],
        json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {"f:containers": {".": {}, "k:{\"name\":\"c\"}": {
                ".": {}, "f:name": {},
                "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
            }}},
            "f:status": {"f:phase": {}},
        })
    );
}
