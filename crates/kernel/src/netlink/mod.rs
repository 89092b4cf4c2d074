//! Netlink, the transport. Owns sockets, sequence numbers, batches, dumps and the kernel's errors.
//!
//! Never knows what a message means. Requests go in; what comes out is the payload of each answer,
//! or the first refusal with the request that met it.

mod answer;
mod attributes;
mod error;
#[cfg(test)]
mod fuzz;
mod socket;

pub(crate) use attributes::{attributes, ip, text, u16_of, u32_of};
pub use error::{NetlinkError, Refused};
pub use socket::Socket;
pub(crate) use socket::{Raw, Request};
