//! Makes the plan of a pod: one [`Link`] per attachment.

use super::effective::next_hop;
use super::{
    Address, HostEnd, Link, LinkKind, MacvlanMode, Neighbour, Parent, PlanError, PodPlan, Route,
    route, settings,
};
use crate::attachment::{Alias, Assigned, DefaultRoute, Wanted, derived_mac};
use crate::ipam::PoolKey;
use crate::stable::hash32;
use ipnet::IpNet;
use plexus_api::cni::{self, Provider};
use plexus_types::{ContainerId, Family, IfName, Mac, NetnsCookie, RouterName};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Whose attachment it is.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The node's namespace.
    pub node: NetnsCookie,
    /// The container's namespace.
    pub netns: NetnsCookie,
    /// CNI_CONTAINERID.
    pub container: &'a ContainerId,
    /// CNI_IFNAME of the call.
    pub cni_ifname: &'a IfName,
}

/// What was looked up on the node for one attachment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// macvlan: the master, or without one the link of the node's default route. `routed`: the
    /// link whose MTU the pod takes over, if any.
    pub parent: Option<LinkFacts>,
    /// bridge: the link that has the bridge's name, if there is one.
    pub bridge: Option<LinkFacts>,
    /// overlay: how this node is reached by others.
    pub underlay: Option<Underlay>,
}

/// This node on the underlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Underlay {
    /// The node's name, as other nodes know it.
    pub node: String,
    /// Its address.
    pub address: IpAddr,
    /// MTU of the link that has the address.
    pub mtu: u32,
}

/// A link of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkFacts {
    /// Name.
    pub name: IfName,
    /// Index.
    pub index: u32,
    /// MTU.
    pub mtu: u32,
    /// `bridge`, `veth`, …; empty for hardware.
    pub kind: String,
}

/// The plan of one interface. What IPAM answered goes in as it came; see
/// [`effective`](super::effective) for what is made of it.
pub fn build(
    wanted: &Wanted,
    assigned: &Assigned,
    default_route: DefaultRoute,
    place: &Place<'_>,
    facts: &Facts,
) -> Result<Link, PlanError> {
    check(wanted, assigned)?;
    let alias = alias(wanted, assigned, place);
    let mac = wanted.native.mac.or_else(|| {
        (!is_passthru(&wanted.native.provider))
            .then(|| derived_mac(place.container.as_str(), place.netns, &wanted.ifname, "pod"))
    });
    let (kind, mtu) = match &wanted.native.provider {
        Provider::Macvlan(macvlan) => (macvlan_kind(wanted, macvlan, facts)?, wanted.native.mtu),
        Provider::Bridge(bridge) => {
            check_bridge(wanted, bridge, facts)?;
            let mut end = host_end(wanted, place, &alias, wanted.native.mtu);
            end.bridge = Some(bridge.bridge.clone());
            end.hairpin = bridge.hairpin_mode;
            (LinkKind::Veth(end), wanted.native.mtu)
        }
        Provider::Routed(routed) => {
            let mtu = wanted
                .native
                .mtu
                .or(facts.parent.as_ref().map(|parent| parent.mtu));
            let mut end = host_end(wanted, place, &alias, mtu);
            end.source_check = routed.source_check;
            lead_to_pod(&mut end, assigned, mac);
            (LinkKind::Veth(end), mtu)
        }
        Provider::Overlay(overlay) => {
            let mtu = super::overlay::mtu(wanted, facts)?;
            let mut end = host_end(wanted, place, &alias, Some(mtu));
            end.router = Some(RouterName::of(&overlay.uid));
            end.source_check = overlay.source_check;
            lead_to_pod(&mut end, assigned, mac);
            (LinkKind::Veth(end), Some(mtu))
        }
    };
    let (routes, rules) = route::routes(wanted, assigned, default_route)?;
    Ok(Link {
        name: wanted.ifname.clone(),
        mac,
        mtu,
        alias,
        settings: settings::of_pod(wanted, assigned),
        addresses: addresses(wanted, assigned),
        neighbours: neighbours(assigned, &kind),
        routes,
        rules,
        kind,
    })
}

/// The plan of all links that one call makes.
pub fn pod_plan(place: &Place<'_>, mut links: Vec<Link>) -> PodPlan {
    let mut written = BTreeSet::new();
    for link in &mut links {
        link.settings
            .retain(|setting| written.insert(setting.clone()));
    }
    PodPlan {
        group: group(place),
        links,
        host_ports: Vec::new(),
    }
}

/// Where our groups begin: above what people number by hand, below what tools print as negative.
const GROUPS: u32 = 0x4000_0000;

/// The link group of a call: a hash with the top bit set, so that it is never 0 and never one of
/// the small numbers that people use.
pub fn group(place: &Place<'_>) -> u32 {
    GROUPS
        | (hash32(&["group", place.container.as_str(), place.cni_ifname.as_str()]) & (GROUPS - 1))
}

fn check(wanted: &Wanted, assigned: &Assigned) -> Result<(), PlanError> {
    let network = || wanted.network.clone();
    if wanted.native.ipam.is_some() && assigned.ips.is_empty() {
        return Err(PlanError::NoAddress { network: network() });
    }
    for ip in &assigned.ips {
        let family = Family::of(ip.address.addr());
        if let Some(gateway) = ip.gateway.filter(|gateway| Family::of(*gateway) != family) {
            let of = ip.address;
            return Err(PlanError::GatewayFamily {
                network: network(),
                gateway,
                of,
            });
        }
        if let Some(mtu) = wanted
            .native
            .mtu
            .filter(|mtu| *mtu < 1280 && family == Family::V6)
        {
            return Err(PlanError::MtuTooSmall {
                network: network(),
                mtu,
            });
        }
    }
    Ok(())
}

fn macvlan_kind(
    wanted: &Wanted,
    macvlan: &cni::Macvlan,
    facts: &Facts,
) -> Result<LinkKind, PlanError> {
    let network = || wanted.network.clone();
    let parent = facts.parent.as_ref().ok_or_else(|| match &macvlan.master {
        Some(master) => PlanError::UnknownMaster {
            network: network(),
            master: master.clone(),
        },
        None => PlanError::NoMaster { network: network() },
    })?;
    if let Some(mtu) = wanted.native.mtu.filter(|mtu| *mtu > parent.mtu) {
        let (parent, parent_mtu) = (parent.name.clone(), parent.mtu);
        return Err(PlanError::MtuTooLarge {
            network: network(),
            mtu,
            parent,
            parent_mtu,
        });
    }
    Ok(LinkKind::Macvlan {
        parent: Parent {
            name: parent.name.clone(),
            index: parent.index,
        },
        mode: macvlan.mode,
        bcqueuelen: macvlan.bcqueuelen.filter(|length| *length > 0),
    })
}

fn check_bridge(wanted: &Wanted, bridge: &cni::Bridge, facts: &Facts) -> Result<(), PlanError> {
    match &facts.bridge {
        Some(link) if link.kind != "bridge" => Err(PlanError::NotABridge {
            network: wanted.network.clone(),
            bridge: bridge.bridge.clone(),
            kind: if link.kind.is_empty() {
                "hardware".to_owned()
            } else {
                link.kind.clone()
            },
        }),
        _ => Ok(()),
    }
}

fn host_end(wanted: &Wanted, place: &Place<'_>, alias: &str, mtu: Option<u32>) -> HostEnd {
    let name = IfName::host_end(
        place.container.as_str(),
        place.cni_ifname.as_str(),
        wanted.ifname.as_str(),
    );
    HostEnd {
        mac: derived_mac(
            place.container.as_str(),
            place.netns,
            &wanted.ifname,
            "host",
        ),
        mtu,
        alias: alias.to_owned(),
        router: None,
        bridge: None,
        hairpin: false,
        source_check: false,
        settings: settings::of_node_link(&name),
        routes: Vec::new(),
        neighbours: Vec::new(),
        name,
    }
}

/// `routed`: the node knows where the pod's addresses are without asking.
fn lead_to_pod(end: &mut HostEnd, assigned: &Assigned, mac: Option<Mac>) {
    for ip in &assigned.ips {
        let address = ip.address.addr();
        end.routes.push(Route::new(IpNet::from(address), None));
        end.neighbours
            .extend(mac.map(|mac| Neighbour { address, mac }));
    }
}

fn addresses(wanted: &Wanted, assigned: &Assigned) -> Vec<Address> {
    let routed = wanted.native.provider.is_routed();
    let each = assigned.ips.iter().map(|ip| Address {
        net: if routed {
            IpNet::from(ip.address.addr())
        } else {
            ip.address
        },
    });
    let mut addresses: Vec<Address> = Vec::with_capacity(assigned.ips.len());
    for address in each {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// `routed`: the pod knows where its next hops are without asking.
fn neighbours(assigned: &Assigned, kind: &LinkKind) -> Vec<Neighbour> {
    match kind {
        LinkKind::Veth(end) if end.bridge.is_none() => {
            let hops = assigned
                .ips
                .iter()
                .map(|ip| next_hop(Family::of(ip.address.addr())));
            let hops: BTreeSet<IpAddr> = hops.collect();
            hops.into_iter()
                .map(|address| Neighbour {
                    address,
                    mac: end.mac,
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

fn alias(wanted: &Wanted, assigned: &Assigned, place: &Place<'_>) -> String {
    let ipam = wanted.native.ipam.as_ref();
    let pool = ipam.and_then(|ipam| PoolKey::of(ipam, &wanted.network));
    let alias = Alias {
        node: place.node,
        container: place.container.to_string(),
        cni_ifname: place.cni_ifname.to_string(),
        network: wanted.network.to_string(),
        ifname: wanted.ifname.to_string(),
        pool: pool.map_or_else(|| "-".to_owned(), |key| key.word()),
        addresses: assigned.ips.iter().map(|ip| ip.address).collect(),
    };
    alias.render()
}

fn is_passthru(provider: &Provider) -> bool {
    matches!(provider, Provider::Macvlan(macvlan) if macvlan.mode == MacvlanMode::Passthru)
}
