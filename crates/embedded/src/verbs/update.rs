//! PUT.

use super::change::change;
use super::intent::Intent;
use super::make::make;
use super::settle::settle;
use super::subject::{Part, Subject};
use super::{Api, create, identity};
use crate::http::{Answer, Request, decode};
use crate::status::Refused;
use crate::store::{Changes, Stored};
use crate::table::Form;
use serde_json::Value;
use std::sync::Arc;

pub(super) async fn update(
    api: &Arc<Api>,
    subject: Subject,
    request: &Request,
    form: Form,
) -> Result<Answer, Refused> {
    let intent = Intent::of(request, "UpdateOptions")?;
    let decoded = decode(request.media().as_deref(), &request.body)?;
    let mut object = decoded.value;
    let mut warnings = Vec::new();
    identity::claim(&subject, &mut object)?;
    identity::same_name(&subject, &mut object)?;
    let kind = &subject.kind;
    settle(
        api,
        kind,
        &mut object,
        &decoded.repeated,
        intent.unknown,
        &mut warnings,
    )?;
    create::missing(&subject, &object)?;
    let object = subject.inward(object);
    let (writer, of) = (Arc::clone(api), subject.clone());
    let written = api.store.write(move |changes| {
        if intent.dry_run {
            return changes
                .without_trace(|changes| replace(&writer, changes, &of, object, &intent));
        }
        replace(&writer, changes, &of, object, &intent)
    });
    let (code, written) = written.await?;
    Ok(subject.answer(code, &written, form)?.warned(&warnings))
}

fn replace(
    api: &Api,
    changes: &mut Changes,
    subject: &Subject,
    mut object: Value,
    intent: &Intent,
) -> Result<(u16, Arc<Stored>), Refused> {
    let Some(live) = changes.get(subject.table, &subject.key()) else {
        if subject.part != Part::Main || !identity::made_by_update(&subject.kind) {
            return Err(subject.not_found());
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            let _ = metadata.remove("resourceVersion");
        }
        let made = make(api, changes, subject, object, intent, false)?;
        return Ok((201, made));
    };
    let before = live.value()?;
    identity::unchanged(subject, &before, &object, false)?;
    let changed = change(
        api,
        changes,
        subject,
        (&live, &before),
        object,
        intent,
        false,
    )?;
    Ok((200, changed))
}
