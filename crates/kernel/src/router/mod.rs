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
mod vxlan;

pub use error::RouterError;
pub use remotes::set_remotes;

use crate::effect::effect;
use crate::managed::{self, Hop, Managed};
use crate::observe::{addresses_of, list as list_of, optional};
use crate::{Netns, NodeSide, Socket, address, link, nft, sysctl};
use ipnet::IpNet;
use plexus_core::plan::{Router, Setting};
use plexus_types::{Family, RouterName};
use std::net::IpAddr;
use std::path::Path;
use std::sync::PoisonError;

/// The VXLAN device of a router.
const VXLAN: &str = "vxlan0";
/// The router's end of its link to the node.
const UPLINK: &str = "uplink";

/// Makes a router what the plan says, by difference; says what was changed. Can be repeated, and
/// completes what a death half-way left.
pub fn ensure(node: &NodeSide, router: &Router) -> Result<Vec<String>, RouterError> {
    let name = &router.name;
    let dir = node.routers_dir().ok_or_else(|| RouterError::NoDirectory {
        router: name.clone(),
    })?;
    let mut changes = Vec::new();
    let _alone = node.building.lock().unwrap_or_else(PoisonError::into_inner);
    if pin::ensure(dir, name)? {
        changes.push(format!("make router {name}"));
    }
    let home = node.home(Some(name))?;
    let netns = node.router(name)?;
    let settled = node.is_settled(name);
    node.visit(&netns, || inside(router, settled, &mut changes))??;
    node.settle(name);
    changes.extend(
        nft::guard::ensure_tunnels(node).map_err(|source| RouterError::Firewall {
            router: name.clone(),
            source,
        })?,
    );
    node.with_home(&home, |socket| -> Result<(), RouterError> {
        connect(node, &netns, socket, router, &mut changes)
    })?;
    Ok(changes)
}

/// The routers that are pinned in a directory, in order.
pub fn list(dir: &Path) -> Result<Vec<RouterName>, RouterError> {
    pin::list(dir).map_err(|source| RouterError::List {
        path: dir.into(),
        source,
    })
}

/// Removes a router with everything in it; what is gone already is fine. Says whether there was
/// anything. For when its network is gone and no pod is in it.
pub fn remove(node: &NodeSide, name: &RouterName) -> Result<bool, RouterError> {
    let dir = node.routers_dir().ok_or_else(|| RouterError::NoDirectory {
        router: name.clone(),
    })?;
    let _alone = node.building.lock().unwrap_or_else(PoisonError::into_inner);
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

/// What the calling thread's namespace, which is the router's, needs beside links.
fn inside(router: &Router, settled: bool, changes: &mut Vec<String>) -> Result<(), RouterError> {
    for (key, value) in SETTINGS.iter().filter(|_| !settled) {
        let setting = Setting {
            key: (*key).into(),
            value: (*value).into(),
        };
        let set = sysctl::ensure(&setting).map_err(|source| RouterError::Setting {
            router: router.name.clone(),
            source,
        })?;
        changes.extend(set.then(|| format!("set sysctl {key} of router {}", router.name)));
    }
    let rules = firewall::ensure(router).map_err(|source| RouterError::Firewall {
        router: router.name.clone(),
        source,
    })?;
    changes.extend(rules);
    Ok(())
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

/// Links, addresses and routes. Routes that lead nowhere come before the way out: at no time does
/// what belongs to the network leave by it.
fn connect(
    node: &NodeSide,
    netns: &Netns,
    socket: &mut Socket,
    router: &Router,
    changes: &mut Vec<String>,
) -> Result<(), RouterError> {
    let failed = RouterError::netlink(&router.name);
    let mut requests = Vec::new();
    let lo = optional(socket.get(&link::get_by_index(link::LOOPBACK), link::read));
    if lo.map_err(failed)?.is_some_and(|lo| !lo.up) {
        requests.push(link::set_up("lo", link::LOOPBACK));
    }
    requests.extend(gateways(socket, router).map_err(failed)?);
    requests.extend(nowhere(socket, router).map_err(failed)?);
    changes.extend(requests.iter().map(|r| r.what.clone()));
    socket
        .batch(effect!("router.inside"), &requests)
        .map_err(failed)?;
    vxlan::ensure(node, netns, socket, router, changes)?;
    if router.snat {
        uplink::ensure(node, netns, socket, router, changes)?;
    } else if optional(socket.get(&link::get_by_name(UPLINK), link::read))
        .map_err(failed)?
        .is_some()
        && uplink::remove(node, &router.name)?
    {
        changes.push(format!("delete the uplink of router {}", router.name));
    }
    Ok(())
}

/// The gateways answer on the loopback: every pod's link leads to it.
fn gateways(
    socket: &mut Socket,
    router: &Router,
) -> Result<Vec<crate::netlink::Request>, crate::NetlinkError> {
    let wanted: Vec<_> = router.gateways.iter().map(|g| IpNet::from(*g)).collect();
    let have = addresses_of(socket, link::LOOPBACK)?;
    let unwanted = have.iter().map(|a| a.net).filter(|net| {
        let own = net.addr().is_loopback();
        !own && !wanted.contains(net)
    });
    let mut requests: Vec<_> = unwanted
        .map(|net| address::delete("lo", link::LOOPBACK, net))
        .collect();
    let missing = wanted
        .iter()
        .filter(|net| !have.iter().any(|a| a.net == **net));
    requests.extend(missing.map(|net| address::add("lo", link::LOOPBACK, *net)));
    Ok(requests)
}

/// What no pod and no other node has of the subnets is nowhere: it does not leave by the uplink,
/// behind which the same range may be somebody else's.
fn nowhere(
    socket: &mut Socket,
    router: &Router,
) -> Result<Vec<crate::netlink::Request>, crate::NetlinkError> {
    let mut requests = Vec::new();
    for family in Family::ALL {
        let mut have = list_of(socket, managed::list_unreachable(family), Managed::read)?;
        have.retain(|route| {
            route.hop == Hop::Unreachable && !remotes::is_inside(router, &route.dst)
        });
        let subnets = router
            .subnets
            .iter()
            .filter(|s| Family::of(s.addr()) == family);
        let wanted: Vec<_> = subnets
            .map(|subnet| Managed {
                dst: subnet.trunc(),
                hop: Hop::Unreachable,
            })
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
        socket
            .batch(effect!("router.vxlan-delete"), &[request])
            .map_err(failed)?;
    }
    Ok(())
}

impl From<crate::NetlinkError> for RouterError {
    fn from(source: crate::NetlinkError) -> Self {
        RouterError::Socket(source)
    }
}

/// The next hop of a router on its VXLAN, derived from its MAC as the kernel would.
fn link_local(mac: plexus_types::Mac) -> IpAddr {
    let [a, b, c, d, e, f] = mac.bytes();
    let bytes = [
        0xfe,
        0x80,
        0,
        0,
        0,
        0,
        0,
        0,
        a ^ 2,
        b,
        c,
        0xff,
        0xfe,
        d,
        e,
        f,
    ];
    IpAddr::from(bytes)
}
