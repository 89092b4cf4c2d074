//! Merge patches (RFC 7386).

use serde_json::{Map, Value};

/// Sets what the patch says, member by member; `null` removes; lists are replaced.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(object) = target else {
        return;
    };
    for (key, value) in members {
        if value.is_null() {
            let _ = object.remove(key);
        } else {
            merge(object.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}
