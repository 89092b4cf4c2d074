//! Values that are written as text in JSON: each knows how it is read and how to say what is wrong
//! with it. Never looks at anything but the text.

use ipnet::IpNet;
use plexus_types::{ContainerId, Family, IfName, Mac, NetworkName, PluginType};
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

/// Reads a value from text; the error names the text and what would be right.
pub trait FromText: Sized {
    /// Never called with empty text: that counts as absent.
    fn from_text(text: &str) -> Result<Self, String>;
}

/// Text of unknown length, cut so that it cannot flood a message.
pub(crate) fn quoted(text: &str) -> String {
    let mut short = shortened(text);
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// What is wrong with a prefix that is not a network's.
pub(crate) fn host_bits(net: &IpNet) -> Option<String> {
    let text = || format!("{net} has host bits set: write {}", net.trunc());
    (net.addr() != net.network()).then(text)
}

/// What is wrong with a next hop that is not of the family of its destination.
pub(crate) fn other_family(next_hop: IpAddr, dst: &IpNet) -> Option<String> {
    let text = || format!("{next_hop} is not of the family of {dst}: write one that is");
    (Family::of(next_hop) != Family::of(dst.addr())).then(text)
}

/// As much of a key of unknown length as a path has room for.
pub(crate) fn shortened(key: &str) -> String {
    key.chars().take(64).collect()
}

/// Whether Go's `encoding/json` takes one key for the other. Outside ASCII, two letters fold to ASCII ones.
pub fn go_folds(known: &str, key: &str) -> bool {
    let fold = |letter: char| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    known.chars().map(fold).eq(key.chars().map(fold))
}

macro_rules! from_text_by_parse {
    ($($name:ty),*) => {$(
        impl FromText for $name {
            fn from_text(text: &str) -> Result<Self, String> {
                text.parse().map_err(|invalid: plexus_types::Invalid| invalid.to_string())
            }
        }
    )*};
}

from_text_by_parse!(ContainerId, IfName, Mac, NetworkName, PluginType);

impl FromText for String {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl FromText for IpAddr {
    fn from_text(text: &str) -> Result<Self, String> {
        match text.parse::<IpAddr>() {
            Ok(ip) => Ok(ip.to_canonical()),
            Err(_) => Err(format!(
                "{} is not an IP address: write 10.0.0.1 or fd00::1",
                quoted(text)
            )),
        }
    }
}

impl FromText for IpNet {
    fn from_text(text: &str) -> Result<Self, String> {
        let net = net(text).ok_or_else(|| {
            format!(
                "{} is not an address with a prefix length: write 10.0.0.0/24 or fd00::/64",
                quoted(text)
            )
        })?;
        if net.addr() != net.addr().to_canonical() {
            return Err(format!(
                "{net} is an IPv4 address inside an IPv6 one: write it as IPv4"
            ));
        }
        Ok(net)
    }
}

/// An address asked for, with its prefix length if one is written.
impl FromText for (IpAddr, Option<u8>) {
    fn from_text(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            IpNet::from_text(text).map(|net| (net.addr(), Some(net.prefix_len())))
        } else {
            IpAddr::from_text(text).map(|ip| (ip, None))
        }
    }
}

/// A prefix, or an address that counts as one.
pub(crate) struct NetOrAddress(pub(crate) IpNet);

impl FromText for NetOrAddress {
    fn from_text(text: &str) -> Result<Self, String> {
        match text.contains('/') {
            true => IpNet::from_text(text).map(Self),
            false => IpAddr::from_text(text).map(|address| Self(address.into())),
        }
    }
}

/// An absolute path without `..`.
impl FromText for PathBuf {
    fn from_text(text: &str) -> Result<Self, String> {
        let path = Path::new(text);
        let up = path.components().any(|part| part == Component::ParentDir);
        if !path.is_absolute() || up || text.contains('\0') || text.len() > 1024 {
            return Err(format!(
                "{} is not a usable path: write an absolute one without \"..\"",
                quoted(text)
            ));
        }
        Ok(path.to_owned())
    }
}

/// Stricter than `IpNet`'s own reader, which takes 010.0.0.0/24 for decimal.
fn net(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
    let length = length.parse().ok().filter(|_| digits)?;
    IpNet::new(address.parse().ok()?, length).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_canonical() {
        assert_eq!(
            IpAddr::from_text("::ffff:10.0.0.1"),
            Ok("10.0.0.1".parse().unwrap())
        );
        assert!(
            IpNet::from_text("::ffff:10.0.0.0/120")
                .unwrap_err()
                .contains("as IPv4")
        );
    }

    #[test]
    fn hostile_addresses() {
        for text in [
            "10.0.0",
            "10.0.0.0.0",
            "010.0.0.1",
            " 10.0.0.1",
            "fe80::1%eth0",
            "x",
            "1",
        ] {
            assert!(IpAddr::from_text(text).is_err(), "{text}");
            assert!(IpNet::from_text(&format!("{text}/24")).is_err(), "{text}");
        }
        for text in [
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "fd00::/129",
            "10.0.0.0/",
            "10.0.0.0/24/24",
        ] {
            assert!(IpNet::from_text(text).is_err(), "{text}");
            assert!(<(IpAddr, Option<u8>)>::from_text(text).is_err(), "{text}");
        }
        assert!(IpAddr::from_text(&"9".repeat(100_000)).unwrap_err().len() < 400);
    }

    #[test]
    fn paths_stay_where_they_are() {
        assert!(PathBuf::from_text("/var/lib/cni").is_ok());
        for text in [
            "var/lib",
            "/var/../etc",
            "..",
            "/a\0b",
            &format!("/{}", "a".repeat(2000)),
        ] {
            assert!(PathBuf::from_text(text).is_err(), "{text:?}");
        }
    }
}
