//! Objects that `kubectl apply` without `--server-side` has made carry what was applied in an annotation.
//! Whoever moves on to server-side apply must not be told of conflicts with their own earlier self, and
//! the annotation stays true for those who go back.

use super::compare::Changes;
use super::field_set::fields;
use super::fields::Fields;
use crate::patch::shape::Shape;
use serde_json::Value;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The only manager for which the annotation counts.
pub(super) const KUBECTL: &str = "kubectl";

/// More than this is not kept in annotations.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// Fields that the annotation says and the object still has as it says.
pub(super) fn allowed(shape: &Shape, live: &Value, api_version: &str) -> Option<Fields> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    let changes = Changes::between(shape, &last, live);
    Some(
        fields(shape, &last)
            .difference(&changes.modified)
            .difference(&changes.added)
            .difference(&changes.removed),
    )
}

/// If an object has the annotation, makes it say what is applied now.
pub(super) fn renew(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut field_set = applied.clone();
    if let Some(Value::Object(annotations)) = field_set.pointer_mut("/metadata/annotations") {
        let _ = annotations.remove(ANNOTATION);
    }
    let text = format!("{field_set}\n");
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        if text.len() > MAX_ANNOTATION_BYTES {
            let _ = annotations.remove(ANNOTATION);
        } else {
            let _ = annotations.insert(ANNOTATION.to_owned(), text.into());
        }
    }
}

fn annotation(object: &Value) -> Option<&str> {
    let annotations = object.pointer("/metadata/annotations")?;
    let text = annotations.get(ANNOTATION)?.as_str()?;
    (!text.is_empty()).then_some(text)
}
