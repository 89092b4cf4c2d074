//! Standard input to [`NetConf`]: every problem is found in one go, each with its path.
//!
//! ```text
//! bytes ─► object ─► version ─► head (name, type, requests, prevResult, attachments)
//!                                └─► body: one network, `networks` with `default-gw`, the pod's
//!                                     own, or one that the cluster knows by its name
//!                                     └─► capabilities: does somebody take what is asked?
//! ```

mod capabilities;
pub(crate) mod chain;
pub(crate) mod choice;
pub(crate) mod common;
pub(crate) mod ipam;
mod lenient;
mod named;
pub(crate) mod native;
pub(crate) mod network;
mod ports;
pub(crate) mod request;
mod standalone;
#[cfg(test)]
mod tests;

pub(crate) use super::from::flattened;
pub use lenient::{Remains, RemainsNetwork};
pub(crate) use named::{in_nad as named_in_nad, is_multi_nic, is_named, unused};
pub(crate) use ports::port_mappings;
pub(crate) use standalone::default_gw;

use super::{
    Args, Body, Code, Error, NetConf, Network, Outcome, POD_ANNOTATIONS, ValidAttachment, Version,
};
use crate::text::quoted;
use crate::{Fields, Problems, document};
use plexus_types::{NetworkName, PluginType};
use request::RuntimeRequest;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The largest configuration that anyone should accept, in bytes.
///
/// A runtime passes all of a pod's annotations along, which may have 256 KiB before they are quoted.
pub const MAX_CONFIG: usize = 2 << 20;

/// The names that the shim is installed under.
pub const OWN_TYPES: [&str; 5] = [
    "plexus-cni",
    "contrail-k8s-cni",
    "multi-nic",
    "multi-nic-ipam",
    "multus-multivpc-cni",
];

/// The reference plugins, whose names the shim may be installed under too.
const REFERENCE_TYPES: [&str; 15] = [
    "bandwidth",
    "bridge",
    "dummy",
    "firewall",
    "host-device",
    "ipvlan",
    "loopback",
    "macvlan",
    "portmap",
    "ptp",
    "sbr",
    "tap",
    "tuning",
    "vlan",
    "vrf",
];

/// Whether a plugin is one of the reference project's.
pub(crate) fn is_reference(name: &str) -> bool {
    REFERENCE_TYPES.contains(&name)
}

/// What the top of every configuration may have, whatever its kind.
pub(crate) const TOP_KEYS: [&str; 15] = [
    "cniVersion",
    "cniVersions",
    "name",
    "type",
    "disableCheck",
    "disableGC",
    "loadOnlyInlinedPlugins",
    "capabilities",
    "runtimeConfig",
    "args",
    "prevResult",
    "agentSocket",
    "cni.dev/valid-attachments",
    "cni.dev/attachments",
    "sourceRouting",
];

impl NetConf {
    /// Reads and validates a configuration. Codes: 6 for text that is not a JSON object, 1 for a
    /// version that we do not speak, 7 for wrong values, 2 for keys (and values) that are not
    /// understood and nothing worse. The message has all problems, the details the remedy.
    pub fn parse(bytes: &[u8], args: &Args) -> Result<Self, Error> {
        let map = object(bytes)?;
        let version = version_of(&map)?;
        let mut fields = Fields::new(&map, "");
        let mut head = Head::read(&mut fields, version, args);
        let body = body(&mut fields, &mut head);
        if let Some(body) = &body {
            capabilities::check(&mut fields, &head, body);
            if body.takes(POD_ANNOTATIONS) {
                request::keep_annotations(&map, &mut head.runtime);
            }
        }
        let problems = fields.finish().without_repetition();
        match (problems.0.is_empty(), head.name, head.plugin, body) {
            (true, Some(name), Some(plugin_type), Some(body)) => Ok(Self {
                version,
                name,
                plugin_type,
                body,
                prev_result: head.prev_result,
                runtime: head.runtime,
                warnings: head.warnings,
                valid_attachments: head.attachments,
            }),
            _ => Err(invalid(&map, &problems)),
        }
    }
}

/// What every configuration has, whatever its kind.
struct Head {
    name: Option<NetworkName>,
    plugin: Option<PluginType>,
    request: RuntimeRequest,
    runtime: super::Runtime,
    prev_result: Option<Outcome>,
    attachments: Option<Vec<ValidAttachment>>,
    capabilities: Vec<String>,
    warnings: Vec<String>,
}

impl Head {
    fn read(fields: &mut Fields<'_>, version: Version, args: &Args) -> Self {
        let name = fields.parsed("name");
        let plugin = fields.parsed("type");
        for (key, remedy) in [
            ("name", "write the network's name"),
            ("type", "write the plugin's name, plexus-cni"),
        ] {
            fields.require(key, remedy);
        }
        other_versions(fields);
        fields.flag("disableCheck");
        fields.flag("disableGC");
        fields.flag("loadOnlyInlinedPlugins");
        fields.parsed::<PathBuf>("agentSocket");
        let (mut request, runtime) = RuntimeRequest::read(fields, version, args);
        let capabilities = common::capabilities(fields);
        request.declares_ips = capabilities.iter().any(|name| name == "ips");
        Self {
            name,
            plugin,
            request,
            runtime,
            prev_result: prev_result(fields, version),
            attachments: attachments(fields),
            capabilities,
            warnings: Vec::new(),
        }
    }
}

/// An error for a version that we do not speak.
pub(super) fn incompatible(what: &str, version: &str) -> Error {
    let spoken = Version::ALL.map(Version::as_str).join(", ");
    let version = quoted(version);
    Error::new(
        Code::IncompatibleVersion,
        format!("cniVersion {version} of the {what} is not one that we speak: {spoken}"),
        "write one of these as cniVersion",
    )
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, Error> {
    let what = match bytes.len() {
        0..=MAX_CONFIG => match document::read(bytes) {
            Ok(Value::Object(map)) => return Ok(map),
            Ok(_) => "is JSON, but not an object".to_owned(),
            Err(cause) => format!("is not valid JSON: {cause}"),
        },
        size => format!("has {size} bytes: at most {MAX_CONFIG} are accepted"),
    };
    Err(Error::new(
        Code::Decode,
        format!("the network configuration {what}"),
        "write the network configuration as one JSON object",
    ))
}

/// An absent version is 0.1.0 by the specification.
fn version_of(map: &Map<String, Value>) -> Result<Version, Error> {
    let text = match map.get("cniVersion") {
        None | Some(Value::Null) => "0.1.0",
        Some(Value::String(text)) if text.is_empty() => "0.1.0",
        Some(Value::String(text)) => text,
        Some(other) => {
            let other = quoted(&other.to_string());
            let msg = format!("cniVersion: must be a string, not {other}");
            return Err(Error::new(Code::InvalidConfig, msg, "write \"1.1.0\""));
        }
    };
    Version::parse(text).ok_or_else(|| incompatible("network configuration", text))
}

/// The version of an object that many pods use; none written is the newest that all plugins know.
pub(crate) fn version_or_newest(map: &Map<String, Value>) -> Result<Version, Error> {
    match map.get("cniVersion") {
        None | Some(Value::Null) => Ok(Version::default()),
        Some(_) => version_of(map),
    }
}

/// `cniVersions` lets a runtime choose; by now it has chosen.
fn other_versions(fields: &mut Fields<'_>) {
    fields.know(&["cniVersion"]);
    let versions = fields.parsed_list::<String>("cniVersions");
    for (i, text) in versions.iter().enumerate() {
        let parts: Vec<&str> = text.split('.').collect();
        let numbers = parts.iter().all(|part| part.parse::<u16>().is_ok());
        if parts.len() != 3 || !numbers {
            let text = format!("{} is not a version: write it as 1.1.0", quoted(text));
            fields.problem(&format!("cniVersions[{i}]"), text);
        }
    }
}

/// `prevResult` has the version that it says, else the configuration's.
fn prev_result(fields: &mut Fields<'_>, version: Version) -> Option<Outcome> {
    let map = fields.map_of("prevResult")?;
    let written = map.get("cniVersion").and_then(Value::as_str);
    let Some(version) = written.map_or(Some(version), Version::parse) else {
        let error = incompatible("previous result", written.unwrap_or_default());
        fields.problem("prevResult.cniVersion", error.msg);
        return None;
    };
    let read = |inner: &mut Fields<'_>| Outcome::read(inner, version);
    Some(fields.read_object("prevResult", map, read))
}

/// The list of what must stay, under its present name and under its older one: what either has.
fn attachments(fields: &mut Fields<'_>) -> Option<Vec<ValidAttachment>> {
    let mut all: Option<BTreeSet<ValidAttachment>> = None;
    for key in ["cni.dev/valid-attachments", "cni.dev/attachments"] {
        let list = fields.objects(key, |fields, _| {
            let container = fields.parsed("containerID");
            let ifname = fields.parsed("ifname");
            for key in ["containerID", "ifname"] {
                fields.require(key, "an attachment is named by both");
            }
            fields.accept_rest();
            Some(ValidAttachment {
                container: container?,
                ifname: ifname?,
            })
        });
        if let Some(list) = list {
            all.get_or_insert_default().extend(list);
        }
    }
    all.map(|all| all.into_iter().collect())
}

/// Whether the cluster says which networks there are.
fn leaves_it_to_the_cluster(map: &Map<String, Value>) -> bool {
    map.get("networks").is_some_and(|value| value == "pod") || is_named(map)
}

fn body(fields: &mut Fields<'_>, head: &mut Head) -> Option<Body> {
    if fields.has("networks") {
        return standalone::read(fields, head);
    }
    if is_named(fields.map()) {
        let (fq_name, warnings) = named::read(fields);
        head.warnings = warnings;
        // Whoever knows the network sees only these: Podman says them in CNI_ARGS.
        head.runtime.ips = head.request.ips().to_vec();
        head.runtime.mac = head.request.mac;
        return Some(Body::Named(fq_name));
    }
    fields.know(&["networks"]);
    let source_routing = fields.flag("sourceRouting");
    let backend = network::top(fields, head.plugin.as_ref(), &head.request);
    network::check_source_routing(fields, source_routing, backend.as_ref());
    let name = head.name.clone()?;
    Some(Body::One(Network {
        name,
        interface: None,
        source_routing,
        of_object: false,
        backend: backend?,
        runtime: None,
    }))
}

pub(crate) fn invalid(map: &Map<String, Value>, problems: &Problems) -> Error {
    let name = map.get("name").and_then(Value::as_str);
    let name = name.map(|name| format!(" {}", quoted(name)));
    let name = name.unwrap_or_default();
    let mut code = Code::InvalidConfig;
    let mut details = "correct the fields named and try again: nothing was changed";
    if !problems.0.is_empty() && problems.0.iter().all(|problem| problem.unknown_key) {
        code = Code::UnsupportedField;
        details = "remove the keys named, or correct them; a reference plugin's own options \
                   are understood under its \"type\" in an entry of \"networks\"";
    }
    let msg = format!("network configuration{name}: {problems}");
    Error::new(code, msg, details)
}
