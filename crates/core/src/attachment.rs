//! One interface of one pod on one network, with what was decided for it: index, name, MAC,
//! addresses. Made by [`resolve`](crate::resolve), completed by IPAM, turned into a plan.

use crate::plan::ALIAS_MARK;
use ipnet::IpNet;
use plexus_api::cni::{Dns, Native, RouteConf};
use plexus_types::{Family, IfName, Mac, NetnsCookie, NetworkName};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// An attachment that Plexus makes itself, before it has addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Which of the container's references it is, from 0.
    pub index: usize,
    /// Its network.
    pub network: NetworkName,
    /// Its name in the pod.
    pub ifname: IfName,
    /// Provider, IPAM and their options.
    pub native: Native,
    /// Whether its own traffic gets a table of its own.
    pub source_routing: bool,
    /// More than one interface is made by this call.
    pub several: bool,
}

/// What becomes of default routes on one interface, per family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DefaultRoute {
    /// Plugin mode: as the configuration says, nothing added, nothing dropped.
    AsConfigured,
    /// Standalone mode: exactly these families have their default route here.
    Only {
        /// IPv4.
        v4: bool,
        /// IPv6.
        v6: bool,
    },
}

impl DefaultRoute {
    /// Whether a default route of that family belongs here; `None`: whatever is configured.
    pub fn of(self, family: Family) -> Option<bool> {
        match (self, family) {
            (DefaultRoute::AsConfigured, _) => None,
            (DefaultRoute::Only { v4, .. }, Family::V4) => Some(v4),
            (DefaultRoute::Only { v6, .. }, Family::V6) => Some(v6),
        }
    }
}

/// What IPAM answered for one attachment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Assigned {
    /// Addresses with the prefix length of their subnet.
    pub ips: Vec<AssignedIp>,
    /// Routes that the IPAM section asks for.
    pub routes: Vec<RouteConf>,
    /// DNS that the IPAM section carries.
    pub dns: Dns,
}

/// One address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignedIp {
    /// The address with the prefix length of its subnet.
    pub address: IpNet,
    /// The subnet's gateway.
    pub gateway: Option<IpAddr>,
}

/// The mark that our links carry: enough to adopt them if the journal is lost.
///
/// `plexus <node> <container> <cni ifname> <network> <ifname> <ipam type>:<data dir> <address>,…`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The node's namespace: there may be several nodes, each with an agent, on one machine.
    pub node: NetnsCookie,
    /// CNI_CONTAINERID.
    pub container: String,
    /// CNI_IFNAME of the call that made it: with the container id, the key of its record.
    pub cni_ifname: String,
    /// Its network; the pool key's last part.
    pub network: String,
    /// Name of this interface in the pod.
    pub ifname: String,
    /// Pool key's first parts, `-` if it has no pool of ours.
    pub pool: String,
    /// Its addresses with prefix length.
    pub addresses: Vec<IpNet>,
}

/// The longest alias that a kernel takes.
const LONGEST: usize = 255;

impl Alias {
    /// As the kernel stores it, in at most 255 bytes. Addresses that do not fit are left out; if
    /// the rest does not fit either, only the mark remains, which [`Alias::parse`] refuses, rather
    /// than a name that is cut short and taken for another.
    pub fn render(&self) -> String {
        let mut text = format!(
            "{ALIAS_MARK} {} {} {} {} {} {}",
            self.node.0, self.container, self.cni_ifname, self.network, self.ifname, self.pool
        );
        if text.len() > LONGEST {
            return format!("{ALIAS_MARK} -");
        }
        let mut separator = ' ';
        for address in &self.addresses {
            let address = address.to_string();
            if text.len() + 1 + address.len() > LONGEST {
                break;
            }
            text.push(separator);
            text.push_str(&address);
            separator = ',';
        }
        text
    }

    /// Reads a mark; none if the alias is not ours.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        if words.next()? != ALIAS_MARK {
            return None;
        }
        let node = NetnsCookie(words.next()?.parse().ok()?);
        let mut word = || words.next().map(str::to_owned);
        let (container, cni_ifname, network, ifname, pool) =
            (word()?, word()?, word()?, word()?, word()?);
        let addresses = word().unwrap_or_default();
        let addresses = addresses
            .split(',')
            .filter_map(|a| a.parse().ok())
            .collect();
        Some(Self {
            node,
            container,
            cni_ifname,
            network,
            ifname,
            pool,
            addresses,
        })
    }
}

/// Where a MAC comes from if none was asked for: the attachment's identity, and its namespace's. A
/// container id may be used again while the links of its last namespace are still being removed.
pub fn derived_mac(container: &str, netns: NetnsCookie, ifname: &IfName, end: &str) -> Mac {
    Mac::derived(&[container, &netns.to_string(), ifname.as_str(), end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alias(container: String, pool: &str, addresses: usize) -> Alias {
        let address = |i: usize| format!("fd00:1111:2222:3333::{i:x}/64").parse().unwrap();
        Alias {
            node: NetnsCookie(u64::MAX),
            container,
            cni_ifname: "eth0".to_owned(),
            network: "blue".to_owned(),
            ifname: "nét1".to_owned(),
            pool: pool.to_owned(),
            addresses: (0..addresses).map(address).collect(),
        }
    }

    #[test]
    fn what_fits_reads_back() {
        for addresses in 0..3 {
            let alias = alias(
                "c".repeat(64),
                "host-local:/var/lib/cni/networks",
                addresses,
            );
            assert_eq!(Alias::parse(&alias.render()), Some(alias));
        }
    }

    #[test]
    fn addresses_that_do_not_fit_are_left_out_whole() {
        let text = alias("c".repeat(64), "plexus:", 20).render();
        assert!(text.len() <= 255);
        let parsed = Alias::parse(&text).unwrap();
        let longer = alias("c".repeat(64), "plexus:", 20).addresses;
        assert_eq!(parsed.addresses, longer[..parsed.addresses.len()]);
        assert!(parsed.addresses.len() > 3);
    }

    #[test]
    fn a_name_that_does_not_fit_is_not_cut_short() {
        let text = alias("c".repeat(200), &"ü".repeat(100), 1).render();
        assert!(text.starts_with(ALIAS_MARK) && text.len() <= 255, "{text}");
        assert_eq!(Alias::parse(&text), None);
    }

    #[test]
    fn foreign_aliases_are_not_ours() {
        for text in [
            "",
            "plexus",
            "plexusx 1 a b c d e",
            "uplink to rack 7",
            "plexus a b c d",
        ] {
            assert_eq!(Alias::parse(text), None, "{text}");
        }
    }
}
