//! The forms that objects are given out in.

use serde_json::{Value, json};

/// `-o`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// A table.
    #[default]
    Table,
    /// A table with more columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Names alone.
    Name,
}

/// Objects as JSON or YAML; none if the form is another. One that was asked for by name is itself,
/// several are a List, of whatever kinds they are.
pub fn objects(form: Form, objects: &[Value], single: bool) -> Option<String> {
    let whole = || match (objects, single) {
        ([one], true) => one.clone(),
        _ => json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": objects}),
    };
    match form {
        Form::Table | Form::Wide | Form::Name => None,
        Form::Json => Some(json_text(&whole())),
        Form::Yaml => Some(yaml_text(&whole())),
    }
}

/// A value as indented JSON.
pub fn json_text(value: &Value) -> String {
    format!("{value:#}\n")
}

/// A value as YAML.
pub fn yaml_text(value: &Value) -> String {
    serde_yaml_ng::to_string(value).unwrap_or_else(|_| json_text(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let list = [
            json!({"metadata": {"name": "a"}}),
            json!({"metadata": {"name": "b"}}),
        ];
        let rendered = |form, single| objects(form, &list, single);
        assert_eq!(rendered(Form::Table, false), None);
        assert_eq!(rendered(Form::Wide, false), None);
        let both: Value = serde_json::from_str(&rendered(Form::Json, false).unwrap()).unwrap();
        assert_eq!(both["items"].as_array().unwrap().len(), 2);
        let one = objects(Form::Yaml, &list[..1], true).unwrap();
        assert_eq!(one, "metadata:\n  name: a\n");
        let listed = objects(Form::Yaml, &list[..1], false).unwrap();
        assert!(listed.contains("kind: List"), "{listed}");
    }
}
