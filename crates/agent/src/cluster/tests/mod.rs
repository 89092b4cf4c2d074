//! What a node makes of the API: on a stand-in of it, and with the feature `e2e` on a real one.

mod donations;
mod fake_api;
pub(super) mod fake_hooks;
mod host_interface;
#[cfg(feature = "e2e")]
mod server;
