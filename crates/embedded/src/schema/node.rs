//! One node of a schema: plain data, made by [`super::parse`].

use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Empty: any. An int-or-string has two.
    pub(crate) types: Vec<Type>,
    pub(crate) nullable: bool,
    pub(crate) format: String,
    pub(crate) default: Option<Value>,
    pub(crate) choices: Option<Vec<Value>>,
    pub(crate) properties: BTreeMap<String, Node>,
    pub(crate) others: Others,
    pub(crate) required: Vec<String>,
    pub(crate) items: Option<Box<Node>>,
    pub(crate) limits: Limits,
    pub(crate) pattern: Option<Regex>,
    pub(crate) unique_items: bool,
    pub(crate) logic: Option<Box<Logic>>,
    pub(crate) preserve_unknown: bool,
    pub(crate) embedded: bool,
    pub(crate) list_type: ListType,
    pub(crate) whole_map: bool,
    /// What to say when it changes, per rule `self == oldSelf`.
    pub(crate) immutable: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// `additionalProperties`.
#[derive(Clone, Debug, Default)]
pub(crate) enum Others {
    /// The schema does not declare it.
    #[default]
    Undeclared,
    Any,
    None,
    Each(Box<Node>),
}

impl Others {
    pub(crate) fn each(&self) -> Option<&Node> {
        match self {
            Self::Each(node) => Some(node),
            _ => None,
        }
    }
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) minimum: Option<f64>,
    pub(crate) maximum: Option<f64>,
    pub(crate) above_minimum: bool,
    pub(crate) below_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
}

/// `allOf`, `anyOf`, `oneOf`, `not`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logic {
    pub(crate) all: Vec<Node>,
    pub(crate) any: Vec<Node>,
    pub(crate) one: Vec<Node>,
    pub(crate) not: Option<Node>,
}

impl Node {
    /// The schema of a member, if it has one.
    pub(crate) fn member(&self, name: &str) -> Option<&Node> {
        self.properties.get(name).or_else(|| self.others.each())
    }

    /// The schema of the items, if there is one.
    pub(crate) fn item(&self) -> Option<&Node> {
        self.items.as_deref()
    }
}
