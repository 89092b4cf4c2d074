//! One version of one object: the bytes that go over the wire, and beside them what is asked for
//! often enough not to read them again.

use super::key::Key;
use crate::kinds::Kind;
use crate::selectors;
use crate::status::Refused;
use hyper::body::Bytes;
use serde_json::Value;

/// One version of one object.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) key: Key,
    pub(crate) version: u64,
    /// When this version was written, in seconds since 1970.
    pub(crate) written: i64,
    pub(crate) uid: u128,
    /// Its JSON, `metadata.resourceVersion` included.
    pub(crate) body: Bytes,
    /// The identities of its owners; 0 for one that is none.
    pub(crate) owners: Box<[u128]>,
    /// Whether it is being deleted.
    pub(crate) dying: bool,
    labels: Box<[(Box<str>, Box<str>)]>,
    /// In the order of [`Kind::selectable`].
    fields: Box<[Box<str>]>,
}

impl Stored {
    /// Of an object that says its version already.
    pub(super) fn new(
        kind: &Kind,
        key: Key,
        version: u64,
        written: i64,
        object: &Value,
        body: Bytes,
    ) -> Self {
        let metadata = &object["metadata"];
        Self {
            key,
            version,
            written,
            uid: metadata["uid"].as_str().and_then(parse_uid).unwrap_or(0),
            body,
            owners: owners(metadata),
            dying: metadata.get("deletionTimestamp").is_some(),
            labels: labels(metadata),
            fields: fields(kind, object),
        }
    }

    /// The object as a value, parsed from its bytes.
    ///
    /// # Errors
    /// The bytes are no JSON, which nothing but a damaged disk explains.
    pub(crate) fn value(&self) -> Result<Value, Refused> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Refused::internal(format_args!("{:?}: {error}", self.key)))
    }

    /// The value of a label.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(key, _)| **key == *name);
        found.map(|(_, value)| &**value)
    }

    /// The value of a selectable field.
    pub(crate) fn field(&self, kind: &Kind, name: &str) -> Option<&str> {
        match name {
            "metadata.name" => Some(self.key.name()),
            "metadata.namespace" => Some(self.key.namespace()),
            _ => {
                let index = kind.selectable.iter().position(|label| label == name)?;
                self.fields.get(index).map(|value| &**value)
            }
        }
    }

    /// About how much memory it takes.
    pub(super) fn weight(&self) -> usize {
        self.body.len() + 256
    }
}

/// A UUID as a number.
pub(crate) fn parse_uid(text: &str) -> Option<u128> {
    if text.len() != 36 || !text.is_ascii() {
        return None;
    }
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    if digits.len() != 32 {
        return None;
    }
    u128::from_str_radix(&digits, 16)
        .ok()
        .filter(|uid| *uid != 0)
}

fn owners(metadata: &Value) -> Box<[u128]> {
    let references = metadata["ownerReferences"].as_array();
    let uid = |reference: &Value| reference["uid"].as_str().and_then(parse_uid).unwrap_or(0);
    references.into_iter().flatten().map(uid).collect()
}

fn labels(metadata: &Value) -> Box<[(Box<str>, Box<str>)]> {
    let labels = metadata["labels"].as_object();
    let pair =
        |(key, value): (&String, &Value)| Some((key.as_str().into(), value.as_str()?.into()));
    labels.into_iter().flatten().filter_map(pair).collect()
}

fn fields(kind: &Kind, object: &Value) -> Box<[Box<str>]> {
    let value = |label: &String| selectors::value_of(kind, object, label).into();
    kind.selectable.iter().map(value).collect()
}
