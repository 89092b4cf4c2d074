//! Why the objects of a kind cannot be followed now.

use kube::core::Status;

/// What went wrong. The objects are listed again afterwards.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The list failed.
    #[error("cannot list")]
    List(#[source] kube::Error),
    /// The watch could not be opened, or broke.
    #[error("cannot watch")]
    Watch(#[source] kube::Error),
    /// The server ended the watch, and said why.
    #[error("the server ended the watch: {}", .0.message)]
    Ended(Box<Status>),
    /// No answer.
    #[error("no answer within {seconds} s")]
    Late {
        /// How long it was waited for.
        seconds: u64,
    },
    /// A list or an event came without the version that a watch goes on from.
    #[error("the server sent no resourceVersion")]
    NoVersion,
}

impl WatchError {
    /// The code with which the server refuses to list the kind; none: it is another error.
    pub fn refusal(&self) -> Option<u16> {
        match self {
            Self::List(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }

    /// Whether we may not list the kind, or not watch it.
    pub fn is_forbidden(&self) -> bool {
        let (Self::List(error) | Self::Watch(error)) = self else {
            return false;
        };
        matches!(error, kube::Error::Api(status) if status.code == 403)
    }
}
