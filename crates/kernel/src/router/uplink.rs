//! The link between a router and its node, for what leaves under the node's address. Owns the veth pair, its
//! addresses (one pair of the link-local range and one of a private IPv6 range per router, found by
//! hash and by looking what is free), the default routes, and the node's masquerading of them.

use super::{RouterError, UPLINK, Work, set_addresses, set_sysctl};
use crate::effect::effect;
use crate::managed::{self, Managed};
use crate::netlink::Request;
use crate::nft::guard::ROUTER;
use crate::observe::{addresses_of, link_by_name, list};
use crate::{NetlinkError, NodeSide, Socket, address, link, nft};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use plexus_core::plan::{Masquerade, ObservedLink, Router};
use plexus_types::{Family, Mac, NetworkName, RouterName};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};

/// Makes the link and all that belongs to it.
pub(super) fn ensure(work: &mut Work<'_>, inside: &mut Socket) -> Result<(), RouterError> {
    let (node, router) = (work.node, work.router);
    let failed = RouterError::netlink(&router.name);
    let (outer, inner) = node.with_socket(|outside| pair(work, outside, inside))?;
    let families = families(router);
    let slot = node.with_socket(|outside| -> Result<Slot, RouterError> {
        let there = addresses_of(outside, outer.index).map_err(failed)?;
        let slot = match there.iter().find_map(|a| Slot::of(a.net.addr())) {
            Some(slot) => slot,
            None => Slot::free(outside, &router.name)?,
        };
        let wanted: Vec<_> = families.iter().map(|f| slot.net(*f, false)).collect();
        let requests = set_end_addresses(outside, &outer, &wanted).map_err(failed)?;
        work.send(outside, effect!("router.uplink-node"), &requests)?;
        Ok(slot)
    })?;
    let wanted: Vec<_> = families.iter().map(|f| slot.net(*f, true)).collect();
    let mut requests = set_end_addresses(inside, &inner, &wanted).map_err(failed)?;
    requests.extend(default_routes(inside, &inner, slot, &families).map_err(failed)?);
    work.send(inside, effect!("router.uplink-inside"), &requests)?;
    forward(work, &families)?;
    masquerade(work, slot, &families)
}

/// Takes the link away, with its masquerading; says whether there was one.
pub(super) fn remove(node: &NodeSide, name: &RouterName) -> Result<bool, RouterError> {
    let failed = RouterError::netlink(name);
    let outer = outer_name(name);
    let removed = node.with_socket(|socket| -> Result<bool, RouterError> {
        let Some(found) = link_by_name(socket, &outer).map_err(failed)? else {
            return Ok(false);
        };
        let request = link::delete(&outer, found.index);
        match socket.batch(effect!("router.uplink-delete"), &[request]) {
            Err(error) if !error.is_missing() => Err(failed(error)),
            _ => Ok(true),
        }
    })?;
    let rules = match network(name) {
        Some(network) => nft::remove(node, &network).map_err(RouterError::firewall(name))?,
        None => 0,
    };
    Ok(removed || rules > 0)
}

/// The node's end of a router's link.
pub(super) fn outer_name(name: &RouterName) -> String {
    let hash = Mac::derived(&["uplink", name.as_str()]).bytes();
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("pxr{digits}")
}

/// Both ends, up; made if they are not there, made anew if they do not belong together.
fn pair(
    work: &mut Work<'_>,
    outside: &mut Socket,
    inside: &mut Socket,
) -> Result<(ObservedLink, ObservedLink), RouterError> {
    let router = work.router;
    let failed = RouterError::netlink(&router.name);
    let outer_name = outer_name(&router.name);
    let mut look = |outside: &mut Socket| -> Result<_, RouterError> {
        let outer = link_by_name(outside, &outer_name).map_err(failed)?;
        Ok((outer, link_by_name(inside, UPLINK).map_err(failed)?))
    };
    let (outer, inner) = look(outside)?;
    let one = matches!((&outer, &inner), (Some(outer), Some(inner))
        if outer.parent == Some(inner.index) && inner.parent == Some(outer.index));
    let (outer, inner) = if one {
        (outer, inner)
    } else {
        if let Some(stale) = &outer {
            let request = link::delete(&outer_name, stale.index);
            work.send(outside, effect!("router.uplink-stale"), &[request])?;
        }
        let netns = work.netns.as_fd().as_raw_fd();
        let requests = [
            link::create_uplink((&outer_name, UPLINK), router.mtu, ROUTER, netns),
            link::set_alias(&outer_name, 0, &format!("plexus-router {}", router.name)),
        ];
        work.changes.push(requests[0].what.clone());
        let made = outside.batch(effect!("router.uplink-create"), &requests);
        made.map_err(failed)?;
        look(outside)?
    };
    let outer = outer.ok_or_else(|| work.vanished(&outer_name))?;
    let inner = inner.ok_or_else(|| work.vanished(UPLINK))?;
    for (socket, name, end) in [
        (&mut *outside, outer_name.as_str(), &outer),
        (inside, UPLINK, &inner),
    ] {
        let mut requests = Vec::new();
        if end.mtu != router.mtu {
            requests.push(link::set_mtu(name, end.index, router.mtu));
        }
        if name != UPLINK && end.group != ROUTER {
            requests.push(link::set_group(name, end.index, ROUTER));
        }
        if !end.up {
            requests.push(link::set_up(name, end.index));
        }
        work.send(socket, effect!("router.uplink-ends"), &requests)?;
    }
    Ok((outer, inner))
}

/// A pair of addresses of each family: the node's, and the router's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Slot(u16);

/// Away from the well-known addresses of clouds and of node-local resolvers.
pub(super) const RANGE: &str = "169.254.192.0/19";
const V4_BASE: u32 = u32::from_be_bytes([169, 254, 192, 0]);
const V6_BASE: u128 = 0xfd70_6c65_7875_7300_0000_0000_0000_0000;
const SLOTS: u16 = 4096;

impl Slot {
    fn of(address: IpAddr) -> Option<Self> {
        let number = match address {
            IpAddr::V4(v4) => u128::from(u32::from(v4).checked_sub(V4_BASE)? / 2),
            IpAddr::V6(v6) => u128::from(v6).checked_sub(V6_BASE)? / 4,
        };
        let number = u16::try_from(number).ok()?;
        (number < SLOTS).then_some(Self(number))
    }

    /// The first one from the hash of the name on that no address of the node is in.
    fn free(socket: &mut Socket, name: &RouterName) -> Result<Self, RouterError> {
        let found = list(socket, address::list(None), address::read);
        let found = found.map_err(RouterError::netlink(name))?;
        let used: BTreeSet<Slot> = found
            .iter()
            .filter_map(|a| Slot::of(a.net.addr()))
            .collect();
        let [.., high, low] = Mac::derived(&["slot", name.as_str()]).bytes();
        let start = u16::from_be_bytes([high, low]);
        (0..SLOTS)
            .map(|step| Self(start.wrapping_add(step) % SLOTS))
            .find(|slot| !used.contains(slot))
            .ok_or_else(|| RouterError::NoLinkAddress(name.clone()))
    }

    fn net(self, family: Family, inner: bool) -> IpNet {
        match family {
            Family::V4 => {
                let address = V4_BASE + 2 * u32::from(self.0) + u32::from(inner);
                Ipv4Net::new_assert(Ipv4Addr::from(address), 31).into()
            }
            Family::V6 => {
                let address = V6_BASE + 4 * u128::from(self.0) + 1 + u128::from(inner);
                Ipv6Net::new_assert(Ipv6Addr::from(address), 126).into()
            }
        }
    }
}

/// Beside the addresses that the kernel gives.
fn set_end_addresses(
    socket: &mut Socket,
    end: &ObservedLink,
    wanted: &[IpNet],
) -> Result<Vec<Request>, NetlinkError> {
    let link_local = |ip| matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
    set_addresses(socket, (&end.name, end.index), wanted, link_local)
}

fn default_routes(
    socket: &mut Socket,
    end: &ObservedLink,
    slot: Slot,
    families: &[Family],
) -> Result<Vec<Request>, NetlinkError> {
    let mut requests = Vec::new();
    for family in Family::ALL {
        let have = managed::all_through(socket, family, end.index)?;
        let node = slot.net(family, false).addr();
        let wanted = families.contains(&family);
        let wanted = wanted.then(|| Managed::through(family.everything(), node, Some(end.index)));
        let (deletions, additions) = managed::changes(&have, wanted.as_slice());
        requests.extend(deletions.into_iter().chain(additions));
    }
    Ok(requests)
}

fn forward(work: &mut Work<'_>, families: &[Family]) -> Result<(), RouterError> {
    work.node.inside(|| {
        for family in families {
            let key = match family {
                Family::V4 => "net/ipv4/ip_forward",
                Family::V6 => "net/ipv6/conf/all/forwarding",
            };
            if set_sysctl(&work.router.name, key, "1")? {
                work.changes.push(format!("set sysctl {key} to 1"));
            }
        }
        Ok(())
    })?
}

fn masquerade(work: &mut Work<'_>, slot: Slot, families: &[Family]) -> Result<(), RouterError> {
    let name = &work.router.name;
    let Some(network) = network(name) else {
        return Ok(());
    };
    let masquerade = |family: &Family| Masquerade {
        network: network.clone(),
        source: slot.net(*family, true).trunc(),
        except: Vec::new(),
    };
    let wanted: Vec<_> = families.iter().map(masquerade).collect();
    let made = nft::ensure(work.node, &wanted).map_err(RouterError::firewall(name))?;
    work.changes.extend(made);
    Ok(())
}

/// Under which name the node's masquerading of a router is known.
fn network(name: &RouterName) -> Option<NetworkName> {
    NetworkName::new(name.as_str()).ok()
}

fn families(router: &Router) -> Vec<Family> {
    let has = |family: &Family| {
        let mut subnets = router.subnets.iter();
        subnets.any(|subnet| Family::of(subnet.addr()) == *family)
    };
    Family::ALL.into_iter().filter(has).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_apart_and_are_found_again() {
        let mut seen = BTreeSet::new();
        for number in [0, 1, 2, SLOTS - 1] {
            for family in Family::ALL {
                let (node, router) = (
                    Slot(number).net(family, false),
                    Slot(number).net(family, true),
                );
                assert_eq!(node.trunc(), router.trunc());
                assert!(seen.insert(node) && seen.insert(router));
                for net in [node, router] {
                    assert_eq!(Slot::of(net.addr()), Some(Slot(number)));
                }
            }
        }
        for address in [
            "169.254.169.254",
            "169.254.1.1",
            "169.254.224.0",
            "10.0.0.1",
            "fe80::1",
            "::",
        ] {
            assert_eq!(Slot::of(address.parse().unwrap()), None, "{address}");
        }
        assert!(
            RANGE
                .parse::<IpNet>()
                .unwrap()
                .contains(&Slot(SLOTS - 1).net(Family::V4, true))
        );
    }
}
