//! Many objects: which, as of when, in pieces.

use super::token::Token;
use super::{Api, Subject};
use crate::clock;
use crate::http::{Answer, Request};
use crate::selectors::{Fields, Labels};
use crate::status::{Cause, Refused};
use crate::store::{self, Stored};
use crate::table::{self, Form};
use hyper::body::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::timeout;

/// How long a request waits for a version that the store has not reached.
const VERSION_TIMEOUT: Duration = Duration::from_secs(3);
/// How much of a list is brought into a form at a time.
const CHUNK_BYTES: usize = 48 << 10;

/// Which objects are listed or watched: by labels, by fields, by name.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    labels: Labels,
    fields: Fields,
}

impl Selection {
    /// The selectors of a request.
    ///
    /// # Errors
    /// A selector is none, or names a field that the kind does not offer.
    pub(crate) fn of(subject: &Subject, request: &Request) -> Result<Self, Refused> {
        let query = &request.query;
        let labels = query.get("labelSelector").unwrap_or("");
        let fields = query.get("fieldSelector").unwrap_or("");
        let mut fields = fields.to_owned();
        if !subject.name.is_empty() {
            let comma = if fields.is_empty() { "" } else { "," };
            fields = format!("{fields}{comma}metadata.name={}", subject.name);
        }
        Ok(Self {
            labels: Labels::parse(labels).map_err(Refused::bad_request)?,
            fields: Fields::parse(&subject.kind, &fields).map_err(Refused::bad_request)?,
        })
    }

    /// Whether nothing is left out.
    pub(crate) fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether an object is among them.
    pub(crate) fn has(&self, subject: &Subject, object: &Stored) -> bool {
        if self.is_all() {
            return true;
        }
        if !self.labels.matches_with(&|name| object.label(name)) {
            return false;
        }
        if subject.is_direct() || self.fields.is_empty() {
            let kind = &subject.stored;
            return self.fields.matches_with(&|name| object.field(kind, name));
        }
        let served = object.value().map(|object| subject.outward(object));
        served.is_ok_and(|served| self.fields.matches(&subject.kind, &served))
    }

    /// The only key that can be among them.
    fn key(&self, subject: &Subject) -> Option<store::Key> {
        let somewhere = !subject.namespace.is_empty() || !subject.kind.namespaced;
        let name = self.fields.name().filter(|_| somewhere)?;
        Some(store::Key::new(&subject.namespace, name))
    }
}

/// GET of many: waits for the version that is asked for, selects, cuts at the limit, answers.
pub(super) async fn list(
    api: &Api,
    subject: &Subject,
    request: &Request,
    form: Form,
) -> Result<Answer, Refused> {
    let selection = Selection::of(subject, request)?;
    let limit = request.query.number("limit")?.filter(|limit| *limit > 0);
    let token = request
        .query
        .get("continue")
        .map(Token::parse)
        .transpose()?;
    let version_match = VersionMatch::of(request, limit.is_some(), token.is_some())?;
    let part = store::ListScope {
        namespace: Some(subject.namespace.as_str()).filter(|namespace| !namespace.is_empty()),
        after: token.as_ref().map(|token| token.after.as_str()),
    };
    let then = match (&token, version_match) {
        (Some(token), _) => Some(token.version),
        (None, VersionMatch::Exactly(version)) => {
            not_older_than(api, version).await?;
            Some(version)
        }
        (None, VersionMatch::NotOlderThan(version)) => {
            not_older_than(api, version).await?;
            None
        }
        (None, VersionMatch::Newest) => None,
    };
    let (found, version) = match (then, selection.key(subject)) {
        (Some(version), _) => {
            let found = api.store.list_at(subject.table, part, version);
            (found.map_err(|_| too_old(token.is_some()))?, version)
        }
        (None, Some(key)) => {
            // The version first: what is found then is at least as new.
            let version = api.store.version();
            (
                api.store.get(subject.table, &key).into_iter().collect(),
                version,
            )
        }
        (None, None) => api.store.list(subject.table, part),
    };
    let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let page = ListPage::cut(subject, &selection, found, limit, version);
    Ok(page.answer(api, subject, form))
}

/// The objects of an answer, and what it says of itself.
struct ListPage {
    items: Vec<Arc<Stored>>,
    metadata: Value,
}

impl ListPage {
    fn cut(
        subject: &Subject,
        selection: &Selection,
        found: Vec<Arc<Stored>>,
        limit: Option<usize>,
        version: u64,
    ) -> Self {
        let mut metadata = json!({"resourceVersion": version.to_string()});
        let mut items = found;
        if !selection.is_all() {
            items.retain(|object| selection.has(subject, object));
        }
        if let Some(limit) = limit
            && let Some(left) = items.len().checked_sub(limit).filter(|left| *left > 0)
        {
            items.truncate(limit);
            let after = items.last().map(|object| object.key.text().to_owned());
            let token = Token {
                version,
                after: after.unwrap_or_default(),
            };
            metadata["continue"] = token.text().into();
            if selection.is_all() {
                metadata["remainingItemCount"] = left.into();
            }
        }
        Self { items, metadata }
    }

    fn answer(self, api: &Api, subject: &Subject, form: Form) -> Answer {
        let kind = &subject.kind;
        if subject.is_direct() && matches!(form, Form::Whole) {
            let head = format!(
                r#"{{"apiVersion":{},"kind":{},"metadata":{},"items":["#,
                Value::String(kind.api_version()),
                Value::String(kind.list_kind.clone()),
                self.metadata,
            );
            return Answer::list(head, self.items, "]}");
        }
        let (send, receive) = mpsc::channel(1);
        drop(tokio::spawn(self.render(
            subject.clone(),
            form,
            send,
            api.stalled,
        )));
        Answer::stream(receive)
    }

    /// Brings the objects into a form, a few at a time, as the peer takes them.
    async fn render(
        self,
        subject: Subject,
        form: Form,
        pieces: mpsc::Sender<Bytes>,
        page_timeout: Duration,
    ) {
        let now = clock::seconds();
        let (frame, field) = table::frame(&subject.kind, form, self.metadata);
        let mut text = frame.to_string();
        let _ = text.pop();
        text.push_str(&format!(",{}:[", Value::from(field)));
        let mut comma = "";
        for object in self.items {
            let Ok(value) = object.value() else { return };
            let item = table::item(&subject.kind, form, &subject.outward(value), now);
            text.push_str(comma);
            text.push_str(&item.to_string());
            comma = ",";
            if text.len() >= CHUNK_BYTES {
                let page = pieces.send(std::mem::take(&mut text).into());
                if !matches!(timeout(page_timeout, page).await, Ok(Ok(()))) {
                    return;
                }
                yield_now().await;
            }
        }
        text.push_str("]}");
        let _ = pieces.send(text.into()).await;
    }
}

/// Which version of the objects a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VersionMatch {
    Newest,
    NotOlderThan(u64),
    Exactly(u64),
}

impl VersionMatch {
    fn of(request: &Request, in_pieces: bool, goes_on: bool) -> Result<Self, Refused> {
        let version = version(request)?;
        let matching = request.query.get("resourceVersionMatch");
        if request.query.get("sendInitialEvents").is_some() {
            let why = "sendInitialEvents is forbidden for list";
            return Err(options(Cause::forbidden("sendInitialEvents", why)));
        }
        if goes_on {
            if version.is_some_and(|version| version > 0) {
                let message = "specifying resource version is not allowed when using continue";
                return Err(Refused::bad_request(message));
            }
            if matching.is_some() {
                let why = "resourceVersionMatch is forbidden when continue is provided";
                return Err(options(Cause::forbidden("resourceVersionMatch", why)));
            }
            return Ok(Self::Newest);
        }
        match (matching, version) {
            (Some(_), None) => {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                Err(options(Cause::forbidden("resourceVersionMatch", why)))
            }
            (Some("NotOlderThan"), Some(version)) => Ok(Self::NotOlderThan(version)),
            (Some("Exact"), Some(0)) => {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                Err(options(Cause::forbidden("resourceVersionMatch", why)))
            }
            (Some("Exact"), Some(version)) => Ok(Self::Exactly(version)),
            (Some(other), Some(_)) => Err(options(unsupported_match(other))),
            // As it was before one could say it.
            (None, Some(version)) if in_pieces && version > 0 => Ok(Self::Exactly(version)),
            (None, Some(version)) => Ok(Self::NotOlderThan(version)),
            (None, None) => Ok(Self::Newest),
        }
    }
}

pub(crate) fn unsupported_match(value: &str) -> Cause {
    Cause {
        reason: "FieldValueNotSupported",
        message: format!(
            "Unsupported value: {value:?}: supported values: \"Exact\", \"NotOlderThan\", \"\""
        ),
        field: "resourceVersionMatch".to_owned(),
    }
}

/// What is wrong with the options of a list or watch.
pub(crate) fn options(cause: Cause) -> Refused {
    Refused::options("ListOptions", cause)
}

/// The `resourceVersion` that a request names.
///
/// # Errors
/// The value is not a number.
pub(crate) fn version(request: &Request) -> Result<Option<u64>, Refused> {
    let text = request.query.get("resourceVersion");
    let wrong = |text: &str| {
        let cause = Cause::invalid("resourceVersion", &text.into(), "must be a number");
        let message = format!("invalid resource version: {cause}");
        Refused::bad_request(message)
    };
    text.map(|text| text.parse().map_err(|_| wrong(text)))
        .transpose()
}

/// Waits a little for a version that somebody has seen; whether it has come.
pub(crate) async fn is_reached(api: &Api, version: u64) -> bool {
    let mut newest = api.store.follow_all();
    let reached = newest.wait_for(|newest| *newest >= version);
    matches!(timeout(VERSION_TIMEOUT, reached).await, Ok(Ok(_)))
}

pub(super) async fn not_older_than(api: &Api, version: u64) -> Result<(), Refused> {
    if is_reached(api, version).await {
        return Ok(());
    }
    let newest = api.store.version();
    let message = format!("Timeout: Too large resource version: {version}, current: {newest}");
    let cause = Cause {
        reason: "ResourceVersionTooLarge",
        message: "Too large resource version".to_owned(),
        field: String::new(),
    };
    Err(Refused::timeout(message, 1).with_causes(&[cause]))
}

fn too_old(goes_on: bool) -> Refused {
    Refused::expired(if goes_on {
        "The provided continue parameter is too old to display a consistent list result. \
         You must start a new list without the continue parameter."
    } else {
        "The resourceVersion for the provided list is too old."
    })
}
