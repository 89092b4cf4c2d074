//! From what a client sent to what the kind has: unknown fields go, with or without a word.

use super::intent::Unknown;
use super::{Api, identity};
use crate::kinds::Kind;
use crate::status::{ENOUGH, Refused};
use crate::validator::Before;
use serde_json::Value;

/// How an object came.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) before: Before<'a>,
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
    before: Before<'_>,
    object: &mut Value,
    warnings: &mut Vec<String>,
) -> Result<(), Refused> {
    let said = api
        .validator
        .received(kind, before, object)
        .map_err(|causes| Refused::invalid(kind, identity::text(object, "name"), &causes))?;
    warnings.extend(said);
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
    let mut said: Vec<String> = Vec::new();
    said.extend(
        repeated
            .iter()
            .map(|field| format!("duplicate field {field:?}")),
    );
    said.extend(
        fields
            .iter()
            .map(|field| format!("unknown field {field:?}")),
    );
    if said.len() > ENOUGH {
        said.truncate(ENOUGH);
        said.push("and more".to_owned());
    }
    match unknown {
        Unknown::Refused if !said.is_empty() => {
            let message = format!(
                "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
                kind.kind,
                kind.version,
                kind.kind,
                said.join(", ")
            );
            return Err(Refused::bad_request(message));
        }
        Unknown::DroppedWithWarning => warnings.append(&mut said),
        Unknown::Refused | Unknown::Dropped => {}
    }
    Ok(())
}
