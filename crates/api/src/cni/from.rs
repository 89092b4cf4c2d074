//! A network from what the cluster knows of it: the configuration of a NetworkAttachmentDefinition,
//! or the spec of a `Network`. Owns how a pod's wishes enter either. Gives the same [`Network`] that
//! an entry of an inline configuration gives.

use super::{Error, Network};
use crate::objects::NetworkSpec;
use crate::pod::NetworkSelection;
use ipnet::IpNet;
use plexus_types::NetworkName;
use serde_json::{Map, Value};

/// What the cluster knows of a `Network` object beside its spec.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectFacts {
    /// Its UID.
    pub uid: String,
    /// `overlay`: its number, once it has one.
    pub vni: Option<u32>,
    /// The blocks that this node owns of it.
    pub blocks: Vec<IpNet>,
    /// `routed`: what is reached without masquerading beside its own subnets.
    pub not_masq: Vec<IpNet>,
}

impl Network {
    /// The network of a NAD: one plugin or a list. Native where every key is understood, else
    /// executed. `name` is the NAD's, used where the configuration has none. What is asked for and
    /// nothing takes (no plugin declares the capability) is an error. `interface` is as asked.
    pub fn from_config(
        name: &NetworkName,
        config: &Map<String, Value>,
        asked: &NetworkSelection,
    ) -> Result<Self, Error> {
        let _ = (name, config, asked);
        Err(Error::new(super::Code::Failed, "not there", ""))
    }

    /// The network of a `Network` object. Errors: what [`NetworkSpec::problems`] says; an overlay
    /// without a number (try again later); an external provider; a wish that it cannot fulfil.
    pub fn from_spec(
        name: &NetworkName,
        spec: &NetworkSpec,
        facts: &ObjectFacts,
        asked: &NetworkSelection,
    ) -> Result<Self, Error> {
        let _ = (name, spec, facts, asked);
        Err(Error::new(super::Code::Failed, "not there", ""))
    }
}
