//! What can be done at which path.

use super::document::{identity, reference};
use super::schemas;
use crate::kinds::Kind;
use serde_json::{Value, json};

/// The paths of a kind: all of its objects, one of them, and that one's status.
pub(super) fn paths(kind: &Kind) -> Vec<(String, Value)> {
    let root = super::name(kind);
    let all = if kind.namespaced {
        format!("/{root}/namespaces/{{namespace}}/{}", kind.plural)
    } else {
        format!("/{root}/{}", kind.plural)
    };
    let single = format!("{all}/{{name}}");
    if kind.verbs() == ["create"] {
        let only = json!({"post": operation(kind, "post", "create")});
        return vec![(all, only)];
    }
    let mut paths = vec![(single.clone(), object(kind, "/{name}"))];
    if kind.has_status {
        paths.push((format!("{single}/status"), status(kind)));
    }
    if kind.namespaced {
        let everywhere = json!({"get": list(kind)});
        paths.push((format!("/{root}/{}", kind.plural), everywhere));
    }
    let mut collection = json!({
        "get": list(kind),
        "post": writing(kind, "post"),
    });
    if kind.verbs().contains(&"deletecollection") {
        collection["delete"] = operation(kind, "deletecollection", "deletecollection");
    }
    placed(kind, &mut collection, "");
    paths.push((all, collection));
    paths
}

fn object(kind: &Kind, below: &str) -> Value {
    let mut item = json!({
        "get": operation(kind, "get", "get"),
        "put": writing(kind, "put"),
        "patch": patching(kind),
        "delete": operation(kind, "delete", "delete"),
    });
    placed(kind, &mut item, below);
    item
}

fn status(kind: &Kind) -> Value {
    let mut item = json!({
        "get": operation(kind, "get", "get"),
        "put": writing(kind, "put"),
        "patch": patching(kind),
    });
    placed(kind, &mut item, "/{name}/status");
    item
}

/// The parameters of the path itself, for all of its operations.
fn placed(kind: &Kind, item: &mut Value, below: &str) {
    let mut parameters = Vec::new();
    let mut add = |name: &str, description: &str| {
        parameters.push(json!({
            "name": name, "in": "path", "required": true, "description": description,
            "schema": {"type": "string"},
        }));
    };
    if below.contains("{name}") {
        add("name", "Name of the object.");
    }
    if kind.namespaced {
        add("namespace", "Namespace of the object.");
    }
    if !parameters.is_empty() {
        item["parameters"] = parameters.into();
    }
}

fn operation(kind: &Kind, action: &str, verb: &str) -> Value {
    let answer = json!({
        "description": "OK",
        "content": {"application/json": {"schema": reference(&schemas::component(kind))}},
    });
    json!({
        "operationId": format!("{verb}{}{}", kind.version, kind.kind),
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": identity(kind, &kind.kind),
        "responses": {"200": answer},
    })
}

fn list(kind: &Kind) -> Value {
    let mut list = operation(kind, "list", "list");
    list["responses"]["200"]["content"]["application/json"]["schema"] =
        reference(&schemas::list_component(kind));
    list["parameters"] = [
        ("labelSelector", "Only objects with these labels.", "string"),
        ("fieldSelector", "Only objects with these fields.", "string"),
        ("limit", "How many at a time.", "integer"),
        ("continue", "Where the last answer ended.", "string"),
        ("resourceVersion", "How new the answer must be.", "string"),
        (
            "resourceVersionMatch",
            "How resourceVersion is meant.",
            "string",
        ),
        ("watch", "Follow the changes.", "boolean"),
        (
            "allowWatchBookmarks",
            "Say from time to time how far a watch is.",
            "boolean",
        ),
        (
            "sendInitialEvents",
            "Begin a watch with what is there.",
            "boolean",
        ),
        ("timeoutSeconds", "When the answer must end.", "integer"),
    ]
    .into_iter()
    .map(query)
    .collect();
    list
}

/// An operation with an object as its body.
fn writing(kind: &Kind, action: &str) -> Value {
    let mut writing = operation(kind, action, action);
    let body = json!({"schema": reference(&schemas::component(kind))});
    writing["requestBody"] = json!({"required": true, "content": {"application/json": body}});
    writing["parameters"] = written();
    writing
}

/// Core kinds can be merged strategically too: their schemas say how.
fn patching(kind: &Kind) -> Value {
    let mut patching = operation(kind, "patch", "patch");
    let body = json!({"schema": {"type": "object"}});
    patching["requestBody"] = json!({
        "required": true,
        "content": {
            "application/apply-patch+yaml": body,
            "application/json-patch+json": body,
            "application/merge-patch+json": body,
        },
    });
    if kind.core {
        patching["requestBody"]["content"]["application/strategic-merge-patch+json"] = body;
    }
    patching["parameters"] = written();
    if let Some(parameters) = patching["parameters"].as_array_mut() {
        parameters.push(query((
            "force",
            "Take fields from other managers.",
            "boolean",
        )));
    }
    patching
}

/// The query of every write. `fieldValidation` is what `kubectl` looks for.
fn written() -> Value {
    [
        ("dryRun", "All: nothing is stored.", "string"),
        ("fieldManager", "Who writes.", "string"),
        (
            "fieldValidation",
            "What happens to unknown fields: Ignore, Warn or Strict.",
            "string",
        ),
    ]
    .into_iter()
    .map(query)
    .collect()
}

fn query((name, description, kind): (&str, &str, &str)) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": {"type": kind}})
}
