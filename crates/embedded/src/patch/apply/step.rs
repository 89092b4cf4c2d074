//! One step of a path into an object, and its two spellings: in `fieldsV1` (`f:spec`, `k:{"name":"a"}`,
//! `v:"x"`) and for people (`.spec`, `[name="a"]`, `[="x"]`).

use crate::patch::shape::{Identity, Items};
use serde_json::{Map, Number, Value};
use std::fmt::{self, Write};

/// Scalars are kept as JSON text, numbers in one spelling.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// A member of a map.
    Field(String),
    /// The item with these members, by name.
    Item(Vec<(String, String)>),
    /// The item that is this scalar.
    Value(String),
    /// The item at this place. Nobody writes it any more.
    Index(i64),
}

impl Step {
    /// The step to an item; the error says why there is none.
    pub(super) fn of_item(items: &Items, item: &Value) -> Result<Self, String> {
        match &items.identity {
            Identity::None => Err("invalid indexing of non-associative list".to_owned()),
            Identity::Value => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => {
                    Err("not supported: associative list with lists as elements".to_owned())
                }
                Value::Null => Err(
                    "associative list without keys has an element that's an explicit null"
                        .to_owned(),
                ),
                scalar => Ok(Self::Value(text(scalar))),
            },
            Identity::Keys(keys) => {
                let Value::Object(members) = item else {
                    let what = if item.is_null() {
                        "a null element"
                    } else {
                        "non-map elements"
                    };
                    return Err(format!("associative list with keys may not have {what}"));
                };
                let mut found: Vec<(String, String)> = keys
                    .iter()
                    .filter_map(|key| {
                        let value = members.get(&key.name).or(key.default.as_ref())?;
                        Some((key.name.clone(), text(value)))
                    })
                    .collect();
                if found.is_empty() {
                    let names: Vec<String> =
                        keys.iter().map(|key| format!("{:?}", key.name)).collect();
                    return Err(format!(
                        "associative list with keys has an element that omits all key fields [{}] \
                         (and doesn't have default values for any key fields)",
                        names.join(" ")
                    ));
                }
                found.sort_unstable();
                Ok(Self::Item(found))
            }
        }
    }

    /// As a key of `fieldsV1`.
    pub(super) fn wire(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Item(keys) => {
                let keys: Vec<String> = keys
                    .iter()
                    .map(|(name, value)| format!("{}:{value}", text(&name.as_str().into())))
                    .collect();
                format!("k:{{{}}}", keys.join(","))
            }
            Self::Value(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// From a key of `fieldsV1`.
    pub(super) fn parse(wire: &str) -> Option<Self> {
        let (kind, rest) = wire.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
                let keys = keys.iter().map(|(name, value)| (name.clone(), text(value)));
                Some(Self::Item(keys.collect()))
            }
            "v" => Some(Self::Value(text(&serde_json::from_str(rest).ok()?))),
            "i" => Some(Self::Index(rest.parse().ok()?)),
            _ => None,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Item(keys) => {
                for (index, (name, value)) in keys.iter().enumerate() {
                    out.write_char(if index == 0 { '[' } else { ',' })?;
                    write!(out, "{name}={value}")?;
                }
                out.write_char(']')
            }
            Self::Value(value) => write!(out, "[={value}]"),
            Self::Index(index) => write!(out, "[{index}]"),
        }
    }
}

/// JSON text in which equal numbers are spelled alike.
fn text(value: &Value) -> String {
    match value {
        Value::Number(number) => number_text(number),
        other => other.to_string(),
    }
}

fn number_text(number: &Number) -> String {
    const EXACT: f64 = 9_007_199_254_740_991.0;
    match number.as_f64() {
        Some(double) if number.is_f64() && double.trunc() == double && double.abs() <= EXACT => {
            format!("{double:.0}")
        }
        _ => number.to_string(),
    }
}
