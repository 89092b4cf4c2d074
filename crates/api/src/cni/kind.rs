//! What the configuration of a NAD comes to, in one word each: for tables and explanations.

use super::{Executable, Network, OWN_TYPES};
use crate::{later, nad};
use plexus_types::NetworkName;
use serde_json::{Map, Value};

/// Who does what a NAD's configuration says.
#[derive(Debug, Clone, PartialEq)]
pub enum NetworkConfigKind {
    /// Nobody: it cannot be read, and why.
    Unreadable(String),
    /// Nobody: the plugin's type, and what is wrong with its options.
    Invalid(String, String),
    /// A later version: the plugin's type, and the text that is said of it.
    Waits(String, &'static str),
    /// The cluster, which knows the network by name: the plugin's type.
    Named(String),
    /// The MultiNicNetwork of that name; none: that of the NAD's own name.
    MultiNic(Option<String>),
    /// We, natively, or the plugins that it names: their type or types.
    Network(String, Box<Network>),
}

impl NetworkConfigKind {
    /// Looks at `spec.config`.
    pub fn of(text: &str) -> Self {
        let config = match nad::config(text) {
            Ok((config, _)) => config,
            Err(problems) => return Self::Unreadable(problems.to_string()),
        };
        let kind = types(&config).collect::<Vec<_>>().join("+");
        if nad::is_multi_nic(&config) {
            let name = config.get("name").and_then(Value::as_str);
            return match nad::named(&config) {
                Ok(_) => Self::MultiNic(name.map(str::to_owned)),
                Err(problems) => Self::Invalid(kind, problems.to_string()),
            };
        }
        if let Some(text) = every_type(&config).find_map(later::plugin_waits) {
            return Self::Waits(kind, text);
        }
        if nad::is_named(&config) {
            return match nad::named(&config) {
                Ok(_) => Self::Named(kind),
                Err(problems) => Self::Invalid(kind, problems.to_string()),
            };
        }
        let network = match NetworkName::new("network") {
            Ok(name) => Network::from_config(&name, &config, &Default::default()),
            Err(error) => return Self::Invalid(kind, error.to_string()),
        };
        match network {
            Ok(network) => Self::Network(kind, Box::new(network)),
            Err(error) => Self::Invalid(kind, error.msg),
        }
    }
}

/// The plugins of a chain, and those that they execute, that come neither with Plexus nor with the reference plugins.
pub fn uncommon_plugins(chain: &super::Chain) -> Vec<&str> {
    let executed: &[Executable] = match chain.executable {
        Executable::Type => &[Executable::Type, Executable::IpamType],
        Executable::IpamType => &[Executable::IpamType],
    };
    let each = chain.plugins.iter();
    let named = each.flat_map(|plugin| executed.iter().filter_map(|one| one.name(plugin)));
    let common = |name: &&str| {
        super::parse::is_reference(name) || OWN_TYPES.contains(name) || IPAMS.contains(name)
    };
    named.filter(|name| !common(name)).collect()
}

/// The reference project's IPAM plugins.
const IPAMS: [&str; 3] = ["host-local", "static", "dhcp"];

/// The types of a configuration or a list, with those of the IPAM sections.
pub(crate) fn every_type(config: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let with_ipam = sections(config).flat_map(|plugin| {
        let ipam = plugin.get("ipam").and_then(Value::as_object);
        std::iter::once(plugin).chain(ipam)
    });
    with_ipam.filter_map(|section| section.get("type")?.as_str())
}

fn types(config: &Map<String, Value>) -> impl Iterator<Item = &str> {
    sections(config).filter_map(|section| section.get("type")?.as_str())
}

fn sections(config: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let list = config.get("plugins").and_then(Value::as_array);
    let list = list.into_iter().flatten().filter_map(Value::as_object);
    std::iter::once(config).chain(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cni::NetworkBackend;

    #[test]
    fn who_does_it() {
        let of = NetworkConfigKind::of;
        assert!(matches!(of("{"), NetworkConfigKind::Unreadable(_)));
        assert!(
            matches!(of(r#"{"type":"macvlan","mode":"x"}"#), NetworkConfigKind::Invalid(k, _) if k == "macvlan")
        );
        assert!(matches!(
            of(r#"{"type":"multi-nic"}"#),
            NetworkConfigKind::MultiNic(None)
        ));
        assert!(matches!(
            of(r#"{"type":"plexus-cni"}"#),
            NetworkConfigKind::Named(_)
        ));
        let native = of(r#"{"type":"macvlan","master":"eth1"}"#);
        assert!(
            matches!(native, NetworkConfigKind::Network(_, n) if matches!(n.backend, NetworkBackend::Native(_)))
        );
        let list =
            r#"{"plugins":[{"type":"calico","ipam":{"type":"calico-ipam"}},{"type":"tuning"}]}"#;
        let NetworkConfigKind::Network(kind, network) = of(list) else {
            panic!("{list}");
        };
        assert_eq!(kind, "calico+tuning");
        let NetworkBackend::Delegate(chain) = network.backend else {
            panic!("{list}");
        };
        assert_eq!(uncommon_plugins(&chain), ["calico", "calico-ipam"]);
    }
}
