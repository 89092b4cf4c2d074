//! A hardware address of an Ethernet interface.

use crate::{Invalid, serde_as_text};
use std::fmt;
use std::str::FromStr;

/// Six bytes, unicast and not all zero: what an interface can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac([u8; 6]);

impl Mac {
    /// Refuses multicast addresses and zero: the kernel would refuse them too, but later.
    pub fn new(bytes: [u8; 6]) -> Result<Self, Invalid> {
        if bytes[0] & 1 == 1 || bytes == [0; 6] {
            let text = Self(bytes).to_string();
            return Err(Invalid::new("MAC address", &text, RULE));
        }
        Ok(Self(bytes))
    }

    /// A locally administered address that depends on the parts alone.
    pub fn derived(parts: &[&str]) -> Self {
        let hash = crate::hash64(parts).to_be_bytes();
        Self([
            (hash[0] & 0xfc) | 0x02,
            hash[1],
            hash[2],
            hash[3],
            hash[4],
            hash[5],
        ])
    }

    /// The six bytes.
    pub fn bytes(self) -> [u8; 6] {
        self.0
    }
}

const RULE: &str = "use six hexadecimal bytes, unicast, such as 02:00:5e:10:00:01";

impl FromStr for Mac {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("MAC address", text, RULE);
        let mut bytes = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut bytes {
            let part = parts.next().filter(|p| p.len() == 2).ok_or_else(invalid)?;
            if !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(invalid());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| invalid())?;
        }
        if parts.next().is_some() {
            return Err(invalid());
        }
        Self::new(bytes).map_err(|_| invalid())
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

serde_as_text!(Mac);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        let mac: Mac = "02:00:5E:10:00:01".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:5e:10:00:01");
    }

    #[test]
    fn refuses_what_no_interface_can_have() {
        for text in [
            "",
            "02:00:5e:10:00",
            "02:00:5e:10:00:01:02",
            "02:00:5e:10:00:+1",
            "01:00:5e:00:00:01",
            "ff:ff:ff:ff:ff:ff",
            "00:00:00:00:00:00",
            "2:0:5e:10:0:1",
        ] {
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
    }

    #[test]
    fn derived_addresses_are_local_unicast() {
        for i in 0..1000 {
            let mac = Mac::derived(&["c", &i.to_string()]);
            assert_eq!(mac.bytes()[0] & 3, 2);
        }
    }
}
