//! JSON patches, as the API server does them.

use super::{PatchError, json};
use serde_json::{Value, json};

fn patched(target: Value, operations: Value) -> Result<Value, PatchError> {
    let mut result = target;
    super::json(&mut result, &operations).map(|()| result)
}

#[track_caller]
fn does_not_apply(target: Value, operations: Value) {
    let answer = patched(target, operations);
    assert!(
        matches!(answer, Err(PatchError::DoesNotApply(_))),
        "{answer:?}"
    );
}

#[test]
fn members_and_items_are_added_replaced_moved_copied_and_removed() {
    let target = json!({"a": {"b": [1, 2]}, "c/d": 1, "e~f": 2});
    for (operation, result) in [
        (
            json!({"op": "add", "path": "/a/x", "value": {"y": 1}}),
            json!({"a": {"b": [1, 2], "x": {"y": 1}}, "c/d": 1, "e~f": 2}),
        ),
        (
            json!({"op": "add", "path": "/a/b/0", "value": 0}),
            json!({"a": {"b": [0, 1, 2]}, "c/d": 1, "e~f": 2}),
        ),
        (
            json!({"op": "add", "path": "/a/b/-", "value": 3}),
            json!({"a": {"b": [1, 2, 3]}, "c/d": 1, "e~f": 2}),
        ),
        (
            json!({"op": "replace", "path": "/a/b/1", "value": 9}),
            json!({"a": {"b": [1, 9]}, "c/d": 1, "e~f": 2}),
        ),
        (
            json!({"op": "remove", "path": "/c~1d"}),
            json!({"a": {"b": [1, 2]}, "e~f": 2}),
        ),
        (
            json!({"op": "move", "from": "/e~0f", "path": "/a/g"}),
            json!({"a": {"b": [1, 2], "g": 2}, "c/d": 1}),
        ),
        (
            json!({"op": "copy", "from": "/a/b", "path": "/h"}),
            json!({"a": {"b": [1, 2]}, "c/d": 1, "e~f": 2, "h": [1, 2]}),
        ),
        (
            json!({"op": "replace", "path": "", "value": {"z": 1}}),
            json!({"z": 1}),
        ),
        (
            json!({"op": "remove", "path": "/a/b/-1"}),
            json!({"a": {"b": [1]}, "c/d": 1, "e~f": 2}),
        ),
    ] {
        let operation_text = operation.to_string();
        let answer = patched(target.clone(), json!([operation]));
        assert_eq!(answer, Ok(result), "{operation_text}");
    }
}

#[test]
fn what_is_absent_is_null_to_a_test() {
    let add = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["x"]},
    ]);
    let done = patched(json!({"metadata": {}}), add.clone()).unwrap();
    assert_eq!(done, json!({"metadata": {"finalizers": ["x"]}}));
    does_not_apply(done, add);
}

#[test]
fn a_test_compares_values() {
    let target = json!({"a": [1, {"b": 2}], "n": 1});
    let test = |path: &str, value: Value| json!([{"op": "test", "path": path, "value": value}]);
    assert!(patched(target.clone(), test("/a", json!([1, {"b": 2}]))).is_ok());
    assert!(patched(target.clone(), test("/n", json!(1.0))).is_ok());
    does_not_apply(target.clone(), test("/a/0", json!("1")));
    does_not_apply(target.clone(), test("/none/deeper", json!(null)));
    does_not_apply(target, test("/a/7", json!(null)));
}

#[test]
fn all_or_nothing() {
    let mut target = json!({"a": 1});
    let operations = json!([
        {"op": "add", "path": "/b", "value": 2},
        {"op": "remove", "path": "/none"},
    ]);
    assert!(json(&mut target, &operations).is_err());
    assert_eq!(target, json!({"a": 1}));
}

#[test]
fn nonsense_is_refused() {
    for operations in [json!({}), json!("x"), json!([{}]), json!([{"path": "/a"}])] {
        let answer = patched(json!({}), operations.clone());
        assert!(
            matches!(answer, Err(PatchError::Malformed(_))),
            "{operations}: {answer:?}"
        );
    }
    let target = json!({"a": [1], "s": "x"});
    for operation in [
        json!({"op": "steal", "path": "/a"}),
        json!({"op": "add"}),
        json!({"op": "add", "path": "/x/y", "value": 1}),
        json!({"op": "add", "path": "/a/2", "value": 1}),
        json!({"op": "add", "path": "/a/x", "value": 1}),
        json!({"op": "add", "path": "/s/x", "value": 1}),
        json!({"op": "remove", "path": "/a/-2"}),
        json!({"op": "remove", "path": ""}),
        json!({"op": "move", "path": "/b"}),
        json!({"op": "move", "from": "/none", "path": "/b"}),
        json!({"op": "replace", "path": "/a/1", "value": 1}),
    ] {
        does_not_apply(target.clone(), json!([operation]));
    }
}

#[test]
fn there_is_an_end_to_operations_and_to_copies() {
    let many = vec![json!({"op": "test", "path": "/a", "value": null}); 10_001];
    let answer = patched(json!({}), Value::Array(many));
    assert!(matches!(answer, Err(PatchError::TooLarge(_))), "{answer:?}");
    let double = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    let answer = patched(json!({"a": ["xxxxxxxx"]}), Value::Array(vec![double; 64]));
    assert!(matches!(answer, Err(PatchError::DoesNotApply(_))));
}
