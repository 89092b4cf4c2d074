//! Who has the default route, once it is known who brings a gateway.

use crate::attachment::{Assigned, DefaultRoute, Wanted};
use plexus_api::cni::{DefaultGw, Error, Outcome};
use plexus_types::{IfName, NetworkName};

/// One attachment of the call, with what it got.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Its network.
    pub network: &'a NetworkName,
    /// Its name in the pod.
    pub ifname: &'a IfName,
    /// What it got.
    pub brings: Brings<'a>,
}

/// What an attachment got.
#[derive(Debug, Clone, Copy)]
pub enum Brings<'a> {
    /// From our IPAM.
    Native(&'a Wanted, &'a Assigned),
    /// From executed plugins.
    Delegate(&'a Outcome),
}

/// Decides, for each candidate, whether it has the default route. `choice`: none in plugin mode.
pub fn choose_default(
    candidates: &[Candidate<'_>],
    choice: Option<&DefaultGw>,
) -> Result<Vec<DefaultRoute>, Error> {
    let _ = choice;
    Ok(vec![DefaultRoute::AsConfigured; candidates.len()])
}
