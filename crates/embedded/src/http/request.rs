//! A request that has been read: everything a verb needs, within bounds.

use super::{Limits, Query};
use crate::reviews::User;
use crate::status::Refused;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{ACCEPT, AsHeaderName, CONTENT_TYPE, IF_NONE_MATCH, USER_AGENT};
use std::sync::Arc;
use tokio::time::timeout;

/// So many times as much as is taken is read before a peer is cut off.
const OVERSIZE_FACTOR: usize = 4;

/// A request with its whole body, and who sent it.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) accept: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) if_none_match: Option<String>,
    pub(crate) user_agent: Option<String>,
    pub(crate) body: Bytes,
    pub(crate) user: Arc<User>,
}

impl Request {
    /// Receives the body, within the limits of size and time.
    ///
    /// # Errors
    /// It is too large or too slow, or its query makes no sense.
    pub(super) async fn read(
        request: hyper::Request<Incoming>,
        user: Arc<User>,
        limits: &Limits,
    ) -> Result<Self, Refused> {
        let (head, body) = request.into_parts();
        let query = Query::parse(head.uri.query().unwrap_or(""))?;
        let late = || {
            let message = "the body of the request did not arrive in time";
            Refused::new(408, "Timeout", message)
        };
        let body = timeout(limits.receive, collect(body, limits.body)).await;
        let body = body.map_err(|_| late())??;
        let headers = &head.headers;
        Ok(Self {
            accept: text(headers, ACCEPT),
            content_type: text(headers, CONTENT_TYPE),
            if_none_match: text(headers, IF_NONE_MATCH),
            user_agent: text(headers, USER_AGENT),
            path: head.uri.path().to_owned(),
            method: head.method,
            query,
            body,
            user,
        })
    }

    /// The content type without its parameters, in lower case.
    pub(crate) fn media(&self) -> Option<String> {
        let media = self.content_type.as_deref()?.split(';').next()?;
        Some(media.trim().to_ascii_lowercase()).filter(|media| !media.is_empty())
    }
}

/// All of a body. Of one that is too large a little more is read, and dropped: a peer that is still
/// writing does not read why it is refused.
async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, Refused> {
    let enough = limit.saturating_mul(OVERSIZE_FACTOR);
    if body.size_hint().lower() > enough as u64 {
        return Err(Refused::too_large(limit));
    }
    let mut bytes = Vec::new();
    let mut read = 0_usize;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let message = format!("the body of the request could not be read: {error}");
            Refused::bad_request(message)
        })?;
        let data = frame.into_data().unwrap_or_default();
        read = read.saturating_add(data.len());
        if read <= limit {
            bytes.extend_from_slice(&data);
        } else if read > enough {
            break;
        }
    }
    if read > limit {
        return Err(Refused::too_large(limit));
    }
    Ok(Bytes::from(bytes))
}

/// All values of a header, as one.
fn text(headers: &hyper::HeaderMap, name: impl AsHeaderName) -> Option<String> {
    let values = headers.get_all(name);
    let values: Vec<&str> = values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    (!values.is_empty()).then(|| values.join(","))
}
