//! The wire: listeners, connections, TLS and peers, requests within bounds, answers. Owns what a
//! hostile or slow peer may cost: sizes, times, numbers. Knows HTTP; never what a verb does.
//!
//! ```text
//!   TCP ─ TLS ─┐
//!              ├─► connection ─► request (bounded) ─► route ─► verbs, watch ─► answer
//!   unix ──────┘   who is it?
//! ```

mod answer;
mod decode;
mod listen;
mod log_limit;
mod query;
mod request;
mod route;
mod serve;
mod unauthenticated;
mod write_timeout;

pub(crate) use answer::Answer;
pub(crate) use decode::{Decoded, decode};
pub(crate) use listen::{ListenSockets, listen};
pub(crate) use query::Query;
pub(crate) use request::Request;
pub(crate) use route::{Target, route};
pub(crate) use serve::HttpContext;

use std::time::Duration;

/// What peers may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time, over TLS and over the unix socket each; further ones are closed at once.
    pub connections: usize,
    /// How many of the TLS connections may be of unauthenticated peers; at most a quarter of all.
    pub unauthenticated: usize,
    /// Bytes of a body.
    pub body: usize,
    /// Bytes of a request's line and headers.
    pub head: usize,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a connection may be idle, or take for a request's headers.
    pub idle: Duration,
    /// The same for a peer that has not said who it is.
    pub idle_stranger: Duration,
    /// How long a body may take.
    pub receive: Duration,
    /// How long a peer may take no byte of an answer.
    pub stalled: Duration,
}

impl Limits {
    /// So that connections leave room in a process that may have so many files open.
    pub(crate) fn within(mut self, descriptors: usize) -> Self {
        self.connections = self.connections.min(descriptors / 4).max(1);
        self.unauthenticated = self.unauthenticated.min(self.connections / 4).max(1);
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 2048,
            unauthenticated: 256,
            body: crate::bounds::MAX_OBJECT_BYTES,
            head: 64 << 10,
            handshake: Duration::from_secs(10),
            // Longer than what clients keep a connection for: the one who closes first is the client.
            idle: Duration::from_secs(150),
            idle_stranger: Duration::from_secs(10),
            receive: Duration::from_secs(60),
            stalled: Duration::from_secs(60),
        }
    }
}
