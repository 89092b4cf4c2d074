//! Plugins to execute: `plugins`, or one reference plugin's configuration that we do not do
//! natively. Owns the rule that nothing resolves to ourselves.

use super::request::RuntimeRequest;
use super::{OWN_TYPES, common};
use crate::Fields;
use crate::cni::{Chain, Executable, Version};
use plexus_types::PluginType;
use serde_json::{Map, Value};

/// More than any chain in use.
const MAX_PLUGINS: usize = 32;

/// What the runner inserts.
const INSERTED: [&str; 4] = ["cniVersion", "name", "runtimeConfig", "prevResult"];

/// Takes `plugins`.
pub(super) fn plugins(
    fields: &mut Fields<'_>,
    version: Version,
    request: &RuntimeRequest,
) -> Option<Chain> {
    let plugins = fields.objects("plugins", |plugin, _| {
        for key in ["runtimeConfig", "prevResult"] {
            if plugin.has(key) {
                plugin.problem(key, "is inserted when the plugin is executed: remove it");
            }
        }
        check(plugin);
        Some(config(plugin.map(), &INSERTED, request))
    })?;
    match plugins.len() {
        0 if fields.is_sound() => {
            fields.problem(
                "plugins",
                "is empty: write at least one plugin's configuration",
            );
        }
        0..=MAX_PLUGINS => {}
        count => fields.problem(
            "plugins",
            format!("has {count}: write at most {MAX_PLUGINS}"),
        ),
    }
    Some(Chain {
        executable: Executable::Type,
        version,
        plugins,
        unsupported_key: None,
    })
}

/// One plugin: the whole object, without the keys in `ours`.
pub(super) fn single(
    fields: &mut Fields<'_>,
    ours: &[&str],
    version: Version,
    request: &RuntimeRequest,
    unsupported_key: Option<String>,
) -> Chain {
    check(fields);
    let plugin = config(fields.map(), ours, request);
    Chain {
        executable: Executable::Type,
        version,
        plugins: vec![plugin],
        unsupported_key,
    }
}

/// The capabilities that the plugins of a chain declare.
pub(crate) fn takes(chain: &Chain, capability: &str) -> bool {
    let declares = |plugin: &Map<String, Value>| {
        let declared = plugin.get("capabilities").and_then(Value::as_object);
        declared.is_some_and(|declared| {
            let set = |(name, value): (&String, &Value)| {
                name.eq_ignore_ascii_case(capability) && *value == Value::Bool(true)
            };
            declared.iter().any(set)
        })
    };
    chain.plugins.iter().any(declares)
}

/// Whether a key at the top of a network is its plugin's too.
pub(super) fn is_plugins(key: &str) -> bool {
    matches!(key, "type" | "args" | "capabilities")
}

/// Checks what we must know of a plugin's configuration; the rest is the plugin's.
fn check(fields: &mut Fields<'_>) {
    if fields.lacks("type") {
        fields.missing("type", "write the plugin's name");
    }
    plugin_type(fields);
    common::capabilities(fields);
    if let Some(ipam) = fields.value("ipam").and_then(Value::as_object) {
        let mut ipam = Fields::new(ipam, fields.path_of("ipam"));
        plugin_type(&mut ipam);
        ipam.accept_rest();
        let problems = ipam.finish();
        fields.absorb(problems);
    }
    fields.accept_rest();
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
    let kept = map
        .iter()
        .filter(|(key, _)| !without.contains(&key.as_str()));
    let mut plugin: Map<String, Value> = kept
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if let Some(args) = &request.args
        && plugin.get("args").is_none_or(Value::is_null)
    {
        plugin.insert("args".to_owned(), args.clone());
    }
    plugin
}
