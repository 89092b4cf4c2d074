//! The kinds that the server has: names, scope, schema, columns, and how each is stored.
//!
//! Owns the registry ([`Kinds`]): the core kinds are built in, all others come in as definitions
//! (CRDs) or as aliases of a kind that is there. Takes and gives JSON values. Never stores anything
//! and never knows what an object means.

mod builtin;
mod crd;
mod defaults;
mod registry;
mod required;
mod typed;
mod view;

#[cfg(test)]
mod definitions_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod typed_tests;

pub use registry::Kinds;
pub use view::View;

use crate::schema::Schema;
use crate::status::Cause;
use k8s_openapi::schemars::SchemaGenerator;
use serde_json::Value;
use std::sync::Arc;

/// A column of the table that `kubectl get` shows, as a definition has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: String,
    /// An OpenAPI format, or nothing.
    pub format: String,
    /// What the column means, for people.
    pub description: String,
    /// 0: always shown; above: only with `-o wide`.
    pub priority: i64,
    /// Where the value is, as a JSON path with its leading dot.
    pub path: String,
}

/// Where the objects of a kind are.
#[derive(Clone, Debug)]
pub enum Storage {
    /// In a table of their own.
    Own,
    /// In the table of another kind, and shown in this one's form.
    View(View),
    /// Nowhere: a POST is answered, and forgotten.
    Answered,
}

/// A kind in one version.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Empty for the core.
    pub group: String,
    /// Such as `v1`.
    pub version: String,
    /// Such as `ConfigMap`.
    pub kind: String,
    /// Such as `configmaps`.
    pub plural: String,
    /// Such as `configmap`.
    pub singular: String,
    /// Such as `cm`.
    pub short: Vec<String>,
    /// Such as `all`.
    pub categories: Vec<String>,
    /// Such as `ConfigMapList`.
    pub list_kind: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether it has the subresource `status`.
    pub has_status: bool,
    /// Whether `metadata.generation` counts changes.
    pub has_generation: bool,
    /// Typed by Kubernetes itself; strategic merge patches are allowed.
    pub core: bool,
    /// Kinds from definitions have one; core kinds are checked by their types instead.
    pub schema: Option<Arc<Schema>>,
    /// The definition that it came from.
    pub definition: Option<Arc<Value>>,
    /// Besides the name. Core kinds have theirs in the table room.
    pub columns: Vec<Column>,
    /// Field labels besides `metadata.name` and `metadata.namespace`.
    pub selectable: Vec<String>,
    /// Where its objects are.
    pub storage: Storage,
    typed: Option<typed::Type>,
}

const ALL_VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
/// Namespaces are deleted one by one.
const NAMESPACE_VERBS: &[&str] = &[
    "create", "delete", "get", "list", "patch", "update", "watch",
];
const ONLY_CREATE: &[&str] = &["create"];

impl Kind {
    /// `v1`, or `group/version`.
    #[must_use]
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// As messages name it: `configmaps`, or `networks.plexus.dev`.
    #[must_use]
    pub fn group_resource(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// What can be done with it.
    #[must_use]
    pub fn verbs(&self) -> &'static [&'static str] {
        match self.storage {
            Storage::Answered => ONLY_CREATE,
            Storage::Own | Storage::View(_) if self.core && self.kind == "Namespace" => {
                NAMESPACE_VERBS
            }
            Storage::Own | Storage::View(_) => ALL_VERBS,
        }
    }

    /// The name of the schema of its type.
    pub(crate) fn type_name(&self) -> Option<String> {
        self.typed.map(|typed| (typed.name)())
    }

    /// Adds the schema of its type, if it has one, and of all that this refers to.
    pub(crate) fn describe(&self, generator: &mut SchemaGenerator) {
        if let Some(typed) = self.typed {
            (typed.describe)(generator);
        }
    }

    /// Whether an object (for core kinds) or its metadata (for all) has the right types.
    ///
    /// # Errors
    /// The text of a `BadRequest`.
    pub fn check_typed(&self, object: &Value) -> Result<(), String> {
        typed::settled(self, object).map(|_| ())
    }

    /// Brings an object into the form that its types have: nulls and unknown fields are dropped,
    /// quantities and times are written as Kubernetes writes them. For kinds with a schema this is
    /// done to `metadata` alone. Gives the paths of the unknown fields.
    ///
    /// # Errors
    /// The text of a `BadRequest`: something has the wrong type. The object is as it was.
    pub fn prune_typed(&self, object: &mut Value) -> Result<Vec<String>, String> {
        let (settled, unknown) = typed::settled(self, object)?;
        *object = settled;
        Ok(unknown)
    }

    /// Fills in what Kubernetes would (core kinds only). To be called after a client's `status` was
    /// dropped, on create and on update; adds only what is absent.
    pub fn defaults(&self, object: &mut Value) {
        if self.core {
            defaults::fill(self, object);
        }
    }

    /// What a core kind must have and this object has not.
    #[must_use]
    pub fn missing(&self, object: &Value) -> Vec<Cause> {
        if self.core {
            required::missing(self, object)
        } else {
            Vec::new()
        }
    }
}
