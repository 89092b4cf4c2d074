//! Refusals: the one error type of this room, which renders as a Kubernetes `Status`. Owns the codes,
//! reasons and sentences that clients know; decides nothing.
//!
//! ```text
//!   verbs, patch, schema ──► Refused ──► {"kind":"Status", "reason": …, "code": …}
//! ```

use crate::kinds::Kind;
use crate::patch::apply;
use serde_json::{Map, Value, json};
use std::fmt;

/// More problems than these are not said of one request, nor looked for: nobody reads them, and a request
/// of three megabytes can have a quarter of a million.
pub(crate) const MAX_PROBLEMS: usize = 64;
/// How many characters of a problem, and of its path, a message has.
const MAX_TEXT_CHARS: usize = 2000;

/// One problem of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueInvalid`, `FieldValueRequired`, `FieldManagerConflict` …
    pub reason: &'static str,
    /// What is wrong, without the field: `Invalid value: "x": must be …`.
    pub message: String,
    /// Where: `spec.subnets.a.cidr`.
    pub field: String,
}

impl Cause {
    /// A value that is not acceptable.
    pub fn invalid(field: impl Into<String>, value: &Value, why: impl fmt::Display) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {}: {why}", value_text(value)),
            field: field.into(),
        }
    }

    /// A value that is missing.
    pub fn required(field: impl Into<String>, why: impl fmt::Display) -> Self {
        let why = why.to_string();
        let separator = if why.is_empty() { "" } else { ": " };
        Self {
            reason: "FieldValueRequired",
            message: format!("Required value{separator}{why}"),
            field: field.into(),
        }
    }

    /// A value that must not be there.
    pub fn forbidden(field: impl Into<String>, why: impl fmt::Display) -> Self {
        Self {
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {why}"),
            field: field.into(),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return out.write_str(&self.message);
        }
        write!(out, "{}: {}", self.field, self.message)
    }
}

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    code: u16,
    reason: &'static str,
    message: String,
    details: Map<String, Value>,
}

impl Refused {
    /// The HTTP code.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The word that clients decide by.
    pub fn reason(&self) -> &'static str {
        self.reason
    }

    /// The sentence that people read.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The `Status` object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if !self.details.is_empty() {
            status["details"] = Value::Object(self.details.clone());
        }
        status
    }

    /// Anything that has no constructor of its own.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Map::new(),
        }
    }

    /// No object of that name.
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} not found", qualified(kind));
        Self::new(404, "NotFound", message).about(kind, name)
    }

    /// No such path.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(404, "NotFound", message)
    }

    /// The name is taken.
    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", qualified(kind));
        Self::new(409, "AlreadyExists", message).about(kind, name)
    }

    /// A condition of the writer does not hold.
    pub fn conflict(kind: &Kind, name: &str, why: impl fmt::Display) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            qualified(kind)
        );
        Self::new(409, "Conflict", message).about(kind, name)
    }

    /// The writer had read an older version.
    pub fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(kind, name, why)
    }

    /// Other managers own what an apply would change; each cause names one field.
    pub fn apply_conflict(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        let mut message = apply::conflict_message(&causes[..causes.len().min(MAX_PROBLEMS)]);
        if causes.len() > MAX_PROBLEMS {
            message.push_str("\n- and more");
        }
        Self::new(409, "Conflict", message)
            .about(kind, name)
            .with_causes(causes)
    }

    /// The object breaks rules; the message lists all of them, up to a bound.
    pub fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        let messages = causes.iter().take(MAX_PROBLEMS);
        let mut messages: Vec<String> = messages.map(|cause| cut(&cause.to_string())).collect();
        if causes.len() > MAX_PROBLEMS {
            messages.push(format!("and more than these {MAX_PROBLEMS}"));
        }
        let messages = match messages.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let title = if kind.group.is_empty() {
            kind.kind.clone()
        } else {
            format!("{}.{}", kind.kind, kind.group)
        };
        let message = format!("{title} {name:?} is invalid: {messages}");
        let mut refused = Self::new(422, "Invalid", message).with_causes(causes);
        refused.detail("group", &kind.group);
        refused.detail("kind", &kind.kind);
        refused.detail("name", name);
        refused
    }

    /// An option of a verb makes no sense; `options` is what Kubernetes calls them: `PatchOptions`.
    pub(crate) fn options(options: &str, cause: Cause) -> Self {
        let message = format!("{options}.meta.k8s.io \"\" is invalid: {cause}");
        Self::new(422, "Invalid", message).with_causes(&[cause])
    }

    /// The request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Nobody knows who is asking.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// Never, whoever asks.
    pub fn forbidden(kind: &Kind, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", qualified(kind));
        Self::new(403, "Forbidden", message).about(kind, name)
    }

    /// The verb is not served there.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message)
    }

    /// A version that is no longer known: a list has to be begun again.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// More than a request may have.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// A body, or a kind of patch, that is not understood.
    pub fn unsupported_media(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// The client may try again after this many seconds.
    pub fn timeout(message: impl Into<String>, seconds: u32) -> Self {
        let mut refused = Self::new(504, "Timeout", message);
        let _ = refused
            .details
            .insert("retryAfterSeconds".to_owned(), seconds.into());
        refused
    }

    /// The server is about to end.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// There is no room on the disk; nothing was written.
    pub fn no_space(message: impl Into<String>) -> Self {
        Self::new(507, "InsufficientStorage", message)
    }

    /// Something of ours failed.
    pub fn internal(message: impl fmt::Display) -> Self {
        let message = format!("Internal error occurred: {message}");
        Self::new(500, "InternalError", message)
    }

    /// Adds which object it is about, as `details`.
    #[must_use]
    pub fn about(mut self, kind: &Kind, name: &str) -> Self {
        self.detail("group", &kind.group);
        self.detail("kind", &kind.plural);
        self.detail("name", name);
        self
    }

    /// Adds causes, as `details.causes`.
    #[must_use]
    pub fn with_causes(mut self, causes: &[Cause]) -> Self {
        let causes = causes.iter().take(MAX_PROBLEMS).map(|cause| {
            let (message, field) = (cut(&cause.message), cut(&cause.field));
            json!({"reason": cause.reason, "message": message, "field": field})
        });
        let _ = self
            .details
            .insert("causes".to_owned(), causes.collect::<Value>());
        self
    }

    fn detail(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            let _ = self.details.insert(key.to_owned(), value.into());
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

/// A value as a message has it: not more of it than somebody reads.
fn value_text(value: &Value) -> String {
    cut_at(&value.to_string(), MAX_TEXT_CHARS / 2)
}

/// As much of a text as somebody reads.
pub(crate) fn cut(text: &str) -> String {
    cut_at(text, MAX_TEXT_CHARS)
}

fn cut_at(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// `networks.plexus.dev`, or `pods` for the core group.
fn qualified(kind: &Kind) -> String {
    if kind.group.is_empty() {
        return kind.plural.clone();
    }
    format!("{}.{}", kind.plural, kind.group)
}

#[cfg(test)]
mod tests {
    use super::{Cause, Refused};
    use crate::kinds::Kinds;
    use serde_json::json;

    #[test]
    fn a_refusal_is_a_status_that_says_whom_it_is_about() {
        let kinds = Kinds::builtin().unwrap();
        let lease = kinds.get("coordination.k8s.io", "v1", "leases").unwrap();
        let refused = Refused::not_found(lease, "l").status();
        let expected = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
            "reason": "NotFound", "message": "leases.coordination.k8s.io \"l\" not found",
            "details": {"group": "coordination.k8s.io", "kind": "leases", "name": "l"},
        });
        assert_eq!(refused, expected);
        let map = kinds.get("", "v1", "configmaps").unwrap();
        let message = Refused::already_exists(map, "m").message().to_owned();
        assert_eq!(message, "configmaps \"m\" already exists");
    }

    #[test]
    fn all_problems_are_said_and_long_values_are_cut() {
        let kinds = Kinds::builtin().unwrap();
        let map = kinds.get("", "v1", "configmaps").unwrap();
        let causes = [
            Cause::required("data.a", "write it"),
            Cause::invalid("data.b", &json!("x".repeat(5000)), "too odd"),
        ];
        let refused = Refused::invalid(map, "m", &causes);
        let start =
            "ConfigMap \"m\" is invalid: [data.a: Required value: write it, data.b: Invalid";
        assert!(refused.message().starts_with(start), "{refused}");
        assert!(refused.message().len() < 1200);
        assert_eq!(refused.status()["details"]["causes"][0]["field"], "data.a");
        let many = vec![causes[0].clone(); super::MAX_PROBLEMS + 1];
        let many = Refused::invalid(map, "m", &many);
        assert!(
            many.message().ends_with("and more than these 64]"),
            "{many}"
        );
        let messages = many.status()["details"]["causes"].as_array().map(Vec::len);
        assert_eq!(messages, Some(super::MAX_PROBLEMS));
        let one = Refused::invalid(map, "m", &causes[..1]);
        assert_eq!(
            one.message(),
            "ConfigMap \"m\" is invalid: data.a: Required value: write it"
        );
    }
}
