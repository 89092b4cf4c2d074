//! Addresses and prefixes as the rules of the API server read them: no leading zeros, no zones, no
//! IPv4 inside of IPv6.

use ipnet::IpNet;
use std::net::IpAddr;

/// A prefix, its address as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix(IpNet);

impl Prefix {
    /// None if it is not one.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let digits = length.bytes().all(|byte| byte.is_ascii_digit());
        let plain = digits && (length == "0" || !length.starts_with('0'));
        let address = ip(address).filter(|_| plain)?;
        let net = IpNet::new(address, length.parse().ok()?).ok()?;
        Some(Self(net))
    }

    /// Whether nothing is set behind its length.
    pub(super) fn is_masked(self) -> bool {
        self.0.addr() == self.0.network()
    }

    pub(super) fn has_ip(self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    pub(super) fn has_prefix(self, inner: Prefix) -> bool {
        self.0.contains(&inner.0.trunc())
    }

    pub(super) fn is_of_family(self, address: IpAddr) -> bool {
        self.0.addr().is_ipv4() == address.is_ipv4()
    }
}

/// An address; none if it is not one.
pub(super) fn ip(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    let mapped = matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
    (!mapped).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_api_server_takes() {
        for text in ["10.0.0.0/8", "10.1.2.3/8", "::/0", "fd00::/48", "0.0.0.0/0"] {
            assert!(Prefix::read(text).is_some(), "{text}");
        }
        for text in [
            "",
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.0/08",
            "10.0.0.0/+8",
            "010.0.0.0/8",
            "10.0.0/8",
            "::ffff:10.0.0.0/104",
            "fe80::1%eth0/64",
            "10.0.0.0/",
            "/8",
            "10.0.0.0/8/8",
        ] {
            assert_eq!(Prefix::read(text), None, "{text}");
        }
        assert!(Prefix::read("10.1.2.0/24").unwrap().is_masked());
        assert!(!Prefix::read("10.1.2.3/24").unwrap().is_masked());
        let outer = Prefix::read("10.0.0.0/8").unwrap();
        assert!(outer.has_prefix(Prefix::read("10.9.0.0/16").unwrap()));
        assert!(!outer.has_prefix(Prefix::read("0.0.0.0/0").unwrap()));
        assert!(outer.is_of_family(ip("192.0.2.1").unwrap()) && ip("::ffff:1.2.3.4").is_none());
    }
}
