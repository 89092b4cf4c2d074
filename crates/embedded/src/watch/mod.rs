//! Watches: what exists, then what changes, as one stream of events. Owns the order of the
//! events and how a watch begins and ends; the events come from the store's log.
//!
//! ```text
//!   ADDED … ADDED, BOOKMARK (all that existed)   if asked for, or from version 0 on
//!   ADDED, MODIFIED, DELETED …                   every change after the version, in order
//!   BOOKMARK                                     once a minute, so that a quiet watch stays new
//!   ERROR 410                                    the version is not known (any more): list again
//! ```

mod event;
mod stream;

use crate::http::{Answer, Request};
use crate::status::{Cause, Refused};
use crate::table::Form;
use crate::verbs::{Api, Selection, Subject, options, unsupported_match, version};
use std::sync::Arc;
use std::time::Duration;
use stream::{Beginning, Stream};
use tokio::sync::mpsc;

/// Pieces that wait for a slow peer; each is up to 48 KiB and one object.
const MAX_WAITING_CHUNKS: usize = 2;
/// How long a watch lasts by default, in seconds; and up to as much again, so that not all end
/// at once. Twice of it is the longest that is granted.
const DEFAULT_TIMEOUT_SECONDS: u64 = 1800;

/// GET with `watch=true`: starts the stream, and answers with it.
///
/// # Errors
/// A selector or an option is not understood.
pub(crate) fn watch(
    api: &Arc<Api>,
    subject: Subject,
    request: &Request,
    form: Form,
) -> Result<Answer, Refused> {
    let selection = Selection::of(&subject, request)?;
    let bookmarks = request.query.flag("allowWatchBookmarks")? == Some(true);
    let beginning = beginning(request)?;
    let seconds = request
        .query
        .number("timeoutSeconds")?
        .filter(|seconds| *seconds > 0);
    let spread = || u64::from(u16::from_be_bytes(crate::random::bytes())) % DEFAULT_TIMEOUT_SECONDS;
    let seconds = seconds.unwrap_or_else(|| DEFAULT_TIMEOUT_SECONDS + spread());
    let stream = Stream {
        api: Arc::clone(api),
        subject,
        selection,
        form,
        bookmarks,
        duration: Duration::from_secs(seconds.min(2 * DEFAULT_TIMEOUT_SECONDS)),
    };
    let (send, receive) = mpsc::channel(MAX_WAITING_CHUNKS);
    drop(tokio::spawn(stream.run(beginning, send)));
    Ok(Answer::stream(receive))
}

fn beginning(request: &Request) -> Result<Beginning, Refused> {
    let version = version(request)?;
    let matching = request.query.get("resourceVersionMatch");
    let initial = request.query.flag("sendInitialEvents")?;
    let forbidden = |why: &str| Err(options(Cause::forbidden("resourceVersionMatch", why)));
    match (initial, matching) {
        (Some(_), Some("NotOlderThan")) => {}
        (Some(_), None | Some("Exact")) => {
            return forbidden(
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            );
        }
        (None, Some("Exact" | "NotOlderThan")) => {
            return forbidden(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
        (_, Some(other)) => return Err(options(unsupported_match(other))),
        (None, None) => {}
    }
    Ok(match (initial, version) {
        (Some(true), _) => Beginning::WithWhatExists {
            marked: true,
            not_older_than: version.unwrap_or(0),
        },
        (Some(false), None | Some(0)) => Beginning::Now,
        (None, None | Some(0)) => Beginning::WithWhatExists {
            marked: version.is_some(),
            not_older_than: 0,
        },
        (_, Some(version)) => Beginning::After(version),
    })
}
