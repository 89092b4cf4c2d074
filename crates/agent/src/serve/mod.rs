//! How requests come in: the socket and the peers on it, HTTP, who may work on which container and when, the TCP port for
//! queries. Hands calls to the verbs; decides nothing about networks.

pub(crate) mod admission;
pub(crate) mod call;
#[cfg(test)]
mod fuzz;
pub(crate) mod gate;
pub(crate) mod http;
pub(crate) mod peer;
pub(crate) mod server;
pub(crate) mod tcp;
