//! PUT.

use super::change::change;
use super::intent::{Intent, Owners, UpdateVerb, Write};
use super::make::make;
use super::subject::{Part, Subject};
use super::{Api, create, identity};
use crate::http::{Answer, Request};
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
    let (object, warnings) = create::received(api, &subject, request, &intent)?;
    let (writer, of) = (Arc::clone(api), subject.clone());
    let written = api.store.write(move |changes| {
        let dry_run = intent.dry_run;
        let replace = |changes: &mut Changes| {
            let write = Write {
                api: &writer,
                changes,
                subject: &of,
                intent: &intent,
            };
            replace(write, object)
        };
        match dry_run {
            true => changes.without_trace(replace),
            false => replace(changes),
        }
    });
    let (code, written) = written.await?;
    Ok(subject.answer(code, &written, form)?.warned(&warnings))
}

fn replace(write: Write<'_>, mut object: Value) -> Result<(u16, Arc<Stored>), Refused> {
    let subject = write.subject;
    let Some(live) = write.changes.get(subject.table, &subject.key()) else {
        if subject.part != Part::Main || !identity::made_by_update(&subject.kind) {
            return Err(subject.not_found());
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            let _ = metadata.remove("resourceVersion");
        }
        let made = make(write, object, Owners::ToBeMoved)?;
        return Ok((201, made));
    };
    let before = live.value()?;
    identity::unchanged(subject, &before, &object, UpdateVerb::Put)?;
    let changed = change(write, &live, &before, object, Owners::ToBeMoved)?;
    Ok((200, changed))
}
