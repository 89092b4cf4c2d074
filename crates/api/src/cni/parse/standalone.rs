//! Standalone mode: `networks`, all of a container's interfaces in one call, and `default-gw`.

use super::asked::Asked;
use super::{Head, OWN_TYPES, chain, network};
use crate::Fields;
use crate::cni::{Body, Code, DefaultGw, Error, Network, Version};
use crate::text::shown;
use plexus_types::IfName;
use serde_json::Value;
use std::collections::BTreeSet;

/// More interfaces than anyone gives a container.
const MAX_NETWORKS: usize = 64;

pub(super) fn read(fields: &mut Fields<'_>, head: &Head, version: Version) -> Option<Body> {
    if let Some(plugin) = &head.plugin
        && !OWN_TYPES.contains(&plugin.as_str())
    {
        fields.problem(
            "type",
            format!("{plugin} has no \"networks\": write plexus-cni"),
        );
    }
    // The request is about the interface that the runtime knows: the first.
    let nothing = Asked::default();
    let read = |entry: &mut Fields<'_>, i| {
        network::entry(entry, version, if i == 0 { &head.asked } else { &nothing })
    };
    let count = fields.list("networks")?.len();
    if !(1..=MAX_NETWORKS).contains(&count) {
        fields.problem(
            "networks",
            format!("has {count} elements: write 1 to {MAX_NETWORKS}"),
        );
        default_gw(fields);
        return None;
    }
    let networks = fields.objects("networks", read)?;
    let default_gw = default_gw(fields);
    if networks.len() < count {
        return None;
    }
    unique_interfaces(fields, &networks);
    for (key, name) in [
        ("default-gw.4", &default_gw.v4),
        ("default-gw.6", &default_gw.v6),
    ] {
        let key = if default_gw.v4 == default_gw.v6 {
            "default-gw"
        } else {
            key
        };
        if let Some(name) = name
            && let Err(text) = named(&networks, None, name)
        {
            fields.problem(key, text);
            if key == "default-gw" {
                break;
            }
        }
    }
    Some(Body::All {
        networks,
        default_gw,
    })
}

impl Body {
    /// The interfaces' names, in order: the first CNI_IFNAME, the others as they ask, or `net<i>`.
    /// Refuses names that clash, and a `default-gw` that names nothing: only here, since
    /// CNI_IFNAME is no part of the configuration.
    pub fn interface_names(&self, ifname: &IfName) -> Result<Vec<IfName>, Error> {
        let Body::All {
            networks,
            default_gw,
        } = self
        else {
            return Ok(vec![ifname.clone()]);
        };
        let wrong = |msg: String, details: &str| Error::new(Code::InvalidConfig, msg, details);
        let mut names = Vec::with_capacity(networks.len());
        for (i, network) in networks.iter().enumerate() {
            let name = match (i, &network.interface) {
                (0, Some(own)) if own != ifname => {
                    let msg = format!("networks[0].interface: {own} is not CNI_IFNAME, {ifname}");
                    return Err(wrong(
                        msg,
                        "leave it out: the runtime names the first interface",
                    ));
                }
                (0, _) => ifname.clone(),
                (_, Some(own)) => own.clone(),
                (_, None) => default_name(i)?,
            };
            if names.contains(&name) {
                let msg = format!("networks[{i}]: another interface is named {name} too");
                return Err(wrong(msg, "write another name as its \"interface\""));
            }
            names.push(name);
        }
        for name in [&default_gw.v4, &default_gw.v6].into_iter().flatten() {
            named(networks, Some(ifname), name).map_err(|text| {
                wrong(
                    format!("default-gw: {text}"),
                    "write a name that occurs once",
                )
            })?;
        }
        Ok(names)
    }

    /// Whether some plugin that is executed declares a capability.
    pub fn takes(&self, capability: &str) -> bool {
        self.networks().iter().any(|network| match &network.how {
            crate::cni::How::Delegate(plugins) => chain::takes(plugins, capability),
            crate::cni::How::Native(_) => false,
        })
    }
}

/// A string for both families, or `{"4": …, "6": …}`.
fn default_gw(fields: &mut Fields<'_>) -> DefaultGw {
    match fields.value("default-gw") {
        None => DefaultGw::default(),
        Some(Value::String(name)) if name.is_empty() => DefaultGw::default(),
        Some(Value::String(name)) => DefaultGw {
            v4: Some(name.clone()),
            v6: Some(name.clone()),
        },
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
        let own = match (i, &network.interface) {
            (0, _) => ifname.cloned(),
            (_, Some(own)) => Some(own.clone()),
            (_, None) => default_name(i).ok(),
        };
        (network.name.as_str() == name || own.is_some_and(|own| own.as_str() == name)).then_some(i)
    };
    let found: Vec<usize> = networks.iter().enumerate().filter_map(by_name).collect();
    match found.as_slice() {
        [_] => Ok(()),
        [] if ifname.is_none() && IfName::new(name).is_ok() => Ok(()),
        [] => {
            let names: Vec<&str> = networks
                .iter()
                .map(|network| network.name.as_str())
                .collect();
            let names = names.join(", ");
            Err(format!(
                "{} is no network or interface here: the networks are {names}",
                shown(name)
            ))
        }
        [i, j, ..] => Err(format!(
            "{} is ambiguous, it means networks[{i}] and networks[{j}]: write an interface's name",
            shown(name)
        )),
    }
}

fn default_name(i: usize) -> Result<IfName, Error> {
    IfName::new(&format!("net{i}"))
        .map_err(|error| Error::new(Code::InvalidConfig, error.to_string(), ""))
}
