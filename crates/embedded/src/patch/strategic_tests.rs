//! Strategic merge patches: what kubectl sends, and what it means.

use super::shape::core_kind;
use super::{PatchError, strategic};
use serde_json::{Value, json};

fn patched(kind: &str, target: Value, patch: Value) -> Result<Value, PatchError> {
    let mut result = target;
    strategic(core_kind("", kind), &mut result, &patch).map(|()| result)
}

fn pod(spec: Value, patch: Value) -> Value {
    let answer = patched("Pod", json!({"spec": spec}), json!({"spec": patch}));
    answer.unwrap()["spec"].take()
}

#[test]
fn lists_are_merged_by_key_and_null_removes() {
    let spec = json!({"containers": [
        {"name": "a", "image": "x:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]},
        {"name": "b", "image": "y:1"},
    ], "nodeName": "n"});
    let patch = json!({"nodeName": null, "containers": [
        {"name": "a", "env": [{"name": "B", "value": "2"}, {"name": "C", "value": "3"}]},
        {"name": "b", "image": null},
    ]});
    assert_eq!(
        pod(spec, patch),
        json!({"containers": [
            {"name": "a", "image": "x:1", "env": [
                {"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"},
            ]},
            {"name": "b"},
        ]})
    );
}

#[test]
fn items_are_deleted_and_lists_replaced_by_directive() {
    let spec = || json!({"containers": [{"name": "a"}, {"name": "b"}]});
    let delete = json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "c"}]});
    let left = pod(spec(), delete);
    assert_eq!(left, json!({"containers": [{"name": "c"}, {"name": "b"}]}));
    let replace = json!({"containers": [{"name": "c"}, {"$patch": "replace"}]});
    assert_eq!(pod(spec(), replace), json!({"containers": [{"name": "c"}]}));
}

#[test]
fn maps_are_replaced_or_emptied_by_directive() {
    let target = json!({"data": {"a": "1", "b": "1"}});
    let replace = json!({"data": {"c": "2", "$patch": "replace"}});
    let result = patched("ConfigMap", target.clone(), replace).unwrap();
    assert_eq!(result, json!({"data": {"c": "2"}}));
    let delete = json!({"data": {"$patch": "delete"}});
    let result = patched("ConfigMap", target.clone(), delete).unwrap();
    assert_eq!(result, json!({"data": {}}));
    let unknown = json!({"data": {"$patch": "explode"}});
    assert!(patched("ConfigMap", target, unknown).is_err());
}

#[test]
fn order_is_as_said_and_what_only_the_server_has_stays_in_between() {
    let spec = json!({"containers": [{"name": "a"}, {"name": "server"}, {"name": "b"}]});
    let patch = json!({
        "containers": [{"name": "b", "image": "y"}],
        "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
    });
    assert_eq!(
        pod(spec.clone(), patch),
        json!({"containers": [{"name": "server"}, {"name": "b", "image": "y"}, {"name": "a"}]})
    );
    let order = json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]});
    let names: Vec<Value> = pod(spec, order)["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["name"].clone())
        .collect();
    assert_eq!(names, ["server", "b", "a"]);
}

#[test]
fn an_order_that_lacks_an_item_is_refused() {
    let patch = json!({"spec": {
        "containers": [{"name": "c"}], "$setElementOrder/containers": [{"name": "a"}],
    }});
    let answer = patched(
        "Pod",
        json!({"spec": {"containers": [{"name": "a"}]}}),
        patch,
    );
    assert!(
        matches!(answer, Err(PatchError::DoesNotApply(_))),
        "{answer:?}"
    );
}

#[test]
fn other_kinds_of_a_volume_go_with_retain_keys() {
    let spec = json!({"volumes": [{"name": "v", "emptyDir": {}}]});
    let patch = json!({"volumes": [{
        "name": "v", "hostPath": {"path": "/x"}, "$retainKeys": ["name", "hostPath"],
    }]});
    assert_eq!(
        pod(spec, patch),
        json!({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]})
    );
    let wrong = json!({"spec": {"$retainKeys": ["nodeName"], "hostname": "h"}});
    let answer = patched("Pod", json!({"spec": {}}), wrong);
    assert!(
        matches!(answer, Err(PatchError::Malformed(_))),
        "{answer:?}"
    );
}

#[test]
fn scalars_are_united_and_deleted_by_directive() {
    let target = json!({"metadata": {"finalizers": ["a", "b"]}});
    let patch = json!({"metadata": {
        "finalizers": ["c", "a"], "$deleteFromPrimitiveList/finalizers": ["b"],
    }});
    let result = patched("ConfigMap", target, patch).unwrap();
    assert_eq!(result, json!({"metadata": {"finalizers": ["c", "a"]}}));
}

#[test]
fn other_lists_are_replaced() {
    let target = json!({"spec": {"taints": [{"key": "a"}], "podCIDRs": ["10.0.0.0/24"]}});
    let patch = json!({"spec": {"taints": [{"key": "b"}], "podCIDRs": ["10.0.1.0/24"]}});
    let result = patched("Node", target, patch).unwrap();
    assert_eq!(result["spec"]["taints"], json!([{"key": "b"}]));
    assert_eq!(result["spec"]["podCIDRs"].as_array().unwrap().len(), 2);
}

#[test]
fn nothing_of_a_directive_stays_in_what_is_new() {
    let patch = json!({"containers": [{
        "name": "n", "env": [{"name": "gone", "$patch": "delete"}, {"name": "E", "value": null}],
        "$setElementOrder/env": [{"name": "E"}],
    }]});
    let made = pod(json!({}), patch);
    assert_eq!(
        made,
        json!({"containers": [{"name": "n", "env": [{"name": "E"}]}]})
    );
}

#[test]
fn an_item_without_its_key_is_refused() {
    let patch = json!({"spec": {"containers": [{"image": "x"}]}});
    let answer = patched(
        "Pod",
        json!({"spec": {"containers": [{"name": "a"}]}}),
        patch,
    );
    let Err(PatchError::DoesNotApply(why)) = answer else {
        panic!("{answer:?}");
    };
    assert!(
        why.contains("does not contain declared merge key: name"),
        "{why}"
    );
}

#[test]
fn twice_is_once() {
    let target = json!({"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}});
    let patch = json!({"metadata": {"labels": {"a": "1"}}, "spec": {
        "containers": [{"name": "b"}, {"name": "a", "ports": [{"containerPort": 81, "name": "p"}]}],
        "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
        "tolerations": [{"key": "k"}],
    }});
    let once = patched("Pod", target, patch.clone()).unwrap();
    assert_eq!(patched("Pod", once.clone(), patch), Ok(once));
}
