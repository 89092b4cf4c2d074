//! Plugins to execute: `plugins`, or one reference plugin's configuration that we do not do
//! natively. Owns the rule that nothing resolves to ourselves.

use super::request::RuntimeRequest;
use super::{OWN_TYPES, TOP_KEYS, common};
use crate::cni::{Chain, Executable};
use crate::{Fields, go_folds};
use plexus_types::PluginType;
use serde_json::{Map, Value};

/// More than any chain in use.
const MAX_PLUGINS: usize = 32;

/// What the runner inserts.
pub(super) const INSERTED: [&str; 4] = ["cniVersion", "name", "runtimeConfig", "prevResult"];

/// Whose `type` says which IPAM plugin a plugin executes.
const IPAM: &str = "ipam";

/// Takes `plugins`.
pub(crate) fn plugins(fields: &mut Fields<'_>, request: &RuntimeRequest) -> Option<Chain> {
    let plugins = fields.objects("plugins", |plugin, _| {
        let map = canonical(plugin);
        let mut read = Fields::new(&map, plugin.path());
        for key in ["runtimeConfig", "prevResult"] {
            if read.has(key) {
                read.problem(key, "is inserted when the plugin is executed: remove it");
            }
        }
        check(&mut read);
        plugin.accept_rest();
        plugin.absorb(read.finish());
        Some(config(&map, &INSERTED, request))
    })?;
    match plugins.len() {
        0 if fields.is_sound() => {
            let text = "is empty: write at least one plugin's configuration";
            fields.problem("plugins", text);
        }
        0..=MAX_PLUGINS => {}
        count => {
            let text = format!("has {count}: write at most {MAX_PLUGINS}");
            fields.problem("plugins", text);
        }
    }
    Some(Chain {
        executable: Executable::Type,
        version: request.version,
        plugins,
        unsupported_key: None,
    })
}

/// The configuration of one plugin that may have been executed, without the keys in `without`: for a DEL of what
/// does not validate as a whole. None where it is not clear which binary an ADD would have executed, or where that is ours.
pub(super) fn remains(map: &Map<String, Value>, without: &[&str]) -> Option<Map<String, Value>> {
    let mut fields = Fields::new(map, "");
    let mut plugin = canonical(&mut fields);
    let mut read = Fields::new(&plugin, "");
    read.require("type", "write the plugin's name");
    check_types(&mut read);
    let is_clear = fields.is_sound() && read.is_sound();
    plugin.retain(|key, _| !without.contains(&key.as_str()));
    is_clear.then_some(plugin)
}

/// One plugin: the whole object, without the keys in `ours`.
pub(super) fn single(
    fields: &mut Fields<'_>,
    ours: &[&str],
    request: &RuntimeRequest,
    unsupported_key: Option<String>,
) -> Chain {
    let map = canonical(fields);
    let mut read = Fields::new(&map, fields.path());
    check(&mut read);
    fields.accept_rest();
    fields.absorb(read.finish());
    Chain {
        executable: Executable::Type,
        version: request.version,
        plugins: vec![config(&map, ours, request)],
        unsupported_key,
    }
}

/// The capabilities that the plugins of a chain declare.
pub(crate) fn takes(chain: &Chain, capability: &str) -> bool {
    let plugins = chain.plugins.iter();
    let declared = plugins.filter_map(|plugin| plugin.get("capabilities")?.as_object());
    let mut all = declared.flatten();
    all.any(|(name, value)| go_folds(capability, name) && *value == Value::Bool(true))
}

/// Keys at the top of a network without those that are its plugin's too.
pub(super) fn without_plugins<'k>(keys: &[&'k str]) -> Vec<&'k str> {
    let is_plugins = |key: &str| matches!(key, "type" | "args" | "capabilities");
    keys.iter()
        .copied()
        .filter(|key| !is_plugins(key))
        .collect()
}

/// A plugin's configuration with the keys that we read, write or remove as the specification spells them. Plugins in Go
/// read keys without regard to case: whoever writes `IPAM` decides what is executed as much as who writes `ipam`.
fn canonical(fields: &mut Fields<'_>) -> Map<String, Value> {
    let mut map = spelled(fields, fields.map(), "", &[&TOP_KEYS[..], &[IPAM]].concat());
    if let Some(ipam) = map.get(IPAM).and_then(Value::as_object) {
        let ipam = spelled(fields, ipam, IPAM, &["type"]);
        map.insert(IPAM.to_owned(), Value::Object(ipam));
    }
    map
}

/// The object at `place` with these keys as they are written here. One that occurs in two spellings is a problem.
fn spelled(
    fields: &mut Fields<'_>,
    map: &Map<String, Value>,
    place: &str,
    keys: &[&str],
) -> Map<String, Value> {
    let mut spelled = Map::new();
    for (key, value) in map {
        let known = keys.iter().find(|known| go_folds(known, key));
        let name = known.copied().unwrap_or(key);
        if spelled.insert(name.to_owned(), value.clone()).is_some() {
            let dot = if place.is_empty() { "" } else { "." };
            let text = "occurs more than once, in different case: keep one";
            fields.problem(&format!("{place}{dot}{name}"), text);
        }
    }
    spelled
}

/// Checks what we must know of a plugin's configuration; the rest is the plugin's.
fn check(fields: &mut Fields<'_>) {
    fields.require("type", "write the plugin's name");
    common::capabilities(fields);
    check_types(fields);
    fields.accept_rest();
}

/// Checks which binaries it names.
fn check_types(fields: &mut Fields<'_>) {
    plugin_type(fields);
    if let Some(ipam) = fields.value(IPAM).and_then(Value::as_object) {
        fields.read_object(IPAM, ipam, |ipam| {
            plugin_type(ipam);
            ipam.accept_rest();
        });
    }
}

/// Takes `type`: a name that a plugin can have, and not one of ours.
pub(super) fn plugin_type(fields: &mut Fields<'_>) {
    if let Some(name) = fields.parsed::<PluginType>("type")
        && OWN_TYPES.contains(&name.as_str())
    {
        let text = format!(
            "\"{name}\" is Plexus itself, which would call itself without end: write the plugin \
             that does the work, or \"provider\" for a native network"
        );
        fields.problem("type", text);
    }
}

/// A plugin's configuration: the object without some keys, with the `args` of the request if it has none.
pub(super) fn config(
    map: &Map<String, Value>,
    without: &[&str],
    request: &RuntimeRequest,
) -> Map<String, Value> {
    let mut plugin = map.clone();
    plugin.retain(|key, _| !without.contains(&key.as_str()));
    if let Some(args) = &request.args
        && plugin.get("args").is_none_or(Value::is_null)
    {
        plugin.insert("args".to_owned(), args.clone());
    }
    plugin
}
