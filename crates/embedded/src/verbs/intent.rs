//! How a write is to be done, as its query and headers say.

use super::{Api, Subject};
use crate::http::Request;
use crate::status::{Cause, Refused};
use crate::store::Changes;

/// What becomes of fields that the kind does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    Dropped,
    DroppedWithWarning,
    Refused,
}

/// How a write is to be done.
#[derive(Clone, Debug)]
pub(super) struct Intent {
    /// Say what would be, and leave everything as it is.
    pub(super) dry_run: bool,
    pub(super) unknown: Unknown,
    /// Who owns what is written.
    pub(super) manager: String,
    /// Take over what others own.
    pub(super) force: bool,
    /// Whether the manager was named, or guessed from the client's name.
    pub(super) named: bool,
}

/// A write in its turn: of what, how, and in which transaction.
pub(super) struct Write<'a> {
    pub(super) api: &'a Api,
    pub(super) changes: &'a mut Changes,
    pub(super) subject: &'a Subject,
    pub(super) intent: &'a Intent,
}

/// Who owns the fields of an object that is about to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owners {
    /// `managedFields` is to be brought up to date: the writer owns what it changes.
    ToBeMoved,
    /// `managedFields` is as it should be: apply has seen to it.
    Settled,
}

/// The verb of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpdateVerb {
    Put,
    Patch,
}

impl Intent {
    /// Of the server itself.
    pub(super) fn our_own() -> Self {
        Self {
            dry_run: false,
            unknown: Unknown::Dropped,
            manager: "plexus".to_owned(),
            force: false,
            named: true,
        }
    }

    /// Of a request; `options` is what Kubernetes calls the options of the verb.
    ///
    /// # Errors
    /// Something in the query is not understood: a write that was not meant is worse than none.
    pub(super) fn of(request: &Request, options: &str) -> Result<Self, Refused> {
        let query = &request.query;
        let wrong = |cause: Cause| Refused::options(options, cause);
        let mut dry_run = false;
        for value in query.all("dryRun") {
            if value != "All" {
                return Err(wrong(unsupported("dryRun", value, &["All"])));
            }
            dry_run = true;
        }
        let unknown = match query.get("fieldValidation") {
            None | Some("Warn") => Unknown::DroppedWithWarning,
            Some("Ignore") => Unknown::Dropped,
            Some("Strict") => Unknown::Refused,
            Some(other) => {
                let known = ["", "Ignore", "Warn", "Strict"];
                return Err(wrong(unsupported("fieldValidation", other, &known)));
            }
        };
        let named = query.get("fieldManager");
        if let Some(name) = named {
            let problem = if name.len() > 128 {
                Some("may not be more than 128 bytes")
            } else if name.chars().any(char::is_control) {
                Some("should only contain printable characters")
            } else {
                None
            };
            if let Some(problem) = problem {
                return Err(wrong(Cause::invalid("fieldManager", &name.into(), problem)));
            }
        }
        Ok(Self {
            dry_run,
            unknown,
            manager: named.map_or_else(|| guessed(request), str::to_owned),
            force: query.flag("force")?.unwrap_or(false),
            named: named.is_some(),
        })
    }
}

fn unsupported(field: &str, value: &str, known: &[&str]) -> Cause {
    let known: Vec<String> = known.iter().map(|known| format!("{known:?}")).collect();
    Cause {
        reason: "FieldValueNotSupported",
        message: format!(
            "Unsupported value: {value:?}: supported values: {}",
            known.join(", ")
        ),
        field: field.to_owned(),
    }
}

/// The client's name, without its version.
fn guessed(request: &Request) -> String {
    let agent = request.user_agent.as_deref().unwrap_or("unknown");
    let name = agent.split('/').next().unwrap_or(agent).trim();
    let name: String = name.chars().filter(|c| !c.is_control()).take(32).collect();
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}
