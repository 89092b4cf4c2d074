//! What every error of `core` says of itself: whose fault it is, and what helps. Its text is its
//! [`chain`](plexus_types::chain). Which CNI code it has, whoever answers a runtime decides.

use plexus_api::cni;
use std::borrow::Cow;

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// What somebody wrote is wrong.
    Invalid,
    /// It is asked for something that is not available there.
    Unsupported,
    /// Something is not there yet: trying again may help.
    Pending,
    /// What is asked for is right, but cannot be had.
    Unavailable,
}

/// An error of `core`.
pub trait Refusal: std::error::Error {
    /// Whose fault it is.
    fn fault(&self) -> Fault;

    /// The next step.
    fn remedy(&self) -> Cow<'static, str>;

    /// Whether trying again may help.
    fn is_pending(&self) -> bool {
        self.fault() == Fault::Pending
    }

    /// What is wrong with a network's configuration, if it is that: it has a code already.
    fn config_error(&self) -> Option<&cni::Error> {
        None
    }
}
