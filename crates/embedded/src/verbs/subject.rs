//! What a request is about: the kind that it names, and where that kind's objects are.

use super::Api;
use crate::clock;
use crate::http::{Answer, Target};
use crate::kinds::{Kind, Storage};
use crate::status::Refused;
use crate::store::{Key, Stored, Table};
use crate::table::{self, Form};
use serde_json::Value;
use std::sync::Arc;

/// The part of an object that a request reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but the status, if that is apart.
    Main,
    /// The subresource `status`.
    Status,
    /// The subresource `finalize` of a namespace: `spec.finalizers`.
    Finalize,
}

/// The kind, the object (or all objects) and the part of it that a request is about.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The kind that the path names.
    pub(crate) kind: Arc<Kind>,
    /// The kind in whose table its objects are.
    pub(crate) stored: Arc<Kind>,
    pub(crate) table: Table,
    /// Empty: the kind has none, or all namespaces are meant.
    pub(crate) namespace: String,
    /// Empty: all, or not known yet.
    pub(crate) name: String,
    pub(crate) part: Part,
}

impl Subject {
    /// The subject of a path.
    ///
    /// # Errors
    /// The kind has no such subresource.
    pub(super) fn of(api: &Api, target: Target) -> Result<Self, Refused> {
        let stored = api.kinds.stored_as(&target.kind);
        let part = match target.subresource.as_str() {
            "" => Some(Part::Main),
            "status" if target.kind.has_status => Some(Part::Status),
            "finalize" if target.kind.kind == "Namespace" => Some(Part::Finalize),
            _ => None,
        };
        let table = api.store.table(stored);
        let (Some(part), Some(table)) = (part, table) else {
            return Err(Refused::no_such_path());
        };
        Ok(Self {
            stored: Arc::clone(stored),
            kind: target.kind,
            table,
            namespace: target.namespace,
            name: target.name,
            part,
        })
    }

    /// Of an object that is stored.
    pub(crate) fn stored(kind: &Arc<Kind>, table: Table, key: &Key) -> Self {
        Self {
            kind: Arc::clone(kind),
            stored: Arc::clone(kind),
            table,
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
            part: Part::Main,
        }
    }

    pub(crate) fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }

    /// Whether objects are shown as they are stored.
    pub(crate) fn is_direct(&self) -> bool {
        matches!(self.kind.storage, Storage::Own)
    }

    /// As it is stored, from what was sent.
    pub(crate) fn inward(&self, object: Value) -> Value {
        match &self.kind.storage {
            Storage::View(view) => view.inward(&object),
            Storage::Own | Storage::Answered => object,
        }
    }

    /// As the kind that was asked for shows it.
    pub(crate) fn outward(&self, object: Value) -> Value {
        match &self.kind.storage {
            Storage::View(view) => view.outward(&object),
            Storage::Own | Storage::Answered => object,
        }
    }

    /// An answer with an object, in the form that was asked for.
    ///
    /// # Errors
    /// The stored bytes are no JSON.
    pub(crate) fn answer(&self, code: u16, object: &Stored, form: Form) -> Result<Answer, Refused> {
        if self.is_direct() && matches!(form, Form::Whole) {
            return Ok(Answer::bytes(code, object.body.clone()));
        }
        let served = self.outward(object.value()?);
        let served = table::object(&self.kind, form, &served, clock::seconds());
        Ok(Answer::json(code, &served))
    }

    pub(crate) fn not_found(&self) -> Refused {
        Refused::not_found(&self.kind, &self.name)
    }
}
