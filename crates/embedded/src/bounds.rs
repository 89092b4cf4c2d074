//! What one object may be, as it is stored: how deep and how large. Everything that is written comes by
//! here. Whoever reads JSON gives up at 127 maps and lists inside of each other, we too when we start; and
//! lists, watches and `managedFields` put an object some levels further down.

use crate::kinds::Kind;
use crate::status::{Cause, Refused};
use serde_json::Value;

/// Maps and lists inside of each other.
pub(crate) const MAX_DEPTH: usize = 100;
/// Bytes of an object as JSON.
pub(crate) const MAX_OBJECT_BYTES: usize = 3 << 20;
/// So much more may be added to an object that is being deleted: by that it gets rid of its finalizers.
const DELETION_ALLOWANCE: usize = 64 << 10;

/// Bytes of a field's name. Names are repeated in the paths of all that is below them.
pub(crate) const MAX_NAME_BYTES: usize = 16 << 10;

/// The length of a field's name that is longer than a name may be.
pub(crate) fn long_name(value: &Value) -> Option<usize> {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(members) => {
                let mut lengths = members.keys().map(String::len);
                if let Some(length) = lengths.find(|length| *length > MAX_NAME_BYTES) {
                    return Some(length);
                }
                left.extend(members.values());
            }
            _ => {}
        }
    }
    None
}

/// How many values there are in a value, with itself.
pub(crate) fn count(value: &Value) -> usize {
    let mut left = vec![value];
    let mut counted = 0;
    while let Some(value) = left.pop() {
        counted += 1;
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(members) => left.extend(members.values()),
            _ => {}
        }
    }
    counted
}

/// Whether maps and lists are inside of each other more than so many times. Does not recurse: it is asked
/// before it is known that this would be harmless.
pub(crate) fn is_deeper(value: &Value, than: usize) -> bool {
    let mut left = vec![(value, 0)];
    while let Some((value, above)) = left.pop() {
        let depth = match value {
            Value::Array(items) => {
                left.extend(items.iter().map(|item| (item, above + 1)));
                above + 1
            }
            Value::Object(members) => {
                left.extend(members.values().map(|member| (member, above + 1)));
                above + 1
            }
            _ => continue,
        };
        if depth > than {
            return true;
        }
    }
    false
}

/// Whether an object may be stored; before it is written as JSON.
///
/// # Errors
/// Maps and lists are inside of each other more than [`MAX_DEPTH`] times.
pub(crate) fn depth(kind: &Kind, name: &str, object: &Value) -> Result<(), Refused> {
    if !is_deeper(object, MAX_DEPTH) {
        return Ok(());
    }
    let why = format!(
        "maps and lists are nested more than {MAX_DEPTH} deep, with the record of who owns them in \
         metadata.managedFields"
    );
    let cause = Cause {
        reason: "FieldValueInvalid",
        message: format!("Invalid value: {why}"),
        field: "<nil>".to_owned(),
    };
    Err(Refused::invalid(kind, name, &[cause]))
}

/// Whether it may be as large as it became. What becomes smaller is never refused.
///
/// # Errors
/// The object has more than [`MAX_OBJECT_BYTES`] bytes, and more than before.
pub(crate) fn size(
    kind: &Kind,
    name: &str,
    dying: bool,
    (before, now): (Option<usize>, usize),
) -> Result<(), Refused> {
    let most = if dying {
        MAX_OBJECT_BYTES + DELETION_ALLOWANCE
    } else {
        MAX_OBJECT_BYTES
    };
    if now <= most || before.is_some_and(|before| now <= before) {
        return Ok(());
    }
    let message = format!(
        "{} {name:?} would have {now} bytes, and an object may have {most}: keep a part of it elsewhere",
        kind.group_resource()
    );
    Err(Refused::new(413, "RequestEntityTooLarge", message).about(kind, name))
}

#[cfg(test)]
mod tests {
    use super::{count, is_deeper, long_name, size};
    use crate::kinds::Kinds;
    use serde_json::{Value, json};

    #[test]
    fn depth_is_that_of_the_deepest() {
        assert!(!is_deeper(&json!(1), 0));
        assert!(is_deeper(&json!([]), 0));
        let value = json!({"a": [1, [2]], "b": {"c": 1}});
        assert!(is_deeper(&value, 2));
        assert!(!is_deeper(&value, 3));
        assert_eq!(count(&value), 7);
        let deep = (0..1000).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        assert!(is_deeper(&deep, 999));
        assert!(!is_deeper(&deep, 1000));
    }

    #[test]
    fn long_names_are_found_wherever_they_are() {
        let name = "x".repeat(super::MAX_NAME_BYTES);
        assert_eq!(long_name(&json!([{"a": {&name: 1}}])), None);
        let longer = format!("{name}x");
        assert_eq!(long_name(&json!([{"a": {&longer: 1}}])), Some(longer.len()));
    }

    #[test]
    fn what_is_too_large_can_shrink_and_end() {
        let kinds = Kinds::builtin().unwrap();
        let kind = kinds.get("", "v1", "configmaps").unwrap();
        let most = super::MAX_OBJECT_BYTES;
        let fits = |dying, before, now| size(kind, "m", dying, (before, now)).is_ok();
        assert!(fits(false, None, most));
        assert!(!fits(false, None, most + 1));
        assert!(fits(false, Some(most + 9), most + 8));
        assert!(!fits(false, Some(most + 9), most + 10));
        assert!(fits(true, Some(most), most + 1000));
        assert!(!fits(
            true,
            Some(most),
            most + super::DELETION_ALLOWANCE + 1
        ));
    }
}
