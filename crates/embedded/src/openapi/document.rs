//! The document of one group and version.

use super::{operations, schemas};
use crate::kinds::Kind;
use crate::version;
use serde_json::{Map, Value, json};

pub(super) fn document(kinds: &[&Kind]) -> Value {
    let paths: Map<String, Value> = kinds
        .iter()
        .flat_map(|kind| operations::paths(kind))
        .collect();
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Plexus", "version": version::version()["gitVersion"]},
        "paths": paths,
        "components": {"schemas": schemas::components(kinds)},
    })
}

/// A kind as clients look for it, on operations and on schemas.
pub(super) fn identity(kind: &Kind, name: &str) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": name})
}

/// A `$ref` to a schema of this document.
pub(super) fn reference(component: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{component}")})
}
