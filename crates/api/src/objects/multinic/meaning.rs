//! What a MultiNicNetwork means: all of its problems with field paths, or the validated network; and the
//! configuration of the NetworkAttachmentDefinitions that are made from it.

use super::ipam::{self, BlockBits, MULTI_NIC_IPAM, MultiNicIpam, VlanMode};
use super::{MultiNicNetworkSpec, PluginSpec};
use crate::Problems;
use crate::text::{FromText, host_bits, quoted};
use ipnet::IpNet;
use plexus_types::Family;
use serde_json::{Map, Value, json};

/// A network that can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultiNic {
    /// The subnet, one of each family at most; none if another IPAM gives the addresses.
    pub subnets: Vec<IpNet>,
    /// The subnets of the NICs, in the order of the interfaces; none: all that are found.
    pub master_nets: Vec<IpNet>,
    /// Who gives the addresses.
    pub ipam: MultiNicIpam,
    /// What makes the interfaces.
    pub plugin: MultiNicPlugin,
}

impl MultiNic {
    /// How the subnet is divided, if it is.
    pub fn bits(&self) -> Option<&BlockBits> {
        match &self.ipam {
            MultiNicIpam::Blocks(bits) => Some(bits),
            MultiNicIpam::Single(_) => None,
        }
    }
}

/// What makes the interfaces of a multi-NIC network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MultiNicPlugin {
    /// Links on the NIC that share its MAC address.
    Ipvlan,
    /// Links on the NIC with MAC addresses of their own.
    Macvlan,
    /// The NIC itself.
    HostDevice,
}

impl MultiNicPlugin {
    /// All of them.
    pub const ALL: [MultiNicPlugin; 3] = [
        MultiNicPlugin::Ipvlan,
        MultiNicPlugin::Macvlan,
        MultiNicPlugin::HostDevice,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            MultiNicPlugin::Ipvlan => "ipvlan",
            MultiNicPlugin::Macvlan => "macvlan",
            MultiNicPlugin::HostDevice => "host-device",
        }
    }

    /// The options of its interface on a NIC, further ones of the network aside.
    pub fn options(self, nic: &str, mode: VlanMode) -> Map<String, Value> {
        let mut options = Map::new();
        match self {
            MultiNicPlugin::Ipvlan => {
                options.insert("master".to_owned(), json!(nic));
                options.insert("mode".to_owned(), json!(mode.name()));
            }
            MultiNicPlugin::Macvlan => {
                options.insert("master".to_owned(), json!(nic));
            }
            MultiNicPlugin::HostDevice => {
                options.insert("device".to_owned(), json!(nic));
            }
        }
        options
    }
}

const MAX_MASTER_NETS: usize = 64;
const MAX_NAMESPACES: usize = 1024;
/// A pod's part of a block has this many bits at least: its first and last address are reserved.
const POD_BITS: u8 = 2;

impl MultiNicNetworkSpec {
    /// The network, or all that is wrong with it.
    pub fn meaning(&self) -> Result<MultiNic, Problems> {
        let mut problems = Problems::default();
        let ipam = ipam::read(&self.ipam, self.multi_nic_ipam, &mut problems);
        let subnets = self.subnets(&mut problems);
        let master_nets = self.read_master_nets(&mut problems);
        let plugin = self.read_plugin(&mut problems);
        self.check_policy(&mut problems);
        self.check_namespaces(&mut problems);
        match &ipam {
            Some(MultiNicIpam::Blocks(bits)) => {
                check_bits(&subnets, self.subnet.is_empty(), bits, &mut problems);
                check_apart(&subnets, &master_nets, &bits.exclude, &mut problems);
                if let Some(plugin) = plugin {
                    self.check_mode(plugin, bits.mode, &mut problems);
                }
            }
            Some(MultiNicIpam::Single(_)) if !self.subnet.is_empty() => {
                let text =
                    "is for multi-nic-ipam alone: write it in ipam, as that IPAM plugin has it";
                problems.add("spec.subnet", text);
            }
            _ => {}
        }
        let problems = problems.without_repetition();
        match (ipam, plugin) {
            (Some(ipam), Some(plugin)) => problems.unless_any(MultiNic {
                subnets,
                master_nets,
                ipam,
                plugin,
            }),
            _ => Err(problems),
        }
    }

    /// The configuration of a NetworkAttachmentDefinition that stands for the network of that name. Keys are in the
    /// order in which the original has them sorted; the text is the same whenever the spec is.
    pub fn nad_config(&self, name: &str) -> String {
        let mut config = Map::new();
        config.insert("cniVersion".to_owned(), json!("0.3.1"));
        config.insert("name".to_owned(), json!(name));
        config.insert("type".to_owned(), json!("multi-nic"));
        let ipam = serde_json::from_str(&self.ipam).unwrap_or(Value::Null);
        let all = ipam.get("type").and_then(Value::as_str) == Some(MULTI_NIC_IPAM);
        config.insert("ipam".to_owned(), ipam);
        config.insert(
            "plugin".to_owned(),
            plugin_config(&self.plugin.clone().unwrap_or_default()),
        );
        config.insert("subnet".to_owned(), json!(self.subnet));
        config.insert("masterNets".to_owned(), json!(self.master_nets));
        let all = self.multi_nic_ipam.unwrap_or(all);
        config.insert("multiNICIPAM".to_owned(), json!(all));
        Value::Object(config).to_string()
    }

    fn subnets(&self, problems: &mut Problems) -> Vec<IpNet> {
        let mut subnets: Vec<IpNet> = Vec::new();
        for text in self.subnet.split(',').filter(|text| !text.is_empty()) {
            let net = match IpNet::from_text(text) {
                Ok(net) => net,
                Err(text) => {
                    problems.add("spec.subnet", text);
                    continue;
                }
            };
            if let Some(text) = host_bits(&net) {
                problems.add("spec.subnet", text);
            }
            let family = Family::of(net.addr());
            let mut others = subnets.iter();
            if let Some(other) = others.find(|other| Family::of(other.addr()) == family) {
                let text =
                    format!("has {other} and {net}: write at most one subnet of each family");
                problems.add("spec.subnet", text);
            }
            subnets.push(net.trunc());
        }
        subnets
    }

    fn read_master_nets(&self, problems: &mut Problems) -> Vec<IpNet> {
        if self.master_nets.len() > MAX_MASTER_NETS {
            let text = format!(
                "has {}: write at most {MAX_MASTER_NETS}",
                self.master_nets.len()
            );
            problems.add("spec.masterNets", text);
            return Vec::new();
        }
        let mut nets: Vec<IpNet> = Vec::new();
        for (i, text) in self.master_nets.iter().enumerate() {
            let path = format!("spec.masterNets[{i}]");
            match IpNet::from_text(text) {
                Ok(net) => {
                    if let Some(text) = host_bits(&net) {
                        problems.add(path.clone(), text);
                    }
                    if nets.contains(&net) {
                        let text = format!("{net} is there already: write each subnet once");
                        problems.add(path, text);
                    }
                    nets.push(net);
                }
                Err(text) => problems.add(path, text),
            }
        }
        nets
    }

    fn read_plugin(&self, problems: &mut Problems) -> Option<MultiNicPlugin> {
        let kind = self.plugin.as_ref().map_or("ipvlan", |plugin| &plugin.kind);
        let mut known = MultiNicPlugin::ALL.into_iter();
        if let Some(plugin) = known.find(|one| one.name() == kind) {
            return Some(plugin);
        }
        let remedy = match kind {
            "sriov" => {
                "sriov, which Plexus does not make: let the SR-IOV network operator make the virtual functions, and \
                 attach each by a NetworkAttachmentDefinition of type host-device or sriov"
            }
            "aws-ipvlan" => {
                "aws-ipvlan, which Plexus does not have: write ipvlan with a subnet of its own and vlanMode l3, and \
                 switch the source and destination check of the network interfaces off"
            }
            "mellanox" => {
                "mellanox, which Plexus does not make: let NVIDIA's network operator make the devices, and attach each \
                 by a NetworkAttachmentDefinition of type host-device"
            }
            _ => "",
        };
        let text = match remedy {
            "" => format!("is {}: write ipvlan, macvlan or host-device", quoted(kind)),
            remedy => format!("is {remedy}"),
        };
        problems.add("spec.plugin.type", text);
        None
    }

    /// A mode is ipvlan's.
    fn check_mode(&self, plugin: MultiNicPlugin, mode: VlanMode, problems: &mut Problems) {
        if plugin != MultiNicPlugin::Ipvlan && mode.is_routed() {
            let text = format!(
                "is {}, but pods on {} answer to the network between the NICs themselves: write l2, or plugin ipvlan",
                mode.name(),
                plugin.name()
            );
            problems.add("spec.ipam.vlanMode", text);
        }
        let args = self.plugin.as_ref().map(|plugin| &plugin.args);
        let other = args.and_then(|args| args.get("mode"));
        let ipvlan = plugin == MultiNicPlugin::Ipvlan;
        if let Some(other) = other.filter(|other| ipvlan && other.as_str() != mode.name()) {
            let text = format!(
                "is {}, but vlanMode is {}: leave it out here",
                quoted(other),
                mode.name()
            );
            problems.add("spec.plugin.args.mode", text);
        }
    }

    fn check_policy(&self, problems: &mut Problems) {
        let Some(policy) = &self.attach_policy else {
            return;
        };
        let text = match policy.strategy.as_str() {
            "" | "none" => return,
            known @ ("costOpt" | "perfOpt" | "devClass" | "topology") => format!(
                "is {known}, but Plexus chooses no devices for pods: write none, and let the pod name its NICs with \
                 nics or masters in cni-args, or claim devices by a ResourceClaim"
            ),
            other => format!("is {}: write none", quoted(other)),
        };
        problems.add("spec.attachPolicy.strategy", text);
    }

    fn check_namespaces(&self, problems: &mut Problems) {
        if self.namespaces.len() > MAX_NAMESPACES {
            let text = format!(
                "has {}: write at most {MAX_NAMESPACES}",
                self.namespaces.len()
            );
            return problems.add("spec.namespaces", text);
        }
        for (i, name) in self.namespaces.iter().enumerate() {
            let label = name.len() <= 63 && !name.contains('.');
            if !label || crate::pod::check_object(name).is_err() {
                let text = format!("is {}, which is no namespace's name", quoted(name));
                problems.add(format!("spec.namespaces[{i}]"), text);
            }
        }
    }
}

/// The bits of subnet, interface, host and pod are those of an address.
fn check_bits(subnets: &[IpNet], empty: bool, bits: &BlockBits, problems: &mut Problems) {
    if empty {
        let text = "is missing: write the subnet that all pods' addresses come from; those of the NICs' own subnets \
                    belong to the hosts";
        return problems.add("spec.subnet", text);
    }
    for subnet in subnets {
        let used = subnet.prefix_len() + bits.interface + bits.host;
        let most = subnet.max_prefix_len() - POD_BITS;
        if used > most {
            let text = format!(
                "{subnet} has {} bits, of which interfaceBlock {} and hostBlock {} leave less than {POD_BITS} to the \
                 pods: write a larger subnet, or fewer bits",
                subnet.max_prefix_len() - subnet.prefix_len(),
                bits.interface,
                bits.host
            );
            problems.add("spec.subnet", text);
        }
    }
    check_routes(subnets, bits, problems);
    for (i, net) in bits.exclude.iter().enumerate() {
        let path = format!("spec.ipam.excludeCIDRs[{i}]");
        if let Some(text) = host_bits(net) {
            problems.add(path.clone(), text);
        }
        if !subnets.is_empty() && !subnets.iter().any(|subnet| subnet.contains(net)) {
            problems.add(
                path,
                format!("{net} is not inside the subnet: leave it out"),
            );
        }
    }
}

/// Pods get no addresses of the hosts' own subnets.
fn check_apart(subnets: &[IpNet], nets: &[IpNet], exclude: &[IpNet], problems: &mut Problems) {
    for net in nets {
        let excluded = exclude.iter().any(|one| one.contains(net));
        let subnet = subnets.iter().find(|subnet| subnet.contains(net));
        if let Some(subnet) = subnet.filter(|_| !excluded) {
            let text = format!(
                "{subnet} contains {net} of masterNets, so that pods would get addresses of hosts: write a subnet that no \
                 host has addresses of, or add {net} to excludeCIDRs"
            );
            problems.add("spec.subnet", text);
        }
    }
}

/// A gateway is another pod's address, or one that a route without a gateway leads to.
fn check_routes(subnets: &[IpNet], bits: &BlockBits, problems: &mut Problems) {
    for (i, route) in bits.routes.iter().enumerate() {
        let Some(gw) = route.gw else { continue };
        let on_link = bits.routes.iter().filter(|other| other.gw.is_none());
        let mut near = subnets.iter().chain(on_link.map(|other| &other.dst));
        if !near.any(|net| net.contains(&gw)) {
            let text = format!(
                "is {gw}, which no interface of a pod reaches: write an address inside the subnet, or a route to it \
                 without gw besides"
            );
            problems.add(format!("spec.ipam.routes[{i}].gw"), text);
        }
    }
}

fn plugin_config(plugin: &PluginSpec) -> Value {
    let mut config: Map<String, Value> = Map::new();
    for (key, value) in &plugin.args {
        config.insert(key.clone(), json!(value));
    }
    if !plugin.cni_version.is_empty() {
        config.insert("cniVersion".to_owned(), json!(plugin.cni_version));
    }
    config.insert("type".to_owned(), json!(plugin.kind));
    if !plugin.capabilities.is_empty() {
        config.insert("capabilities".to_owned(), json!(plugin.capabilities));
    }
    if let Some(dns) = &plugin.dns {
        config.insert("dns".to_owned(), json!(dns));
    }
    Value::Object(config)
}
