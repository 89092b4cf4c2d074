//! PATCH: merge, JSON, strategic, and apply.

use super::change::change;
use super::intent::{Intent, Owners, Unknown, UpdateVerb, Write};
use super::make::make;
use super::settle::{self, settle, translate};
use super::subject::{Part, Subject};
use super::{Api, create, identity};
use crate::clock;
use crate::http::{Answer, Decoded, Request, decode};
use crate::patch::apply::{self, ApplyError, Writer};
use crate::patch::{self, PatchError, Shape};
use crate::status::{Cause, Refused, cut};
use crate::store::{Changes, Stored};
use crate::table::Form;
use crate::validator::PatchBase;
use serde_json::Value;
use std::sync::Arc;

/// What Kubernetes calls the options of this verb.
const OPTIONS: &str = "PatchOptions";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatchType {
    Merge,
    Json,
    Strategic,
    Apply,
}

/// A patch, read.
struct Patch {
    patch_type: PatchType,
    body: Value,
    repeated: Vec<String>,
    intent: Intent,
}

/// What was written, whether it is new, and what to say of it.
type Written = (Arc<Stored>, bool, Vec<String>);

pub(super) async fn patch(
    api: &Arc<Api>,
    subject: Subject,
    request: &Request,
    form: Form,
) -> Result<Answer, Refused> {
    let patch = Patch::read(&subject, request)?;
    let (writer, of) = (Arc::clone(api), subject.clone());
    let written = api.store.write(move |changes| {
        if patch.intent.dry_run {
            return changes.without_trace(|changes| patch.run(&writer, changes, &of));
        }
        patch.run(&writer, changes, &of)
    });
    let (written, is_new, warnings) = written.await?;
    let code = if is_new { 201 } else { 200 };
    Ok(subject.answer(code, &written, form)?.warned(&warnings))
}

impl Patch {
    fn read(subject: &Subject, request: &Request) -> Result<Self, Refused> {
        let intent = Intent::of(request, OPTIONS)?;
        let media = request.media();
        let patch_type = patch_type(subject, media.as_deref())?;
        if patch_type == PatchType::Apply && !intent.named {
            let cause = Cause::required("fieldManager", "is required for apply patch");
            return Err(Refused::options(OPTIONS, cause));
        }
        if patch_type != PatchType::Apply && intent.force {
            let why = "may not be specified for non-apply patch";
            return Err(Refused::options(OPTIONS, Cause::forbidden("force", why)));
        }
        let body_type = match patch_type {
            PatchType::Apply => Some("application/apply-patch+yaml"),
            PatchType::Merge | PatchType::Json | PatchType::Strategic => None,
        };
        let Decoded { value, repeated } = decode(body_type, &request.body)?;
        Ok(Self {
            patch_type,
            body: value,
            repeated,
            intent,
        })
    }

    fn run(self, api: &Api, changes: &mut Changes, subject: &Subject) -> Result<Written, Refused> {
        match self.patch_type {
            PatchType::Apply => self.apply(api, changes, subject),
            PatchType::Merge | PatchType::Json | PatchType::Strategic => {
                self.edit(api, changes, subject)
            }
        }
    }

    fn edit(self, api: &Api, changes: &mut Changes, subject: &Subject) -> Result<Written, Refused> {
        let live = changes.get(subject.table, &subject.key());
        let live = live.ok_or_else(|| subject.not_found())?;
        let before = live.value()?;
        let mut after = subject.outward(before.clone());
        match self.patch_type {
            PatchType::Json => patch::json(&mut after, &self.body),
            PatchType::Strategic => {
                patch::strategic(Shape::of(&subject.kind), &mut after, &self.body)
            }
            PatchType::Merge | PatchType::Apply => {
                if !self.body.is_object() {
                    return Err(Refused::bad_request("a merge patch must be an object"));
                }
                patch::merge(&mut after, &self.body);
                Ok(())
            }
        }
        .map_err(|error| refusal(subject, error))?;
        let mut warnings = Vec::new();
        identity::claim(subject, &mut after)?;
        identity::same_name(subject, &mut after)?;
        let unknown = self.intent.unknown;
        let has_nulls = matches!(self.patch_type, PatchType::Merge | PatchType::Strategic);
        let written = settle::Written {
            before: PatchBase {
                stored: Some(&before),
                patch: has_nulls.then_some(&self.body),
            },
            repeated: &self.repeated,
        };
        settle(
            api,
            &subject.kind,
            written,
            &mut after,
            unknown,
            &mut warnings,
        )?;
        create::missing(subject, &after)?;
        let after = subject.inward(after);
        identity::unchanged(subject, &before, &after, UpdateVerb::Patch)?;
        let write = Write {
            api,
            changes,
            subject,
            intent: &self.intent,
        };
        let written = change(write, &live, &before, after, Owners::ToBeMoved)?;
        Ok((written, false, warnings))
    }

    fn apply(
        self,
        api: &Api,
        changes: &mut Changes,
        subject: &Subject,
    ) -> Result<Written, Refused> {
        let mut applied = self.body;
        let mut warnings = Vec::new();
        identity::claim(subject, &mut applied)?;
        identity::same_name(subject, &mut applied)?;
        let alone = PatchBase::default();
        translate(api, &subject.kind, alone, &mut applied, &mut warnings)?;
        let kind = &subject.stored;
        let unknown = subject.kind.prune_typed(&mut applied);
        if let Some(field) = unknown.map_err(Refused::bad_request)?.first() {
            return Err(untyped(subject, field));
        }
        let repeated = self.repeated.iter();
        let repeated = repeated.map(|field| format!("duplicate field {field:?}"));
        match self.intent.unknown {
            Unknown::Refused if !self.repeated.is_empty() => {
                let messages: Vec<String> = repeated.collect();
                let message = format!("error strict decoding YAML: {}", messages.join(", "));
                return Err(Refused::bad_request(message));
            }
            Unknown::DroppedWithWarning => warnings.extend(repeated),
            Unknown::Refused | Unknown::Dropped => {}
        }
        let applied = subject.inward(applied);
        let now = clock::rfc3339(changes.now());
        let version = kind.api_version();
        let writer = Writer {
            manager: &self.intent.manager,
            api_version: &version,
            subresource: if subject.part == Part::Status {
                "status"
            } else {
                ""
            },
            status_apart: kind.has_status,
            now: &now,
        };
        let live = changes.get(subject.table, &subject.key());
        let before = live.as_ref().map(|live| live.value()).transpose()?;
        if let Some(before) = &before {
            identity::unchanged(subject, before, &applied, UpdateVerb::Patch)?;
        } else if subject.part != Part::Main {
            return Err(subject.not_found());
        } else if !identity::text(&applied, "uid").is_empty() {
            let why = "Precondition failed: the object does not exist";
            return Err(Refused::conflict(&subject.kind, &subject.name, why));
        }
        // A definition changes nothing here: whoever writes one takes nothing from anybody.
        let force = self.intent.force || kind.kind == "CustomResourceDefinition";
        let mut after = apply::apply(Shape::of(kind), before.as_ref(), &applied, &writer, force)
            .map_err(|error| apply_refusal(subject, error))?;
        let _ = kind.prune_typed(&mut after).map_err(Refused::bad_request)?;
        let write = Write {
            api,
            changes,
            subject,
            intent: &self.intent,
        };
        match (live, before) {
            (Some(live), Some(before)) => {
                let written = change(write, &live, &before, after, Owners::Settled)?;
                Ok((written, false, warnings))
            }
            _ => {
                let made = make(write, after, Owners::Settled)?;
                Ok((made, true, warnings))
            }
        }
    }
}

fn patch_type(subject: &Subject, media: Option<&str>) -> Result<PatchType, Refused> {
    const ALL: &str = "application/json-patch+json, application/merge-patch+json, \
                       application/apply-patch+yaml";
    match media {
        Some("application/merge-patch+json") => Ok(PatchType::Merge),
        Some("application/json-patch+json") => Ok(PatchType::Json),
        Some("application/apply-patch+yaml") => Ok(PatchType::Apply),
        Some("application/strategic-merge-patch+json") if subject.kind.core => {
            Ok(PatchType::Strategic)
        }
        _ => Err(Refused::unsupported_media(format!(
            "the body of the request was in an unknown format - accepted media types include: {ALL}"
        ))),
    }
}

fn refusal(subject: &Subject, error: PatchError) -> Refused {
    match error {
        PatchError::Malformed(message) => Refused::bad_request(message),
        PatchError::TooLarge(message) => Refused::new(413, "RequestEntityTooLarge", message),
        PatchError::DoesNotApply(message) => {
            // Some say what does not fit, which may be all of a list.
            let message = format!(
                "the server rejected our request due to an error in our request: {}",
                cut(&message)
            );
            Refused::new(422, "Invalid", message).about(&subject.kind, &subject.name)
        }
    }
}

/// A field that the type does not have can be owned by nobody.
fn untyped(subject: &Subject, field: &str) -> Refused {
    let message = format!(
        "failed to create typed patch object ({}; {}, Kind={}): .{field}: field not declared in schema",
        subject.key().text().trim_start_matches('/'),
        subject.kind.api_version(),
        subject.kind.kind,
    );
    Refused::new(500, "InternalError", message)
}

fn apply_refusal(subject: &Subject, error: ApplyError) -> Refused {
    match error {
        ApplyError::Conflicts(causes) => {
            Refused::apply_conflict(&subject.kind, &subject.name, &causes)
        }
        ApplyError::Malformed(message) => Refused::bad_request(message),
        ApplyError::Untyped(message) => Refused::new(500, "InternalError", message),
    }
}
