//! A bridge of the node: made if missing, brought to what the plan says, by difference.

use crate::devconf::Ipv6;
use crate::effect::effect;
use crate::node::NodeError;
use crate::observe::{addresses_of, link_by_name, optional};
use crate::{Netns, Socket, address, link};
use ipnet::IpNet;
use plexus_core::plan::{Bridge, ObservedLink};
use plexus_types::{Mac, NetnsCookie};

/// Makes the bridge what the plan says; adds to `changes` what was done. The caller sets
/// its sysctls: gives those that are known.
pub(crate) fn ensure(
    socket: &mut Socket,
    node: &Netns,
    bridge: &Bridge,
    changes: &mut Vec<String>,
) -> Result<Ipv6, NodeError> {
    let name = bridge.name.as_str();
    let failed = |source| NodeError::Bridge {
        name: bridge.name.clone(),
        source,
    };
    let read = |payload: &[u8]| Some((link::read(payload)?, Ipv6::read(payload)));
    let there = optional(socket.get(&link::get_by_name(name), read)).map_err(failed)?;
    let (found, sysctls) = match there {
        Some(found) => found,
        None => {
            let made = create(socket, node, bridge, changes)?;
            (made, Ipv6::default())
        }
    };
    if found.kind != Bridge::LINK_KIND {
        let kind = if found.kind.is_empty() {
            "device".into()
        } else {
            found.kind
        };
        return Err(NodeError::NotBridge {
            name: bridge.name.clone(),
            kind,
        });
    }
    let mut requests = Vec::new();
    if !found.up {
        requests.push(link::set_up(name, found.index));
    }
    if bridge.promisc && !found.promisc {
        requests.push(link::set_promisc(name, found.index));
    }
    if !bridge.addresses.is_empty() {
        let have = addresses_of(socket, found.index).map_err(failed)?;
        let have: Vec<_> = have.iter().map(|address| address.net).collect();
        let (unwanted, missing) = compare(bridge, &have)?;
        let deletions = unwanted.into_iter();
        requests.extend(deletions.map(|net| address::delete(name, found.index, net)));
        let additions = missing.into_iter();
        requests.extend(additions.map(|net| address::add(name, found.index, net)));
    }
    changes.extend(requests.iter().map(|request| request.what.clone()));
    match socket.batch(effect!("netlink.bridge"), &requests) {
        // Another thread was quicker with the same address.
        Err(error) if error.errno() == Some(libc::EEXIST) => Ok(sysctls),
        other => other.map(|()| sysctls).map_err(failed),
    }
}

/// Whether we made it: ours has the MAC that we gave it.
pub(crate) fn is_ours(found: &ObservedLink, node: NetnsCookie) -> bool {
    found.kind == Bridge::LINK_KIND && found.mac == Some(own_mac(node, &found.name))
}

fn own_mac(node: NetnsCookie, name: &str) -> Mac {
    Mac::derived(&["bridge", &node.to_string(), name])
}

/// The addresses to delete and those to add: the reference plugin's rule. A bridge has one IPv4
/// subnet unless the plan itself names several; IPv6 subnets may be many but must not overlap.
fn compare(bridge: &Bridge, have: &[IpNet]) -> Result<(Vec<IpNet>, Vec<IpNet>), NodeError> {
    let missing = bridge.addresses.iter().filter(|net| !have.contains(net));
    let missing: Vec<_> = missing.copied().collect();
    let conflicts = |other: &IpNet, wanted: &IpNet| match (other, wanted) {
        (IpNet::V4(_), IpNet::V4(_)) => true,
        (IpNet::V6(_), IpNet::V6(_)) => {
            other.contains(&wanted.addr()) || wanted.contains(&other.addr())
        }
        _ => false,
    };
    let mut unwanted = Vec::new();
    for other in have
        .iter()
        .filter(|other| !bridge.addresses.contains(other))
    {
        let Some(wanted) = missing.iter().find(|wanted| conflicts(other, wanted)) else {
            continue;
        };
        if !bridge.force_address {
            return Err(NodeError::Address {
                name: bridge.name.clone(),
                has: *other,
                wanted: *wanted,
            });
        }
        unwanted.push(*other);
    }
    Ok((unwanted, missing))
}

/// Makes it with a MAC of its own: a bridge without one takes a port's, and changes it whenever a
/// port comes or goes.
fn create(
    socket: &mut Socket,
    node: &Netns,
    bridge: &Bridge,
    changes: &mut Vec<String>,
) -> Result<ObservedLink, NodeError> {
    let name = bridge.name.as_str();
    let failed = |source| NodeError::Bridge {
        name: bridge.name.clone(),
        source,
    };
    let mac = own_mac(node.cookie()?, name);
    let request = link::create_bridge(name, bridge.mtu, mac, None);
    let effect = effect!("netlink.bridge-create");
    match socket.batch(effect, std::slice::from_ref(&request)) {
        Ok(()) => changes.push(request.what),
        Err(error) if error.errno() == Some(libc::EEXIST) => {}
        Err(error) => return Err(failed(error)),
    }
    let found = link_by_name(socket, name).map_err(failed)?;
    found.ok_or_else(|| NodeError::Vanished(bridge.name.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bridge(addresses: &[&str], force_address: bool) -> Bridge {
        Bridge {
            name: "br0".parse().unwrap(),
            mtu: None,
            promisc: false,
            addresses: nets(addresses),
            force_address,
            settings: vec![],
        }
    }

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|t| t.parse().unwrap()).collect()
    }

    #[test]
    fn what_is_there_is_left_alone() {
        let wanted = bridge(&["10.1.0.1/24", "fd00:1::1/64"], false);
        let have = nets(&["fe80::1/64", "fd00:1::1/64", "10.1.0.1/24"]);
        assert_eq!(compare(&wanted, &have).unwrap(), (vec![], vec![]));
    }

    #[test]
    fn another_ipv4_address_is_refused_or_replaced() {
        let have = nets(&["10.9.0.1/24"]);
        let error = compare(&bridge(&["10.1.0.1/24"], false), &have).unwrap_err();
        assert!(error.to_string().contains("10.9.0.1/24"), "{error}");
        let (unwanted, missing) = compare(&bridge(&["10.1.0.1/24"], true), &have).unwrap();
        assert_eq!((unwanted, missing), (have, nets(&["10.1.0.1/24"])));
    }

    #[test]
    fn ipv6_subnets_live_side_by_side_unless_they_overlap() {
        let wanted = bridge(&["fd00:1::1/64"], false);
        assert!(compare(&wanted, &nets(&["fd00:2::1/64", "fe80::1/64"])).is_ok());
        assert!(compare(&wanted, &nets(&["fd00:1::2/64"])).is_err());
        assert!(compare(&wanted, &nets(&["fd00::1/16"])).is_err());
    }

    #[test]
    fn the_plans_own_addresses_do_not_conflict() {
        let wanted = bridge(&["10.1.0.1/24", "10.2.0.1/24"], false);
        let (unwanted, missing) = compare(&wanted, &nets(&["10.1.0.1/24"])).unwrap();
        assert_eq!((unwanted, missing), (vec![], nets(&["10.2.0.1/24"])));
    }
}
