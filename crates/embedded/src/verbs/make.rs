//! A new object, in its turn: its place, its name, what is the server's, all checks, and the write.

use super::identity;
use super::intent::{Intent, Owners, Write};
use super::subject::Subject;
use super::{Api, metadata, names};
use crate::patch::{Shape, apply};
use crate::schema::Schema;
use crate::status::{Cause, Refused};
use crate::store::{Changes, Key, Stored};
use crate::{clock, crds, random};
use serde_json::Value;
use std::sync::Arc;

/// How often a generated name may be taken already.
const TRIES: usize = 8;

/// Makes an object, which is in its stored form, pruned and claimed by the subject.
///
/// # Errors
/// Its place does not take it, its name is taken, or something is wrong with it.
pub(super) fn make(
    write: Write<'_>,
    mut object: Value,
    owners: Owners,
) -> Result<Arc<Stored>, Refused> {
    let Write {
        api,
        changes,
        subject,
        intent,
    } = write;
    let kind = &subject.stored;
    identity::drop_ours(&mut object)?;
    let key = name(changes, subject, &mut object)?;
    if subject.kind.namespaced {
        open_to_new(api, changes, subject, key.name())?;
    }
    if changes.get(subject.table, &key).is_some() {
        return Err(Refused::already_exists(&subject.kind, key.name()));
    }
    let now = clock::rfc3339(changes.now());
    if kind.has_status && !keeps_status(&kind.kind) {
        let _ = object
            .as_object_mut()
            .and_then(|object| object.remove("status"));
    }
    identity::without_empties(&mut object);
    Shape::of(kind).drop_empties(&mut object);
    object["metadata"]["uid"] = random::uuid().into();
    object["metadata"]["creationTimestamp"] = now.clone().into();
    if kind.has_generation {
        object["metadata"]["generation"] = 1.into();
    }
    fill(subject, &mut object);
    if kind.kind == "CustomResourceDefinition" {
        crds::establish(&mut object, &now);
    }
    if owners == Owners::ToBeMoved {
        let version = kind.api_version();
        let writer = apply::Writer {
            manager: &intent.manager,
            api_version: &version,
            subresource: "",
            status_apart: kind.has_status,
            now: &now,
        };
        apply::update(Shape::of(kind), None, &mut object, &writer);
    }
    let problems = problems(api, subject, None, &object);
    if !problems.is_empty() {
        return Err(Refused::invalid(&subject.kind, key.name(), &problems));
    }
    changes.put(subject.table, &key, object)
}

/// Adds defaults: the type's and the schema's.
pub(super) fn fill(subject: &Subject, object: &mut Value) {
    let kind = &subject.stored;
    kind.defaults(object);
    if let Some(schema) = &kind.schema {
        schema.default(object);
    }
}

/// All that is wrong with an object.
pub(super) fn problems(
    api: &Api,
    subject: &Subject,
    before: Option<&Value>,
    object: &Value,
) -> Vec<Cause> {
    let kind = &subject.stored;
    let mut found = metadata::problems(kind, object);
    found.extend(kind.missing(object));
    if let Some(schema) = &kind.schema {
        found.extend(match before {
            Some(before) => schema.validate_update(before, object),
            None => schema.validate(object),
        });
    }
    if kind.kind == "CustomResourceDefinition" {
        found.extend(crds::check(&api.kinds, object));
    }
    // Meaning comes last: it is of no use for what has the wrong shape.
    if Schema::blocks_rules(&found) {
        if kind.schema.is_some() {
            found.push(unasked());
        }
    } else {
        found.extend(api.validator.problems(kind, before, object));
    }
    found
}

fn unasked() -> Cause {
    let why = "some validation rules were not checked because the object was invalid; correct \
               the existing errors to complete validation";
    Cause {
        reason: "FieldValueInvalid",
        message: format!("Invalid value: null: {why}"),
        field: "<nil>".to_owned(),
    }
}

/// The key of a new object; a name is made if only its beginning is given.
fn name(changes: &Changes, subject: &Subject, object: &mut Value) -> Result<Key, Refused> {
    let requested = identity::text(object, "name");
    if !requested.is_empty() {
        return Ok(Key::new(&subject.namespace, requested));
    }
    let prefix = identity::text(object, "generateName").to_owned();
    if prefix.is_empty() {
        let why = "name or generateName is required";
        let cause = Cause::required("metadata.name", why);
        return Err(Refused::invalid(&subject.kind, "", &[cause]));
    }
    if let Some(problem) = names::beginning(&prefix, metadata::name_check(&subject.kind)) {
        let cause = Cause::invalid("metadata.generateName", &prefix.into(), problem);
        return Err(Refused::invalid(&subject.kind, "", &[cause]));
    }
    let mut key = Key::new(&subject.namespace, &names::generated(&prefix));
    for _ in 0..TRIES {
        if changes.get(subject.table, &key).is_none() {
            break;
        }
        key = Key::new(&subject.namespace, &names::generated(&prefix));
    }
    object["metadata"]["name"] = key.name().into();
    Ok(key)
}

/// Whether a namespace is there, and not about to go.
fn open_to_new(api: &Api, changes: &Changes, subject: &Subject, name: &str) -> Result<(), Refused> {
    let (table, kind) = api.namespaces();
    let namespace = subject.namespace.as_str();
    let Some(found) = changes.get(table, &Api::namespace_key(namespace)) else {
        return Err(Refused::not_found(kind, namespace));
    };
    if found.dying {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let cause = Cause {
            reason: "NamespaceTerminating",
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        };
        return Err(Refused::forbidden(&subject.kind, name, why).with_causes(&[cause]));
    }
    Ok(())
}

/// A node says how it is when it registers; all others say it later, if at all.
fn keeps_status(kind: &str) -> bool {
    ["Node", "CustomResourceDefinition"].contains(&kind)
}

/// Makes an object of the server's own.
///
/// # Errors
/// Those of [`make`].
pub(crate) fn create_initial(
    api: &Api,
    changes: &mut Changes,
    subject: &Subject,
    mut object: Value,
) -> Result<Arc<Stored>, Refused> {
    let _ = subject
        .kind
        .prune_typed(&mut object)
        .map_err(Refused::bad_request)?;
    let write = Write {
        api,
        changes,
        subject,
        intent: &Intent::our_own(),
    };
    make(write, object, Owners::ToBeMoved)
}
