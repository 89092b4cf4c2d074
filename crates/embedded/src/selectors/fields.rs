//! Field selectors: `metadata.name=a,status.phase!=Failed`, over the few fields that a kind offers.

use crate::kinds::Kind;
use serde_json::Value;

/// A parsed field selector: all of its terms must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    label: String,
    value: String,
    equal: bool,
}

impl Fields {
    /// Reads a selector for objects of a kind; an empty text selects everything.
    ///
    /// # Errors
    /// The text of a `BadRequest`: no selector, or a field that the kind does not offer.
    pub fn parse(kind: &Kind, text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in split(text) {
            if part.is_empty() {
                continue;
            }
            let term = term(part)
                .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
            if !offers(kind, &term.label) {
                return Err(not_offered(kind, &term.label));
            }
            terms.push(term);
        }
        Ok(Self(terms))
    }

    /// Whether it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one name that it selects, if it says so.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.exactly("metadata.name")
    }

    /// The one value that it wants of a field, if it says so.
    #[must_use]
    pub fn exactly(&self, label: &str) -> Option<&str> {
        let term = self
            .0
            .iter()
            .find(|term| term.equal && term.label == label)?;
        Some(&term.value)
    }

    /// Whether an object of the kind is selected.
    #[must_use]
    pub fn matches(&self, kind: &Kind, object: &Value) -> bool {
        let holds = |term: &Term| (value_of(kind, object, &term.label) == term.value) == term.equal;
        self.0.iter().all(holds)
    }

    /// Whether something with these values is selected; what is absent is empty.
    pub fn matches_with<'a>(&self, get: &dyn Fn(&str) -> Option<&'a str>) -> bool {
        let holds = |term: &Term| (get(&term.label).unwrap_or("") == term.value) == term.equal;
        self.0.iter().all(holds)
    }
}

/// The value of a field that the kind offers, as text.
#[must_use]
pub fn value_of(kind: &Kind, object: &Value, label: &str) -> String {
    let at = |path: &str| {
        path.split('.')
            .try_fold(object, |value, key| value.get(key))
    };
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    };
    let found = text(at(label));
    match (kind.kind.as_str(), label) {
        ("Event", "source") if kind.core => {
            let component = text(at("source.component"));
            if component.is_empty() {
                text(at("reportingComponent"))
            } else {
                component
            }
        }
        ("Node", "spec.unschedulable") | ("Pod", "spec.hostNetwork")
            if kind.core && found.is_empty() =>
        {
            "false".to_owned()
        }
        _ => found,
    }
}

fn offers(kind: &Kind, label: &str) -> bool {
    match label {
        "metadata.name" => true,
        "metadata.namespace" => kind.namespaced || plain(kind),
        _ => kind.selectable.iter().any(|known| known == label),
    }
}

/// Kubernetes has two sentences: one for kinds that offer nothing but their metadata.
fn not_offered(kind: &Kind, label: &str) -> String {
    if plain(kind) {
        format!(
            "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )
    } else {
        format!("field label not supported: {label}")
    }
}

fn plain(kind: &Kind) -> bool {
    kind.core && kind.selectable.is_empty()
}

/// At commas that no backslash protects.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut protected = false;
    for (index, c) in text.char_indices() {
        if c == ',' && !protected {
            parts.push(&text[start..index]);
            start = index + 1;
        }
        protected = c == '\\' && !protected;
    }
    parts.push(&text[start..]);
    parts
}

fn term(part: &str) -> Option<Term> {
    let (at, sign) = part.char_indices().find_map(|(index, _)| {
        let rest = &part[index..];
        ["!=", "==", "="]
            .into_iter()
            .find(|sign| rest.starts_with(sign))
            .map(|sign| (index, sign))
    })?;
    Some(Term {
        label: part[..at].to_owned(),
        value: unescaped(&part[at + sign.len()..])?,
        equal: sign != "!=",
    })
}

/// `\,`, `\=` and `\\` stand for their second character; nothing else does.
fn unescaped(value: &str) -> Option<String> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(chars.next().filter(|next| "\\,=".contains(*next))?),
            ',' | '=' => return None,
            c => plain.push(c),
        }
    }
    Some(plain)
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
