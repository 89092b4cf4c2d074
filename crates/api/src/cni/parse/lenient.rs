//! What DEL can still use of a configuration that does not validate. DEL works from the journal;
//! this is what there is without one. Never fails, never trusts: each part is taken only if it is
//! valid by itself.

use super::ipam::host_local::DATA_DIR;
use super::{TOP_KEYS, chain};
use crate::Fields;
use crate::cni::{NetConf, Outcome, Version};
use crate::text::FromText;
use plexus_types::{IfName, NetworkName};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// What could be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Remains {
    /// The version to answer in, if we speak it.
    pub version: Option<Version>,
    /// The configuration's name.
    pub name: Option<NetworkName>,
    /// The networks, in order; one in plugin mode.
    pub networks: Vec<RemainsNetwork>,
    /// What the ADD did.
    pub prev_result: Option<Outcome>,
}

/// What could be read of one network.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemainsNetwork {
    /// Its name; in plugin mode the configuration's.
    pub name: Option<NetworkName>,
    /// Its place in the configuration, from 0.
    pub index: usize,
    /// Its interface in the pod; none: the first, which is CNI_IFNAME.
    pub interface: Option<IfName>,
    /// Where `host-local` keeps its addresses, if that is its IPAM.
    pub data_dir: Option<PathBuf>,
    /// Plugins that may have been executed, in order: their configurations, as in
    /// [`Chain`](crate::cni::Chain).
    pub plugins: Vec<Map<String, Value>>,
}

impl NetConf {
    /// Takes what is usable, from any bytes.
    pub fn parse_lenient(bytes: &[u8]) -> Remains {
        if bytes.len() > super::MAX_CONFIG {
            return Remains::default();
        }
        let Ok(map) = serde_json::from_slice::<Map<String, Value>>(bytes) else {
            return Remains::default();
        };
        let version = text(&map, "cniVersion").and_then(Version::parse);
        let mut remains = Remains {
            version,
            name: typed(&map, "name"),
            networks: Vec::new(),
            prev_result: prev_result(&map, version),
        };
        match map.get("networks").and_then(Value::as_array) {
            Some(list) => {
                let entries = list.iter().take(1024).enumerate();
                let networks =
                    entries.filter_map(|(index, entry)| Some(entry_of(index, entry.as_object()?)));
                remains.networks = networks.collect();
            }
            None => remains.networks.push(network(&map, &TOP_KEYS)),
        }
        remains
    }
}

/// An entry of `networks`. A name that cannot be an interface's is as good as none.
fn entry_of(index: usize, entry: &Map<String, Value>) -> RemainsNetwork {
    let interface = match index {
        0 => None,
        _ => typed(entry, "interface").or_else(|| IfName::new(&format!("net{index}")).ok()),
    };
    RemainsNetwork {
        index,
        interface,
        ..network(entry, &["name", "interface", "sourceRouting"])
    }
}

fn network(map: &Map<String, Value>, ours: &[&str]) -> RemainsNetwork {
    let mut remains = RemainsNetwork {
        name: typed(map, "name"),
        ..RemainsNetwork::default()
    };
    if let Some(ipam) = map.get("ipam").and_then(Value::as_object)
        && text(ipam, "type") == Some("host-local")
    {
        let dir = text(ipam, "dataDir").filter(|dir| !dir.is_empty());
        remains.data_dir = PathBuf::from_text(dir.unwrap_or(DATA_DIR)).ok();
    }
    let ours = chain::without_plugins(ours);
    let stripped = [&ours[..], &chain::INSERTED].concat();
    remains.plugins = match map.get("plugins").and_then(Value::as_array) {
        Some(list) => {
            let maps = list.iter().filter_map(Value::as_object);
            maps.filter_map(|item| chain::remains(item, &stripped))
                .collect()
        }
        None => chain::remains(map, &stripped).into_iter().collect(),
    };
    remains
}

fn prev_result(map: &Map<String, Value>, version: Option<Version>) -> Option<Outcome> {
    let result = map.get("prevResult")?.as_object()?;
    let version = text(result, "cniVersion")
        .and_then(Version::parse)
        .or(version)?;
    let mut fields = Fields::new(result, "");
    Some(Outcome::read(&mut fields, version))
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str)
}

fn typed<T: FromText>(map: &Map<String, Value>, key: &str) -> Option<T> {
    T::from_text(text(map, key)?).ok()
}
