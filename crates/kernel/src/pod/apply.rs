//! Making a pod's interfaces, in few messages.

pub use super::error::ApplyError;
use super::error::refusal;
use super::living;
use crate::effect::effect;
use crate::netlink::Request;
use crate::node_side::Home;
use crate::observe::{What, link_by_name, optional};
use crate::{
    NetlinkError, Netns, NodeSide, Socket, address, announce, devconf, hint, link, neighbour, nft,
    nsid, route, rule,
    sysctl::{self, SysctlError},
};
use plexus_core::plan::{HostEnd, Link, Observed, ObservedLink, PodPlan};
use plexus_types::{IfName, RouterName};
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
    let job = Job { plan, pod, node };
    let homes = LinkNamespace::all(plan, node)?;
    job.guard()?;
    for home in &homes {
        let made = node.with_home(&home.home, |socket| Ok(job.create(socket, home)?));
        made.map_err(|e| job.failed(e))?;
    }
    let (mut in_pod, mut warnings) = node.visit(pod, || job.configure())??;
    let mut ends = Observed::default();
    for (number, home) in homes.iter().enumerate() {
        node.with_home(&home.home, |socket| {
            let seen = job.finish_node(socket, home)?;
            merge(&mut ends, number, seen);
            if home.router.is_none() {
                warnings.extend(job.announce_on_bridges(socket, &ends));
            }
            Ok(())
        })
        .map_err(|e| job.failed(e))?;
    }
    if !plan.host_ports.is_empty() {
        nft::host_ports::add(node, plan)?;
    }
    let in_pod_now = crate::observe::observe(&mut in_pod, What::of(plan));
    Ok(Applied {
        pod: in_pod_now.map_err(|e| job.netlink(e))?,
        node: ends,
        warnings,
    })
}

/// What the kernel has of a plan, without changing anything: for CHECK and for repairs.
pub fn observe(plan: &PodPlan, pod: &Netns, node: &NodeSide) -> Result<Applied, ApplyError> {
    let job = Job { plan, pod, node };
    let netlink = |e| job.netlink(e);
    let mut in_pod = node.socket_in(pod).map_err(netlink)?;
    let observed = crate::observe::observe(&mut in_pod, What::of(plan)).map_err(netlink)?;
    let mut ends = Observed::default();
    for (number, router) in routers(plan).into_iter().enumerate() {
        let home = match node.home(router) {
            Ok(home) => home,
            // Then its host ends are missing too, which the comparison says.
            Err(error) if error.is_missing() => continue,
            Err(error) => return Err(Box::new(error).into()),
        };
        let seen = node.with_home(&home, |socket| {
            let mut seen = Observed::default();
            for end in job.ends_in(router) {
                if let Some(link) = link_by_name(socket, end.name.as_str())? {
                    observe_end(socket, end, link, &mut seen)?;
                }
            }
            Ok(seen)
        });
        merge(&mut ends, number, seen.map_err(netlink)?);
    }
    Ok(Applied {
        pod: observed,
        node: ends,
        warnings: Vec::new(),
    })
}

struct Job<'a> {
    plan: &'a PodPlan,
    pod: &'a Netns,
    node: &'a NodeSide,
}

/// A namespace that links of the plan are made from: the node's, or a router's.
struct LinkNamespace<'a> {
    router: Option<&'a RouterName>,
    home: Home,
}

impl<'a> LinkNamespace<'a> {
    fn all(plan: &'a PodPlan, node: &NodeSide) -> Result<Vec<Self>, ApplyError> {
        let namespace = |router| match node.home(router) {
            Ok(home) => Ok(LinkNamespace { router, home }),
            Err(error) => Err(Box::new(error).into()),
        };
        routers(plan).into_iter().map(namespace).collect()
    }

    fn netns<'b>(&'b self, node: &'b NodeSide) -> &'b Netns {
        self.home.router().unwrap_or_else(|| node.netns())
    }
}

/// The routers that the plan speaks of, each once, after the node's own namespace.
fn routers(plan: &PodPlan) -> Vec<Option<&RouterName>> {
    let mut routers = vec![None];
    for router in plan.links.iter().map(router_of) {
        if !routers.contains(&router) {
            routers.push(router);
        }
    }
    routers
}

/// Lets [`NodeSide::with_home`] fail with its own error as well as with ours.
enum Failure {
    Apply(ApplyError),
    Socket(NetlinkError),
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        Failure::Apply(error)
    }
}

impl From<NetlinkError> for Failure {
    fn from(error: NetlinkError) -> Self {
        Failure::Socket(error)
    }
}

impl Job<'_> {
    /// What keeps pods apart is there before they are.
    fn guard(&self) -> Result<(), ApplyError> {
        let mut ends = self.ends_in(None);
        if ends.any(|end| end.source_check) {
            nft::guard::ensure(self.node)?;
        }
        Ok(())
    }

    /// Makes all links of a place with one send. Before them, the pod's namespace gets a number on the node.
    fn create(&self, socket: &mut Socket, namespace: &LinkNamespace<'_>) -> Result<(), ApplyError> {
        let here = || {
            let links = self.plan.links.iter();
            links.filter(|link| router_of(link) == namespace.router)
        };
        let bridges = self.bridges(socket, here())?;
        let pod = self.pod.as_fd().as_raw_fd();
        let mut requests = Vec::with_capacity(3 * self.plan.links.len() + 1);
        if namespace.router.is_none() && living::is_numbered(self.plan) {
            requests.push(nsid::add(self.pod));
        }
        // Which link each request belongs to.
        let mut about = vec![None; requests.len()];
        for link in here() {
            let end = link.kind.host_end();
            let bridge = end
                .and_then(|end| bridge_of(end, &bridges))
                .map(|bridge| bridge.index);
            requests.extend(link::create(link, self.plan.group, pod, bridge));
            if let Some(end) = end {
                requests.push(link::set_alias(end.name.as_str(), 0, &end.alias));
                if end.hairpin && bridge.is_some() {
                    requests.push(link::set_hairpin(end.name.as_str()));
                }
            }
            about.resize(requests.len(), Some(link));
        }
        let made = socket.batch(effect!("netlink.pod-create"), &requests);
        made.map_err(|source| {
            let NetlinkError::Refused(refused) = &source else {
                return self.netlink(source);
            };
            let Some(link) = about.get(refused.index).copied().flatten() else {
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

    fn bridges<'a>(
        &self,
        socket: &mut Socket,
        links: impl Iterator<Item = &'a Link>,
    ) -> Result<Vec<ObservedLink>, ApplyError> {
        let mut bridges = Vec::new();
        for link in links {
            let Some(end) = link.kind.host_end() else {
                continue;
            };
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

    /// Routes, neighbours and sysctls of the host ends of a place; reads them back.
    fn finish_node(
        &self,
        socket: &mut Socket,
        namespace: &LinkNamespace<'_>,
    ) -> Result<Observed, ApplyError> {
        let mut observed = Observed::default();
        let mut requests = Vec::new();
        let mut ends = Vec::new();
        for end in self.ends_in(namespace.router) {
            let link = link_by_name(socket, end.name.as_str()).map_err(|e| self.netlink(e))?;
            let link = link.ok_or_else(|| self.vanished(&end.name, namespace.netns(self.node)))?;
            let name = end.name.as_str();
            requests.extend(
                end.neighbours
                    .iter()
                    .map(|n| neighbour::add(name, link.index, n)),
            );
            // A second way to an address would win over the first: whose it is would lose it.
            let routes = end.routes.iter();
            requests.extend(routes.map(|r| route::add(name, link.index, r).exclusive()));
            ends.push((end, link));
        }
        if ends.iter().any(|(end, _)| !end.settings.is_empty()) {
            self.node.at(&namespace.home, || {
                let mut all = ends
                    .iter()
                    .flat_map(|(e, _)| e.settings.iter().map(|s| (&e.name, s)));
                all.try_for_each(|(name, s)| sysctl::write(s).map_err(|e| not_set(name, e)))
            })??;
        }
        socket
            .batch(effect!("netlink.node-ends"), &requests)
            .map_err(|source| match refusal(&source) {
                Some((what, _)) if source.errno() == Some(libc::EEXIST) => ApplyError::Node {
                    what,
                    hint: hint::TAKEN.into(),
                    source,
                },
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
            let bridge = link
                .kind
                .host_end()
                .and_then(|end| bridge_of(end, &node.links));
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

    /// The host ends that live there.
    fn ends_in(&self, router: Option<&RouterName>) -> impl Iterator<Item = &HostEnd> {
        let ends = self
            .plan
            .links
            .iter()
            .filter_map(|link| link.kind.host_end());
        ends.filter(move |end| end.router.as_ref() == router)
    }

    fn failed(&self, failure: Failure) -> ApplyError {
        match failure {
            Failure::Apply(error) => error,
            Failure::Socket(source) => self.netlink(source),
        }
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

/// Adds what one namespace has. Two of them may number their links alike: those of the first are
/// kept as they are, since announcing needs them.
fn merge(all: &mut Observed, number: usize, mut seen: Observed) {
    const NUMBERS: u32 = 1 << 24;
    let shift = NUMBERS.wrapping_mul(number as u32);
    let shifted = |index: &mut u32| *index = index.wrapping_add(shift);
    for link in &mut seen.links {
        shifted(&mut link.index);
        link.master.iter_mut().for_each(shifted);
    }
    seen.routes
        .iter_mut()
        .filter_map(|r| r.link.as_mut())
        .for_each(shifted);
    seen.neighbours
        .iter_mut()
        .for_each(|n| shifted(&mut n.link));
    all.links.extend(seen.links);
    all.routes.extend(seen.routes);
    all.neighbours.extend(seen.neighbours);
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

/// Where the link is made from.
fn router_of(link: &Link) -> Option<&RouterName> {
    link.kind.host_end().and_then(|end| end.router.as_ref())
}
