//! Errors of the front door: which reference of the pod, and what is wrong with it.

use super::request::NetworkRequest;
use plexus_api::Problems;
use plexus_api::cni::{Code, Error};

/// The same error, saying which of the pod's references it is about.
pub(super) fn within(error: Error, request: &NetworkRequest, index: usize) -> Error {
    let NetworkRequest { source, .. } = request;
    let msg = format!(
        "network {} (number {index}, annotation {source}): {}",
        request.display_name(),
        error.msg
    );
    Error { msg, ..error }
}

/// What is wrong with something that users wrote.
pub(super) fn invalid(what: &str, problems: &Problems) -> Error {
    let msg = match what {
        "" => problems.to_string(),
        what => format!("{what}: {problems}"),
    };
    Error::new(
        Code::InvalidConfig,
        msg,
        "correct it and create the pod again",
    )
}

/// Something that is not there, or not yet: the kubelet tries again.
pub(super) fn missing(what: String, next: String) -> Error {
    Error::new(Code::TryAgainLater, what, next)
}
