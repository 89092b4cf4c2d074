//! Routes to other nodes' blocks of networks with an interface per NIC: per network a table of its own and a rule that
//! sends the packets of its pods there, with next hops that all of them share. Owns the tables, next hops and rules
//! that are ours by their numbers and by protocol 80; never touches another.
//!
//! ```text
//!   rule 5080: from 192.168.0.0/16 lookup T      table T: 192.168.1.0/24 nhid N      N: via 10.0.1.2 dev eth1
//! ```
//! What is new is made from right to left and what is gone removed from left to right, so that no packet finds half of
//! it. A route that leads elsewhere now is replaced in one step.

mod arp;
pub(crate) mod message;

pub use arp::answer_for_own_addresses;

use crate::effect::effect;
use crate::netlink::{Raw, Refused, Request};
use crate::sysctl::SysctlError;
use crate::{NetlinkError, NodeSide, Socket, nexthop};
use message::{OwnRoute, OwnRule};
use plexus_core::nic_routes::{NetworkRoutes, NextHop};
use plexus_types::Family;
use std::collections::{BTreeMap, BTreeSet};

/// Routes that are not as they should be.
#[derive(Debug, thiserror::Error)]
pub enum NicRouteError {
    /// They cannot be read.
    #[error("cannot read the node's routes to other nodes' blocks on its NICs")]
    Read(#[from] NetlinkError),
    /// There are more next hops than numbers of ours.
    #[error("no number is left for a next hop: {0} are in use")]
    Full(usize),
    /// A NIC answers for addresses of others.
    #[error("cannot keep a NIC from answering for addresses of others in its subnet")]
    Answers(#[from] SysctlError),
    /// Some could not be set; all others are as wanted.
    #[error("cannot change {failed} of the node's routes to other nodes' blocks on its NICs")]
    Change {
        /// How many.
        failed: usize,
        /// Why the first was refused.
        #[source]
        source: NetlinkError,
    },
}

/// What was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NicRouteChanges {
    /// Routes that were added, replaced or removed.
    pub routes: usize,
    /// Next hops.
    pub hops: usize,
    /// Rules.
    pub rules: usize,
}

impl NicRouteChanges {
    /// Whether everything was as it should be.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What is ours in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct State {
    hops: BTreeMap<u32, NextHop>,
    /// Numbers in our range that are somebody else's.
    foreign: BTreeSet<u32>,
    /// The id of each route's next hop.
    routes: BTreeMap<OwnRoute, u32>,
    rules: BTreeSet<OwnRule>,
}

/// What was seen or made last, so that a change of one route costs no look at all of them.
#[derive(Debug, Default)]
pub struct NicRoutes(Option<State>);

impl NicRoutes {
    /// Somebody may have changed something: the next [`set`](Self::set) looks.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    /// Makes the tables exactly these; those that are not named are emptied, with their rules.
    pub fn set(
        &mut self,
        node: &NodeSide,
        wanted: &BTreeMap<u32, NetworkRoutes>,
    ) -> Result<NicRouteChanges, NicRouteError> {
        node.with_socket(|socket| {
            let have = match self.0.take() {
                Some(known) => known,
                None => look(socket)?,
            };
            let steps = Steps::between(&have, wanted)?;
            let changes = steps.changes;
            if changes.is_empty() {
                self.0 = Some(have);
                return Ok(changes);
            }
            let mut refused = Vec::new();
            for requests in &steps.in_order {
                refused.extend(socket.batch_all(effect!("netlink.nic-routes"), requests)?);
            }
            // What is gone already is as good, and so is what the kernel took along with its next hop.
            refused.retain(|one| !is_gone_already(one));
            let failed = refused.len();
            match refused.into_iter().next() {
                None => {
                    self.0 = Some(steps.after);
                    Ok(changes)
                }
                Some(first) => Err(NicRouteError::Change {
                    failed,
                    source: first.into(),
                }),
            }
        })
    }
}

fn is_gone_already(refused: &Refused) -> bool {
    let missing = [libc::ESRCH, libc::ENOENT, libc::ENODEV];
    refused.what.starts_with("delete ") && missing.contains(&refused.errno)
}

fn look(socket: &mut Socket) -> Result<State, NetlinkError> {
    let mut state = State::default();
    let hops = socket.dump(nexthop::list(), Vec::new, |found, payload| {
        found.extend(nexthop::read(payload));
    })?;
    for (id, hop) in hops {
        match hop {
            Some(hop) => drop(state.hops.insert(id, hop)),
            None if nexthop::IDS.contains(&id) => drop(state.foreign.insert(id)),
            None => {}
        }
    }
    for family in Family::ALL {
        let routes = socket.dump(message::list_routes(family), Vec::new, |found, payload| {
            found.extend(message::read_route(payload));
        })?;
        state.routes.extend(routes);
        let rules = socket.dump(message::list_rules(family), Vec::new, |found, payload| {
            found.extend(message::read_rule(payload));
        })?;
        state.rules.extend(rules);
    }
    Ok(state)
}

/// From what is there to what is wanted.
struct Steps {
    in_order: [Vec<Request<Raw>>; 3],
    changes: NicRouteChanges,
    after: State,
}

impl Steps {
    fn between(have: &State, wanted: &BTreeMap<u32, NetworkRoutes>) -> Result<Self, NicRouteError> {
        let hops = Hops::between(have, wanted)?;
        let mut after = State {
            hops: BTreeMap::new(),
            foreign: have.foreign.clone(),
            routes: BTreeMap::new(),
            rules: BTreeSet::new(),
        };
        let (mut set, mut unset) = (Vec::new(), Vec::new());
        for (table, network) in wanted {
            for (dst, hop) in &network.routes {
                let route = OwnRoute::new(*table, *dst);
                let Some(id) = hops.ids.get(hop).copied() else {
                    continue;
                };
                match have.routes.get(&route) {
                    Some(now) if *now == id => {}
                    now => set.push(message::set_route(&route, id, hop, now.is_some())),
                }
                after.routes.insert(route, id);
            }
            let sources = network.sources.iter();
            after
                .rules
                .extend(sources.map(|from| OwnRule::new(*from, *table)));
        }
        after.hops = hops.ids.iter().map(|(hop, id)| (*id, *hop)).collect();
        let gone = have.routes.keys().filter(|r| !after.routes.contains_key(r));
        unset.extend(gone.map(message::delete_route));
        let no_rules = have.rules.difference(&after.rules);
        let no_rules: Vec<_> = no_rules.map(message::delete_rule).collect();
        let new_rules = after.rules.difference(&have.rules);
        let new_rules: Vec<_> = new_rules.map(message::add_rule).collect();
        let changes = NicRouteChanges {
            routes: set.len() + unset.len(),
            hops: hops.new.len() + hops.gone.len(),
            rules: no_rules.len() + new_rules.len(),
        };
        let first = hops.new.into_iter().chain(set).chain(new_rules);
        let last = no_rules.into_iter().chain(unset);
        Ok(Self {
            in_order: [first.collect(), last.collect(), hops.gone],
            changes,
            after,
        })
    }
}

/// The number of each next hop: that which it has, else the smallest that is free.
struct Hops {
    ids: BTreeMap<NextHop, u32>,
    new: Vec<Request<Raw>>,
    gone: Vec<Request<Raw>>,
}

impl Hops {
    fn between(have: &State, wanted: &BTreeMap<u32, NetworkRoutes>) -> Result<Self, NicRouteError> {
        let all = wanted.values().flat_map(|network| network.routes.values());
        let wanted: BTreeSet<NextHop> = all.copied().collect();
        let mut ids: BTreeMap<NextHop, u32> = BTreeMap::new();
        let mut gone = Vec::new();
        for (id, hop) in &have.hops {
            if wanted.contains(hop) && !ids.contains_key(hop) {
                ids.insert(*hop, *id);
            } else {
                gone.push(nexthop::delete(*id));
            }
        }
        // Those that go are there until the end.
        let free = |id: &u32| !have.hops.contains_key(id) && !have.foreign.contains(id);
        let mut free = nexthop::IDS.filter(free);
        let mut new = Vec::new();
        for hop in wanted {
            if ids.contains_key(&hop) {
                continue;
            }
            let full = || NicRouteError::Full(have.hops.len() + have.foreign.len());
            let id = free.next().ok_or_else(full)?;
            new.push(nexthop::add(id, &hop));
            ids.insert(hop, id);
        }
        Ok(Self { ids, new, gone })
    }
}
