//! Values against their schema, in the order and the words of the real server.

use super::formats;
use super::immutable::PreviousItems;
use super::node::{Logic, Node, Others, Type};
use super::numbers::{self, Numeric, unplaced, value_text};
use crate::path::Path;
use crate::status::{Cause, MAX_PROBLEMS};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Everything that is wrong with a value, or enough of it. What is as it was before is not looked at.
pub(super) fn problems(schema: &Node, old: Option<&Value>, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    check(schema, old, new, &mut Path::default(), &mut causes);
    causes
}

fn check(
    schema: &Node,
    old: Option<&Value>,
    value: &Value,
    path: &mut Path,
    causes: &mut Vec<Cause>,
) {
    if causes.len() > MAX_PROBLEMS || old == Some(value) {
        return;
    }
    check_type(schema, value, path.text(), causes);
    if !value.is_null() {
        if let Some(logic) = &schema.logic {
            check_logic(logic, value, path, causes);
        }
        match value {
            Value::String(text) => check_text(schema, text, path.text(), causes),
            Value::Number(number) => numbers::problems(schema, number, path.text(), causes),
            Value::Array(items) => check_list(schema, old, items, path, causes),
            _ => {}
        }
    }
    check_choice(schema, value, path.text(), causes);
    if let Value::Object(members) = value {
        check_map(schema, old, members, path, causes);
    }
}

fn check_type(schema: &Node, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if schema.types.is_empty() {
        return;
    }
    let mut wrong = |wanted: &str, found: &str| causes.push(type_problem(path, wanted, found));
    let names: Vec<&str> = schema.types.iter().map(|kind| kind.name()).collect();
    let names = names.join(",");
    let (found, precision) = match value {
        Value::Null if schema.nullable => return,
        Value::Null => return wrong(&names, "null"),
        Value::Bool(_) => (Type::Boolean, ""),
        Value::String(_) => (Type::String, ""),
        Value::Array(_) => (Type::Array, ""),
        Value::Object(_) => (Type::Object, ""),
        Value::Number(number) => match Numeric::of(number) {
            Numeric::Integer(_) => (Type::Integer, "int64"),
            Numeric::Double(_) => (Type::Number, "float64"),
        },
    };
    let integral = matches!(value, Value::Number(number) if Numeric::of(number).is_integral());
    let fits = schema.types.contains(&found)
        || (integral && schema.types.contains(&Type::Integer))
        || (found == Type::Integer && schema.types.contains(&Type::Number));
    if fits {
        return;
    }
    let format = checked_format(schema);
    if !format.is_empty() && !matches!(found, Type::String | Type::Array) {
        return wrong(format, precision);
    }
    let numeric = |kind: &Type| matches!(kind, Type::Integer | Type::Number);
    let skipped = !format.is_empty() && !schema.types.iter().any(numeric);
    if !skipped {
        wrong(&names, found.name());
    }
}

fn type_problem(path: &str, wanted: &str, found: &str) -> Cause {
    Cause {
        reason: "FieldValueTypeInvalid",
        message: format!(
            "Invalid value: {found:?}: {path} in body must be of type {wanted}: {found:?}"
        ),
        field: placed(path),
    }
}

/// Formats that the server does not look at are as good as none.
fn checked_format(schema: &Node) -> &str {
    let format = schema.format.as_str();
    let looked_at = match schema.types.as_slice() {
        [] | [Type::String] => formats::is_known(format),
        [Type::Integer] => matches!(format, "int32" | "int64"),
        [Type::Number] => matches!(format, "float" | "double"),
        _ => false,
    };
    if looked_at { format } else { "" }
}

fn check_text(schema: &Node, text: &str, path: &str, causes: &mut Vec<Cause>) {
    let length = text.chars().count() as u64;
    let limits = &schema.limits;
    let wrong =
        |what: String| Cause::invalid(path, &text.into(), format!("{path} in body should {what}"));
    if let Some(most) = limits.max_length
        && length > most
    {
        let bytes = if most == 1 { "byte" } else { "bytes" };
        causes.push(Cause {
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {most} {bytes}"),
            field: placed(path),
        });
    } else if let Some(least) = limits.min_length
        && length < least
    {
        causes.push(wrong(format!("be at least {least} chars long")));
    } else if let Some(pattern) = &schema.pattern
        && !pattern.is_match(text)
    {
        causes.push(wrong(format!("match '{}'", pattern.as_str())));
    }
    let format = match schema.types.as_slice() {
        [] | [Type::String] => checked_format(schema),
        _ => "",
    };
    if !formats::fits(format, text) {
        causes.push(type_problem(path, format, text));
    }
}

fn check_list(
    schema: &Node,
    old: Option<&Value>,
    items: &[Value],
    path: &mut Path,
    causes: &mut Vec<Cause>,
) {
    let before = old.and_then(Value::as_array);
    let before = before.map(|before| PreviousItems::of(&schema.list_type, before));
    if let Some(item) = schema.item() {
        for (index, value) in items.iter().enumerate() {
            if causes.len() > MAX_PROBLEMS {
                return;
            }
            let old = before.as_ref().and_then(|before| before.item(value));
            path.item(index, |path| check(item, old, value, path, causes));
        }
    }
    let path = path.text();
    let count = items.len() as u64;
    if let Some(least) = schema.limits.min_items
        && count < least
    {
        let why = format!("{path} in body should have at least {least} items");
        causes.push(Cause::invalid(path, &count.into(), why));
    }
    if let Some(most) = schema.limits.max_items
        && count > most
    {
        causes.push(too_many(path, count, most));
    }
    let mut seen = BTreeSet::new();
    let mut again = |item: &Value| !seen.insert(item.to_string());
    if schema.unique_items && items.iter().any(&mut again) {
        let why = format!("{path} in body shouldn't contain duplicates");
        causes.push(Cause::invalid(path, &"".into(), why));
    }
}

fn check_map(
    schema: &Node,
    old: Option<&Value>,
    members: &Map<String, Value>,
    path: &mut Path,
    causes: &mut Vec<Cause>,
) {
    let count = members.len() as u64;
    if let Some(least) = schema.limits.min_properties
        && count < least
    {
        let why = format!(
            "{} in body should have at least {least} properties",
            path.text()
        );
        causes.push(Cause::invalid(path.text(), &count.into(), why));
    }
    if let Some(most) = schema.limits.max_properties
        && count > most
    {
        causes.push(too_many(path.text(), count, most));
    }
    for (name, member) in members {
        if causes.len() > MAX_PROBLEMS {
            return;
        }
        let old = old.and_then(|old| old.get(name));
        if let Some(known) = schema.member(name) {
            path.member(name, |path| check(known, old, member, path, causes));
        } else if matches!(schema.others, Others::None) {
            let inside = path.member(name, |path| path.shortened());
            let why = format!("{inside} in body is a forbidden property");
            causes.push(Cause::invalid(path.text(), &name.as_str().into(), why));
        }
    }
    for name in &schema.required {
        if !members.contains_key(name) {
            let missing = path.member(name, |path| path.shortened());
            causes.push(Cause::required(missing, ""));
        }
    }
}

fn too_many(path: &str, count: u64, most: u64) -> Cause {
    let items = if most == 1 { "item" } else { "items" };
    Cause {
        reason: "FieldValueTooMany",
        message: format!("Too many: {count}: must have at most {most} {items}"),
        field: placed(path),
    }
}

fn check_choice(schema: &Node, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(choices) = &schema.choices else {
        return;
    };
    let same = |choice: &Value| match (choice, value) {
        (Value::Number(one), Value::Number(other)) => Numeric::of(one) == Numeric::of(other),
        (one, other) => !other.is_null() && one == other,
    };
    if choices.iter().any(same) {
        return;
    }
    let names: Vec<String> = choices
        .iter()
        .map(|choice| match choice {
            Value::String(text) => format!("{text:?}"),
            other => format!("{:?}", other.to_string()),
        })
        .collect();
    causes.push(Cause {
        reason: "FieldValueNotSupported",
        message: format!(
            "Unsupported value: {}: supported values: {}",
            value_text(value),
            names.join(", ")
        ),
        field: placed(path),
    });
}

/// Branches see the new value only: what is unchanged is let through by those above.
fn check_logic(logic: &Logic, value: &Value, path: &mut Path, causes: &mut Vec<Cause>) {
    let mut faults = |branches: &[Node]| -> Vec<Vec<Cause>> {
        let each = branches.iter().map(|branch| {
            let mut causes = Vec::new();
            check(branch, None, value, path, &mut causes);
            causes
        });
        each.collect()
    };
    let (any, one, all) = (faults(&logic.any), faults(&logic.one), faults(&logic.all));
    let not = logic
        .not
        .as_ref()
        .map(|not| faults(std::slice::from_ref(not)));
    let valid = |faults: &[Vec<Cause>]| faults.iter().filter(|found| found.is_empty()).count();
    let best = |faults: Vec<Vec<Cause>>| faults.into_iter().min_by_key(Vec::len);
    let path = path.shortened();
    if !any.is_empty() && valid(&any) == 0 {
        let why = format!("{path:?} must validate at least one schema (anyOf)");
        causes.push(unplaced(why));
        causes.extend(best(any).unwrap_or_default());
    }
    if !one.is_empty() {
        match valid(&one) {
            1 => {}
            0 => {
                let why = "must validate one and only one schema (oneOf). Found none valid";
                causes.push(unplaced(format!("{path:?} {why}")));
                causes.extend(best(one).unwrap_or_default());
            }
            count => causes.push(unplaced(format!(
                "{path:?} must validate one and only one schema (oneOf). \
                 Found {count} valid alternatives"
            ))),
        }
    }
    if valid(&all) < all.len() {
        let none = if valid(&all) == 0 {
            ". None validated"
        } else {
            ""
        };
        causes.extend(all.into_iter().flatten());
        let why = format!("{path:?} must validate all the schemas (allOf){none}");
        causes.push(unplaced(why));
    }
    if not.is_some_and(|not| valid(&not) > 0) {
        let why = format!("{path:?} must not validate the schema (not)");
        causes.push(unplaced(why));
    }
}

/// The object itself has no path.
fn placed(path: &str) -> String {
    if path.is_empty() { "<nil>" } else { path }.to_owned()
}
