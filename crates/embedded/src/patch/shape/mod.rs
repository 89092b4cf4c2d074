//! How the maps and lists of a kind are shared between those who write it: which lists are sets or maps by
//! key, and which values belong together. Comes from a custom kind's schema ([`custom`]) or from a table
//! of the core kinds ([`core`]). Never looks at what an object means.

mod core;
mod custom;
mod empties;

#[cfg(test)]
pub(super) use core::shape as core_kind;

use crate::kinds::Kind;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a value looks like to a merge.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Anything: maps are shared by key, lists are whole.
    Open,
    /// As [`Shape::Open`], but the members of maps are fields of a type, not entries.
    Typed,
    /// One value, whatever is in it: who says any of it says all of it.
    Atomic,
    /// A number, a text …
    Scalar(Scalar),
    /// Fields, entries, or both.
    Map(Box<Members>),
    /// A list whose items are known by something else than their place.
    List(Box<Items>),
}

/// What kind of scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Any of them.
    Any,
    /// A text.
    Text,
    /// A number, with or without a fraction.
    Number,
    /// True or false.
    Boolean,
}

/// The members of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Members {
    /// Those that the type names. Nobody owns such a field apart from what is below it.
    pub(crate) fields: BTreeMap<String, Shape>,
    /// All others.
    pub(crate) rest: Rest,
    /// Whether null may be in its place.
    pub(crate) nullable: bool,
}

/// Members that the type does not name.
#[derive(Clone, Debug, PartialEq)]
pub enum Rest {
    /// There are none.
    None,
    /// They are fields all the same.
    Fields,
    /// They are entries, each of which somebody owns.
    Entries(Shape),
}

/// The items of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Items {
    pub(crate) identity: Identity,
    pub(crate) item: Shape,
    pub(crate) strategy: Strategy,
}

/// What makes an item the same item for server-side apply.
#[derive(Clone, Debug, PartialEq)]
pub enum Identity {
    /// Nothing: the list is whole.
    None,
    /// Its value.
    Value,
    /// The values of these members.
    Keys(Vec<Key>),
}

/// A member that identifies an item.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub(crate) name: String,
    pub(crate) default: Option<Value>,
}

/// What a strategic merge patch does with a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// It is replaced.
    Replace,
    /// Scalars are added if they are not there.
    Union,
    /// Items are merged by this member.
    Merge(String),
}

static TYPED: Shape = Shape::Typed;

impl Shape {
    /// The shape of a kind's objects; made once.
    pub fn of(kind: &Kind) -> &Shape {
        match &kind.schema {
            Some(schema) => schema.shape(),
            None => core::shape(&kind.group, &kind.kind),
        }
    }

    /// The shape of a member, and whether the type names it; `None` if there can be no such member.
    pub(crate) fn member(&self, name: &str) -> Option<(&Shape, bool)> {
        match self {
            Self::Open | Self::Atomic | Self::Scalar(_) | Self::List(_) => {
                Some((&Self::Open, false))
            }
            Self::Typed => Some((&TYPED, true)),
            Self::Map(members) => match (members.fields.get(name), &members.rest) {
                (Some(field), _) => Some((field, true)),
                (None, Rest::Fields) => Some((&TYPED, true)),
                (None, Rest::Entries(entry)) => Some((entry, false)),
                (None, Rest::None) => None,
            },
        }
    }

    /// Whether it is a map in whose place null may be.
    pub(crate) fn is_nullable_map(&self) -> bool {
        matches!(self, Self::Map(members) if members.nullable)
    }

    /// How the items of a list are known; `None` if this is no list.
    pub(crate) fn items(&self) -> Option<&Items> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// Whether it is the shape of a core kind.
    pub(crate) fn is_typed(&self) -> bool {
        matches!(self, Self::Map(members) if members.rest == Rest::Fields)
    }

    /// How this value is taken apart.
    pub(crate) fn form(&self, value: &Value) -> Form<'_> {
        match (self, value) {
            (Self::Open | Self::Typed | Self::Map(_), Value::Object(_)) => Form::Map(self),
            (Self::List(items), Value::Array(_)) if items.identity != Identity::None => {
                Form::List(items)
            }
            _ => Form::Leaf,
        }
    }
}

/// How a value is taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form<'a> {
    /// Not at all.
    Leaf,
    /// By member.
    Map(&'a Shape),
    /// By item.
    List(&'a Items),
}
