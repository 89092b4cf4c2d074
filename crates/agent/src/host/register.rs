//! This host's Node in the API, where no kubelet makes it. Owns which of the host's addresses it has:
//! those of the link of the default route, the first of each family. Looked at now and then, since
//! addresses change (`background`).

use crate::agent::Agent;
use crate::failure;
use plexus_core::plan::ObservedAddress;
use plexus_kernel::observe::{self, What};
use plexus_kernel::{NetlinkError, Socket};
use plexus_types::Family;
use std::net::IpAddr;

/// Whether the Node is ours to make.
pub(crate) fn is_ours(agent: &Agent) -> bool {
    let kubernetes = agent.options.kubernetes.as_ref();
    kubernetes.is_some_and(|kubernetes| kubernetes.register_node)
}

impl Agent {
    /// Makes the Node, or corrects it.
    pub(crate) fn register(&self) -> Result<(), String> {
        let Some(cluster) = self.cluster.get() else {
            return Ok(());
        };
        let kubernetes = self.options.kubernetes.as_ref();
        let given = kubernetes.map(|kubernetes| kubernetes.node_ips.clone());
        let addresses = match given.filter(|given| !given.is_empty()) {
            Some(given) => given,
            None => self
                .node
                .with_socket(host_addresses)
                .map_err(|error| failure::chain(&error))?,
        };
        let registered = cluster.register(&addresses).map_err(|error| {
            let error = failure::chain(&error);
            format!("this host's Node is not registered: {error}")
        })?;
        if registered {
            tracing::info!(
                node = self.options.node,
                ?addresses,
                "this host's Node is registered"
            );
            self.tasks.fabric.wake();
        }
        Ok(())
    }
}

/// The addresses by which others would reach this host.
fn host_addresses(socket: &mut Socket) -> Result<Vec<IpAddr>, NetlinkError> {
    let uplink = observe::default_route_link(socket)?.map(|link| link.index);
    let what = What {
        addresses: true,
        ..What::LINKS
    };
    let seen = observe::observe(socket, what)?;
    let ours = |index: u32| {
        let link = seen.links.iter().find(|link| link.index == index);
        link.is_some_and(|link| link.name.starts_with("px") && link.alias.is_some())
    };
    let others: Vec<_> = seen
        .addresses
        .into_iter()
        .filter(|one| !ours(one.link))
        .collect();
    Ok(choose(&others, uplink))
}

/// The first of each family on the uplink; without one, of any link; at worst the loopback's, by
/// which at least this host reaches itself.
fn choose(addresses: &[ObservedAddress], uplink: Option<u32>) -> Vec<IpAddr> {
    let first = |family: Family, usable: &dyn Fn(&ObservedAddress) -> bool| {
        let mut of_family = addresses
            .iter()
            .filter(|one| Family::of(one.net.addr()) == family && usable(one));
        of_family.next().map(|one| one.net.addr())
    };
    let global = |one: &ObservedAddress| !is_local(one.net.addr());
    let each = |usable: &dyn Fn(&ObservedAddress) -> bool| -> Vec<IpAddr> {
        let found = Family::ALL.into_iter();
        found.filter_map(|family| first(family, usable)).collect()
    };
    let on_uplink = each(&|one| global(one) && Some(one.link) == uplink);
    if !on_uplink.is_empty() {
        return on_uplink;
    }
    let anywhere = each(&global);
    if !anywhere.is_empty() {
        return anywhere;
    }
    vec![IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)]
}

/// Whether nobody else can use an address.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(all: &[(u32, &str)]) -> Vec<ObservedAddress> {
        let one = |(link, net): &(u32, &str)| ObservedAddress {
            link: *link,
            net: net.parse().unwrap(),
        };
        all.iter().map(one).collect()
    }

    fn chosen(all: &[(u32, &str)], uplink: Option<u32>) -> Vec<String> {
        let chosen = choose(&addresses(all), uplink);
        chosen.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_link_of_the_default_route_counts() {
        let all = [
            (1, "127.0.0.1/8"),
            (1, "::1/128"),
            (2, "192.0.2.7/24"),
            (3, "198.51.100.1/24"),
            (3, "198.51.100.2/24"),
            (3, "fe80::3/64"),
            (3, "2001:db8::3/64"),
        ];
        assert_eq!(chosen(&all, Some(3)), ["198.51.100.1", "2001:db8::3"]);
        assert_eq!(chosen(&all, Some(2)), ["192.0.2.7"]);
        assert_eq!(chosen(&all, None), ["192.0.2.7", "2001:db8::3"]);
        assert_eq!(chosen(&all[..2], Some(3)), ["127.0.0.1"]);
    }
}
