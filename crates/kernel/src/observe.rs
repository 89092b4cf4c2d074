//! What a namespace has. Owns the questions; never changes anything. A socket goes in, an
//! [`Observed`] or a link comes out.

use crate::netlink::{Request, attributes};
use crate::{NetlinkError, Socket, address, link, neighbour, route, rule};
use plexus_core::plan::{Link, Observed, ObservedAddress, ObservedLink, PodPlan};
use plexus_types::Family;

/// Which objects to look at; links always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct What {
    /// Addresses of all links.
    pub addresses: bool,
    /// Routes of these families.
    pub routes: (bool, bool),
    /// Rules of these families.
    pub rules: (bool, bool),
    /// Permanent neighbours of these families.
    pub neighbours: (bool, bool),
}

impl What {
    /// Everything that a plan may speak of.
    pub const ALL: What = What {
        addresses: true,
        routes: (true, true),
        rules: (true, true),
        neighbours: (true, true),
    };

    /// Nothing but links.
    pub const LINKS: What = What {
        addresses: false,
        routes: (false, false),
        rules: (false, false),
        neighbours: (false, false),
    };

    /// What this plan speaks of.
    pub fn of(plan: &PodPlan) -> Self {
        let families = |has: &dyn Fn(&Link, Family) -> bool| {
            let has = |family| plan.links.iter().any(|link| has(link, family));
            (has(Family::V4), has(Family::V6))
        };
        What {
            addresses: true,
            routes: families(&|l, f| l.routes.iter().any(|r| Family::of(r.dst.addr()) == f)),
            rules: families(&|l, f| l.rules.iter().any(|r| Family::of(r.from.addr()) == f)),
            neighbours: families(&|l, f| l.neighbours.iter().any(|n| Family::of(n.address) == f)),
        }
    }
}

/// The objects of the socket's namespace.
pub fn observe(socket: &mut Socket, what: What) -> Result<Observed, NetlinkError> {
    let mut observed = Observed {
        links: list(socket, link::list(), link::read)?,
        ..Observed::default()
    };
    if what.addresses {
        observed.addresses = list(socket, address::list(None), address::read)?;
    }
    for family in families(what.routes) {
        let routes = list(socket, route::list(family), route::read_hops)?;
        observed.routes.extend(routes);
    }
    for family in families(what.rules) {
        let rules = list(socket, rule::list(family), rule::read)?;
        observed.rules.extend(rules);
    }
    for family in families(what.neighbours) {
        let neighbours = list(socket, neighbour::list(family), neighbour::read)?;
        observed.neighbours.extend(neighbours);
    }
    Ok(observed)
}

/// All links of the socket's namespace.
pub fn links(socket: &mut Socket) -> Result<Vec<ObservedLink>, NetlinkError> {
    list(socket, link::list(), link::read)
}

/// The addresses of one link.
pub fn addresses_of(socket: &mut Socket, index: u32) -> Result<Vec<ObservedAddress>, NetlinkError> {
    let mut addresses = list(socket, address::list(Some(index)), address::read)?;
    addresses.retain(|address| address.link == index);
    Ok(addresses)
}

/// The link of that name in the socket's namespace, if there is one.
pub fn link_by_name(socket: &mut Socket, name: &str) -> Result<Option<ObservedLink>, NetlinkError> {
    if name.is_empty() || name.len() > 15 {
        return Ok(None);
    }
    optional(socket.get(&link::get_by_name(name), link::read))
}

/// The link of the default route of the socket's namespace, IPv4 before IPv6, the lowest metric
/// first: where a macvlan goes that names no master.
pub fn default_route_link(socket: &mut Socket) -> Result<Option<ObservedLink>, NetlinkError> {
    for family in Family::ALL {
        let mut routes = list(socket, route::list(family), route::read_hops)?;
        routes.retain(|r| r.dst.prefix_len() == 0 && r.table == route::MAIN && r.link.is_some());
        routes.sort_by_key(|r| r.metric);
        if let Some(index) = routes.first().and_then(|r| r.link) {
            return optional(socket.get(&link::get_by_index(index), link::read));
        }
    }
    Ok(None)
}

/// An answer, or none because the object does not exist.
pub(crate) fn optional<T>(
    answer: Result<Option<T>, NetlinkError>,
) -> Result<Option<T>, NetlinkError> {
    match answer {
        Err(error) if error.is_missing() => Ok(None),
        other => other,
    }
}

/// The value of that attribute of a payload.
pub(crate) fn attribute(payload: &[u8], wanted: u16) -> Option<&[u8]> {
    let found = attributes(payload).find(|(kind, _)| *kind == wanted);
    found.map(|(_, value)| value)
}

pub(crate) fn list<T, I: IntoIterator<Item = T>>(
    socket: &mut Socket,
    request: Request,
    read: fn(&[u8]) -> I,
) -> Result<Vec<T>, NetlinkError> {
    socket.dump(request, Vec::new, |found, payload| {
        found.extend(read(payload))
    })
}

fn families((v4, v6): (bool, bool)) -> impl Iterator<Item = Family> {
    let asked = [(v4, Family::V4), (v6, Family::V6)].into_iter();
    asked.filter_map(|(is_asked, family)| is_asked.then_some(family))
}
