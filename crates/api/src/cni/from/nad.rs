//! The configuration of a NAD.

use super::{ParsedNetwork, check_taken};
use crate::cni::parse::ipam::fixed;
use crate::cni::parse::request::RuntimeRequest;
use crate::cni::parse::{OWN_TYPES, TOP_KEYS, chain, common, network};
use crate::cni::{Network, NetworkBackend, Version};
use crate::pod::NetworkSelection;
use crate::translate::object_at;
use crate::{Fields, Problems};
use plexus_types::{NetworkName, PluginType};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// What a runtime inserts: in an object that many pods use it can only be wrong.
const INSERTED: [&str; 4] = [
    "runtimeConfig",
    "prevResult",
    "cni.dev/valid-attachments",
    "cni.dev/attachments",
];

/// The configuration with a name, for messages.
pub(super) fn with_name(config: &Map<String, Value>, name: &NetworkName) -> Map<String, Value> {
    let own = config.get("name").and_then(Value::as_str);
    let name = own.filter(|own| !own.is_empty()).unwrap_or(name.as_str());
    Map::from_iter([("name".to_owned(), json!(name))])
}

/// Reads it; `path` is where it is found.
pub(super) fn read(
    name: &NetworkName,
    config: &Map<String, Value>,
    version: Version,
    selection: &NetworkSelection,
    path: &str,
) -> Result<ParsedNetwork, Problems> {
    let mut config = flattened(config).unwrap_or_else(|| config.clone());
    let wrong = merge_args(&mut config, &selection.cni_args);
    let mut fields = Fields::new(&config, path);
    if let Some(text) = wrong {
        fields.problem("args", text);
    }
    let own_name = head(&mut fields);
    let mut request = RuntimeRequest::of(&mut fields, selection);
    request.version = version;
    let source_routing = fields.flag("sourceRouting");
    let capabilities = common::capabilities(&mut fields);
    let plugin = fields.parsed::<PluginType>("type");
    let is_list = fields.has("plugins") && plugin.is_none();
    let backend = match &plugin {
        _ if fields.has("networks") => {
            let text = "is for a runtime's own configuration: a NAD is one network";
            fields.problem("networks", text);
            fields.accept_rest();
            None
        }
        _ if is_list => chain::plugins(&mut fields, &request).map(NetworkBackend::Delegate),
        Some(plugin) => network::of_nad(&mut fields, plugin.as_str(), &request),
        None => {
            fields.require("type", "write the plugin's name, or \"plugins\"");
            fields.accept_rest();
            None
        }
    };
    network::check_source_routing(&mut fields, source_routing, backend.as_ref());
    let ours = plugin.is_some_and(|name| OWN_TYPES.contains(&name.as_str()));
    let declared = (!ours).then_some(capabilities);
    if let Some(backend) = &backend {
        check_taken(&mut fields, selection, backend, declared.as_deref());
        check_executed(&mut fields, &request, backend);
    }
    let problems = fields.finish().without_repetition();
    match (problems.0.is_empty(), backend) {
        (true, Some(backend)) => Ok(ParsedNetwork {
            network: Network {
                name: own_name.unwrap_or_else(|| name.clone()),
                interface: selection.interface.clone(),
                source_routing,
                of_object: false,
                backend,
                runtime: Some(selection.runtime_config()),
            },
            declared,
        }),
        _ => Err(problems),
    }
}

/// A list of one plugin is that plugin.
pub(crate) fn flattened(config: &Map<String, Value>) -> Option<Map<String, Value>> {
    let list = config.get("plugins")?.as_array()?;
    let ([Value::Object(plugin)], false) = (list.as_slice(), config.contains_key("type")) else {
        return None;
    };
    let mut flat = plugin.clone();
    let above = config.iter().filter(|(key, _)| *key != "plugins");
    flat.extend(above.map(|(key, value)| (key.clone(), value.clone())));
    Some(flat)
}

/// What stands at the top of every configuration. Gives its own name, if it has one.
fn head(fields: &mut Fields<'_>) -> Option<NetworkName> {
    fields.know(&TOP_KEYS);
    for key in INSERTED {
        if fields.has(key) {
            fields.problem(key, "is inserted by the runtime: remove it");
        }
    }
    for key in ["disableCheck", "disableGC", "loadOnlyInlinedPlugins"] {
        fields.flag(key);
    }
    fields.parsed::<PathBuf>("agentSocket");
    fields.parsed("name")
}

/// The pod's `cni-args` go to every plugin, and win. An error if there is no place for them.
fn merge_args(config: &mut Map<String, Value>, request: &Map<String, Value>) -> Option<String> {
    if request.is_empty() {
        return None;
    }
    let plugins = match config.get_mut("plugins").and_then(Value::as_array_mut) {
        None => return merge(config, request),
        Some(plugins) => plugins,
    };
    let maps = plugins.iter_mut().filter_map(Value::as_object_mut);
    let wrong: Vec<String> = maps.filter_map(|plugin| merge(plugin, request)).collect();
    wrong.into_iter().next()
}

fn merge(plugin: &mut Map<String, Value>, request: &Map<String, Value>) -> Option<String> {
    let mut target = plugin;
    for key in ["args", "cni"] {
        match object_at(target, key) {
            Some(map) => target = map,
            None => {
                return Some(format!(
                    "{key} is not an object: the pod's cni-args go there"
                ));
            }
        }
    }
    target.extend(request.clone());
    None
}

/// A plugin gets the pod's `cni-args` as they are: the same is checked where it executes `static`.
fn check_executed(fields: &mut Fields<'_>, request: &RuntimeRequest, backend: &NetworkBackend) {
    let NetworkBackend::Delegate(chain) = backend else {
        return;
    };
    for plugin in &chain.plugins {
        let mut read = Fields::new(plugin, fields.path());
        fixed::check_pod(&mut read, request);
        read.accept_rest();
        fields.absorb(read.finish());
    }
}
