//! This node on the underlay: the address that other nodes tunnel to, and what fits through the
//! link that has it. Looked up once in a while.

use crate::verbs::Agent;
use plexus_core::plan::Underlay;
use plexus_kernel::observe::{self, What};
use plexus_kernel::{NetlinkError, Socket};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer is good for.
const FRESH: Duration = Duration::from_secs(10);

/// The underlay, as last seen.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<Option<(Instant, Underlay)>>);

impl Agent {
    /// This node's addresses on the underlay: as the administrator says, else as its Node does.
    pub(crate) fn node_addresses(&self) -> Vec<IpAddr> {
        let given = self.options.kubernetes.as_ref().map(|k| k.node_ips.clone());
        match given {
            Some(given) if !given.is_empty() => given,
            _ => self
                .cluster
                .get()
                .and_then(|cluster| cluster.own_node())
                .map(|node| node.addresses)
                .unwrap_or_default(),
        }
    }

    /// The first of them that a link has; none if the node does not know its address yet.
    pub(crate) fn underlay(&self, socket: &mut Socket) -> Result<Option<Underlay>, NetlinkError> {
        let mut seen = self
            .underlay
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((when, underlay)) = &*seen
            && when.elapsed() < FRESH
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
        *seen = found.clone().map(|underlay| (Instant::now(), underlay));
        Ok(found)
    }
}
