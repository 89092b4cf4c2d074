//! The embedded API: the part of the Kubernetes REST protocol that kube-rs and kubectl use, over
//! SQLite, for one machine. Knows schemas; never what the objects mean (a validator is handed in).
//!
//! ```text
//!   request ──► http ──► verbs ──► patch, schema (pure) ──► store ──► watch ──► every watcher
//! ```

pub mod alias;
pub mod crds;
pub mod discovery;
pub mod events;
pub mod kinds;
pub mod openapi;
pub mod pages;
pub mod patch;
pub mod protobuf;
pub mod reviews;
pub mod schema;
pub mod selectors;
pub mod status;
pub mod table;
pub mod version;

mod bounds;
mod clock;
mod collect;
mod descriptors;
mod directory;
mod http;
mod options;
mod path;
mod private;
mod random;
mod seed;
mod server;
mod socket;
mod stop;
mod store;
mod tls;
mod validator;
mod verbs;
mod watch;

pub use directory::{Directory, DirectoryError};
pub use http::Limits;
pub use options::Options;
pub use server::{Server, StartError};
pub use store::StoreError;
pub use tls::TlsError;
pub use validator::{Anything, PatchBase, Validator};
