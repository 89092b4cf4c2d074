//! Drops fields that a schema does not know, and remembers where they were.

use super::node::{Node, Others};
use crate::path::Path;
use crate::status::ENOUGH;
use serde_json::Value;

/// What every resource has, whatever its schema says.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

pub(super) fn prune(root: &Node, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    let place = Place {
        schema: root,
        resource: true,
        keep: root.preserve_unknown,
    };
    below(place, object, &mut Path::default(), &mut unknown);
    unknown.sort_unstable();
    unknown
}

/// Where a value is.
#[derive(Clone, Copy)]
struct Place<'a> {
    schema: &'a Node,
    /// It is an object of the API, embedded or not.
    resource: bool,
    /// Unknown fields stay.
    keep: bool,
}

impl<'a> Place<'a> {
    fn of(schema: &'a Node) -> Self {
        Self {
            schema,
            resource: schema.embedded,
            keep: schema.preserve_unknown || matches!(schema.others, Others::Any),
        }
    }
}

fn below(place: Place<'_>, value: &mut Value, path: &mut Path, unknown: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.retain(|name, member| {
            if place.resource && META.contains(&name.as_str()) {
                return true;
            }
            if let Some(known) = place.schema.member(name) {
                path.member(name, |path| below(Place::of(known), member, path, unknown));
            } else if !place.keep {
                if unknown.len() <= ENOUGH {
                    path.member(name, |path| unknown.push(path.said()));
                }
                return false;
            }
            true
        }),
        Value::Array(items) => {
            let Some(schema) = place.schema.item() else {
                return;
            };
            let mut inside = Place::of(schema);
            inside.keep |= place.keep;
            for (index, item) in items.iter_mut().enumerate() {
                path.item(index, |path| below(inside, item, path, unknown));
            }
        }
        _ => {}
    }
}
