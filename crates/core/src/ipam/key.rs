//! What tells one pool from another. A Network is called `<namespace>.<name>`, and anybody may call a configuration so:
//! theirs are two pools. What the configuration has in memory says so in the key; host-local's directory of a
//! configuration is where the plugin of that name has it, so that the Network's is another one.

use super::allocator;
use crate::attachment::NativeSpec;
use crate::plan::kept_as;
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
    /// It is told apart from the pool of another network of that name.
    pub apart: bool,
}

impl PoolKey {
    /// The key of a network's IPAM section; none for those that have no pool here. `of_object`: the network is an
    /// object of the API.
    pub fn of(ipam: &Ipam, network: &NetworkName, of_object: bool) -> Option<Self> {
        allocator::of(ipam).pool(network, of_object)
    }

    /// The same of an attachment.
    pub fn of_spec(spec: &NativeSpec) -> Option<Self> {
        let ipam = spec.native.ipam.as_ref()?;
        Self::of(ipam, &spec.network, spec.of_object)
    }

    pub(super) fn new(ipam: &str, data_dir: &str, network: &NetworkName, apart: bool) -> Self {
        Self {
            ipam: ipam.to_owned(),
            data_dir: data_dir.to_owned(),
            network: network.clone(),
            apart,
        }
    }

    /// Whether the addresses are files of a directory.
    pub fn is_directory(&self) -> bool {
        self.ipam == Ipam::HOST_LOCAL
    }

    /// Whether the addresses are in the agent's memory and journal.
    pub fn is_in_memory(&self) -> bool {
        self.ipam == Ipam::PLEXUS || self.ipam == Ipam::BLOCKS
    }

    /// The network's identity, if the pool is of blocks.
    pub fn network_uid(&self) -> Option<&str> {
        (self.ipam == Ipam::BLOCKS).then_some(&*self.data_dir)
    }

    /// Type and directory as one word, for the mark of a link: `plexus:`, `host-local:/var/x`; apart from another,
    /// `plexus@:`.
    pub fn word(&self) -> String {
        let apart = if self.apart { "@" } else { "" };
        let mut word = format!("{}{apart}:", self.ipam);
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

    /// The network's name for people: of two networks of one name, one's is another.
    pub fn name(&self) -> NetworkName {
        let is_config = self.ipam == Ipam::PLEXUS && self.apart;
        kept_as(&self.network, !is_config)
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
        let apart = ipam.strip_suffix('@');
        Some(Self {
            ipam: apart.unwrap_or(ipam).to_owned(),
            data_dir,
            network: network.clone(),
            apart: apart.is_some(),
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
    use plexus_api::cni::{HostLocal, PlexusIpam};

    #[test]
    fn a_configuration_and_a_network_of_one_name_have_two_pools() {
        let network = NetworkName::new("team-a.blue").unwrap();
        let sections = [
            Ipam::Plexus(PlexusIpam {
                subnets: Vec::new(),
                exclude: Vec::new(),
                gateway: Vec::new(),
                routes: Vec::new(),
            }),
            Ipam::HostLocal(HostLocal {
                ranges: Vec::new(),
                routes: Vec::new(),
                data_dir: "/var/lib/cni/networks".into(),
                resolv_conf: None,
            }),
        ];
        for ipam in sections {
            let [object, config] = [true, false].map(|of_object| {
                let key = PoolKey::of(&ipam, &network, of_object).unwrap();
                // So do marks, which have the name of the network that the pod knows.
                assert_eq!(
                    PoolKey::from_word(&key.word(), &network).as_ref(),
                    Some(&key)
                );
                key
            });
            assert_ne!(object, config);
            assert_ne!(object.to_string(), config.to_string());
            // Others of a name that no Network has are called as ever.
            let plain = NetworkName::new("blue").unwrap();
            let key = PoolKey::of(&ipam, &plain, false).unwrap();
            assert!(!key.apart, "{key}");
        }
    }

    #[test]
    fn words_are_one_word_and_read_back() {
        let network = NetworkName::new("blue").unwrap();
        for data_dir in ["", "/var/lib/cni/networks", "/a b/100%/ü\n", "%", "a:b"] {
            let key = PoolKey {
                ipam: "host-local".to_owned(),
                data_dir: data_dir.to_owned(),
                network: network.clone(),
                apart: data_dir.len() > 1,
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
