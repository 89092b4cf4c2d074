//! One store, several forms: how an object of one kind is stored as another, and shown again.

use crate::alias::Alias;
use crate::events;
use serde_json::Value;
use std::sync::Arc;

/// How a kind's objects are stored as those of another.
#[derive(Clone, Debug)]
pub struct View {
    /// Group of the kind that is stored.
    pub group: String,
    /// Version of the kind that is stored.
    pub version: String,
    /// Plural of the kind that is stored.
    pub plural: String,
    conversion: Conversion,
}

#[derive(Clone, Debug)]
enum Conversion {
    /// `events.k8s.io` over the core's events.
    Events,
    /// Another version of the same kind: only `apiVersion` differs.
    Version { served: String, stored: String },
    /// Another name for the same thing.
    Alias(Arc<Alias>),
}

impl View {
    pub(super) fn events() -> Self {
        Self {
            group: String::new(),
            version: "v1".to_owned(),
            plural: "events".to_owned(),
            conversion: Conversion::Events,
        }
    }

    pub(super) fn version(group: &str, plural: &str, served: &str, stored: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: stored.to_owned(),
            plural: plural.to_owned(),
            conversion: Conversion::Version {
                served: format!("{group}/{served}"),
                stored: format!("{group}/{stored}"),
            },
        }
    }

    pub(crate) fn alias(alias: Alias) -> Self {
        let (group, version, plural) = alias.stored_as();
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            conversion: Conversion::Alias(Arc::new(alias)),
        }
    }

    /// An object of this kind in the form in which it is stored.
    #[must_use]
    pub fn inward(&self, object: &Value) -> Value {
        match &self.conversion {
            Conversion::Events => events::to_core(object),
            Conversion::Version { stored, .. } => with_version(object, stored),
            Conversion::Alias(alias) => alias.inward(object),
        }
    }

    /// A stored object in the form of this kind.
    #[must_use]
    pub fn outward(&self, stored: &Value) -> Value {
        match &self.conversion {
            Conversion::Events => events::from_core(stored),
            Conversion::Version { served, .. } => with_version(stored, served),
            Conversion::Alias(alias) => alias.outward(stored),
        }
    }
}

fn with_version(object: &Value, version: &str) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), version.into());
    }
    object
}
