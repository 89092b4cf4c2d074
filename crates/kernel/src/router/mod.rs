//! Routers of overlay networks: a network namespace per network on the node, with a VXLAN device, the
//! network's gateways, and the host ends of its pods. Owns how one is made, changed in place and
//! removed, and what it knows of other nodes; decides nothing.
//!
//! ```text
//!   pod ── px… ┐                          ┌ vxlan0 ══ UDP socket in the node's namespace
//!   pod ── px… ┤ router (netns, pinned)   ┤
//!              └ lo: gateways             └ uplink ── pxr… (node), only with SNAT
//! ```

mod error;
mod firewall;
pub(crate) mod pin;
mod remotes;
mod uplink;
pub(crate) mod vxlan;

pub use error::RouterError;
pub use remotes::set_remotes;

use crate::effect::{Effect, effect};
use crate::managed::{self, Managed};
use crate::netlink::Request;
use crate::node_side::lock;
use crate::observe::{addresses_of, link_by_name, optional};
use crate::{NetlinkError, Netns, NodeSide, Socket, address, link, nft, sysctl};
use ipnet::IpNet;
use plexus_core::plan::{Router, Setting};
use plexus_types::{Family, RouterName};
use std::net::IpAddr;
use std::path::Path;

/// The VXLAN device of a router.
const VXLAN: &str = "vxlan0";
/// The router's end of its link to the node.
const UPLINK: &str = "uplink";

/// Makes a router what the plan says, by difference; says what was changed. Can be repeated, and
/// completes what a death half-way left.
pub fn ensure(node: &NodeSide, router: &Router) -> Result<Vec<String>, RouterError> {
    let name = &router.name;
    let dir = node.routers_dir_for(name)?;
    let _alone = lock(&node.building);
    let made = pin::ensure(dir, name)?;
    let home = node.home(Some(name))?;
    let netns = node.router(name)?;
    let mut work = Work {
        node,
        netns: &netns,
        router,
        changes: Vec::from_iter(made.then(|| format!("make router {name}"))),
    };
    let settled = node.is_settled(name);
    node.visit(&netns, || work.prepare(settled))??;
    node.settle(name);
    let rules = nft::guard::ensure_tunnels(node).map_err(RouterError::firewall(name))?;
    work.changes.extend(rules);
    node.with_home(&home, |socket| work.connect(socket))?;
    Ok(work.changes)
}

/// The routers that are pinned in a directory, in order.
pub fn list(dir: &Path) -> Result<Vec<RouterName>, RouterError> {
    pin::list(dir).map_err(|source| RouterError::List(dir.into(), source))
}

/// Removes a router with everything in it; what is gone already is fine. Says whether there was
/// anything. For when its network is gone and no pod is in it.
pub fn remove(node: &NodeSide, name: &RouterName) -> Result<bool, RouterError> {
    let dir = node.routers_dir_for(name)?;
    let _alone = lock(&node.building);
    let mut found = uplink::remove(node, name)?;
    match node.home(Some(name)) {
        Ok(home) => {
            found = true;
            node.with_home(&home, |socket| delete_vxlan(socket, name))?;
        }
        Err(error) if error.is_missing() => {}
        Err(error) => return Err(error),
    }
    node.forget_router(name);
    pin::remove(dir, name)?;
    Ok(found)
}

/// A router that is being made what the plan says.
struct Work<'a> {
    node: &'a NodeSide,
    netns: &'a Netns,
    router: &'a Router,
    /// In words.
    changes: Vec<String>,
}

impl Work<'_> {
    /// What the calling thread's namespace, which is the router's, needs beside links.
    fn prepare(&mut self, settled: bool) -> Result<(), RouterError> {
        let name = &self.router.name;
        for (key, value) in SETTINGS.iter().filter(|_| !settled) {
            if set_sysctl(name, key, value)? {
                self.changes
                    .push(format!("set sysctl {key} of router {name}"));
            }
        }
        let rules = firewall::ensure(self.router).map_err(RouterError::firewall(name))?;
        self.changes.extend(rules);
        Ok(())
    }

    /// Links, addresses and routes. Routes that lead nowhere come before the way out: at no time does
    /// what belongs to the network leave by it.
    fn connect(&mut self, socket: &mut Socket) -> Result<(), RouterError> {
        let router = self.router;
        let failed = RouterError::netlink(&router.name);
        let mut requests = Vec::new();
        let lo = optional(socket.get(&link::get_by_index(link::LOOPBACK), link::read));
        if lo.map_err(failed)?.is_some_and(|lo| !lo.up) {
            requests.push(link::set_up("lo", link::LOOPBACK));
        }
        // The gateways answer on the loopback: every pod's link leads to it.
        let gateways: Vec<_> = router.gateways.iter().map(|g| IpNet::from(*g)).collect();
        let set = set_addresses(socket, ("lo", link::LOOPBACK), &gateways, |ip| {
            ip.is_loopback()
        });
        requests.extend(set.map_err(failed)?);
        requests.extend(nowhere(socket, router).map_err(failed)?);
        self.send(socket, effect!("router.inside"), &requests)?;
        vxlan::ensure(self, socket)?;
        if router.snat {
            uplink::ensure(self, socket)?;
        } else if link_by_name(socket, UPLINK).map_err(failed)?.is_some()
            && uplink::remove(self.node, &router.name)?
        {
            let change = format!("delete the uplink of router {}", router.name);
            self.changes.push(change);
        }
        Ok(())
    }

    /// Sends requests that are due, and says what they change.
    fn send(
        &mut self,
        socket: &mut Socket,
        effect: Effect,
        requests: &[Request],
    ) -> Result<(), RouterError> {
        let words = requests.iter().map(|request| request.what.clone());
        self.changes.extend(words);
        let sent = socket.batch(effect, requests);
        sent.map_err(RouterError::netlink(&self.router.name))
    }

    fn vanished(&self, link: &str) -> RouterError {
        RouterError::vanished(&self.router.name, link)
    }
}

/// In the namespace of the calling thread; whether it had another value.
fn set_sysctl(router: &RouterName, key: &str, value: &str) -> Result<bool, RouterError> {
    let setting = Setting {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    sysctl::ensure(&setting).map_err(|source| RouterError::Setting(router.clone(), source))
}

/// Sources are checked by the firewall, for both families alike. All routers of a network have the gateway's
/// address: what another one says from it (nobody there, too large) must be heard.
const SETTINGS: &[(&str, &str)] = &[
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv4/conf/all/accept_local", "1"),
    ("net/ipv6/conf/all/disable_ipv6", "0"),
    ("net/ipv6/conf/default/disable_ipv6", "0"),
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/all/forwarding", "1"),
];

/// What makes the addresses of a link these, beside others that may stay.
fn set_addresses(
    socket: &mut Socket,
    (link, index): (&str, u32),
    wanted: &[IpNet],
    may_stay: impl Fn(IpAddr) -> bool,
) -> Result<Vec<Request>, NetlinkError> {
    let have: Vec<IpNet> = addresses_of(socket, index)?.iter().map(|a| a.net).collect();
    let unwanted = have
        .iter()
        .filter(|net| !wanted.contains(net) && !may_stay(net.addr()));
    let missing = wanted.iter().filter(|net| !have.contains(net));
    let deletions = unwanted.map(|net| address::delete(link, index, *net));
    Ok(deletions
        .chain(missing.map(|net| address::add(link, index, *net)))
        .collect())
}

/// What no pod and no other node has of the subnets is nowhere: it does not leave by the uplink,
/// behind which the same range may be somebody else's.
fn nowhere(socket: &mut Socket, router: &Router) -> Result<Vec<Request>, NetlinkError> {
    let mut requests = Vec::new();
    for family in Family::ALL {
        let mut have = managed::all_unreachable(socket, family)?;
        have.retain(|route| !remotes::is_inside(router, &route.dst));
        let subnets = router.subnets.iter();
        let subnets = subnets.filter(|subnet| Family::of(subnet.addr()) == family);
        let wanted: Vec<_> = subnets
            .map(|subnet| Managed::unreachable(*subnet))
            .collect();
        let (deletions, additions) = managed::changes(&have, &wanted);
        requests.extend(deletions.into_iter().chain(additions));
    }
    Ok(requests)
}

/// At once, not when the kernel gets round to the dead namespace: its number is free then.
fn delete_vxlan(socket: &mut Socket, name: &RouterName) -> Result<(), RouterError> {
    let failed = RouterError::netlink(name);
    if let Some(seen) = vxlan::find(socket).map_err(failed)? {
        let request = link::delete(VXLAN, seen.link.index);
        let deleted = socket.batch(effect!("router.vxlan-delete"), &[request]);
        deleted.map_err(failed)?;
    }
    Ok(())
}

/// The next hop of a router on its VXLAN, derived from its MAC as the kernel would.
fn link_local(mac: plexus_types::Mac) -> IpAddr {
    let [a, b, c, d, e, f] = mac.bytes();
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&[0xfe, 0x80]);
    bytes[8..].copy_from_slice(&[a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    IpAddr::from(bytes)
}
