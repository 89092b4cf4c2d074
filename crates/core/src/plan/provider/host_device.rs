//! `host-device`: the pod's link is a device of the node, which is moved to the pod and given back.

use super::{LinkParts, LinkRequest, ProviderPlan};
use crate::plan::{FactsQuery, LinkKind, PlanProblem};
use plexus_api::cni::HostDevice;

impl ProviderPlan for HostDevice {
    fn facts(&self) -> FactsQuery<'_> {
        FactsQuery {
            device: Some(&self.device),
            ..FactsQuery::default()
        }
    }

    fn link(&self, request: &LinkRequest<'_>) -> Result<LinkParts, PlanProblem> {
        let device = request.facts.device.clone();
        let device = device.ok_or_else(|| {
            PlanProblem::UnknownDevice(match &self.device.key {
                Some(key) => key.to_string(),
                None => "device that the runtime has named (runtimeConfig.deviceID)".to_owned(),
            })
        })?;
        Ok(LinkParts {
            kind: LinkKind::Moved(device),
            mtu: request.spec.native.mtu,
            neighbours: Vec::new(),
        })
    }

    fn is_of(kind: &LinkKind) -> bool {
        kind.moved().is_some()
    }

    /// The device has one of its own.
    fn keeps_parent_mac(&self) -> bool {
        true
    }

    /// Others are on the wire, and knew the address elsewhere.
    fn sysctls(&self) -> &'static [(&'static str, &'static str, &'static str)] {
        &[("ipv4", "arp_notify", "1"), ("ipv6", "ndisc_notify", "1")]
    }

    /// As the reference plugin.
    fn takes_ipam_dns(&self) -> bool {
        false
    }
}
