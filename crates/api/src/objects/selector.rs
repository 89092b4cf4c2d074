//! Which namespaces a selector of labels means, as Kubernetes defines it. One that says nothing means nobody: what a schema
//! does not know is pruned, and what is left of a selector must not open a network to everybody.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Labels and requirements that must all hold; without any, nothing fits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(
    feature = "objects",
    derive(schemars::JsonSchema),
    schemars(extend("x-kubernetes-validations" = super::rules::SELECTOR))
)]
pub struct LabelSelector {
    /// Key and value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "objects", schemars(extend("maxProperties" = 64)))]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "objects", schemars(length(max = 64)))]
    pub match_expressions: Vec<LabelRequirement>,
}

/// What must hold of one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    feature = "objects",
    derive(schemars::JsonSchema),
    schemars(extend("x-kubernetes-validations" = super::rules::REQUIREMENT))
)]
pub struct LabelRequirement {
    /// The label.
    #[cfg_attr(feature = "objects", schemars(length(min = 1, max = 317)))]
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: LabelOperator,
    /// With `In` and `NotIn`: the values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "objects",
        schemars(length(max = 64), inner(length(max = 63)))
    )]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub enum LabelOperator {
    /// It has one of the values.
    In,
    /// It has none of the values, or is not there.
    NotIn,
    /// It is there.
    Exists,
    /// It is not there.
    DoesNotExist,
}

impl LabelSelector {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether something with these labels is meant.
    pub fn fits(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut wanted = self.match_labels.iter();
        let mut requirements = self.match_expressions.iter();
        !self.is_empty()
            && wanted.all(|(key, value)| labels.get(key) == Some(value))
            && requirements.all(|one| one.fits(labels))
    }
}

impl LabelRequirement {
    /// Whether its operator has the values that it needs, and no others.
    pub fn is_sound(&self) -> bool {
        let compares = matches!(self.operator, LabelOperator::In | LabelOperator::NotIn);
        compares != self.values.is_empty()
    }

    fn fits(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let listed = value.is_some_and(|value| self.values.contains(value));
        self.is_sound()
            && match self.operator {
                LabelOperator::In => listed,
                LabelOperator::NotIn => !listed,
                LabelOperator::Exists => value.is_some(),
                LabelOperator::DoesNotExist => value.is_none(),
            }
    }
}

/// As kubectl writes it.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.match_labels.iter();
        let labels = labels.map(|(key, value)| format!("{key}={value}"));
        let requirements = self.match_expressions.iter().map(ToString::to_string);
        let all: Vec<String> = labels.chain(requirements).collect();
        f.write_str(&all.join(", "))
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            LabelOperator::In => write!(f, "{key} in ({values})"),
            LabelOperator::NotIn => write!(f, "{key} notin ({values})"),
            LabelOperator::Exists => write!(f, "{key}"),
            LabelOperator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn fits_as_kubernetes_defines_it_and_empty_fits_nobody() {
        let one = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "team", "operator": operator, "values": values}]});
        let both = json!({"matchLabels": {"team": "a"},
            "matchExpressions": [{"key": "stage", "operator": "DoesNotExist"}]});
        // Whether it fits a namespace with team=a, with team=c, and without labels.
        for (selector, expected) in [
            (json!({}), [false, false, false]),
            (
                json!({"matchLabels": {}, "matchExpressions": []}),
                [false, false, false],
            ),
            (json!({"matchLabels": {"team": "a"}}), [true, false, false]),
            (one("In", &["a", "b"]), [true, false, false]),
            (one("NotIn", &["a", "b"]), [false, true, true]),
            (one("Exists", &[]), [true, true, false]),
            (one("DoesNotExist", &[]), [false, false, true]),
            (both, [true, false, false]),
            // What Kubernetes refuses.
            (one("In", &[]), [false, false, false]),
            (one("NotIn", &[]), [false, false, false]),
            (one("Exists", &["a"]), [false, false, false]),
            (one("DoesNotExist", &["a"]), [false, false, false]),
        ] {
            let read: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
            let found = [json!({"team": "a"}), json!({"team": "c"}), json!({})];
            let found =
                found.map(|labels: Value| read.fits(&serde_json::from_value(labels).unwrap()));
            assert_eq!(found, expected, "{selector}");
        }
        let selector = json!({"matchLabels": {"team": "a"}, "matchExpressions": [
            {"key": "x", "operator": "In", "values": ["1", "2"]},
            {"key": "y", "operator": "NotIn", "values": ["1"]},
            {"key": "z", "operator": "Exists"}, {"key": "w", "operator": "DoesNotExist"}]});
        let selector: LabelSelector = serde_json::from_value(selector).unwrap();
        let expected = "team=a, x in (1,2), y notin (1), z, !w";
        assert_eq!(selector.to_string(), expected);
    }
}
