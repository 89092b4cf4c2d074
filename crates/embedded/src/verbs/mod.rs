//! What can be done with objects: one file per verb. Owns the order of things (decode, prune,
//! defaults, who owns which field, validation, no-op, write); the steps themselves are elsewhere and
//! pure. Never touches a socket or the disk.
//!
//! ```text
//!   request ─► subject ─► get, list ───────────────────────────────► memory
//!                     └─► create, update, patch, delete ─► a job ─► store
//! ```

mod change;
mod create;
mod delete;
mod get;
mod identity;
mod intent;
mod list;
mod make;
mod metadata;
mod names;
mod patch;
mod renew;
mod settle;
mod subject;
mod token;
mod update;

pub(crate) use change::waits;
pub(crate) use delete::{Ending, FOREGROUND, ORPHAN, Policy, end};
pub(crate) use identity::retain;
pub(crate) use list::{Selection, is_reached, options, unsupported_match, version};
pub(crate) use make::create_initial;
pub(crate) use renew::renew;
pub(crate) use subject::{Part, Subject};

use crate::discovery::Discovery;
use crate::http::{Answer, Request, route};
use crate::kinds::{Kind, Kinds, Storage};
use crate::openapi::OpenApi;
use crate::options::Options;
use crate::status::Refused;
use crate::stop::Stop;
use crate::store::{Key, Store, Table};
use crate::table::Form;
use crate::validator::Validator;
use crate::{reviews, watch};
use hyper::Method;
use std::sync::Arc;
use std::time::Duration;

/// Everything that answering needs.
pub(crate) struct Api {
    pub(crate) store: Store,
    pub(crate) kinds: Kinds,
    pub(crate) validator: Arc<dyn Validator>,
    /// Whether a pod on a node waits until its node says that it is gone.
    pub(crate) pods_wait: bool,
    /// Namespaces that were asked for at the start: they stay.
    pub(crate) needed: Vec<String>,
    pub(crate) stop: Stop,
    /// How often a quiet watch says how new it is.
    pub(crate) bookmarks: Duration,
    /// How long a peer may take for a piece of a watch.
    pub(crate) stalled: Duration,
    namespaces: (Table, Arc<Kind>),
    discovery: Discovery,
    openapi: OpenApi,
}

impl Api {
    /// Over a store that has tables for the kinds of the options; `None` if there is none for
    /// namespaces.
    pub(crate) fn new(store: Store, options: &Options, stop: Stop) -> Option<Self> {
        let kinds = options.kinds.clone();
        let kind = kinds.get("", "v1", "namespaces").cloned()?;
        Some(Self {
            namespaces: (store.table(&kind)?, kind),
            discovery: Discovery::new(&kinds),
            openapi: OpenApi::new(kinds.clone()),
            store,
            kinds,
            validator: Arc::clone(&options.validator),
            pods_wait: options.pods_wait,
            needed: options.namespaces.clone(),
            bookmarks: options.bookmarks,
            stalled: options.limits.stalled,
            stop,
        })
    }

    /// Finds the kind and the verb, and does it.
    ///
    /// # Errors
    /// There is no such path, verb or form, or the verb refuses.
    pub(crate) async fn answer(self: &Arc<Self>, request: Request) -> Result<Answer, Refused> {
        if let Some(answer) = self.page(&request) {
            return Ok(answer);
        }
        let target = route(&self.kinds, &request.path)?;
        if matches!(target.kind.storage, Storage::Answered) {
            return review(&target.kind, &request);
        }
        let subject = Subject::of(self, target)?;
        let include = request.query.get("includeObject");
        let form = Form::negotiate(request.accept.as_deref(), include)
            .map_err(|message| Refused::new(406, "NotAcceptable", message))?;
        let all = subject.name.is_empty();
        let watching =
            matches!(request.method, Method::GET) && (request.query.flag("watch")? == Some(true));
        match request.method {
            Method::GET if watching => watch::watch(self, subject, &request, form),
            Method::GET if all => list::list(self, &subject, &request, form).await,
            Method::GET => get::get(self, &subject, &request, form).await,
            Method::POST if all => create::create(self, subject, &request, form).await,
            Method::PUT if !all => update::update(self, subject, &request, form).await,
            Method::PATCH if !all => patch::patch(self, subject, &request, form).await,
            Method::DELETE if all => delete::all(self, subject, &request).await,
            Method::DELETE if subject.part == Part::Main => {
                delete::delete(self, subject, &request, form).await
            }
            _ => Err(Refused::method_not_allowed()),
        }
    }

    /// The table and the kind of namespaces.
    pub(crate) fn namespaces(&self) -> (Table, &Arc<Kind>) {
        (self.namespaces.0, &self.namespaces.1)
    }

    /// The key under which a namespace is stored.
    pub(crate) fn namespace_key(name: &str) -> Key {
        Key::new("", name)
    }

    /// Documents about the server itself.
    fn page(&self, request: &Request) -> Option<Answer> {
        if request.method != Method::GET {
            return None;
        }
        let known = request.if_none_match.as_deref();
        let path = match request.path.as_str() {
            "/" => "/",
            path => path.trim_end_matches('/'),
        };
        if let Some(page) = self.discovery.page(path, request.accept.as_deref()) {
            return Some(Answer::page(page, known));
        }
        let page = self.openapi.page(path, request.query.get("hash"))?;
        Some(Answer::page(&page, known))
    }
}

/// What is asked, answered and forgotten.
fn review(kind: &Kind, request: &Request) -> Result<Answer, Refused> {
    if request.method != Method::POST {
        return Err(Refused::method_not_allowed());
    }
    let decoded = crate::http::decode(request.media().as_deref(), &request.body)?;
    let answer = reviews::answer(kind, decoded.value, &request.user);
    Ok(Answer::json(201, &answer))
}
