//! Who writes, and what they can change.

use super::managers::{Manager, Operation};
use serde_json::Value;

/// Who writes, as what, when.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// `fieldManager`; for plain writes without one: the user agent up to its first `/`.
    pub manager: &'a str,
    /// `v1`, `plexus.dev/v1alpha1`.
    pub api_version: &'a str,
    /// Empty, `status`, or `finalize` (of a Namespace).
    pub subresource: &'a str,
    /// Whether the kind has its status apart ([`crate::kinds::Kind::has_status`]).
    pub status_apart: bool,
    /// RFC 3339 with seconds: `2025-11-16T03:49:30Z`.
    pub now: &'a str,
}

impl Writer<'_> {
    pub(super) fn id(&self, operation: Operation) -> Manager {
        let name = if self.manager.is_empty() {
            "unknown"
        } else {
            self.manager
        };
        Manager {
            name: name.to_owned(),
            operation,
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => self.api_version.to_owned(),
            },
            subresource: self.subresource.to_owned(),
        }
    }

    /// Whether this write can change that member of the object.
    pub(super) fn writes(&self, member: &str) -> bool {
        match self.subresource {
            "" => !self.status_apart || member != "status",
            "finalize" => member == "spec",
            subresource => member == subresource,
        }
    }

    /// What this write cannot change, from the object as it is.
    pub(super) fn keep_rest(&self, live: &Value, new: Value) -> Value {
        let (Value::Object(live), Value::Object(mut new)) = (live, new) else {
            return live.clone();
        };
        new.retain(|member, _| self.writes(member));
        let rest = live.iter().filter(|(member, _)| !self.writes(member));
        new.extend(rest.map(|(member, value)| (member.clone(), value.clone())));
        Value::Object(new)
    }
}
