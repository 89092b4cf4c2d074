//! What is sent back: a code, headers, and bytes that are there, that are put together while they
//! are sent, or that come as things happen.

use crate::pages::Page;
use crate::status::Refused;
use crate::store::Stored;
use hyper::Response;
use hyper::body::{Bytes, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, VARY, WARNING};
use serde_json::Value;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// How much of a list is put together at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// More warnings than these are not sent.
const WARNINGS: usize = 16;
/// A warning is cut after so many characters.
const WARNING_LENGTH: usize = 400;

/// A response before it is sent: code, headers and where its body comes from.
#[derive(Debug)]
pub(crate) struct Answer {
    code: u16,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Body,
}

impl Answer {
    /// A response whose JSON text is ready.
    pub(crate) fn bytes(code: u16, body: Bytes) -> Self {
        Self {
            code,
            headers: vec![(CONTENT_TYPE, JSON)],
            body: Body::Whole(Some(body)),
        }
    }

    /// A response with a value as JSON.
    pub(crate) fn json(code: u16, value: &Value) -> Self {
        Self::bytes(code, Bytes::from(value.to_string()))
    }

    /// Objects of a list, between the two parts of the list itself.
    pub(crate) fn list(head: String, items: Vec<Arc<Stored>>, tail: &'static str) -> Self {
        Self {
            code: 200,
            headers: vec![(CONTENT_TYPE, JSON)],
            body: Body::List(List::new(head, items, tail)),
        }
    }

    /// What comes through a channel, until that is closed.
    pub(crate) fn stream(pieces: mpsc::Receiver<Bytes>) -> Self {
        Self {
            code: 200,
            headers: vec![(CONTENT_TYPE, JSON)],
            body: Body::Stream(pieces),
        }
    }

    /// A document, or that the peer has it.
    pub(crate) fn page(page: &Page, known: Option<&str>) -> Self {
        let is_known = page.is(known);
        let body = if is_known {
            Bytes::new()
        } else {
            Bytes::from_owner(Arc::clone(&page.body))
        };
        let caching = if page.immutable {
            "public, immutable, max-age=31536000"
        } else {
            "public"
        };
        let mut headers = vec![
            (CONTENT_TYPE, HeaderValue::from_static(page.content_type)),
            (CACHE_CONTROL, HeaderValue::from_static(caching)),
            (VARY, HeaderValue::from_static("Accept")),
        ];
        if let Ok(tag) = HeaderValue::from_str(&page.etag) {
            headers.push((ETAG, tag));
        }
        Self {
            code: if is_known { 304 } else { 200 },
            headers,
            body: Body::Whole(Some(body)),
        }
    }

    /// A word for whoever asks whether we are well.
    pub(crate) fn text(code: u16, text: impl Into<Bytes>) -> Self {
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        Self {
            code,
            headers: vec![(CONTENT_TYPE, plain)],
            body: Body::Whole(Some(text.into())),
        }
    }

    /// With what the client's user should read.
    #[must_use]
    pub(crate) fn warned(mut self, warnings: &[String]) -> Self {
        for warning in warnings.iter().take(WARNINGS) {
            let plain = |c: &char| c.is_ascii() && !c.is_ascii_control();
            let text: String = warning.chars().filter(plain).take(WARNING_LENGTH).collect();
            let text = text.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
                self.headers.push((WARNING, value));
            }
        }
        self
    }

    pub(crate) fn code(&self) -> u16 {
        self.code
    }

    pub(super) fn response(self) -> Response<Body> {
        let mut response = Response::new(self.body);
        *response.status_mut() = hyper::StatusCode::from_u16(self.code)
            .unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        for (name, value) in self.headers {
            let _ = headers.append(name, value);
        }
        if !headers.contains_key(CACHE_CONTROL) {
            let private = HeaderValue::from_static("no-cache, private");
            let _ = headers.insert(CACHE_CONTROL, private);
        }
        response
    }
}

impl From<Refused> for Answer {
    fn from(refused: Refused) -> Self {
        Self::json(refused.code(), &refused.status())
    }
}

/// Where the bytes of a response come from.
#[derive(Debug)]
pub(crate) enum Body {
    /// All in memory.
    Whole(Option<Bytes>),
    /// Put together while it is sent.
    List(List),
    /// From a task that makes them piece by piece.
    Stream(mpsc::Receiver<Bytes>),
}

/// A list that is being sent.
#[derive(Debug)]
pub(crate) struct List {
    head: String,
    items: std::vec::IntoIter<Arc<Stored>>,
    tail: &'static str,
    first: bool,
    left: u64,
}

impl List {
    fn new(head: String, items: Vec<Arc<Stored>>, tail: &'static str) -> Self {
        let bodies: usize = items.iter().map(|item| item.body.len()).sum();
        let commas = items.len().saturating_sub(1);
        let left = (head.len() + bodies + commas + tail.len()) as u64;
        Self {
            head,
            items: items.into_iter(),
            tail,
            first: true,
            left,
        }
    }

    fn piece(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return None;
        }
        let mut piece =
            Vec::with_capacity(CHUNK_BYTES.min(usize::try_from(self.left).unwrap_or(CHUNK_BYTES)));
        piece.append(&mut std::mem::take(&mut self.head).into_bytes());
        while piece.len() < CHUNK_BYTES {
            let Some(item) = self.items.next() else {
                piece.extend_from_slice(self.tail.as_bytes());
                self.tail = "";
                break;
            };
            if !std::mem::take(&mut self.first) {
                piece.push(b',');
            }
            piece.extend_from_slice(&item.body);
        }
        self.left = self.left.saturating_sub(piece.len() as u64);
        Some(Bytes::from(piece))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take()),
            Self::List(list) => Poll::Ready(list.piece()),
            Self::Stream(pieces) => pieces.poll_recv(context),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Self::List(list) => list.left == 0,
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::List(list) => SizeHint::with_exact(list.left),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Body};
    use crate::pages::Page;
    use crate::store::sample;
    use http_body_util::BodyExt;
    use hyper::body::Body as _;
    use serde_json::{Value, json};

    fn collected(body: Body) -> Vec<u8> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.build().unwrap();
        runtime
            .block_on(body.collect())
            .unwrap()
            .to_bytes()
            .to_vec()
    }

    #[test]
    fn a_list_is_as_long_as_it_says_whatever_is_in_it() {
        for (count, size) in [(0, 0), (1, 10), (3, 10), (700, 900), (2, 200_000)] {
            let items: Vec<_> = (0..count)
                .map(|number| sample(&format!("m-{number}"), &"x".repeat(size)))
                .collect();
            let answer = Answer::list("{\"items\":[".to_owned(), items, "]}");
            let expected = answer.body.size_hint().exact().unwrap();
            let body = collected(answer.body);
            assert_eq!(body.len() as u64, expected);
            let list: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(list["items"].as_array().unwrap().len(), count);
        }
    }

    #[test]
    fn a_page_that_the_peer_has_is_not_sent_again() {
        let page = Page::json("application/json", &json!({"a": 1}));
        let sent = Answer::page(&page, None);
        assert_eq!(sent.code(), 200);
        assert_eq!(collected(sent.body), page.body.to_vec());
        let known = Answer::page(&page, Some(&page.etag));
        assert_eq!(known.code(), 304);
        assert!(collected(known.body).is_empty());
    }

    #[test]
    fn warnings_are_cut_and_have_no_line_ends() {
        let long = format!("unknown field \"a\r\nb: c\u{e9}\" {}", "x".repeat(5000));
        let many = vec![long; 40];
        let answer = Answer::json(200, &json!({})).warned(&many);
        let response = answer.response();
        let sent: Vec<_> = response.headers().get_all("warning").iter().collect();
        assert_eq!(sent.len(), super::WARNINGS);
        let first = sent[0].to_str().unwrap();
        assert!(
            first.starts_with(r#"299 - "unknown field \"ab: c\" x"#),
            "{first}"
        );
        assert!(first.len() < 500);
    }
}
