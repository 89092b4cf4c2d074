//! Drops fields that a schema does not know, and remembers where they were.

use super::node::{Node, Others};
use crate::path::Path;
use crate::status::MAX_PROBLEMS;
use serde_json::Value;

/// What every resource has, whatever its schema says.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

pub(super) fn prune(root: &Node, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    let position = Position {
        schema: root,
        resource: true,
        keep_unknown: root.preserve_unknown,
    };
    below(position, object, &mut Path::default(), &mut unknown);
    unknown.sort_unstable();
    unknown
}

/// The schema of a value, and how its unknown fields are treated.
#[derive(Clone, Copy)]
struct Position<'a> {
    schema: &'a Node,
    /// It is an object of the API, embedded or not.
    resource: bool,
    /// Unknown fields stay.
    keep_unknown: bool,
}

impl<'a> Position<'a> {
    fn of(schema: &'a Node) -> Self {
        Self {
            schema,
            resource: schema.embedded,
            keep_unknown: schema.preserve_unknown || matches!(schema.others, Others::Any),
        }
    }
}

fn below(position: Position<'_>, value: &mut Value, path: &mut Path, unknown: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.retain(|name, member| {
            if position.resource && META.contains(&name.as_str()) {
                return true;
            }
            if let Some(known) = position.schema.member(name) {
                path.member(name, |path| {
                    below(Position::of(known), member, path, unknown)
                });
            } else if !position.keep_unknown {
                if unknown.len() <= MAX_PROBLEMS {
                    path.member(name, |path| unknown.push(path.shortened()));
                }
                return false;
            }
            true
        }),
        Value::Array(items) => {
            let Some(schema) = position.schema.item() else {
                return;
            };
            let mut inside = Position::of(schema);
            inside.keep_unknown |= position.keep_unknown;
            for (index, item) in items.iter_mut().enumerate() {
                path.item(index, |path| below(inside, item, path, unknown));
            }
        }
        _ => {}
    }
}
