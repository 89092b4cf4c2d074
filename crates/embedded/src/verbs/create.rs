//! POST.

use super::intent::Intent;
use super::make::make;
use super::settle::settle;
use super::subject::{Part, Subject};
use super::{Api, identity};
use crate::http::{Answer, Request, decode};
use crate::status::Refused;
use crate::table::Form;
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
    let decoded = decode(request.media().as_deref(), &request.body)?;
    let mut object = decoded.value;
    let mut warnings = Vec::new();
    identity::claim(&subject, &mut object)?;
    let kind = &subject.kind;
    settle(
        api,
        kind,
        &mut object,
        &decoded.repeated,
        intent.unknown,
        &mut warnings,
    )?;
    missing(&subject, &object)?;
    let object = subject.inward(object);
    let (writer, of) = (Arc::clone(api), subject.clone());
    let made = api.store.write(move |changes| {
        if intent.dry_run {
            return changes
                .without_trace(|changes| make(&writer, changes, &of, object, &intent, false));
        }
        make(&writer, changes, &of, object, &intent, false)
    });
    let made = made.await?;
    Ok(subject.answer(201, &made, form)?.warned(&warnings))
}

/// What the kind that was asked for must have, where that differs from the stored one.
pub(super) fn missing(subject: &Subject, object: &serde_json::Value) -> Result<(), Refused> {
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
