//! The API server, embedded or a cluster's: which one is asked, and the few things that are asked of
//! it. Thin: what comes back are plain objects, and everything else is done with those.

mod error;
mod fetch;
mod find;
mod follow;
mod pod;
mod session;
mod write;

pub use error::ClientError;
pub use fetch::Need;
pub use find::{ChosenServer, ServerSources, choose};
pub use follow::Followed;
pub use session::Session;
pub use write::{Applied, Deleted, in_order, named, object_name, object_name_in};
