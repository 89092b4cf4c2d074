//! One network, at the top of the configuration (plugin mode) or as an element of `networks`:
//! who does it, natively or by executing plugins.

use super::native::{self, Written};
use super::request::RuntimeRequest;
use super::{OWN_TYPES, REFERENCE_TYPES, TOP_KEYS, chain, choice, common};
use crate::cni::{Network, NetworkBackend, ProviderKind};
use crate::text::quoted;
use crate::{Fields, Problems};
use plexus_types::{NetworkName, PluginType};

/// What an element of `networks` has beside the plugin's own keys.
const ENTRY_KEYS: [&str; 3] = ["name", "interface", "sourceRouting"];

/// The network of plugin mode. `plugin` is the name that we were called by.
pub(super) fn top(
    fields: &mut Fields<'_>,
    plugin: Option<&PluginType>,
    request: &RuntimeRequest,
) -> Option<NetworkBackend> {
    let plugin = plugin?.as_str();
    let ours = OWN_TYPES.contains(&plugin);
    if !ours && !REFERENCE_TYPES.contains(&plugin) {
        let (name, ours) = (quoted(plugin), OWN_TYPES.join(", "));
        let text = format!("{name} is neither one of our names ({ours}) nor a reference plugin's");
        fields.problem("type", text);
        fields.accept_rest();
        return None;
    }
    let mut keys = ["provider", "plugins"].into_iter();
    match (ours, keys.find(|key| fields.has(key))) {
        (false, None) => typed(fields, plugin, &TOP_KEYS, request),
        (false, Some(key)) => {
            let text = format!("and \"type\": \"{plugin}\" exclude each other: keep one of them");
            fields.problem(key, text);
            fields.accept_rest();
            None
        }
        (true, None) => {
            fields.missing("provider", &choice::missing(choice::AT_TOP));
            unclear(fields)
        }
        (true, Some(_)) => ours_or_chain(fields, request),
    }
}

/// The one plugin of a NAD: ours, or any.
pub(crate) fn of_nad(
    fields: &mut Fields<'_>,
    plugin: &str,
    request: &RuntimeRequest,
) -> Option<NetworkBackend> {
    if !OWN_TYPES.contains(&plugin) {
        return typed(fields, plugin, &TOP_KEYS, request);
    }
    if !fields.has("provider") && !fields.has("plugins") {
        fields.missing("provider", &choice::missing(choice::IN_NAD));
        return unclear(fields);
    }
    ours_or_chain(fields, request)
}

/// An element of `networks`.
pub(super) fn entry(fields: &mut Fields<'_>, request: &RuntimeRequest) -> Option<Network> {
    let name = fields.parsed::<NetworkName>("name");
    fields.require("name", "write the network's name");
    let interface = fields.parsed("interface");
    let source_routing = fields.flag("sourceRouting");
    let keys = ["provider", "type", "plugins"].into_iter();
    let keys: Vec<&str> = keys.filter(|key| fields.has(key)).collect();
    let backend = match keys.as_slice() {
        ["type"] => fields
            .parsed::<PluginType>("type")
            .and_then(|plugin| typed(fields, plugin.as_str(), &ENTRY_KEYS, request)),
        ["provider"] | ["plugins"] | ["provider", "plugins"] => ours_or_chain(fields, request),
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
fn ours_or_chain(fields: &mut Fields<'_>, request: &RuntimeRequest) -> Option<NetworkBackend> {
    let provider = fields.text("provider");
    let has_plugins = fields.has("plugins");
    match provider {
        None | Some("delegate") if has_plugins => {
            chain::plugins(fields, request).map(NetworkBackend::Delegate)
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
            Some(kind) => {
                native::read(fields, kind, Written::ForUs, request).map(NetworkBackend::Native)
            }
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
    request: &RuntimeRequest,
) -> Option<NetworkBackend> {
    fields.accept_rest();
    let mut unsupported_key = None;
    let stripped = chain::without_plugins(ours);
    if let Some(kind) = ProviderKind::of(plugin).filter(|kind| kind.is_plugin) {
        let mut options = Fields::new(fields.map(), fields.path());
        options.know(ours);
        options.know(&["type"]);
        foreign_capabilities(&mut options, kind);
        let native = native::read(&mut options, kind, Written::ForPlugin, request);
        let problems = options.finish();
        if problems.0.is_empty() {
            let mut native = native?;
            let plugin = || chain::single(fields, &stripped, request, None);
            native.provider.keep_plugin(plugin);
            return Some(NetworkBackend::Native(native));
        }
        let problems = problems.0.into_iter();
        let (foreign, wrong): (Vec<_>, Vec<_>) = problems.partition(|problem| problem.unknown_key);
        let first = foreign.first();
        unsupported_key = first.map(|problem| relative(&problem.path, fields.path()));
        // No plugin but ourselves knows the IPAM "plexus".
        let ipam = native.and_then(|native| native.ipam);
        let only_ours = ipam.is_some_and(|ipam| !ipam.is_plugin());
        if !wrong.is_empty() || only_ours {
            fields.absorb(Problems(if wrong.is_empty() { foreign } else { wrong }));
            return None;
        }
    }
    let chain = chain::single(fields, &stripped, request, unsupported_key);
    Some(NetworkBackend::Delegate(chain))
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
    let below = path.strip_prefix(base);
    let below = below.map_or(path, |rest| rest.trim_start_matches('.'));
    below.to_owned()
}
