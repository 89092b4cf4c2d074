//! `runtimeConfig`: what the runtime adds per container. Keys arrive in any case, lists as null
//! (Go programs write them so).

use plexus_types::Mac;
use serde_json::{Map, Value};
use std::net::IpAddr;

/// What the runtime asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Runtime {
    /// `ips`, each with a prefix length if one is written.
    pub ips: Vec<(IpAddr, Option<u8>)>,
    /// `mac`.
    pub mac: Option<Mac>,
    /// Everything as it came, for plugins that we execute.
    pub raw: Map<String, Value>,
}
