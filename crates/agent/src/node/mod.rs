//! What networks have on the node: links, bridges and rules, the uplink and the underlay, the way to other nodes.

pub(crate) mod devices;
pub(crate) mod fabric;
pub(crate) mod links;
pub(crate) mod nic_routes;
pub(crate) mod nics;
pub(crate) mod parents;
pub(crate) mod state;
pub(crate) mod underlay;
pub(crate) mod uplink;
