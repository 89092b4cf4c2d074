//! What tells one pool from another.

use plexus_api::cni::Ipam;
use plexus_types::NetworkName;
use std::fmt;

/// The same key never repeats an address; different keys are independent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolKey {
    /// IPAM type.
    pub ipam: String,
    /// Data directory; empty where there is none.
    pub data_dir: String,
    /// Network name.
    pub network: NetworkName,
}

impl PoolKey {
    /// The key of a network's IPAM section; none for `static` and for executed plugins, which have no
    /// pool here.
    pub fn of(ipam: &Ipam, network: &NetworkName) -> Option<Self> {
        let data_dir = match ipam {
            Ipam::HostLocal(host_local) => host_local.data_dir.to_string_lossy().into_owned(),
            Ipam::Plexus(_) => String::new(),
            Ipam::Blocks(blocks) => blocks.uid.clone(),
            Ipam::Static(_) | Ipam::Executed(_) => return None,
        };
        Some(Self {
            ipam: ipam.name().to_owned(),
            data_dir,
            network: network.clone(),
        })
    }

    /// Type and directory as one word, for the mark of a link: `plexus:`, `host-local:/var/x`.
    pub fn word(&self) -> String {
        let mut word = format!("{}:", self.ipam);
        for character in self.data_dir.chars() {
            if character == '%' || character.is_whitespace() || character.is_control() {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    word.push_str(&format!("%{byte:02x}"));
                }
            } else {
                word.push(character);
            }
        }
        word
    }

    /// Reads such a word back; none if it is not one.
    pub fn from_word(word: &str, network: &NetworkName) -> Option<Self> {
        let (ipam, rest) = word.split_once(':')?;
        let mut bytes = Vec::with_capacity(rest.len());
        let mut parts = rest.split('%');
        bytes.extend_from_slice(parts.next()?.as_bytes());
        for part in parts {
            bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
            bytes.extend_from_slice(part.get(2..)?.as_bytes());
        }
        let data_dir = String::from_utf8(bytes).ok()?;
        Some(Self {
            ipam: ipam.to_owned(),
            data_dir,
            network: network.clone(),
        })
    }
}

impl fmt::Display for PoolKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.word(), self.network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_one_word_and_read_back() {
        let network = NetworkName::new("blue").unwrap();
        for data_dir in ["", "/var/lib/cni/networks", "/a b/100%/ü\n", "%", "a:b"] {
            let key = PoolKey {
                ipam: "host-local".to_owned(),
                data_dir: data_dir.to_owned(),
                network: network.clone(),
            };
            let word = key.word();
            assert!(!word.contains(char::is_whitespace), "{word}");
            assert_eq!(PoolKey::from_word(&word, &network), Some(key));
        }
        for word in ["-", "x:%", "x:%zz", "x:%ff", "x:%é"] {
            assert_eq!(PoolKey::from_word(word, &network), None, "{word}");
        }
    }
}
