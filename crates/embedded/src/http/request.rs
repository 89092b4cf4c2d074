//! A request that has been read: everything a verb needs, within bounds.

use super::{Limits, Query};
use crate::reviews::User;
use crate::status::Refused;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::Method;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{ACCEPT, AsHeaderName, CONTENT_TYPE, IF_NONE_MATCH, USER_AGENT};
use std::sync::Arc;
use tokio::time::timeout;

/// A request.
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
    /// Reads it to its end.
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
        if body.size_hint().lower() > limits.body as u64 {
            return Err(Refused::too_large(limits.body));
        }
        let body = timeout(limits.receive, Limited::new(body, limits.body).collect());
        let body = match body.await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return Err(Refused::too_large(limits.body));
            }
            Ok(Err(error)) => {
                return Err(Refused::bad_request(format!(
                    "the body of the request could not be read: {error}"
                )));
            }
            Err(_) => {
                let message = "the body of the request did not arrive in time";
                return Err(Refused::new(408, "Timeout", message));
            }
        };
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

/// All values of a header, as one.
fn text(headers: &hyper::HeaderMap, name: impl AsHeaderName) -> Option<String> {
    let values = headers.get_all(name);
    let values: Vec<&str> = values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    (!values.is_empty()).then(|| values.join(","))
}
