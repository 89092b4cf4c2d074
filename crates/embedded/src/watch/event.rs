//! Events as bytes: one JSON object per line.

use crate::clock;
use crate::status::Refused;
use crate::store::Stored;
use crate::table::{self, Form};
use crate::verbs::Subject;
use hyper::body::Bytes;
use serde_json::{Value, json};

/// The `type` of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Added,
    Modified,
    Deleted,
    Bookmark,
}

impl Kind {
    fn text(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
        }
    }
}

/// Collects events until they are sent.
pub(super) struct Encoder {
    form: Form,
    bytes: Vec<u8>,
    /// A table has its columns in the first event only.
    first: bool,
}

impl Encoder {
    pub(super) fn new(form: Form) -> Self {
        Self {
            form,
            bytes: Vec::new(),
            first: true,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes what has been collected; none if that is nothing.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        let bytes = std::mem::take(&mut self.bytes);
        (!bytes.is_empty()).then(|| Bytes::from(bytes))
    }

    /// Adds an event about an object, in the form that the client wants.
    ///
    /// # Errors
    /// The stored bytes are no JSON.
    pub(super) fn event(
        &mut self,
        subject: &Subject,
        kind: Kind,
        object: &Stored,
    ) -> Result<(), Refused> {
        if subject.is_direct() && matches!(self.form, Form::Whole) {
            self.line(kind, &object.body);
            return Ok(());
        }
        self.value(subject, kind, object.value()?);
        Ok(())
    }

    /// An object that is no longer selected: as it was when it still was, with the version since
    /// which it is not.
    ///
    /// # Errors
    /// The stored bytes are no JSON.
    pub(super) fn left(
        &mut self,
        subject: &Subject,
        object: &Stored,
        version: u64,
    ) -> Result<(), Refused> {
        let mut object = object.value()?;
        object["metadata"]["resourceVersion"] = version.to_string().into();
        self.value(subject, Kind::Deleted, object);
        Ok(())
    }

    /// How new the watch is; `all`: everything that existed has been told.
    pub(super) fn bookmark(&mut self, subject: &Subject, version: u64, all: bool) {
        let mut metadata = json!({
            "resourceVersion": version.to_string(), "creationTimestamp": null,
        });
        if all {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let kind = &subject.kind;
        let mark = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata,
        });
        self.object_event(subject, Kind::Bookmark, &mark);
    }

    /// The last event of a watch that cannot go on.
    pub(super) fn error(refused: &Refused) -> Bytes {
        let event = json!({"type": "ERROR", "object": refused.status()});
        Bytes::from(format!("{event}\n"))
    }

    fn value(&mut self, subject: &Subject, kind: Kind, object: Value) {
        let object = subject.outward(object);
        self.object_event(subject, kind, &object);
    }

    fn object_event(&mut self, subject: &Subject, kind: Kind, object: &Value) {
        let object_event = match self.form {
            Form::Whole => object.to_string(),
            form => {
                let first = std::mem::take(&mut self.first);
                table::event(&subject.kind, form, object, first, clock::seconds()).to_string()
            }
        };
        self.line(kind, object_event.as_bytes());
    }

    fn line(&mut self, kind: Kind, object: &[u8]) {
        self.bytes.extend_from_slice(b"{\"type\":\"");
        self.bytes.extend_from_slice(kind.text().as_bytes());
        self.bytes.extend_from_slice(b"\",\"object\":");
        self.bytes.extend_from_slice(object);
        self.bytes.extend_from_slice(b"}\n");
    }
}
