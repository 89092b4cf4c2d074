//! JSON paths as printer columns have them: `.spec.a`, `['a.b']`, `.a\.b`, `[0]`, `[-1]`, `[*]`,
//! `[?(@.type=="Ready")]`. What is not understood finds nothing.

use serde_json::Value;

/// Everything that a path finds, in order.
pub(super) fn find<'a>(object: &'a Value, path: &str) -> Vec<&'a Value> {
    let inner = path.trim();
    let inner = inner
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or(inner);
    let Some(steps) = steps(inner.strip_prefix('$').unwrap_or(inner)) else {
        return Vec::new();
    };
    let mut found = vec![object];
    for step in &steps {
        found = found.into_iter().flat_map(|value| step.of(value)).collect();
    }
    found
}

enum Step {
    Key(String),
    Index(i64),
    All,
    /// Items in which the path has this value; unequal: another one.
    Where {
        path: Vec<Step>,
        equal: bool,
        value: String,
    },
}

impl Step {
    fn of<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Step::Key(key) => value.get(key).into_iter().collect(),
            Step::Index(index) => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let at = match usize::try_from(*index) {
                    Ok(at) => Some(at),
                    Err(_) => usize::try_from(index.unsigned_abs())
                        .ok()
                        .and_then(|back| items.len().checked_sub(back)),
                };
                at.and_then(|at| items.get(at)).into_iter().collect()
            }
            Step::All => match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                _ => Vec::new(),
            },
            Step::Where {
                path,
                equal,
                value: wanted,
            } => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let holds = |item: &&Value| {
                    let mut found = vec![*item];
                    for step in path {
                        found = found.into_iter().flat_map(|value| step.of(value)).collect();
                    }
                    found
                        .first()
                        .is_some_and(|value| (text(value) == *wanted) == *equal)
                };
                items.iter().filter(holds).collect()
            }
        }
    }
}

/// A value as a cell shows it.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn steps(mut rest: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let end = closing(after)?;
            steps.push(bracket(after[..end].trim())?);
            rest = &after[end + 1..];
        } else {
            let after = rest.strip_prefix('.').unwrap_or(rest);
            let (key, remaining) = key(after);
            match key.as_str() {
                // A path of a single dot is the object itself.
                "" if remaining.is_empty() || remaining.starts_with('[') => {}
                "" => return None,
                "*" => steps.push(Step::All),
                _ => steps.push(Step::Key(key)),
            }
            rest = remaining;
        }
    }
    Some(steps)
}

/// Up to the next dot or bracket that no backslash protects.
fn key(text: &str) -> (String, &str) {
    let mut key = String::new();
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '\\' => key.extend(chars.next().map(|(_, next)| next)),
            '.' | '[' => return (key, &text[index..]),
            c => key.push(c),
        }
    }
    (key, "")
}

/// Where the bracket ends: not inside quotes or inner brackets.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (index, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(index),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<Step> {
    if inner == "*" {
        return Some(Step::All);
    }
    if let Some(key) = quoted(inner) {
        return Some(Step::Key(key.to_owned()));
    }
    if let Some(filter) = inner
        .strip_prefix("?(")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        let (path, sign, value) = ["==", "!="].into_iter().find_map(|sign| {
            filter
                .split_once(sign)
                .map(|(path, value)| (path, sign, value))
        })?;
        let value = value.trim();
        return Some(Step::Where {
            path: steps(path.trim().strip_prefix('@')?)?,
            equal: sign == "==",
            value: quoted(value).unwrap_or(value).to_owned(),
        });
    }
    inner.parse().ok().map(Step::Index)
}

fn quoted(text: &str) -> Option<&str> {
    ['\'', '"']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

#[cfg(test)]
mod tests {
    use super::find;
    use serde_json::{Value, json};

    fn found(path: &str) -> Vec<Value> {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "dotted"}},
            "spec": {"list": [{"name": "x", "n": 1}, {"name": "y]", "n": 2}], "text": "t"},
        });
        find(&object, path).into_iter().cloned().collect()
    }

    #[test]
    fn every_step_is_understood() {
        for (path, values) in [
            (".spec.text", json!(["t"])),
            ("{.spec.text}", json!(["t"])),
            ("$.spec.text", json!(["t"])),
            (".spec['text']", json!(["t"])),
            (".metadata.labels.a\\.b/c", json!(["dotted"])),
            (".metadata.labels['a.b/c']", json!(["dotted"])),
            (".spec.list[0].n", json!([1])),
            (".spec.list[-1].n", json!([2])),
            (".spec.list[*].name", json!(["x", "y]"])),
            (".spec.list[?(@.name==\"y]\")].n", json!([2])),
            (".spec.list[?(@.name != 'x')].n", json!([2])),
            (".spec.list[?(@.n==1)].name", json!(["x"])),
        ] {
            assert_eq!(Value::from(found(path)), values, "{path}");
        }
    }

    #[test]
    fn what_is_absent_or_nonsense_finds_nothing() {
        for path in [
            ".spec.none",
            ".spec.list[7]",
            ".spec.list[-7]",
            ".spec.text[0]",
            ".spec.list[",
            "..",
            ".spec.list[?(name)]",
            ".spec.list[1e9]",
            ".spec..text",
        ] {
            assert_eq!(found(path), Vec::<Value>::new(), "{path}");
        }
    }
}
