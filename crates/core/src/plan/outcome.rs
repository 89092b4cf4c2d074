//! What an ADD answers for one attachment.

use super::{Link, effective, provider};
use crate::attachment::{Assigned, DefaultRoute, NativeSpec};
use ipnet::IpNet;
use plexus_api::cni::{Dns, Interface, Ip, Native, Outcome};
use plexus_types::Mac;

/// MACs that only the kernel knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObservedMacs {
    /// MAC of the bridge.
    pub bridge_mac: Option<Mac>,
    /// MAC of the pod's interface, where the plan leaves it open (macvlan passthru).
    pub pod_mac: Option<Mac>,
}

/// The result of one attachment. `sandbox` is CNI_NETNS. `whole` lists all that the reference
/// plugin does, the bridge too (plugin mode); without it, the interface and its host end alone
/// (standalone mode).
pub fn outcome(
    spec: &NativeSpec,
    assigned: &Assigned,
    default_route: DefaultRoute,
    link: &Link,
    sandbox: &str,
    observed: ObservedMacs,
    whole: bool,
) -> Outcome {
    let mut interfaces = Vec::with_capacity(3);
    if let Some(end) = link.kind.host_end() {
        if let Some(bridge) = end.bridge.as_ref().filter(|_| whole) {
            interfaces.push(Interface::new(
                bridge.as_str(),
                observed.bridge_mac,
                None,
                None,
            ));
        }
        interfaces.push(Interface::new(end.name.as_str(), Some(end.mac), None, None));
    }
    let position = interfaces.len();
    let mac = link.mac.or(observed.pod_mac);
    interfaces.push(Interface::new(link.name.as_str(), mac, None, Some(sandbox)));

    let now = effective(&spec.native, assigned, default_route);
    let routed = spec.native.provider.is_routed();
    let ips = now.ips.iter().map(|ip| Ip {
        address: if routed {
            IpNet::from(ip.address.addr())
        } else {
            ip.address
        },
        gateway: ip.gateway,
        interface: Some(position),
    });
    Outcome {
        interfaces,
        ips: ips.collect(),
        dns: dns(&spec.native, &now.dns).clone(),
        routes: now.routes,
    }
}

/// What an attachment says about DNS, given what its addresses brought.
pub fn dns<'a>(native: &'a Native, brought: &'a Dns) -> &'a Dns {
    let takes = provider::of(&native.provider).takes_ipam_dns();
    if !takes || !native.dns.is_empty() {
        &native.dns
    } else {
        brought
    }
}
