//! What a NetworkAttachmentDefinition says: its configuration text and Contrail's annotations.
//!
//! Text goes in; a configuration with warnings, or all [`Problems`], come out. Never decides which
//! network is meant.

mod contrail;
#[cfg(test)]
mod tests;

pub use contrail::{CIDR, Contrail, FORWARDING, SNAT};

use crate::cni::{FqName, MAX_CONFIG, parse};
use crate::problem::fault;
use crate::{Fields, Problems, document};
use serde_json::{Map, Value};

/// Where the configuration is found.
const PATH: &str = "spec.config";

/// Reads `spec.config`. A list of one plugin is given as that plugin. Typographic quotes, which word
/// processors make of straight ones, are read as straight ones; the second part says so.
pub fn config(text: &str) -> Result<(Map<String, Value>, Vec<String>), Problems> {
    if text.len() > MAX_CONFIG {
        let text = format!("has {} bytes: at most {MAX_CONFIG} are read", text.len());
        return Err(fault(PATH, text));
    }
    if text.trim().is_empty() {
        return Err(fault(PATH, "is empty: write a CNI configuration"));
    }
    let mut warnings = Vec::new();
    let value = match (document::read(text.as_bytes()), straightened(text)) {
        (Err(_), Some(straight)) => {
            let text = "has typographic quotes, which were read as straight ones: other programs \
                        refuse it";
            warnings.push(format!("{PATH} {text}"));
            document::read(straight.as_bytes())
        }
        (read, _) => read,
    };
    let map = match value {
        Ok(Value::Object(map)) => map,
        Ok(_) => return Err(fault(PATH, "is JSON, but not an object")),
        Err(cause) => return Err(fault(PATH, format!("is not valid JSON: {cause}"))),
    };
    let map = parse::flattened(&map).unwrap_or(map);
    if is_named(&map) && map.get("contrail").is_some_and(Value::is_object) {
        warnings.push(format!("{PATH}: {}", parse::unused()));
    }
    Ok((map, warnings))
}

/// Whether a configuration leaves everything to the cluster: one of our types (`contrail-k8s-cni`,
/// `plexus-cni`) and nothing that says how. Then the network is the `Network` of the NAD's
/// namespace and name, or the fully qualified one that its annotation or its key `network` names.
pub fn is_named(config: &Map<String, Value>) -> bool {
    parse::is_named(config)
}

/// Whether it is a NAD of a MultiNicNetwork: the network has its name.
pub fn is_multi_nic(config: &Map<String, Value>) -> bool {
    parse::is_multi_nic(config)
}

/// The key `network` of such a configuration; keys that are not known are problems.
pub fn named(config: &Map<String, Value>) -> Result<Option<FqName>, Problems> {
    let mut fields = Fields::new(config, PATH);
    let fq_name = parse::named_in_nad(&mut fields);
    fields.finish().unless_any(fq_name)
}

/// The text with straight quotes, if it has others.
fn straightened(text: &str) -> Option<String> {
    const DOUBLE: [char; 4] = ['\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}'];
    text.contains(DOUBLE).then(|| text.replace(DOUBLE, "\""))
}
