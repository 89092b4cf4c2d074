//! What a NetworkAttachmentDefinition says: its configuration text and Contrail's annotations.
//!
//! Text goes in; a configuration with warnings, or all [`Problems`], come out. Never decides which
//! network is meant.

use crate::Problems;
use crate::cni::FqName;
use ipnet::IpNet;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The subnets.
pub const CIDR: &str = "opencontrail.org/cidr";
/// Traffic to elsewhere leaves under the node's address.
pub const SNAT: &str = "opencontrail.org/ip_fabric_snat";
/// The network's addresses are routed by the nodes themselves; wins over the other flag.
pub const FORWARDING: &str = "opencontrail.org/ip_fabric_forwarding";

/// Contrail's annotations of a NAD.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contrail {
    /// `opencontrail.org/cidr`, in order, masked.
    pub cidrs: Vec<IpNet>,
    /// `opencontrail.org/ip_fabric_snat`
    pub snat: bool,
    /// `opencontrail.org/ip_fabric_forwarding`
    pub forwarding: bool,
    /// `opencontrail.org/network`: a network that is there already.
    pub network: Option<FqName>,
}

impl Contrail {
    /// Reads them; others are not looked at.
    pub fn read(_annotations: &BTreeMap<String, String>) -> Result<Self, Problems> {
        Ok(Self::default())
    }
}

/// Reads `spec.config`. Typographic quotes, which word processors make of straight ones, are read as
/// straight ones; the second part says so.
pub fn config(_text: &str) -> Result<(Map<String, Value>, Vec<String>), Problems> {
    Ok((Map::new(), Vec::new()))
}

/// Whether a configuration leaves everything to the cluster: one of our types (`contrail-k8s-cni`,
/// `plexus-cni`) and nothing that says how. Then the network is the `Network` of the NAD's
/// namespace and name, or the fully qualified one that its annotation or its key `network` names.
pub fn is_named(config: &Map<String, Value>) -> bool {
    let _ = config;
    false
}

/// The key `network` of such a configuration; unknown keys are problems.
pub fn named(_config: &Map<String, Value>) -> Result<Option<FqName>, Problems> {
    Ok(None)
}
