//! The sysctls of an interface that netlink can carry. A file below `/proc/sys` costs as much as a
//! netlink message of its own, and an interface needs half a dozen of them: IPv4's can be set in a
//! message that is sent anyway, and IPv6's are told by the list of links, so that only those that
//! differ need their file.

use crate::observe::attribute;
use netlink_packet_core::DefaultNla;
use netlink_packet_route::link::LinkAttribute;
use plexus_core::plan::Setting;

/// The IPv6 sysctls of one link, as the kernel lists them with the link.
#[derive(Debug, Default)]
pub(crate) struct Ipv6(Vec<u8>);

impl Ipv6 {
    /// Reads them from an answer that describes a link.
    pub(crate) fn read(payload: &[u8]) -> Self {
        let conf = payload
            .get(16..)
            .and_then(|link| attribute(link, libc::IFLA_AF_SPEC))
            .and_then(|families| attribute(families, libc::AF_INET6 as u16))
            .and_then(|ipv6| attribute(ipv6, IFLA_INET6_CONF));
        Self(conf.map(<[u8]>::to_vec).unwrap_or_default())
    }

    /// Whether the setting is one of this link, and known to have its value.
    pub(crate) fn has_of(&self, link: &str, setting: &Setting) -> bool {
        link_of(setting) == Some(link) && self.has(setting)
    }

    /// Whether the setting, which must be one of this link, is known to have its value.
    pub(crate) fn has(&self, setting: &Setting) -> bool {
        let Some(index) = Key::of(setting).and_then(|key| key.ipv6_index()) else {
            return false;
        };
        let value = self
            .0
            .get(4 * index..)
            .and_then(|values| values.first_chunk());
        value.is_some_and(|value| setting.value == i32::from_ne_bytes(*value).to_string())
    }
}

pub(crate) fn link_of(setting: &Setting) -> Option<&str> {
    Key::of(setting).map(|key| key.link)
}

/// Splits the settings of `link` into one attribute with those that a message can carry, and the
/// others.
pub(crate) fn split<'a>(
    link: &str,
    settings: &'a [Setting],
) -> (Option<LinkAttribute>, Vec<&'a Setting>) {
    let (mut conf, mut others) = (Vec::new(), Vec::new());
    for setting in settings {
        let key = Key::of(setting).filter(|key| key.link == link);
        let number = key.and_then(|key| key.ipv4_number());
        match (number, setting.value.parse::<u32>()) {
            (Some(number), Ok(value)) => conf.extend(encode(number, &value.to_ne_bytes())),
            _ => others.push(setting),
        }
    }
    let ipv4 = encode(libc::AF_INET as u16, &encode(IFLA_INET_CONF, &conf));
    let carried = (!conf.is_empty())
        .then(|| LinkAttribute::Other(DefaultNla::new(libc::IFLA_AF_SPEC | NESTED, ipv4)));
    (carried, others)
}

const NESTED: u16 = 0x8000;
const IFLA_INET_CONF: u16 = 1;
const IFLA_INET6_CONF: u16 = 2;

/// `net/<family>/conf/<link>/<leaf>`
struct Key<'a> {
    family: &'a str,
    link: &'a str,
    leaf: &'a str,
}

impl<'a> Key<'a> {
    fn of(setting: &'a Setting) -> Option<Self> {
        let mut parts = setting.key.split('/');
        let [net, family, conf, link, leaf] = std::array::from_fn(|_| parts.next());
        (net == Some("net") && conf == Some("conf") && parts.next().is_none()).then_some(())?;
        Some(Self {
            family: family?,
            link: link?,
            leaf: leaf?,
        })
    }

    /// The kernel's number of an IPv4 sysctl that has no effect but its value.
    fn ipv4_number(&self) -> Option<u16> {
        match (self.family, self.leaf) {
            ("ipv4", "rp_filter") => Some(8),
            ("ipv4", "arp_announce") => Some(18),
            ("ipv4", "arp_ignore") => Some(19),
            ("ipv4", "arp_notify") => Some(22),
            _ => None,
        }
    }

    /// The place of an IPv6 sysctl in the kernel's list.
    fn ipv6_index(&self) -> Option<usize> {
        match (self.family, self.leaf) {
            ("ipv6", "forwarding") => Some(0),
            ("ipv6", "accept_ra") => Some(3),
            ("ipv6", "autoconf") => Some(5),
            ("ipv6", "disable_ipv6") => Some(26),
            ("ipv6", "accept_dad") => Some(27),
            ("ipv6", "ndisc_notify") => Some(29),
            ("ipv6", "keep_addr_on_down") => Some(42),
            ("ipv6", "enhanced_dad") => Some(46),
            _ => None,
        }
    }
}

fn encode(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str, value: &str) -> Setting {
        Setting {
            key: key.into(),
            value: value.into(),
        }
    }

    #[test]
    fn only_what_a_message_can_carry_is_taken_out() {
        let settings = [
            setting("net/ipv4/conf/eth0/arp_notify", "1"),
            setting("net/ipv4/conf/eth0/forwarding", "1"),
            setting("net/ipv4/conf/other/arp_notify", "1"),
            setting("net/ipv4/conf/eth0/rp_filter", "junk"),
            setting("net/ipv4/conf/eth0/arp_notify/x", "1"),
            setting("net/ipv6/conf/eth0/accept_ra", "0"),
            setting("", "1"),
        ];
        let (carried, others) = split("eth0", &settings);
        assert!(carried.is_some());
        assert_eq!(others.len(), 6);
        assert!(split("eth0", &settings[1..]).0.is_none());
    }

    #[test]
    fn known_values() {
        let mut conf = vec![0; 4 * 43];
        conf[4 * 3] = 1;
        let known = Ipv6(conf);
        assert!(known.has(&setting("net/ipv6/conf/eth0/accept_ra", "1")));
        assert!(!known.has(&setting("net/ipv6/conf/eth0/accept_ra", "0")));
        assert!(known.has(&setting("net/ipv6/conf/eth0/disable_ipv6", "0")));
        assert!(!known.has(&setting("net/ipv6/conf/eth0/no_such", "0")));
        assert!(!known.has(&setting("net/ipv6/conf/eth0/enhanced_dad", "0")));
        assert!(!Ipv6::default().has(&setting("net/ipv6/conf/eth0/accept_ra", "1")));
    }
}
