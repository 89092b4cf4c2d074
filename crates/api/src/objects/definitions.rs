//! The CustomResourceDefinitions of all kinds: ours from the Rust types, the NAD's as the standard
//! has it.

use super::{Block, BlockRequest, Network, PodAttachments};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Value, json};

/// The definitions of all kinds, as `kubectl apply` takes them: ours, then the NAD's.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let ours = [
        Network::crd(),
        Block::crd(),
        BlockRequest::crd(),
        PodAttachments::crd(),
    ];
    let ours = ours.into_iter().map(with_plain_formats);
    ours.chain(nad()).collect()
}

/// The API server knows the signed formats only; the bounds are written beside them.
fn with_plain_formats(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let Ok(mut value) = serde_json::to_value(&crd) else {
        return crd;
    };
    plain_formats(&mut value);
    serde_json::from_value(value).unwrap_or(crd)
}

fn plain_formats(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(plain_formats),
        Value::Object(map) => {
            let format = match map.get("format").and_then(Value::as_str) {
                Some("uint8" | "uint16") => Some("int32"),
                Some("uint32" | "uint64" | "uint") => Some("int64"),
                _ => None,
            };
            if let Some(format) = format {
                map.insert("format".to_owned(), json!(format));
            }
            map.values_mut().for_each(plain_formats);
        }
        _ => {}
    }
}

fn nad() -> Option<CustomResourceDefinition> {
    let schema = json!({
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "properties": {
                    "config": {
                        "type": "string",
                        "description": "A CNI configuration or configuration list, as text."
                    }
                }
            }
        }
    });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "network-attachment-definitions.k8s.cni.cncf.io"},
        "spec": {
            "group": "k8s.cni.cncf.io",
            "scope": "Namespaced",
            "names": {
                "plural": "network-attachment-definitions",
                "singular": "network-attachment-definition",
                "kind": "NetworkAttachmentDefinition",
                "shortNames": ["net-attach-def"]
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema}
            }]
        }
    });
    serde_json::from_value(crd).ok()
}
