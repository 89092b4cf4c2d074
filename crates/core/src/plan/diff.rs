//! Compares a plan with what a kernel has: after applying, for CHECK, and at replay.
//!
//! Says only what is missing or altered. What is there beyond the plan is the pod's own business,
//! and so are the group and the alias of its links.

use super::effective::MAIN_TABLE;
use super::{
    Address, Bridge, HostEnd, Link, Neighbour, NodePlan, Observed, ObservedLink, PodPlan, Route,
    Rule, Stacked,
};
use plexus_types::{Family, IfName, Mac, RouterName};
use std::fmt;

/// One object that is not as planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where.
    pub side: Side,
    /// On which interface.
    pub interface: IfName,
    /// Which object.
    pub object: Object,
    /// What is wrong with it.
    pub state: State,
}

/// A side of an attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    /// In the pod's namespace.
    Pod,
    /// In the node's.
    Node,
    /// In a router's on the node.
    Router(RouterName),
}

/// A kernel object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// The link itself.
    Link,
    /// An address.
    Address(Address),
    /// A route.
    Route(Route),
    /// A rule.
    Rule(Rule),
    /// A permanent neighbour.
    Neighbour(Neighbour),
}

/// What is wrong with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It is not there.
    Missing,
    /// It is there, but different: `MTU is 1400 instead of 1500`.
    Altered(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.side {
            Side::Pod => {}
            Side::Node => f.write_str("node ")?,
            Side::Router(router) => write!(f, "router {router} ")?,
        }
        write!(f, "interface {}", self.interface)?;
        match &self.object {
            Object::Link => {}
            Object::Address(address) => write!(f, ": address {}", address.net)?,
            Object::Route(route) => write!(f, ": route {route}")?,
            Object::Rule(rule) => write!(f, ": rule {rule}")?,
            Object::Neighbour(neighbour) => write!(f, ": neighbour {}", neighbour.address)?,
        }
        match (&self.state, &self.object) {
            (State::Missing, _) => f.write_str(" is missing"),
            (State::Altered(how), Object::Link) => write!(f, ": {how}"),
            (State::Altered(how), _) => write!(f, " {how}"),
        }
    }
}

/// What the pod lacks.
pub fn diff_pod(plan: &PodPlan, observed: &Observed) -> Vec<Difference> {
    plan.links
        .iter()
        .flat_map(|link| diff_link(link, observed))
        .collect()
}

/// What the node and its routers lack for the pod: the host ends, their routes and neighbours.
pub fn diff_host_ends(plan: &PodPlan, observed: &Observed) -> Vec<Difference> {
    let ends = plan.links.iter().filter_map(|link| link.kind.host_end());
    ends.flat_map(|end| diff_host_end(end, observed)).collect()
}

/// What the node lacks for the networks: bridges and their addresses. Routers are compared, and made
/// whole, where they are seen: in `kernel`.
pub fn diff_node(plan: &NodePlan, observed: &Observed) -> Vec<Difference> {
    let bridges = plan.bridges.iter();
    bridges
        .flat_map(|bridge| diff_bridge(bridge, observed))
        .collect()
}

fn diff_bridge(bridge: &Bridge, observed: &Observed) -> Vec<Difference> {
    let mut comparison = Comparison::new(Side::Node, &bridge.name, observed);
    if let Some(link) = comparison.link(Bridge::LINK_KIND) {
        comparison.up(link);
        if bridge.promisc && !link.promisc {
            comparison.altered("link is not promiscuous".to_owned());
        }
        for net in &bridge.addresses {
            comparison.address(link, &Address { net: *net });
        }
    }
    comparison.differences
}

fn diff_link(link: &Link, observed: &Observed) -> Vec<Difference> {
    let mut comparison = Comparison::new(Side::Pod, &link.name, observed);
    if let Some(seen) = comparison.link(link.kind.name()) {
        if let Some(stacked) = link.kind.stacked() {
            comparison.options(seen, stacked);
        }
        comparison.shape(seen, link.mac, link.mtu);
        for address in &link.addresses {
            comparison.address(seen, address);
        }
        comparison.routes(seen, &link.routes);
        for rule in &link.rules {
            comparison.rule(rule);
        }
        comparison.neighbours(seen, &link.neighbours);
    }
    comparison.differences
}

fn diff_host_end(end: &HostEnd, observed: &Observed) -> Vec<Difference> {
    let side = end.router.clone().map_or(Side::Node, Side::Router);
    let mut comparison = Comparison::new(side, &end.name, observed);
    if let Some(seen) = comparison.link(HostEnd::LINK_KIND) {
        comparison.shape(seen, Some(end.mac), end.mtu);
        if let Some(bridge) = &end.bridge {
            let master = observed.link(bridge).map(|bridge| bridge.index);
            if master.is_none() || seen.master != master {
                comparison.altered(format!("link is not a port of bridge {bridge}"));
            }
        }
        comparison.routes(seen, &end.routes);
        comparison.neighbours(seen, &end.neighbours);
    }
    comparison.differences
}

/// Collects the differences of one interface.
struct Comparison<'a> {
    side: Side,
    interface: &'a IfName,
    observed: &'a Observed,
    differences: Vec<Difference>,
}

impl<'a> Comparison<'a> {
    fn new(side: Side, interface: &'a IfName, observed: &'a Observed) -> Self {
        Self {
            side,
            interface,
            observed,
            differences: Vec::new(),
        }
    }

    fn push(&mut self, object: Object, state: State) {
        let (side, interface) = (self.side.clone(), self.interface.clone());
        self.differences.push(Difference {
            side,
            interface,
            object,
            state,
        });
    }

    /// The link itself is there, but different.
    fn altered(&mut self, how: String) {
        self.push(Object::Link, State::Altered(how));
    }

    /// The link, which should be of that kind.
    fn link(&mut self, kind: &str) -> Option<&'a ObservedLink> {
        match self.observed.link(self.interface) {
            Some(link) => {
                self.same("kind", &&*link.kind, &kind);
                Some(link)
            }
            None => {
                self.push(Object::Link, State::Missing);
                None
            }
        }
    }

    fn same<T: PartialEq + fmt::Display>(&mut self, what: &str, is: &T, should: &T) {
        if is != should {
            self.altered(format!("{what} is {is} instead of {should}"));
        }
    }

    fn options(&mut self, seen: &ObservedLink, stacked: &Stacked) {
        for (option, value) in stacked.options().filter(|(option, _)| option.is_compared) {
            let is = seen.option(option.attribute);
            let is = is.map_or_else(|| "unknown".to_owned(), |is| option.text(is));
            self.same(option.name, &is, &option.text(value));
        }
    }

    fn shape(&mut self, seen: &ObservedLink, mac: Option<Mac>, mtu: Option<u32>) {
        match (seen.mac, mac) {
            (Some(is), Some(mac)) => self.same("MAC", &is, &mac),
            (None, Some(mac)) => self.altered(format!("has no MAC instead of {mac}")),
            (_, None) => {}
        }
        if let Some(mtu) = mtu {
            self.same("MTU", &seen.mtu, &mtu);
        }
        self.up(seen);
    }

    fn up(&mut self, seen: &ObservedLink) {
        if !seen.up {
            self.altered("link is down".to_owned());
        }
    }

    fn address(&mut self, link: &ObservedLink, address: &Address) {
        let mut here = self
            .observed
            .addresses
            .iter()
            .filter(|seen| seen.link == link.index);
        if here.clone().any(|seen| seen.net == address.net) {
            return;
        }
        let other = here.find(|seen| seen.net.addr() == address.net.addr());
        let state = match other {
            Some(other) => State::Altered(format!("is {} instead", other.net)),
            None => State::Missing,
        };
        self.push(Object::Address(address.clone()), state);
    }

    fn routes(&mut self, link: &ObservedLink, routes: &[Route]) {
        for route in routes {
            let table = route.table.unwrap_or(MAIN_TABLE);
            let v6 = Family::of(route.dst.addr()) == Family::V6;
            let found = self.observed.routes.iter().any(|seen| {
                let metric = match route.metric {
                    Some(metric) => seen.metric == metric,
                    // What the kernel gives to an IPv6 route without one.
                    None => seen.metric == 0 || (v6 && seen.metric == 1024),
                };
                seen.link == Some(link.index)
                    && seen.dst == route.dst
                    && seen.via == route.via
                    && seen.table == table
                    && metric
                    && (route.src.is_none() || seen.src == route.src)
                    && (v6 || route.scope.is_none_or(|scope| seen.scope == scope))
            });
            if !found {
                self.push(Object::Route(route.clone()), State::Missing);
            }
        }
    }

    fn rule(&mut self, rule: &Rule) {
        let found = self.observed.rules.iter().any(|seen| {
            seen.from == rule.from && seen.table == rule.table && seen.priority == rule.priority
        });
        if !found {
            self.push(Object::Rule(rule.clone()), State::Missing);
        }
    }

    fn neighbours(&mut self, link: &ObservedLink, neighbours: &[Neighbour]) {
        for neighbour in neighbours {
            let mut here = self
                .observed
                .neighbours
                .iter()
                .filter(|seen| seen.link == link.index && seen.address == neighbour.address);
            // Host ends in routers are observed together with the node's, and may have the same index.
            if here.clone().any(|seen| seen.mac == Some(neighbour.mac)) {
                continue;
            }
            let state = match here.next() {
                Some(seen) => {
                    let is = seen.mac.map(|mac| mac.to_string());
                    let is = is.unwrap_or_else(|| "nowhere".to_owned());
                    State::Altered(format!("is at {is} instead of {}", neighbour.mac))
                }
                None => State::Missing,
            };
            self.push(Object::Neighbour(neighbour.clone()), state);
        }
    }
}
