//! The shape of a custom kind, from its schema.

use super::{Identity, Items, Key, Members, Rest, Scalar, Shape, Strategy, core};
use crate::schema::{ListType, Node, Others, Type};
use std::collections::BTreeMap;

impl Shape {
    /// That of objects with this schema.
    pub(crate) fn of_schema(root: &Node) -> Shape {
        let mut members = members(root, root.preserve_unknown);
        let _ = members
            .fields
            .insert("metadata".to_owned(), core::metadata());
        for name in ["apiVersion", "kind"] {
            let text = Shape::Scalar(Scalar::Text);
            let _ = members.fields.insert(name.to_owned(), text);
        }
        Shape::Map(Box::new(members))
    }
}

/// `open`: something above keeps unknown fields, so that everything below does.
fn shape(node: &Node, open: bool) -> Shape {
    let open = open || node.preserve_unknown;
    match node.types.as_slice() {
        [Type::Object] if node.whole_map => Shape::Atomic,
        [Type::Object] => Shape::Map(Box::new(if node.embedded {
            resource(node, open)
        } else {
            members(node, open)
        })),
        [Type::Array] => list(node, open),
        [Type::Integer | Type::Number] => Shape::Scalar(Scalar::Number),
        [Type::Boolean] => Shape::Scalar(Scalar::Boolean),
        [Type::String] if matches!(node.format.as_str(), "" | "byte") => {
            Shape::Scalar(Scalar::Text)
        }
        [Type::String] => Shape::Scalar(Scalar::Any),
        _ if node.whole_map => Shape::Atomic,
        _ if node.properties.is_empty() => Shape::Open,
        _ => Shape::Map(Box::new(members(node, open))),
    }
}

fn members(node: &Node, open: bool) -> Members {
    let fields: BTreeMap<String, Shape> = node
        .properties
        .iter()
        .map(|(name, member)| (name.clone(), shape(member, open)))
        .collect();
    let rest = match &node.others {
        Others::Each(each) => Rest::Entries(shape(each, open)),
        Others::Any => Rest::Entries(Shape::Open),
        Others::None => Rest::None,
        Others::Undeclared if open || fields.is_empty() => Rest::Entries(Shape::Open),
        Others::Undeclared => Rest::None,
    };
    Members {
        fields,
        rest,
        nullable: node.nullable,
    }
}

/// An object of the API inside of another.
fn resource(node: &Node, open: bool) -> Members {
    let mut members = members(node, open);
    let _ = members
        .fields
        .insert("metadata".to_owned(), core::metadata());
    for name in ["apiVersion", "kind"] {
        let text = Shape::Scalar(Scalar::Text);
        let _ = members.fields.entry(name.to_owned()).or_insert(text);
    }
    members
}

fn list(node: &Node, open: bool) -> Shape {
    let item = node.item().map_or(Shape::Open, |item| shape(item, open));
    let identity = match &node.list_type {
        ListType::Atomic => return Shape::Atomic,
        ListType::Set => Identity::Value,
        ListType::Map(keys) => Identity::Keys(keys.iter().map(|name| key(node, name)).collect()),
    };
    Shape::List(Box::new(Items {
        identity,
        item,
        strategy: Strategy::Replace,
    }))
}

fn key(list: &Node, name: &str) -> Key {
    let member = list.item().and_then(|item| item.member(name));
    Key {
        name: name.to_owned(),
        default: member.and_then(|member| member.default.clone()),
    }
}
