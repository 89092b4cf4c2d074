//! A NetworkAttachmentDefinition: its configuration and Contrail's annotations.

use super::pod::{annotations, check_profile};
use crate::cni::{Executable, Network, every_type, nad_problems};
use crate::later;
use crate::manifest::Level;
use crate::manifest::finding::Findings;
use crate::nad::{self, Contrail};
use plexus_types::NetworkName;
use serde_json::{Map, Value};

const CONFIG: &str = "spec.config";

pub(super) fn check(map: &Map<String, Value>, findings: &mut Findings<'_>) {
    for key in map.keys() {
        if !["apiVersion", "kind", "metadata", "spec"].contains(&key.as_str()) {
            findings.problem(key, "is not a field of this kind: remove it");
        }
    }
    let annotations = annotations(map, "metadata");
    match Contrail::read(&annotations) {
        Ok(contrail) => {
            for warning in contrail.warnings {
                findings.add(Level::Warning, "metadata.annotations", warning);
            }
        }
        Err(problems) => findings.problems("metadata.annotations", problems),
    }
    check_profile(&annotations, "metadata.annotations", findings);
    let spec = match map.get("spec") {
        None | Some(Value::Null) => return,
        Some(Value::Object(spec)) => spec,
        Some(_) => return findings.problem("spec", "must be an object with a config"),
    };
    for key in spec.keys().filter(|key| *key != "config") {
        let text = "is not a field of this kind: there is `config` alone";
        findings.problem(&format!("spec.{key}"), text);
    }
    match spec.get("config") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => config(text, findings),
        Some(_) => {
            let text = "must be text, the configuration as JSON: put it in quotes, or after `|`";
            findings.problem(CONFIG, text);
        }
    }
}

fn config(text: &str, findings: &mut Findings<'_>) {
    let (config, warnings) = match nad::config(text) {
        Ok(read) => read,
        Err(problems) => return findings.problems("", problems),
    };
    for warning in warnings {
        findings.add(Level::Warning, CONFIG, warning);
    }
    if nad::is_named(&config) {
        if let Err(problems) = nad::named(&config) {
            findings.problems("", problems);
        }
        return;
    }
    let waiting = every_type(&config).find_map(later::plugin_waits);
    if let Some(text) = waiting {
        return findings.add(Level::Waiting, CONFIG, text);
    }
    let Ok(name) = NetworkName::new("network") else {
        return;
    };
    findings.problems("", nad_problems(&name, &config, CONFIG));
    if let Some(text) = executed(&name, &config) {
        findings.add(Level::Note, CONFIG, text);
    }
}

/// Which plugins a node must have for it.
fn executed(name: &NetworkName, config: &Map<String, Value>) -> Option<String> {
    let network = Network::from_config(name, config, &Default::default()).ok()?;
    let chain = network.backend.executed()?;
    let what = match chain.executable {
        Executable::Type => "is done",
        Executable::IpamType => "gets its addresses",
    };
    let names: Vec<&str> = chain.executables().collect();
    let because = chain.unsupported_key.as_ref();
    let because = because.map(|key| format!(", because of the key {key:?}"));
    let because = because.unwrap_or_default();
    Some(format!(
        "{what} by executing {}{because}: every node needs it in its plugin directory",
        names.join(", ")
    ))
}
