//! The `ipam` text of a MultiNicNetwork, and the few numbers in it that decide which block is whose.

use crate::cni::parse::common;
use crate::cni::{Dns, RouteConf};
use crate::text::{NetOrAddress, quoted};
use crate::{Fields, Problems, document};
use ipnet::IpNet;
use serde_json::{Map, Value};

/// The IPAM that computes blocks.
pub const MULTI_NIC_IPAM: &str = "multi-nic-ipam";

/// How long the text may be.
const MAX_TEXT: usize = 65_536;
const MAX_EXCLUDE: usize = 1024;
/// More hosts than a cluster has; keeps the search for a free index cheap.
const MAX_HOST_BITS: u32 = 24;
const MAX_INTERFACE_BITS: u32 = 8;

/// Where the addresses of a pod come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MultiNicIpam {
    /// From the blocks of the node, one for each NIC.
    Blocks(BlockBits),
    /// From another IPAM plugin, which is executed for each interface.
    Single(Map<String, Value>),
}

/// How the subnet is divided, and what the interfaces have beside their addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockBits {
    /// Bits of the interface's index.
    pub interface: u8,
    /// Bits of the host's index.
    pub host: u8,
    /// What nobody gets.
    pub exclude: Vec<IpNet>,
    /// Who passes packets between nodes.
    pub mode: VlanMode,
    /// Routes that every pod gets.
    pub routes: Vec<RouteConf>,
    /// Name servers.
    pub dns: Dns,
}

/// Mode of the links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VlanMode {
    /// The network between the NICs does.
    #[default]
    L2,
    /// The nodes do, by routes.
    L3,
    /// The nodes do, and the node's packet filter sees the packets.
    L3s,
}

impl VlanMode {
    /// All of them.
    pub const ALL: [VlanMode; 3] = [VlanMode::L2, VlanMode::L3, VlanMode::L3s];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            VlanMode::L2 => "l2",
            VlanMode::L3 => "l3",
            VlanMode::L3s => "l3s",
        }
    }

    /// Whether nodes need routes to each other's blocks.
    pub fn is_routed(self) -> bool {
        self != VlanMode::L2
    }
}

const PATH: &str = "spec.ipam";

/// Reads the text; `all_nics`: what `multiNICIPAM` says.
pub(super) fn read(
    text: &str,
    all_nics: Option<bool>,
    problems: &mut Problems,
) -> Option<MultiNicIpam> {
    if text.len() > MAX_TEXT {
        let text = format!("has {} bytes: write at most {MAX_TEXT}", text.len());
        problems.add(PATH, text);
        return None;
    }
    let value = document::read(text.as_bytes());
    let map = match value {
        Ok(Value::Object(map)) => map,
        Ok(_) => {
            problems.add(
                PATH,
                "is not a JSON object: write {\"type\": \"multi-nic-ipam\", …}",
            );
            return None;
        }
        Err(error) => {
            problems.add(PATH, format!("is not JSON: {error}"));
            return None;
        }
    };
    match map.get("type").and_then(Value::as_str) {
        None | Some("") => {
            let text = "is missing: write multi-nic-ipam, or the name of another IPAM plugin with \
                        multiNICIPAM: false";
            problems.add("spec.ipam.type", text);
            None
        }
        Some(MULTI_NIC_IPAM) => blocks(&map, all_nics, problems),
        Some(other) => single(other, &map, all_nics, problems),
    }
}

fn blocks(
    map: &Map<String, Value>,
    all_nics: Option<bool>,
    problems: &mut Problems,
) -> Option<MultiNicIpam> {
    if all_nics == Some(false) {
        let text = "is false, but multi-nic-ipam gives an address for every NIC: write true, or leave it out";
        problems.add("spec.multiNICIPAM", text);
    }
    let mut fields = Fields::new(map, PATH);
    // The agent's own socket takes the place of the daemon's port: read, and of no meaning.
    fields.know(&["type", "daemonIP", "daemonPort"]);
    let host = bits(&mut fields, "hostBlock", 1, MAX_HOST_BITS);
    let interface = bits(&mut fields, "interfaceBlock", 0, MAX_INTERFACE_BITS);
    let exclude = fields.parsed_list::<NetOrAddress>("excludeCIDRs");
    if exclude.len() > MAX_EXCLUDE {
        let text = format!(
            "has {} elements: write at most {MAX_EXCLUDE}",
            exclude.len()
        );
        fields.problem("excludeCIDRs", text);
    }
    let mode = mode(&mut fields);
    let routes = common::routes(&mut fields);
    let dns = fields.object("dns", common::dns);
    let sound = fields.is_sound();
    problems.0.extend(fields.finish().0);
    let blocks = BlockBits {
        interface: interface?,
        host: host?,
        exclude: exclude.into_iter().map(|NetOrAddress(net)| net).collect(),
        mode: mode?,
        routes,
        dns: dns.unwrap_or_default(),
    };
    sound.then_some(MultiNicIpam::Blocks(blocks))
}

/// A number of bits. None written: the least, if that may be left out.
fn bits(fields: &mut Fields<'_>, key: &'static str, least: u32, most: u32) -> Option<u8> {
    if !fields.has(key) {
        fields.know(&[key]);
        if least > 0 {
            fields.missing(
                key,
                "write how many bits number the hosts, such as 6 for 64 of them",
            );
            return None;
        }
        return Some(0);
    }
    let number = fields.number(key)?;
    if number < least {
        let text =
            format!("is {number}, so that all hosts would share one block: write at least {least}");
        fields.problem(key, text);
    } else if number > most {
        fields.problem(key, format!("is {number}: write at most {most}"));
    }
    u8::try_from(number)
        .ok()
        .filter(|_| (least..=most).contains(&number))
}

fn mode(fields: &mut Fields<'_>) -> Option<VlanMode> {
    let Some(written) = fields.text("vlanMode").filter(|text| !text.is_empty()) else {
        return Some(VlanMode::L2);
    };
    let mode = VlanMode::ALL
        .into_iter()
        .find(|mode| mode.name() == written);
    if mode.is_none() {
        let text = format!("is {}: write l2, l3 or l3s", quoted(written));
        fields.problem("vlanMode", text);
    }
    mode
}

fn single(
    kind: &str,
    map: &Map<String, Value>,
    all_nics: Option<bool>,
    problems: &mut Problems,
) -> Option<MultiNicIpam> {
    let refused = match kind {
        "multi-config" => Some(
            "is multi-config, which Plexus does not have: write one MultiNicNetwork for each NIC that needs a \
             configuration of its own",
        ),
        "host-device-ipam" => Some(
            "is host-device-ipam, which Plexus does not have: a device that is moved into a pod keeps no \
             address; use a NetworkAttachmentDefinition of type host-device with IPAM static",
        ),
        _ => None,
    };
    if let Some(text) = refused {
        problems.add("spec.ipam.type", text);
        return None;
    }
    if all_nics == Some(true) {
        let text = format!(
            "is true, but {} gives addresses for one interface at a time: write false, or multi-nic-ipam",
            quoted(kind)
        );
        problems.add("spec.multiNICIPAM", text);
        return None;
    }
    Some(MultiNicIpam::Single(map.clone()))
}
