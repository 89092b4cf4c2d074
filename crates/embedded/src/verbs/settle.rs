//! From what a client sent to what the kind has: unknown fields go, with or without a word.

use super::intent::Unknown;
use super::{Api, identity};
use crate::kinds::Kind;
use crate::status::{MAX_PROBLEMS, Refused};
use crate::validator::PatchBase;
use serde_json::Value;

/// What the client sent, besides the object itself.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) before: PatchBase<'a>,
    /// Fields that the client sent twice.
    pub(super) repeated: &'a [String],
}

/// Lets the validator translate what was written.
///
/// # Errors
/// The validator finds something that it cannot translate.
pub(super) fn translate(
    api: &Api,
    kind: &Kind,
    before: PatchBase<'_>,
    object: &mut Value,
    warnings: &mut Vec<String>,
) -> Result<(), Refused> {
    let warnings_text = api
        .validator
        .received(kind, before, object)
        .map_err(|causes| Refused::invalid(kind, identity::text(object, "name"), &causes))?;
    warnings.extend(warnings_text);
    Ok(())
}

/// Translates and prunes an object, checks the types of core kinds, and says what was wrong as the
/// client wants it. `written` is how it came: what it was before, and the fields that the client sent twice.
///
/// # Errors
/// A type is wrong, or a field is unknown and the client is strict.
pub(super) fn settle(
    api: &Api,
    kind: &Kind,
    written: Written<'_>,
    object: &mut Value,
    unknown: Unknown,
    warnings: &mut Vec<String>,
) -> Result<(), Refused> {
    let Written { before, repeated } = written;
    translate(api, kind, before, object, warnings)?;
    let mut fields = kind.prune_typed(object).map_err(Refused::bad_request)?;
    if let Some(schema) = &kind.schema {
        fields.extend(schema.prune(object));
    }
    let mut warnings_text: Vec<String> = Vec::new();
    warnings_text.extend(
        repeated
            .iter()
            .map(|field| format!("duplicate field {field:?}")),
    );
    warnings_text.extend(
        fields
            .iter()
            .map(|field| format!("unknown field {field:?}")),
    );
    if warnings_text.len() > MAX_PROBLEMS {
        warnings_text.truncate(MAX_PROBLEMS);
        warnings_text.push("and more".to_owned());
    }
    match unknown {
        Unknown::Refused if !warnings_text.is_empty() => {
            let message = format!(
                "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
                kind.kind,
                kind.version,
                kind.kind,
                warnings_text.join(", ")
            );
            return Err(Refused::bad_request(message));
        }
        Unknown::DroppedWithWarning => warnings.append(&mut warnings_text),
        Unknown::Refused | Unknown::Dropped => {}
    }
    Ok(())
}
