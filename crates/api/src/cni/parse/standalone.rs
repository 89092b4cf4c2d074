//! Standalone mode: `networks`, all of a container's interfaces in one call, and `default-gw`.

use super::request::RuntimeRequest;
use super::{Head, OWN_TYPES, chain, network};
use crate::Fields;
use crate::cni::{Body, Code, DefaultGw, Error, Network};
use crate::text::quoted;
use plexus_types::IfName;
use serde_json::Value;
use std::collections::BTreeSet;

/// More interfaces than anyone gives a container.
const MAX_NETWORKS: usize = 64;

pub(super) fn read(fields: &mut Fields<'_>, head: &Head) -> Option<Body> {
    if let Some(plugin) = &head.plugin
        && !OWN_TYPES.contains(&plugin.as_str())
    {
        let text = format!("{plugin} has no \"networks\": write plexus-cni");
        fields.problem("type", text);
    }
    if fields.value("networks").is_some_and(|value| value == "pod") {
        if fields.flag("sourceRouting") {
            let text = "is a property of a network: write it there, or leave it out";
            fields.unsupported("sourceRouting", text);
        }
        return Some(Body::Pod);
    }
    if let Some(word) = fields.value("networks").and_then(Value::as_str) {
        let text = format!("is {}: write \"pod\", or a list of networks", quoted(word));
        fields.problem("networks", text);
        default_gw(fields);
        return None;
    }
    // The request is about the interface that the runtime knows: the first.
    let nothing = RuntimeRequest {
        version: head.request.version,
        ..RuntimeRequest::default()
    };
    let read = |entry: &mut Fields<'_>, i| {
        let request = if i == 0 { &head.request } else { &nothing };
        network::entry(entry, request)
    };
    let count = fields.list("networks")?.len();
    if !(1..=MAX_NETWORKS).contains(&count) {
        let text = format!("has {count} elements: write 1 to {MAX_NETWORKS}");
        fields.problem("networks", text);
        default_gw(fields);
        return None;
    }
    let networks = fields.objects("networks", read)?;
    let default_gw = default_gw(fields);
    if networks.len() < count {
        return None;
    }
    unique_interfaces(fields, &networks);
    let DefaultGw { v4, v6 } = &default_gw;
    let choices = match v4 == v6 {
        true => vec![("default-gw", v4)],
        false => vec![("default-gw.4", v4), ("default-gw.6", v6)],
    };
    for (key, name) in choices {
        if let Some(Err(text)) = name.as_ref().map(|name| named(&networks, None, name)) {
            fields.problem(key, text);
        }
    }
    Some(Body::All {
        networks,
        default_gw,
    })
}

impl Body {
    /// Checks what depends on CNI_IFNAME, which is no part of the configuration: that no two
    /// interfaces have one name (the first is named CNI_IFNAME, the others as they ask, or
    /// `net<i>`), and that `default-gw` names one of them.
    pub fn check_names(&self, ifname: &IfName) -> Result<(), Error> {
        let Body::All {
            networks,
            default_gw,
        } = self
        else {
            return Ok(());
        };
        let wrong = |msg: String, details: &str| Err(Error::new(Code::InvalidConfig, msg, details));
        let mut seen = BTreeSet::new();
        for (i, network) in networks.iter().enumerate() {
            if let (0, Some(own)) = (i, &network.interface)
                && own != ifname
            {
                let msg = format!("networks[0].interface: {own} is not CNI_IFNAME, {ifname}");
                return wrong(msg, "leave it out: the runtime names the first interface");
            }
            let name = name_of(i, network, Some(ifname)).unwrap_or_default();
            if !seen.insert(name.clone()) {
                let msg = format!("networks[{i}]: another interface is named {name} too");
                return wrong(msg, "write another name as its \"interface\"");
            }
        }
        for name in [&default_gw.v4, &default_gw.v6].into_iter().flatten() {
            if let Err(text) = named(networks, Some(ifname), name) {
                let msg = format!("default-gw: {text}");
                return wrong(msg, "write a name that occurs once");
            }
        }
        Ok(())
    }

    /// Whether some plugin that is executed declares a capability.
    pub fn takes(&self, capability: &str) -> bool {
        let networks = self.networks().iter();
        let mut chains = networks.filter_map(|network| network.backend.executed());
        chains.any(|plugins| chain::takes(plugins, capability))
    }
}

/// A string for both families, or `{"4": …, "6": …}`.
pub(crate) fn default_gw(fields: &mut Fields<'_>) -> DefaultGw {
    match fields.value("default-gw") {
        None => DefaultGw::default(),
        Some(Value::String(name)) => {
            let name = Some(name.clone()).filter(|name| !name.is_empty());
            let (v4, v6) = (name.clone(), name);
            DefaultGw { v4, v6 }
        }
        Some(Value::Object(_)) => {
            let read = |inner: &mut Fields<'_>| DefaultGw {
                v4: inner.parsed("4"),
                v6: inner.parsed("6"),
            };
            fields.object("default-gw", read).unwrap_or_default()
        }
        Some(_) => {
            let text = "must be a network's or an interface's name, or {\"4\": …, \"6\": …}";
            fields.problem("default-gw", text);
            DefaultGw::default()
        }
    }
}

fn unique_interfaces(fields: &mut Fields<'_>, networks: &[Network]) {
    let mut seen = BTreeSet::new();
    for (i, network) in networks.iter().enumerate() {
        if let Some(name) = &network.interface
            && !seen.insert(name)
        {
            let text = format!("{name} is asked for twice: write another name");
            fields.problem(&format!("networks[{i}].interface"), text);
        }
    }
}

/// Which element a name means. Without CNI_IFNAME any interface name may turn out to be it.
fn named(networks: &[Network], ifname: Option<&IfName>, name: &str) -> Result<(), String> {
    let by_name = |(i, network): (usize, &Network)| {
        let own = name_of(i, network, ifname);
        (network.name.as_str() == name || own.as_deref() == Some(name)).then_some(i)
    };
    let found: Vec<usize> = networks.iter().enumerate().filter_map(by_name).collect();
    match found.as_slice() {
        [_] => Ok(()),
        [] if ifname.is_none() && IfName::new(name).is_ok() => Ok(()),
        [] => {
            let names = networks.iter().map(|network| network.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            let name = quoted(name);
            Err(format!(
                "{name} is no network or interface here: the networks are {names}"
            ))
        }
        [i, j, ..] => Err(format!(
            "{} is ambiguous, it means networks[{i}] and networks[{j}]: write an interface's name",
            quoted(name)
        )),
    }
}

/// The name of the i-th interface; none if it is CNI_IFNAME, and that is not known.
fn name_of(i: usize, network: &Network, ifname: Option<&IfName>) -> Option<String> {
    match (i, &network.interface) {
        (0, _) => ifname.map(ToString::to_string),
        (_, Some(own)) => Some(own.to_string()),
        (_, None) => Some(format!("net{i}")),
    }
}
