//! This node on the underlay: the address that other nodes tunnel to, and what fits through the
//! link that has it. Looked up once in a while.

use crate::agent::Agent;
use crate::sync::lock;
use plexus_core::plan::Underlay;
use plexus_kernel::observe::{self, What};
use plexus_kernel::{NetlinkError, Socket};
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long an answer is good for.
const CACHE_LIFETIME: Duration = Duration::from_secs(10);

/// The underlay, as last seen.
#[derive(Debug, Default)]
pub(crate) struct CachedUnderlay(Mutex<Option<(Instant, Underlay)>>);

impl Agent {
    /// This node's addresses on the underlay.
    pub(crate) fn node_addresses(&self) -> Vec<IpAddr> {
        let given = self.options.kubernetes.as_ref().map(|k| k.node_ips.clone());
        let node = self.cluster.get().and_then(|cluster| cluster.own_node());
        let of_node = node.map(|node| node.addresses.clone());
        let of_node = of_node.unwrap_or_default();
        chosen(&given.unwrap_or_default(), &of_node)
    }

    /// The first of them that a link has; none if the node does not know its address yet.
    pub(crate) fn underlay(&self, socket: &mut Socket) -> Result<Option<Underlay>, NetlinkError> {
        let mut cached = lock(&self.underlay.0);
        if let Some((when, underlay)) = &*cached
            && when.elapsed() < CACHE_LIFETIME
        {
            return Ok(Some(underlay.clone()));
        }
        let what = What {
            addresses: true,
            ..What::LINKS
        };
        let observed = observe::observe(socket, what)?;
        let found = self.node_addresses().into_iter().find_map(|address| {
            let on = observed
                .addresses
                .iter()
                .find(|a| a.net.addr() == address)?;
            let link = observed.links.iter().find(|link| link.index == on.link)?;
            Some(Underlay {
                node: self.options.node.clone(),
                address,
                mtu: link.mtu,
            })
        });
        *cached = found.clone().map(|underlay| (Instant::now(), underlay));
        Ok(found)
    }
}

/// Those that the administrator says, in that order; else those of its Node. Others know only what the
/// Node says, and let in tunnels from nowhere else: an address that it does not have is no use.
fn chosen(given: &[IpAddr], of_node: &[IpAddr]) -> Vec<IpAddr> {
    if of_node.is_empty() {
        return given.to_vec();
    }
    let known = given.iter().filter(|address| of_node.contains(address));
    let known: Vec<IpAddr> = known.copied().collect();
    if known.is_empty() {
        if !given.is_empty() {
            tracing::warn!(
                ?given,
                ?of_node,
                "--node-ip is not an address of this Node, so that other nodes would not accept it: the Node's are used; give the kubelet the same --node-ip"
            );
        }
        return of_node.to_vec();
    }
    known
}

#[cfg(test)]
mod tests {
    use super::chosen;
    use std::net::IpAddr;

    #[test]
    fn an_address_that_others_do_not_know_is_not_used() {
        let all =
            |texts: &[&str]| -> Vec<IpAddr> { texts.iter().map(|t| t.parse().unwrap()).collect() };
        let node = all(&["10.0.0.1", "fd00::1"]);
        assert_eq!(chosen(&all(&["fd00::1"]), &node), all(&["fd00::1"]));
        assert_eq!(chosen(&all(&["192.0.2.7"]), &node), node);
        assert_eq!(chosen(&[], &node), node);
        assert_eq!(chosen(&all(&["10.0.0.1"]), &[]), all(&["10.0.0.1"]));
    }
}
