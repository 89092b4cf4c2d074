//! The few bodies that `kubectl` sends as protobuf and nothing else: `create namespace`, `create
//! configmap`, `auth can-i`, `auth whoami`, and options of a delete. They become the JSON that the
//! rest of the server reads; answers are always JSON.
//!
//! ```text
//!   "k8s\0" · Unknown{ TypeMeta, raw } ──► table of the kind's fields ──► JSON
//! ```
//!
//! The input is hostile: nothing here panics, recursion is as deep as the tables, and memory is
//! bounded by the length of the body.

mod message;
mod tables;
mod wire;

#[cfg(test)]
mod tests;

use serde_json::Value;

/// What such a body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// The `Content-Type` of such a body.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Why a body cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is not what it says it is.
    #[error("the body is not protobuf as Kubernetes writes it: {0}")]
    Malformed(String),
    /// There is no table for this kind.
    #[error("{kind} ({api_version}) is not read as protobuf; send it as application/json")]
    Kind {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
}

/// The object in an envelope, as JSON with its `apiVersion` and `kind`.
///
/// # Errors
/// The body is not an envelope, or its kind is not one of the few.
pub fn decode(body: &[u8]) -> Result<Value, Unreadable> {
    let envelope = body
        .strip_prefix(MAGIC)
        .ok_or_else(|| Unreadable::Malformed("it does not begin with \"k8s\\0\"".to_owned()))?;
    let unknown = wire::Unknown::read(envelope).map_err(Unreadable::Malformed)?;
    let (api_version, kind) = (unknown.api_version, unknown.kind);
    let mut object = match unknown.content_type {
        "" | CONTENT_TYPE => {
            let table = tables::of(api_version, kind).ok_or_else(|| Unreadable::Kind {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
            })?;
            message::read(table, unknown.raw).map_err(Unreadable::Malformed)?
        }
        "application/json" => serde_json::from_slice(unknown.raw)
            .map_err(|error| Unreadable::Malformed(error.to_string()))?,
        other => return Err(Unreadable::Malformed(format!("it contains {other:?}"))),
    };
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}
