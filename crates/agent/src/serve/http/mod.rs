//! HTTP/1.1 over a local socket, as much of it as `plexus-cni` and `curl --unix-socket` use: one
//! request a connection, a body of known length, an answer, closed.
//!
//! Owns bytes and time: every read is bounded in size and by a deadline. Knows no verb.

mod connection;
mod read;
mod respond;

pub(crate) use connection::Connection;
pub(crate) use read::{HttpError, Limits, Request, read};
pub(crate) use respond::{Delivery, Response, peer_is_gone};
