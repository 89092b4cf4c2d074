//! The router of an overlay network on this node.

use super::{Facts, PlanError, Router};
use crate::attachment::Wanted;
use crate::fabric::vtep_mac;
use plexus_api::cni::{Native, Overlay};
use plexus_types::RouterName;
use std::net::IpAddr;

/// What VXLAN adds to a packet: outer Ethernet, IP, UDP and VXLAN headers.
fn overhead(local: IpAddr) -> u32 {
    match local {
        IpAddr::V4(_) => 50,
        IpAddr::V6(_) => 70,
    }
}

/// The MTU of a pod's link: as asked for, else what fits through the underlay.
pub(super) fn mtu(wanted: &Wanted, facts: &Facts) -> Result<u32, PlanError> {
    let network = || wanted.network.clone();
    let underlay = facts.underlay.as_ref();
    let underlay = underlay.ok_or_else(|| PlanError::NoUnderlay { network: network() })?;
    let fits = underlay.mtu.saturating_sub(overhead(underlay.address));
    match wanted.native.mtu {
        Some(mtu) if mtu > fits => Err(PlanError::DoesNotFit {
            network: network(),
            mtu,
            fits,
            underlay: underlay.mtu,
        }),
        Some(mtu) => Ok(mtu),
        None => Ok(fits),
    }
}

/// The router; none if the node does not know its own address.
pub(super) fn router(overlay: &Overlay, native: &Native, facts: &Facts) -> Option<Router> {
    let underlay = facts.underlay.as_ref()?;
    let fits = underlay.mtu.saturating_sub(overhead(underlay.address));
    Some(Router {
        name: RouterName::of(&overlay.uid),
        uid: overlay.uid.clone(),
        vni: overlay.vni,
        local: underlay.address,
        mac: vtep_mac(&overlay.uid, &underlay.node),
        mtu: native.mtu.unwrap_or(fits),
        subnets: overlay.subnets.iter().map(|(subnet, _)| *subnet).collect(),
        gateways: overlay
            .subnets
            .iter()
            .map(|(_, gateway)| *gateway)
            .collect(),
        snat: overlay.snat,
        source_check: overlay.source_check,
    })
}
