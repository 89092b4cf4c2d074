//! POST.

use super::intent::{Intent, Owners, Write};
use super::make::make;
use super::settle::{self, settle};
use super::subject::{Part, Subject};
use super::{Api, identity};
use crate::http::{Answer, Request, decode};
use crate::status::Refused;
use crate::store::Changes;
use crate::table::Form;
use crate::validator::PatchBase;
use serde_json::Value;
use std::sync::Arc;

pub(super) async fn create(
    api: &Arc<Api>,
    subject: Subject,
    request: &Request,
    form: Form,
) -> Result<Answer, Refused> {
    if subject.part != Part::Main || subject.kind.namespaced && subject.namespace.is_empty() {
        return Err(Refused::method_not_allowed());
    }
    let intent = Intent::of(request, "CreateOptions")?;
    let (object, warnings) = received(api, &subject, request, &intent)?;
    let (writer, of) = (Arc::clone(api), subject.clone());
    let made = api.store.write(move |changes| {
        let dry_run = intent.dry_run;
        let make = |changes: &mut Changes| {
            let write = Write {
                api: &writer,
                changes,
                subject: &of,
                intent: &intent,
            };
            make(write, object, Owners::ToBeMoved)
        };
        match dry_run {
            true => changes.without_trace(make),
            false => make(changes),
        }
    });
    let made = made.await?;
    Ok(subject.answer(201, &made, form)?.warned(&warnings))
}

/// The whole object that a POST or PUT has sent, in its stored form, and what to warn of.
///
/// # Errors
/// It cannot be read, is of another kind or place, or has fields that it may not have.
pub(super) fn received(
    api: &Api,
    subject: &Subject,
    request: &Request,
    intent: &Intent,
) -> Result<(Value, Vec<String>), Refused> {
    let decoded = decode(request.media().as_deref(), &request.body)?;
    let mut object = decoded.value;
    identity::claim(subject, &mut object)?;
    // A new one may have no name yet.
    if !subject.name.is_empty() {
        identity::same_name(subject, &mut object)?;
    }
    let mut warnings = Vec::new();
    let written = settle::Written {
        before: PatchBase::default(),
        repeated: &decoded.repeated,
    };
    settle(
        api,
        &subject.kind,
        written,
        &mut object,
        intent.unknown,
        &mut warnings,
    )?;
    missing(subject, &object)?;
    Ok((subject.inward(object), warnings))
}

/// What the kind that was asked for must have, where that differs from the stored one.
pub(super) fn missing(subject: &Subject, object: &Value) -> Result<(), Refused> {
    if subject.is_direct() {
        return Ok(());
    }
    let missing = subject.kind.missing(object);
    if missing.is_empty() {
        return Ok(());
    }
    let name = identity::text(object, "name");
    Err(Refused::invalid(&subject.kind, name, &missing))
}
