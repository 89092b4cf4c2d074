//! Making a pod's interfaces, in few messages.

use crate::effect::effect;
use crate::netlink::Request;
use crate::observe::{What, link_by_name, optional};
use crate::sysctl::{self, SysctlError};
use crate::{
    NetlinkError, Netns, NetnsError, NodeSide, Socket, address, announce, hint, link, neighbour,
    route, rule,
};
use plexus_core::plan::{HostEnd, Link, LinkKind, Observed, ObservedLink, PodPlan};
use plexus_types::IfName;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;

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

/// A plan that could not be applied. What had been made until then is still there.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The pod's namespace cannot be used.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The bridge of a host end is not there.
    #[error("cannot make {link}: there is no bridge {bridge} on the node")]
    NoBridge {
        /// The link of the pod.
        link: IfName,
        /// The missing bridge.
        bridge: IfName,
    },
    /// A link could not be made.
    #[error("cannot make {link} in {}: {hint}", netns.display())]
    Create {
        /// The link of the pod.
        link: IfName,
        /// The pod's namespace.
        netns: PathBuf,
        /// The likely cause.
        hint: String,
        /// What the kernel said.
        #[source]
        source: NetlinkError,
    },
    /// A link was made and then was not there.
    #[error("{link} vanished from {} right after it was made: is another program at work there?", netns.display())]
    Vanished {
        /// The link of the pod, or its end on the node.
        link: IfName,
        /// Where it should be.
        netns: PathBuf,
    },
    /// Something in the pod's namespace could not be set.
    #[error("cannot {what} in {}: {hint}", netns.display())]
    Configure {
        /// What was asked for.
        what: String,
        /// The pod's namespace.
        netns: PathBuf,
        /// The likely cause.
        hint: String,
        /// What the kernel said.
        #[source]
        source: NetlinkError,
    },
    /// Something on the node could not be set.
    #[error("cannot {what} on the node: {hint}")]
    Node {
        /// What was asked for.
        what: String,
        /// The likely cause.
        hint: String,
        /// What the kernel said.
        #[source]
        source: NetlinkError,
    },
    /// A sysctl could not be set.
    #[error("cannot prepare {link}")]
    Setting {
        /// The link, in the pod or on the node.
        link: IfName,
        /// Which, and why.
        #[source]
        source: SysctlError,
    },
    /// Netlink itself failed.
    #[error("cannot talk to the kernel about the interfaces of {}", netns.display())]
    Netlink {
        /// The pod's namespace.
        netns: PathBuf,
        /// Why.
        #[source]
        source: NetlinkError,
    },
}

impl ApplyError {
    /// The kernel's error number, if it was the kernel that refused.
    pub fn errno(&self) -> Option<i32> {
        match self {
            ApplyError::Create { source, .. }
            | ApplyError::Configure { source, .. }
            | ApplyError::Node { source, .. }
            | ApplyError::Netlink { source, .. } => source.errno(),
            _ => None,
        }
    }
}

/// Makes everything that the plan says, and reads it back.
///
/// The first refusal ends it; nothing is undone here: the caller calls
/// [`remove`](super::remove()) with the same plan. The calling thread visits the pod's namespace.
pub fn apply(plan: &PodPlan, pod: &Netns, node: &NodeSide) -> Result<Applied, ApplyError> {
    node.with_socket(|on_node| {
        let job = Job { plan, pod, node };
        let bridges = job.create(on_node)?;
        let (mut in_pod, warnings) = pod.enter(|| job.configure())??;
        let observed_node = job.finish_node(on_node)?;
        let mut applied = Applied {
            pod: Observed::default(),
            node: observed_node,
            warnings,
        };
        job.announce_on_bridges(&bridges, &mut applied.warnings);
        applied.pod =
            crate::observe::observe(&mut in_pod, What::of(plan)).map_err(|e| job.netlink(e))?;
        Ok(applied)
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
    let mut in_pod = Socket::open_in(pod).map_err(netlink)?;
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
    /// Makes all links with one send. Gives the bridges by name, with their indices.
    fn create(&self, socket: &mut Socket) -> Result<BTreeMap<IfName, u32>, ApplyError> {
        let bridges = self.bridges(socket)?;
        let pod = self.pod.as_fd().as_raw_fd();
        let mut requests = Vec::with_capacity(3 * self.plan.links.len());
        // Which link each request belongs to.
        let mut about = Vec::with_capacity(requests.capacity());
        for link in &self.plan.links {
            let end = host_end(link);
            let bridge = end
                .and_then(|end| end.bridge.as_ref())
                .and_then(|name| bridges.get(name));
            requests.push(link::create(link, self.plan.group, pod, bridge.copied()));
            if let Some(end) = end {
                requests.push(link::set_alias(end.name.as_str(), 0, &end.alias));
                if end.hairpin && bridge.is_some() {
                    requests.push(link::set_hairpin(end.name.as_str()));
                }
            }
            about.resize(requests.len(), link);
        }
        socket
            .batch(effect!("netlink.pod-create"), &requests)
            .map_err(|source| match (&source, source.errno()) {
                (NetlinkError::Refused(refused), Some(errno)) => match about.get(refused.index) {
                    Some(link) => ApplyError::Create {
                        link: link.name.clone(),
                        netns: self.pod.path().into(),
                        hint: hint::create(link, errno),
                        source,
                    },
                    None => self.netlink(source),
                },
                _ => self.netlink(source),
            })?;
        Ok(bridges)
    }

    fn bridges(&self, socket: &mut Socket) -> Result<BTreeMap<IfName, u32>, ApplyError> {
        let mut bridges = BTreeMap::new();
        for link in &self.plan.links {
            let Some(name) = host_end(link).and_then(|end| end.bridge.as_ref()) else {
                continue;
            };
            if bridges.contains_key(name) {
                continue;
            }
            match link_by_name(socket, name.as_str()).map_err(|e| self.netlink(e))? {
                Some(bridge) => bridges.insert(name.clone(), bridge.index),
                None => {
                    let (link, bridge) = (link.name.clone(), name.clone());
                    return Err(ApplyError::NoBridge { link, bridge });
                }
            };
        }
        Ok(bridges)
    }

    /// Runs in the pod's namespace: everything but the links themselves.
    fn configure(&self) -> Result<(Socket, Vec<String>), ApplyError> {
        let mut socket = Socket::open().map_err(|e| self.netlink(e))?;
        for link in &self.plan.links {
            settings(&link.name, &link.settings)?;
        }
        let found = crate::observe::links(&mut socket).map_err(|e| self.netlink(e))?;
        let mut requests = Vec::with_capacity(8 * self.plan.links.len() + 1);
        if found.iter().any(|l| l.index == link::LOOPBACK && !l.up) {
            requests.push(link::set_up("lo", link::LOOPBACK));
        }
        let mut indices = Vec::with_capacity(self.plan.links.len());
        for link in &self.plan.links {
            let here = found.iter().find(|l| l.name == link.name.as_str());
            let index = here
                .ok_or_else(|| self.vanished(&link.name, self.pod))?
                .index;
            configure_link(link, index, &mut requests);
            indices.push(index);
        }
        requests.extend(
            self.plan
                .links
                .iter()
                .flat_map(|link| &link.rules)
                .map(rule::add),
        );
        socket
            .batch(effect!("netlink.pod-configure"), &requests)
            .map_err(|source| {
                let netns = self.pod.path().into();
                match refusal(&source) {
                    Some((what, hint)) => ApplyError::Configure {
                        what,
                        netns,
                        hint,
                        source,
                    },
                    None => self.netlink(source),
                }
            })?;
        Ok((socket, announce::advertise(&self.plan.links, &indices)))
    }

    /// Routes, neighbours and sysctls of the node's ends; reads them back.
    fn finish_node(&self, socket: &mut Socket) -> Result<Observed, ApplyError> {
        let mut observed = Observed::default();
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
            self.node.netns().enter(|| {
                ends.iter()
                    .try_for_each(|(end, _)| settings(&end.name, &end.settings))
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

    fn announce_on_bridges(&self, bridges: &BTreeMap<IfName, u32>, warnings: &mut Vec<String>) {
        for link in &self.plan.links {
            let bridge = host_end(link).and_then(|end| end.bridge.as_ref());
            if let (Some(bridge), Some(mac)) = (bridge.and_then(|name| bridges.get(name)), link.mac)
            {
                let addresses = link.addresses.iter().map(|a| a.net.addr());
                warnings.extend(
                    announce::on_bridge(self.node, *bridge, mac, addresses)
                        .err()
                        .map(|error| {
                            format!("could not announce {} on its bridge: {error}", link.name)
                        }),
                );
            }
        }
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

/// Up after the addresses: then the kernel announces them, where the sysctls say so. Neighbours
/// and routes after that: both need a link that is up.
fn configure_link(link: &Link, index: u32, requests: &mut Vec<Request>) {
    let name = link.name.as_str();
    requests.push(link::set_alias(name, index, &link.alias));
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
        observed.links.extend(link_by_name(socket, bridge.as_str())?);
    }
    Ok(())
}

fn settings(link: &IfName, settings: &[plexus_core::plan::Setting]) -> Result<(), ApplyError> {
    settings.iter().try_for_each(|setting| {
        sysctl::write(setting).map_err(|source| ApplyError::Setting {
            link: link.clone(),
            source,
        })
    })
}

fn refusal(error: &NetlinkError) -> Option<(String, String)> {
    match error {
        NetlinkError::Refused(refused) => {
            Some((refused.what.clone(), hint::general(refused.errno)))
        }
        _ => None,
    }
}

fn host_end(link: &Link) -> Option<&HostEnd> {
    match &link.kind {
        LinkKind::Veth(end) => Some(end),
        LinkKind::Macvlan { .. } => None,
    }
}
