//! One network, at the top of the configuration (plugin mode) or as an element of `networks`:
//! who does it, natively or by executing plugins.

use super::native::{self, Written};
use super::request::RuntimeRequest;
use super::{OWN_TYPES, REFERENCE_TYPES, TOP_KEYS, chain, choice, common};
use crate::cni::{Ipam, Network, NetworkBackend, ProviderKind, Version};
use crate::text::quoted;
use crate::{Fields, Problems};
use plexus_types::{NetworkName, PluginType};

/// What an element of `networks` has beside the plugin's own keys.
const ENTRY_KEYS: [&str; 3] = ["name", "interface", "sourceRouting"];

/// The network of plugin mode. `plugin` is the name that we were called by.
pub(super) fn top(
    fields: &mut Fields<'_>,
    plugin: Option<&PluginType>,
    version: Version,
    request: &RuntimeRequest,
) -> Option<NetworkBackend> {
    let plugin = plugin?.as_str();
    let ours = OWN_TYPES.contains(&plugin);
    if !ours && !REFERENCE_TYPES.contains(&plugin) {
        let text = format!(
            "{} is neither one of our names ({}) nor a reference plugin's",
            quoted(plugin),
            OWN_TYPES.join(", ")
        );
        fields.problem("type", text);
        fields.accept_rest();
        return None;
    }
    let keys: Vec<&str> = ["provider", "plugins"]
        .into_iter()
        .filter(|k| fields.has(k))
        .collect();
    match (ours, keys.as_slice()) {
        (false, []) => typed(fields, plugin, &TOP_KEYS, version, request),
        (false, [key, ..]) => {
            let text = format!("and \"type\": \"{plugin}\" exclude each other: keep one of them");
            fields.problem(key, text);
            fields.accept_rest();
            None
        }
        (true, []) => {
            fields.missing("provider", &choice::missing(choice::AT_TOP));
            unclear(fields)
        }
        (true, _) => ours_or_chain(fields, version, request),
    }
}

/// The one plugin of a NAD: ours, or any.
pub(crate) fn of_nad(
    fields: &mut Fields<'_>,
    plugin: &str,
    version: Version,
    request: &RuntimeRequest,
) -> Option<NetworkBackend> {
    if !OWN_TYPES.contains(&plugin) {
        return typed(fields, plugin, &TOP_KEYS, version, request);
    }
    if !fields.has("provider") && !fields.has("plugins") {
        fields.missing("provider", &choice::missing(choice::IN_NAD));
        return unclear(fields);
    }
    ours_or_chain(fields, version, request)
}

/// The list of plugins of a NAD.
pub(crate) fn of_list(
    fields: &mut Fields<'_>,
    version: Version,
    request: &RuntimeRequest,
) -> Option<NetworkBackend> {
    chain::plugins(fields, version, request).map(NetworkBackend::Delegate)
}

/// An element of `networks`.
pub(super) fn entry(
    fields: &mut Fields<'_>,
    version: Version,
    request: &RuntimeRequest,
) -> Option<Network> {
    let name = fields.parsed::<NetworkName>("name");
    if fields.lacks("name") {
        fields.missing("name", "write the network's name");
    }
    let interface = fields.parsed("interface");
    let source_routing = fields.flag("sourceRouting");
    let keys: Vec<&str> = ["provider", "type", "plugins"]
        .into_iter()
        .filter(|k| fields.has(k))
        .collect();
    let backend = match keys.as_slice() {
        ["type"] => fields
            .parsed::<PluginType>("type")
            .and_then(|plugin| typed(fields, plugin.as_str(), &ENTRY_KEYS, version, request)),
        ["provider"] | ["plugins"] | ["provider", "plugins"] => {
            ours_or_chain(fields, version, request)
        }
        [] => {
            fields.missing("provider", &choice::missing(choice::IN_ENTRY));
            unclear(fields)
        }
        keys => {
            let text = format!("{} exclude each other: keep one of them", keys.join(", "));
            fields.problem("provider", text);
            unclear(fields)
        }
    };
    check_source_routing(fields, source_routing, backend.as_ref());
    Some(Network {
        name: name?,
        interface,
        source_routing,
        of_object: false,
        backend: backend?,
        runtime: None,
    })
}

/// Source routing needs to know the addresses before the interface is made.
pub(crate) fn check_source_routing(
    fields: &mut Fields<'_>,
    wanted: bool,
    backend: Option<&NetworkBackend>,
) {
    if let (true, Some(NetworkBackend::Delegate(_))) = (wanted, backend) {
        let text = "is for native networks: this one is executed; add the plugin \"sbr\" to its \
                    \"plugins\", or leave it out";
        fields.unsupported("sourceRouting", text);
    }
}

/// `provider`, `plugins`, or `"provider": "delegate"` with `plugins`.
fn ours_or_chain(
    fields: &mut Fields<'_>,
    version: Version,
    request: &RuntimeRequest,
) -> Option<NetworkBackend> {
    let provider = fields.text("provider");
    let has_plugins = fields.has("plugins");
    match provider {
        None | Some("delegate") if has_plugins => {
            chain::plugins(fields, version, request).map(NetworkBackend::Delegate)
        }
        None => unclear(fields),
        Some("delegate") => {
            fields.missing("plugins", "write the list of plugins to execute");
            unclear(fields)
        }
        Some(_) if has_plugins => {
            let text = "and \"plugins\" exclude each other: keep one of them";
            fields.problem("provider", text);
            unclear(fields)
        }
        Some(name) => match ProviderKind::of(name).filter(|kind| kind.in_config) {
            Some(kind) => native::read(fields, kind, Written::ForUs, version, request)
                .map(NetworkBackend::Native),
            None => {
                let text = choice::provider(name, fields.path());
                fields.problem("provider", text);
                unclear(fields)
            }
        },
    }
}

/// A reference plugin's configuration: native if every key is understood, else executed. A value
/// that is wrong is an error in both cases. `ours` are the keys that are not the plugin's.
fn typed(
    fields: &mut Fields<'_>,
    plugin: &str,
    ours: &[&'static str],
    version: Version,
    request: &RuntimeRequest,
) -> Option<NetworkBackend> {
    fields.accept_rest();
    let mut unsupported_key = None;
    let kept = |key: &&&str| !chain::is_plugins(key);
    let stripped: Vec<&str> = ours.iter().filter(kept).copied().collect();
    if let Some(kind) = ProviderKind::of(plugin).filter(|kind| kind.is_plugin) {
        let mut options = Fields::new(fields.map(), fields.path());
        options.know(ours);
        options.know(&["type"]);
        foreign_capabilities(&mut options, kind);
        let native = native::read(&mut options, kind, Written::ForPlugin, version, request);
        let problems = options.finish();
        if problems.0.is_empty() {
            let mut native = native?;
            let plugin = || chain::single(fields, &stripped, version, request, None);
            native.provider.keep_plugin(plugin);
            return Some(NetworkBackend::Native(native));
        }
        let (foreign, wrong): (Vec<_>, Vec<_>) = problems
            .0
            .into_iter()
            .partition(|problem| problem.unknown_key);
        unsupported_key = foreign
            .first()
            .map(|problem| relative(&problem.path, fields.path()));
        // No plugin but ourselves knows the IPAM "plexus".
        let only_ours = native.is_some_and(|native| matches!(native.ipam, Some(Ipam::Plexus(_))));
        if !wrong.is_empty() || only_ours {
            fields.absorb(Problems(if wrong.is_empty() { foreign } else { wrong }));
            return None;
        }
    }
    Some(NetworkBackend::Delegate(chain::single(
        fields,
        &stripped,
        version,
        request,
        unsupported_key,
    )))
}

/// Capabilities that the native network does not have are a reason to execute the plugin.
fn foreign_capabilities(fields: &mut Fields<'_>, kind: &ProviderKind) {
    for name in common::capabilities(fields) {
        if !kind.capabilities.contains(&name.as_str()) {
            let text = format!("is not native: {} are", kind.capabilities.join(" and "));
            fields.unsupported(&format!("capabilities.{name}"), text);
        }
    }
}

/// Nothing can be said about the options of a network of no known kind.
fn unclear(fields: &mut Fields<'_>) -> Option<NetworkBackend> {
    fields.know(&["provider", "type", "plugins", "networks", "interface"]);
    fields.know(&native::all_keys().collect::<Vec<_>>());
    None
}

fn relative(path: &str, base: &str) -> String {
    path.strip_prefix(base)
        .map_or(path, |rest| rest.trim_start_matches('.'))
        .to_owned()
}
