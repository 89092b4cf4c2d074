//! The rules between fields that our definitions have (`x-kubernetes-validations`), at work. Where
//! they are and what is said is read from the definitions; what each means is in [`known`], by its
//! text. A rule that is not known there is an error, not something to skip.

use super::known::{self, Check};
use anyhow::{Context, anyhow};
use plexus_embedded::status::Cause;
use serde_json::Value;
use std::collections::BTreeMap;

/// The rules of a place in a schema, and of what is inside.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    here: Vec<Rule>,
    fields: BTreeMap<String, Rules>,
    /// Of every other field.
    others: Option<Box<Rules>>,
    items: Option<Box<Rules>>,
}

#[derive(Debug)]
struct Rule {
    check: Check,
    message: String,
}

impl Rules {
    /// Reads the rules of a schema; none if it has none.
    pub(crate) fn of(schema: &Value) -> anyhow::Result<Option<Self>> {
        let mut rules = Rules::default();
        let written = schema.get("x-kubernetes-validations");
        for rule in written.and_then(Value::as_array).into_iter().flatten() {
            rules.here.extend(Rule::of(rule)?);
        }
        let fields = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in fields.into_iter().flatten() {
            if let Some(inner) = Rules::of(schema)? {
                rules.fields.insert(name.clone(), inner);
            }
        }
        let inner = |key: &str| -> anyhow::Result<Option<Box<Rules>>> {
            let schema = schema.get(key).filter(|schema| schema.is_object());
            Ok(schema.map(Rules::of).transpose()?.flatten().map(Box::new))
        };
        rules.others = inner("additionalProperties")?;
        rules.items = inner("items")?;
        let empty = rules.here.is_empty() && rules.fields.is_empty();
        let empty = empty && rules.others.is_none() && rules.items.is_none();
        Ok((!empty).then_some(rules))
    }

    /// Those that an object breaks. What it has as it was before is not looked at.
    pub(crate) fn broken(&self, old: Option<&Value>, new: &Value) -> Vec<Cause> {
        let mut found = Vec::new();
        self.check("", old, new, &mut found);
        found
    }

    fn check(&self, path: &str, old: Option<&Value>, new: &Value, found: &mut Vec<Cause>) {
        if old == Some(new) {
            return;
        }
        let broken = self.here.iter().filter(|rule| !rule.holds(old, new));
        found.extend(broken.map(|rule| {
            let what = Value::from(type_of(new));
            Cause::invalid(path, &what, &rule.message)
        }));
        for (name, value) in new.as_object().into_iter().flatten() {
            let old = old.and_then(|old| old.get(name));
            match (self.fields.get(name), &self.others) {
                (Some(rules), _) => rules.check(&field(path, name), old, value, found),
                (None, Some(rules)) => rules.check(&format!("{path}[{name}]"), old, value, found),
                (None, None) => {}
            }
        }
        if let Some(rules) = &self.items {
            // Which element was which is not known.
            for (number, value) in new.as_array().into_iter().flatten().enumerate() {
                rules.check(&format!("{path}[{number}]"), None, value, found);
            }
        }
    }
}

impl Rule {
    /// None for one that the server itself looks after.
    fn of(written: &Value) -> anyhow::Result<Option<Self>> {
        let text = |key: &str| written.get(key).and_then(Value::as_str);
        let rule = text("rule").context("a rule of a definition has no text")?;
        let check = known::find(rule).ok_or_else(|| {
            anyhow!("nobody here knows what this rule of a definition means: {rule}")
        })?;
        let message = text("message").unwrap_or(rule).to_owned();
        Ok((!matches!(check, Check::ByTheServer)).then_some(Self { check, message }))
    }

    fn holds(&self, old: Option<&Value>, new: &Value) -> bool {
        match (self.check, old) {
            (Check::Now(check), _) => check(new),
            (Check::Change(check), Some(old)) => check(old, new),
            (Check::Change(_), None) | (Check::ByTheServer, _) => true,
        }
    }
}

fn field(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::Null => "null",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_that_nobody_knows_is_an_error() {
        let schema = json!({"properties": {"spec": {"x-kubernetes-validations":
            [{"rule": "self.a < self.b", "message": "a first"}]}}});
        let error = Rules::of(&schema).unwrap_err().to_string();
        assert!(error.contains("self.a < self.b"), "{error}");
        assert!(
            Rules::of(&json!({"properties": {"spec": {}}}))
                .unwrap()
                .is_none()
        );
    }
}
