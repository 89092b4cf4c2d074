//! Making a pod's interfaces, in few messages.

pub use super::error::ApplyError;
use super::error::refusal;
use crate::effect::effect;
use crate::netlink::Request;
use crate::observe::{What, link_by_name, optional};
use crate::{
    NetlinkError, Netns, NetnsError, NodeSide, Socket, address, announce, devconf, hint, link,
    neighbour, route, rule,
    sysctl::{self, SysctlError},
};
use plexus_core::plan::{HostEnd, Link, LinkKind, Observed, ObservedLink, PodPlan};
use plexus_types::IfName;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// What the kernel has after a plan was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The pod's namespace: as much of it as the plan speaks of.
    pub pod: Observed,
    /// The node's ends, with their routes and neighbours.
    pub node: Observed,
    /// What did not work and does not matter enough to fail: announcements.
    pub warnings: Vec<String>,
}

/// Makes everything that the plan says, and reads it back.
///
/// The first refusal ends it; nothing is undone here: the caller calls
/// [`remove`](super::remove()) with the same plan. The calling thread visits the pod's namespace.
pub fn apply(plan: &PodPlan, pod: &Netns, node: &NodeSide) -> Result<Applied, ApplyError> {
    node.with_socket(|on_node| {
        let job = Job { plan, pod, node };
        let bridges = job.create(on_node)?;
        let (mut in_pod, mut warnings) = node.visit(pod, || job.configure())??;
        let on_node_now = job.finish_node(on_node, bridges)?;
        warnings.extend(job.announce_on_bridges(on_node, &on_node_now));
        let in_pod_now = crate::observe::observe(&mut in_pod, What::of(plan));
        Ok(Applied {
            pod: in_pod_now.map_err(|e| job.netlink(e))?,
            node: on_node_now,
            warnings,
        })
    })
    .map_err(|error: Failure| match error {
        Failure::Apply(error) => error,
        Failure::Socket(source) => ApplyError::Netlink {
            netns: pod.path().into(),
            source,
        },
    })
}

/// What the kernel has of a plan, without changing anything: for CHECK and for repairs.
pub fn observe(plan: &PodPlan, pod: &Netns, node: &NodeSide) -> Result<Applied, ApplyError> {
    let job = Job { plan, pod, node };
    let netlink = |e| job.netlink(e);
    let mut in_pod = node.socket_in(pod).map_err(netlink)?;
    let observed = crate::observe::observe(&mut in_pod, What::of(plan)).map_err(netlink)?;
    let mut observed_node = Observed::default();
    node.with_socket(|on_node| {
        for end in job.host_ends() {
            if let Some(link) = link_by_name(on_node, end.name.as_str())? {
                observe_end(on_node, end, link, &mut observed_node)?;
            }
        }
        Ok(())
    })
    .map_err(netlink)?;
    Ok(Applied {
        pod: observed,
        node: observed_node,
        warnings: Vec::new(),
    })
}

struct Job<'a> {
    plan: &'a PodPlan,
    pod: &'a Netns,
    node: &'a NodeSide,
}

/// Lets [`NodeSide::with_socket`] fail with its own error as well as with ours.
enum Failure {
    Apply(ApplyError),
    Socket(NetlinkError),
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        Failure::Apply(error)
    }
}

impl From<NetnsError> for Failure {
    fn from(error: NetnsError) -> Self {
        Failure::Apply(error.into())
    }
}

impl From<NetlinkError> for Failure {
    fn from(error: NetlinkError) -> Self {
        Failure::Socket(error)
    }
}

impl Job<'_> {
    /// Makes all links with one send. Gives the bridges that have new ports.
    fn create(&self, socket: &mut Socket) -> Result<Vec<ObservedLink>, ApplyError> {
        let bridges = self.bridges(socket)?;
        let pod = self.pod.as_fd().as_raw_fd();
        let mut requests = Vec::with_capacity(3 * self.plan.links.len());
        // Which link each request belongs to.
        let mut about = Vec::with_capacity(requests.capacity());
        for link in &self.plan.links {
            let end = host_end(link);
            let bridge = end
                .and_then(|end| bridge_of(end, &bridges))
                .map(|bridge| bridge.index);
            requests.push(link::create(link, self.plan.group, pod, bridge));
            if let Some(end) = end {
                requests.push(link::set_alias(end.name.as_str(), 0, &end.alias));
                if end.hairpin && bridge.is_some() {
                    requests.push(link::set_hairpin(end.name.as_str()));
                }
            }
            about.resize(requests.len(), link);
        }
        let made = socket.batch(effect!("netlink.pod-create"), &requests);
        made.map(|()| bridges).map_err(|source| {
            let NetlinkError::Refused(refused) = &source else {
                return self.netlink(source);
            };
            let Some(link) = about.get(refused.index) else {
                return self.netlink(source);
            };
            ApplyError::Create {
                link: link.name.clone(),
                netns: self.pod.path().into(),
                hint: hint::create(link, refused.errno),
                source,
            }
        })
    }

    fn bridges(&self, socket: &mut Socket) -> Result<Vec<ObservedLink>, ApplyError> {
        let mut bridges = Vec::new();
        for link in &self.plan.links {
            let Some(end) = host_end(link) else { continue };
            let Some(name) = &end.bridge else { continue };
            if bridge_of(end, &bridges).is_some() {
                continue;
            }
            let found = link_by_name(socket, name.as_str()).map_err(|e| self.netlink(e))?;
            bridges.push(found.ok_or_else(|| ApplyError::NoBridge {
                link: link.name.clone(),
                bridge: name.clone(),
            })?);
        }
        Ok(bridges)
    }

    /// Runs in the pod's namespace: everything but the links themselves.
    fn configure(&self) -> Result<(Socket, Vec<String>), ApplyError> {
        let mut socket = Socket::open().map_err(|e| self.netlink(e))?;
        let found = crate::observe::list(&mut socket, link::list(), PodLink::read)
            .map_err(|e| self.netlink(e))?;
        let mut requests = Vec::with_capacity(8 * self.plan.links.len() + 1);
        if found
            .iter()
            .any(|l| l.link.index == link::LOOPBACK && !l.link.up)
        {
            requests.push(link::set_up("lo", link::LOOPBACK));
        }
        let procfs = self.node.procfs.instance();
        let mut indices = Vec::with_capacity(self.plan.links.len());
        for link in &self.plan.links {
            let here = PodLink::named(&found, link.name.as_str());
            let index = here
                .ok_or_else(|| self.vanished(&link.name, self.pod))?
                .link
                .index;
            configure_link(link, index, (&found, procfs.as_deref()), &mut requests)?;
            indices.push(index);
        }
        requests.extend(
            self.plan
                .links
                .iter()
                .flat_map(|link| &link.rules)
                .map(rule::add),
        );
        let set = socket.batch(effect!("netlink.pod-configure"), &requests);
        set.map_err(|source| match refusal(&source) {
            Some((what, hint)) => ApplyError::Configure {
                what,
                netns: self.pod.path().into(),
                hint,
                source,
            },
            None => self.netlink(source),
        })?;
        Ok((socket, announce::advertise(&self.plan.links, &indices)))
    }

    /// Routes, neighbours and sysctls of the node's ends; reads them back.
    fn finish_node(
        &self,
        socket: &mut Socket,
        bridges: Vec<ObservedLink>,
    ) -> Result<Observed, ApplyError> {
        let mut observed = Observed {
            links: bridges,
            ..Observed::default()
        };
        let mut requests = Vec::new();
        let mut ends = Vec::new();
        for end in self.host_ends() {
            let link = link_by_name(socket, end.name.as_str()).map_err(|e| self.netlink(e))?;
            let link = link.ok_or_else(|| self.vanished(&end.name, self.node.netns()))?;
            let name = end.name.as_str();
            requests.extend(
                end.neighbours
                    .iter()
                    .map(|n| neighbour::add(name, link.index, n)),
            );
            requests.extend(end.routes.iter().map(|r| route::add(name, link.index, r)));
            ends.push((end, link));
        }
        if ends.iter().any(|(end, _)| !end.settings.is_empty()) {
            self.node.inside(|| {
                let mut all = ends
                    .iter()
                    .flat_map(|(e, _)| e.settings.iter().map(|s| (&e.name, s)));
                all.try_for_each(|(name, s)| sysctl::write(s).map_err(|e| not_set(name, e)))
            })??;
        }
        socket
            .batch(effect!("netlink.node-ends"), &requests)
            .map_err(|source| match refusal(&source) {
                Some((what, hint)) => ApplyError::Node { what, hint, source },
                None => self.netlink(source),
            })?;
        for (end, link) in ends {
            observe_end(socket, end, link, &mut observed).map_err(|e| self.netlink(e))?;
        }
        Ok(observed)
    }

    /// Gives what did not work.
    fn announce_on_bridges(&self, socket: &mut Socket, node: &Observed) -> Vec<String> {
        let mut warnings = Vec::new();
        for link in &self.plan.links {
            let bridge = host_end(link).and_then(|end| bridge_of(end, &node.links));
            let (Some(bridge), Some(mac)) = (bridge, link.mac) else {
                continue;
            };
            let addresses = link.addresses.iter().map(|a| a.net.addr());
            let sent = announce::on_bridge(self.node, socket, bridge.index, mac, addresses);
            warnings.extend(
                sent.err()
                    .map(|e| format!("could not announce {} on its bridge: {e}", link.name)),
            );
        }
        warnings
    }

    fn host_ends(&self) -> impl Iterator<Item = &HostEnd> {
        self.plan.links.iter().filter_map(host_end)
    }

    fn netlink(&self, source: NetlinkError) -> ApplyError {
        ApplyError::Netlink {
            netns: self.pod.path().into(),
            source,
        }
    }

    fn vanished(&self, link: &IfName, netns: &Netns) -> ApplyError {
        ApplyError::Vanished {
            link: link.clone(),
            netns: netns.path().into(),
        }
    }
}

/// A link of the pod's namespace before it is configured.
struct PodLink {
    link: ObservedLink,
    ipv6: devconf::Ipv6,
}

impl PodLink {
    fn read(payload: &[u8]) -> Option<Self> {
        link::read(payload).map(|link| Self {
            link,
            ipv6: devconf::Ipv6::read(payload),
        })
    }

    fn named<'a>(links: &'a [Self], name: &str) -> Option<&'a Self> {
        links.iter().find(|l| l.link.name == name)
    }
}

/// Sets the sysctls that need a file and collects the messages for the rest. Up after the
/// addresses: then the kernel announces them, where the sysctls say so. Neighbours and routes
/// after that: both need a link that is up.
fn configure_link(
    link: &Link,
    index: u32,
    (found, procfs): (&[PodLink], Option<&OwnedFd>),
    requests: &mut Vec<Request>,
) -> Result<(), ApplyError> {
    let name = link.name.as_str();
    let (carried, others) = devconf::split(name, &link.settings);
    for setting in others {
        let of = devconf::link_of(setting).and_then(|name| PodLink::named(found, name));
        if !of.is_some_and(|of| of.ipv6.has(setting)) {
            sysctl::write_through(procfs, setting).map_err(|e| not_set(&link.name, e))?;
        }
    }
    requests.push(link::set_alias_and(name, index, &link.alias, carried));
    requests.extend(
        link.addresses
            .iter()
            .map(|a| address::add(name, index, a.net)),
    );
    requests.push(link::set_up(name, index));
    requests.extend(
        link.neighbours
            .iter()
            .map(|n| neighbour::add(name, index, n)),
    );
    requests.extend(link.routes.iter().map(|r| route::add(name, index, r)));
    Ok(())
}

fn observe_end(
    socket: &mut Socket,
    end: &HostEnd,
    link: ObservedLink,
    observed: &mut Observed,
) -> Result<(), NetlinkError> {
    for wanted in &end.routes {
        observed
            .routes
            .extend(optional(socket.get(&route::get(wanted.dst), route::read))?);
    }
    for wanted in &end.neighbours {
        let request = neighbour::get(link.index, wanted.address);
        observed
            .neighbours
            .extend(optional(socket.get(&request, neighbour::read))?);
    }
    observed.links.push(link);
    if let Some(bridge) = &end.bridge
        && observed.link(bridge).is_none()
    {
        observed
            .links
            .extend(link_by_name(socket, bridge.as_str())?);
    }
    Ok(())
}

fn not_set(link: &IfName, source: SysctlError) -> ApplyError {
    ApplyError::Setting {
        link: link.clone(),
        source,
    }
}

fn bridge_of<'a>(end: &HostEnd, links: &'a [ObservedLink]) -> Option<&'a ObservedLink> {
    let name = end.bridge.as_ref()?;
    links.iter().find(|link| link.name == name.as_str())
}

fn host_end(link: &Link) -> Option<&HostEnd> {
    match &link.kind {
        LinkKind::Veth(end) => Some(end),
        LinkKind::Macvlan { .. } => None,
    }
}
