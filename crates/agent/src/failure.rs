//! What goes wrong, said once: the same text in the answer, the log and the metrics' label.
//! Every failure knows its CNI code, whether trying again can help, and the next step.

use crate::journal::JournalError;
use crate::serve::admission::Refused;
use crate::serve::http::{HttpError, Response};
use crate::serve::peer::Refusal;
use plexus_api::cni::{Code, Error, Version};
use plexus_core::refusal::{self, Fault};
pub(crate) use plexus_types::chain;
use std::fmt::Display;

/// A failure of the network set-up, with its next step.
pub(crate) fn failed(error: &(dyn std::error::Error + 'static), next: &str) -> Error {
    Error::new(Code::Failed, chain(error), next)
}

/// What `core` refuses, with the code that a runtime knows.
pub(crate) fn refusal(error: &(impl refusal::Refusal + 'static)) -> Error {
    let code = match (error.config_error(), error.fault()) {
        (Some(config), _) => config.code,
        (None, Fault::Invalid) => Code::InvalidConfig,
        (None, Fault::Unsupported) => Code::UnsupportedField,
        (None, Fault::Pending) => Code::TryAgainLater,
        (None, Fault::Unavailable) => Code::Failed,
    };
    Error::new(code, chain(error), error.remedy())
}

/// The journal cannot be used: nothing is begun that could not be undone.
pub(crate) fn journal(error: &JournalError) -> Error {
    let next = match error {
        JournalError::Unreadable { key, .. } => format!(
            "send DEL for {key}: it works from the request, and removes what cannot be read; or start the agent version that wrote it"
        ),
        JournalError::Damaged { path, .. } | JournalError::Older { path, .. } => format!(
            "move {} (with its -wal and -shm) away and restart the agent: it adopts the interfaces of running pods",
            path.display()
        ),
        JournalError::Newer { .. } => {
            "start the agent version that wrote it, or a newer one".to_owned()
        }
        JournalError::Sqlite { path, .. } if is_of_disk(error) => format!(
            "check the free space and the health of the disk under {}",
            path.display()
        ),
        JournalError::Sqlite { .. } => "report this as a bug, with the log".to_owned(),
    };
    Error::new(Code::Io, chain(error), next)
}

impl From<JournalError> for Error {
    fn from(error: JournalError) -> Self {
        journal(&error)
    }
}

/// All that went wrong, as one failure; nothing if all went well.
pub(crate) fn all_of(problems: &[String], next: &str) -> Result<(), Error> {
    match problems {
        [] => Ok(()),
        _ => Err(Error::new(Code::Failed, problems.join("; "), next)),
    }
}

/// Netlink does not answer as it should.
pub(crate) fn netlink(error: &(dyn std::error::Error + 'static)) -> Error {
    let next = "is the agent allowed to use netlink (CAP_NET_ADMIN)?";
    failed(error, next)
}

/// Whether the disk or the file is to blame, as opposed to what was to be written.
pub(crate) fn is_of_disk(error: &JournalError) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, DiskFull, ReadOnly, SystemIoFailure};
    match error {
        JournalError::Damaged { .. } => true,
        JournalError::Sqlite { source, .. } => matches!(
            source.sqlite_error_code(),
            Some(DiskFull | SystemIoFailure | ReadOnly | CannotOpen)
        ),
        JournalError::Older { .. }
        | JournalError::Newer { .. }
        | JournalError::Unreadable { .. } => false,
    }
}

/// The caller was not let in.
pub(crate) fn refused(refused: Refused) -> Error {
    let next = match refused {
        Refused::Full { .. } => {
            "try again later; if it lasts, raise --queue or look for delegates that hang"
        }
        Refused::SlowFull { .. } => {
            "try again later; if it lasts, raise --queue or look for services that hang: the log names them"
        }
        Refused::CallerGone => "nothing was done",
        Refused::Busy(_) => "try again later; the log says what the other operation waits for",
    };
    Error::new(Code::TryAgainLater, refused.to_string(), next)
}

/// Puts the place in front: which pod, network and interface.
pub(crate) fn at(context: impl Display, error: Error) -> Error {
    Error {
        msg: format!("{context}: {}", error.msg),
        ..error
    }
}

/// The answer to a request that could not be read.
pub(crate) fn unreadable(error: &HttpError) -> Response {
    let cni = Error::new(
        Code::Decode,
        chain(error),
        format!(
            "send POST /cni/<verb> with Content-Length and at most {} bytes of JSON",
            plexus_api::cni::MAX_CONFIG
        ),
    );
    Response::json(error.status(), cni.to_json(Version::V1_1_0))
}

/// The answer to a caller from elsewhere.
pub(crate) fn foreign_caller(refusal: &Refusal) -> Response {
    let cni = Error::new(
        Code::InvalidEnvironment,
        refusal.to_string(),
        "call the agent of that namespace: `agentSocket` in the configuration, PLEXUS_AGENT_SOCKET, or the file plexus-cni.socket beside the binary",
    );
    Response::json(403, cni.to_json(Version::V1_1_0))
}

/// The HTTP status that goes with a CNI code.
pub(crate) fn status(code: Code) -> u16 {
    match code {
        Code::TryAgainLater | Code::NotAvailable => 503,
        Code::Failed | Code::Io | Code::Altered | Code::Delegate(_) => 500,
        Code::UnknownContainer => 404,
        _ => 400,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_is_blamed_only_for_what_it_did() {
        let next = |code: std::ffi::c_int| {
            let source = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            let path = "/state/journal.db".into();
            let what = "write a row to".to_owned();
            journal(&JournalError::Sqlite { what, path, source }).details
        };
        // SQLITE_READONLY, SQLITE_IOERR, SQLITE_IOERR_WRITE, SQLITE_FULL, SQLITE_CANTOPEN
        for code in [8, 10, 778, 13, 14] {
            assert!(next(code).contains("free space"), "{code}");
        }
        // SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_MISUSE
        for code in [1, 19, 1555, 21] {
            assert!(next(code).contains("bug"), "{code}");
        }
    }
}
