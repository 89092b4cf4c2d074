//! One request: read, known, answered.

use super::Limits;
use super::answer::{Answer, Body};
use super::request::Request;
use crate::reviews::User;
use crate::status::Refused;
use crate::verbs::Api;
use hyper::body::Incoming;
use hyper::{Method, Response};
use std::sync::Arc;

/// What every connection needs to answer requests.
pub(crate) struct HttpContext {
    pub(crate) api: Arc<Api>,
    pub(crate) limits: Limits,
    /// Who we are; the same may use the socket.
    pub(crate) own_uid: u32,
}

/// Answers a request; refusals are answers too.
pub(super) async fn handle(
    context: &HttpContext,
    user: Option<Arc<User>>,
    request: hyper::Request<Incoming>,
) -> Response<Body> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let answer = answer(context, user, request)
        .await
        .unwrap_or_else(Answer::from);
    tracing::debug!(%method, path, code = answer.code(), "answered");
    answer.response()
}

async fn answer(
    context: &HttpContext,
    user: Option<Arc<User>>,
    request: hyper::Request<Incoming>,
) -> Result<Answer, Refused> {
    let path = request.uri().path();
    if let Some(answer) = open_to_all(&context.api, request.method(), path) {
        return Ok(answer);
    }
    let user = user.ok_or_else(Refused::unauthorized)?;
    let request = Request::read(request, user, &context.limits).await?;
    context.api.answer(request).await
}

/// What needs no name: whether the server is there, whether it can write, and which it is.
fn open_to_all(api: &Api, method: &Method, path: &str) -> Option<Answer> {
    if *method != Method::GET {
        return None;
    }
    match path {
        "/healthz" | "/livez" | "/readyz/ping" | "/healthz/ping" | "/livez/ping" => {
            Some(Answer::text(200, "ok"))
        }
        "/readyz" => Some(match api.store.write_problem() {
            None => Answer::text(200, "ok"),
            Some(problem) => Answer::text(503, format!("{problem}\n")),
        }),
        "/version" | "/version/" => Some(Answer::json(200, &crate::version::version())),
        _ => None,
    }
}
