//! This host's Node in the API, where no kubelet makes it. Owns which of the host's addresses it has:
//! those of the link of the default route, the first of each family. Looked at now and then, since
//! addresses change (`background`).

use crate::agent::Agent;
use crate::failure;
use plexus_core::plan::ObservedAddress;
use plexus_kernel::observe::{self, What};
use plexus_kernel::{NetlinkError, Socket};
use plexus_types::Family;
use std::net::{IpAddr, Ipv4Addr};

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
        let mut addresses =
            kubernetes.map_or_else(Vec::new, |kubernetes| kubernetes.node_ips.clone());
        if addresses.is_empty() {
            let found = self.node.with_socket(host_addresses);
            addresses = found.map_err(|error| failure::chain(&error))?;
        }
        let registered = cluster
            .register(&addresses)
            .map_err(|e| format!("this host's Node is not registered: {}", failure::chain(&e)))?;
        if registered {
            let node = &self.options.node;
            tracing::info!(node, ?addresses, "this host's Node is registered");
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
    let observed = observe::observe(socket, what)?;
    let ours = |index: u32| {
        let link = observed.links.iter().find(|link| link.index == index);
        link.is_some_and(|link| link.name.starts_with("px") && link.alias.is_some())
    };
    let others = observed.addresses.into_iter().filter(|one| !ours(one.link));
    Ok(choose(&others.collect::<Vec<_>>(), uplink))
}

/// The first of each family on the uplink; without one, of any link; at worst the loopback's, by
/// which at least this host reaches itself.
fn choose(addresses: &[ObservedAddress], uplink: Option<u32>) -> Vec<IpAddr> {
    let global = addresses.iter().filter(|one| !is_local(one.net.addr()));
    let first_of_each = |is_usable: &dyn Fn(&ObservedAddress) -> bool| -> Vec<IpAddr> {
        let usable = global.clone().filter(|one| is_usable(one));
        let usable = usable.map(|one| one.net.addr());
        let first = |family| {
            usable
                .clone()
                .find(|address| Family::of(*address) == family)
        };
        Family::ALL.into_iter().filter_map(first).collect()
    };
    let on_uplink = first_of_each(&|one| Some(one.link) == uplink);
    let anywhere = first_of_each(&|_| true);
    let choices = [on_uplink, anywhere].into_iter();
    let mut choices = choices.filter(|addresses| !addresses.is_empty());
    choices
        .next()
        .unwrap_or_else(|| vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
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
