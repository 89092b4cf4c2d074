//! A definition of the server's own kinds that an earlier server has made: it says what this one serves.

use super::Api;
use super::change::change;
use super::intent::{Intent, Owners, Write};
use super::make::fill;
use super::subject::Subject;
use crate::status::Refused;
use crate::store::{Changes, Stored};
use crate::{clock, crds};
use serde_json::Value;
use std::sync::Arc;

/// Brings a definition up to date; does nothing if it is.
///
/// # Errors
/// The new definition is invalid, or the store refuses it.
pub(crate) fn renew(
    api: &Api,
    changes: &mut Changes,
    subject: &Subject,
    live: &Arc<Stored>,
    mut served: Value,
) -> Result<(), Refused> {
    let _ = subject
        .kind
        .prune_typed(&mut served)
        .map_err(Refused::bad_request)?;
    fill(subject, &mut served);
    let before = live.value()?;
    let mut after = before.clone();
    after["spec"] = served["spec"].take();
    let write = Write {
        api,
        changes,
        subject,
        intent: &Intent::our_own(),
    };
    let written = change(write, live, &before, after, Owners::ToBeMoved)?;
    let before = written.value()?;
    let mut after = before.clone();
    crds::establish(&mut after, &clock::rfc3339(changes.now()));
    if after != before {
        let _ = changes.put(subject.table, &live.key, after)?;
    }
    Ok(())
}
