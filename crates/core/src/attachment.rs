//! One interface of one pod on one network, with what was decided for it: index, name, MAC,
//! addresses. Made by [`resolve`](crate::resolve), completed by IPAM, turned into a plan.

use crate::plan::ALIAS_MARK;
use crate::stable::hash64;
use ipnet::IpNet;
use plexus_api::cni::{Dns, Native, RouteConf};
use plexus_types::{Family, IfName, Mac, NetnsCookie, NetworkName};
use std::net::IpAddr;

/// An attachment that Plexus makes itself, before it has addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeSpec {
    /// Which of the container's references it is, from 0.
    pub index: usize,
    /// Its network.
    pub network: NetworkName,
    /// An object of the API describes the network.
    pub of_object: bool,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Assigned {
    /// Addresses with the prefix length of their subnet.
    pub ips: Vec<AssignedIp>,
    /// Routes that the IPAM section asks for.
    pub routes: Vec<RouteConf>,
    /// DNS that the IPAM section carries.
    pub dns: Dns,
}

impl Assigned {
    /// Whether there is an address of that family.
    pub fn has(&self, family: Family) -> bool {
        self.ips.iter().any(|ip| ip.family() == family)
    }
}

/// One address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedIp {
    /// The address with the prefix length of its subnet.
    pub address: IpNet,
    /// The subnet's gateway.
    pub gateway: Option<IpAddr>,
}

impl AssignedIp {
    /// Its family.
    pub fn family(&self) -> Family {
        Family::of(self.address.addr())
    }
}

/// The mark that our links carry: enough to adopt them if the journal is lost.
///
/// `plexus <node> <container> <cni ifname> <network> <ifname> <ipam type>:<data dir> <address>,…`
///
/// If that is too long, the network is `~<hash>` and the pool `-`: enough to find and remove the
/// link, not to adopt it. If even that is too long, it is `plexus ~<hash>`, with a hash of node,
/// container and CNI_IFNAME, which [`Alias::parse`] refuses and [`Alias::same_owner`] compares.
///
/// A link that was moved has one word more in each of these forms, before the addresses: see
/// [`MovedMark`].
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
    /// What it is on the node, if it is moved.
    pub moved: Option<MovedMark>,
    /// Its addresses with prefix length.
    pub addresses: Vec<IpNet>,
}

/// What the mark of a moved link tells of it: enough to give it back to the node. `@<mtu>,<up or down>,<name>`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedMark {
    /// Its name on the node.
    pub name: IfName,
    /// Its MTU there.
    pub mtu: u32,
    /// Whether it was up.
    pub up: bool,
}

impl MovedMark {
    /// Reads it from the mark of a link; none if the link was not moved.
    pub fn of(mark: &str) -> Option<Self> {
        let mut words = mark.split(' ');
        if words.next() != Some(ALIAS_MARK) {
            return None;
        }
        Self::parse(words.find(|word| word.starts_with('@'))?)
    }

    fn parse(word: &str) -> Option<Self> {
        let mut parts = word.strip_prefix('@')?.splitn(3, ',');
        let mtu = parts.next()?.parse().ok()?;
        let up = match parts.next()? {
            "up" => true,
            "down" => false,
            _ => return None,
        };
        let name = IfName::new(parts.next()?).ok()?;
        Some(Self { name, mtu, up })
    }

    fn word(&self) -> String {
        let state = if self.up { "up" } else { "down" };
        format!(" @{},{state},{}", self.mtu, self.name)
    }
}

/// The longest alias that a kernel takes.
const LONGEST: usize = 255;

impl Alias {
    /// As the kernel stores it, in at most 255 bytes. Nothing is ever cut short and so taken for
    /// something else: addresses that do not fit are left out, names are replaced by hashes.
    pub fn render(&self) -> String {
        let mut text = self.fixed_part(&self.network, &self.pool);
        if text.len() > LONGEST {
            text = self.fixed_part(&hashed(&[&self.network]), "-");
        }
        if text.len() > LONGEST {
            return short_mark(self.node, &self.container, &self.cni_ifname) + &self.moved_word();
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

    fn fixed_part(&self, network: &str, pool: &str) -> String {
        format!(
            "{ALIAS_MARK} {} {} {} {network} {} {pool}{}",
            self.node.0,
            self.container,
            self.cni_ifname,
            self.ifname,
            self.moved_word()
        )
    }

    fn moved_word(&self) -> String {
        self.moved
            .as_ref()
            .map_or_else(String::new, MovedMark::word)
    }

    /// Whether a mark is of that call: node, container and CNI_IFNAME.
    pub fn is_of(mark: &str, node: NetnsCookie, container: &str, cni_ifname: &str) -> bool {
        match Self::parse(mark) {
            Some(alias) => {
                (alias.node, &*alias.container, &*alias.cni_ifname) == (node, container, cni_ifname)
            }
            None => without_moved(mark) == short_mark(node, container, cni_ifname),
        }
    }

    /// Whether two marks are of the same call. What does not read as a mark of ours is nobody's.
    pub fn same_owner(one: &str, other: &str) -> bool {
        match (Self::parse(one), Self::parse(other)) {
            (Some(one), _) => Self::is_of(other, one.node, &one.container, &one.cni_ifname),
            (None, Some(other)) => {
                Self::is_of(one, other.node, &other.container, &other.cni_ifname)
            }
            (None, None) => {
                let one = without_moved(one);
                one == without_moved(other) && is_short_mark(one)
            }
        }
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
        let mut addresses = word().unwrap_or_default();
        let moved = MovedMark::parse(&addresses);
        if moved.is_some() {
            addresses = word().unwrap_or_default();
        }
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
            moved,
            addresses,
        })
    }
}

/// A short mark as it is for a link that was not moved.
fn without_moved(mark: &str) -> &str {
    mark.split_once(" @").map_or(mark, |(owner, _)| owner)
}

fn short_mark(node: NetnsCookie, container: &str, cni_ifname: &str) -> String {
    let owner = hashed(&[&node.0.to_string(), container, cni_ifname]);
    format!("{ALIAS_MARK} {owner}")
}

fn is_short_mark(text: &str) -> bool {
    text.strip_prefix(ALIAS_MARK)
        .and_then(|rest| rest.strip_prefix(" ~"))
        .is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// `~` is in no container id and no network name.
fn hashed(parts: &[&str]) -> String {
    format!("~{:016x}", hash64(parts))
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
            moved: None,
            addresses: (0..addresses).map(address).collect(),
        }
    }

    fn moved() -> MovedMark {
        MovedMark {
            name: IfName::new("a,b@c").unwrap(),
            mtu: 65535,
            up: false,
        }
    }

    #[test]
    fn every_mark_of_a_moved_link_says_where_it_belongs() {
        let pools = ["-", "host-local:/var/lib/cni/networks", &"p".repeat(200)];
        for (container, pool, addresses) in [
            (64, pools[0], 0),
            (64, pools[1], 3),
            (64, pools[2], 1),
            (200, pools[1], 2),
        ] {
            let plain = alias("c".repeat(container), pool, addresses);
            let mark = Alias {
                moved: Some(moved()),
                ..plain.clone()
            };
            let (mark, plain) = (mark.render(), plain.render());
            assert!(mark.len() <= LONGEST, "{mark}");
            assert_eq!(MovedMark::of(&mark), Some(moved()), "{mark}");
            assert_eq!(MovedMark::of(&plain), None);
            assert!(Alias::same_owner(&mark, &plain) && Alias::same_owner(&plain, &mark));
            let here = NetnsCookie(u64::MAX);
            assert!(Alias::is_of(&mark, here, &"c".repeat(container), "eth0"));
            assert!(!Alias::is_of(&mark, here, &"c".repeat(container), "eth1"));
            if let Some(parsed) = Alias::parse(&mark) {
                assert_eq!(parsed.moved, Some(moved()));
                assert_eq!(parsed.render(), mark);
            }
        }
        for text in [
            "plexus @1,up",
            "plexus @x,up,e",
            "plexus @1,on,e",
            "up @1,up,e",
        ] {
            assert_eq!(MovedMark::of(text), None, "{text}");
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
    fn a_network_that_does_not_fit_is_hashed() {
        let long = |end: &str| Alias {
            network: "n".repeat(190) + end,
            ..alias("c".repeat(64), "host-local:/var/lib/cni/networks", 1)
        };
        let (text, other) = (long("1").render(), long("2").render());
        assert!(text.len() <= 255 && text != other, "{text}");
        let parsed = Alias::parse(&text).unwrap();
        assert_eq!(parsed.container, "c".repeat(64));
        assert_eq!((&*parsed.cni_ifname, &*parsed.ifname), ("eth0", "nét1"));
        assert!(plexus_types::NetworkName::new(&parsed.network).is_err());
        assert!(Alias::same_owner(&text, &other));
        let stranger = Alias {
            container: "d".repeat(64),
            ..long("1")
        };
        assert!(!Alias::same_owner(&text, &stranger.render()));
    }

    #[test]
    fn a_container_that_does_not_fit_is_hashed_and_still_told_from_others() {
        let pool = "ü".repeat(100);
        let text = alias("c".repeat(200), &pool, 1).render();
        assert!(text.starts_with(ALIAS_MARK) && text.len() <= 255, "{text}");
        assert_eq!(Alias::parse(&text), None);
        let here = NetnsCookie(u64::MAX);
        assert!(Alias::is_of(&text, here, &"c".repeat(200), "eth0"));
        assert!(Alias::same_owner(&text, &text));
        for (node, container, cni_ifname) in [
            (here, "c".repeat(199) + "d", "eth0"),
            (here, "c".repeat(200), "eth1"),
            (NetnsCookie(1), "c".repeat(200), "eth0"),
        ] {
            assert!(!Alias::is_of(&text, node, &container, cni_ifname));
            let other = Alias {
                node,
                cni_ifname: cni_ifname.to_owned(),
                ..alias(container, &pool, 1)
            };
            let other = other.render();
            assert!(!Alias::same_owner(&text, &other), "{text} {other}");
            assert!(!Alias::same_owner(&other, &text), "{text} {other}");
        }
    }

    #[test]
    fn long_and_short_marks_of_one_call_agree() {
        let short = alias("c".repeat(200), &"p".repeat(100), 0).render();
        // Node and names as short as they get leave room for the whole container id.
        let long = Alias {
            network: "b".to_owned(),
            ifname: "n".to_owned(),
            ..alias("c".repeat(200), "-", 0)
        };
        let long = long.render();
        assert!(Alias::parse(&long).is_some() && Alias::parse(&short).is_none());
        assert!(Alias::same_owner(&short, &long) && Alias::same_owner(&long, &short));
    }

    #[test]
    fn what_is_no_mark_has_no_owner() {
        for text in [
            "",
            "plexus -",
            "plexus ~",
            "plexus ~0123",
            "uplink to rack 7",
        ] {
            assert!(!Alias::same_owner(text, text), "{text}");
        }
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
