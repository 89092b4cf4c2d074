//! A network from what the cluster knows of it: the configuration of a NetworkAttachmentDefinition,
//! or the spec of a `Network`. Owns how a pod's wishes enter either. Gives the same [`Network`] that
//! an entry of an inline configuration gives.

mod nad;
mod object;
mod parsed;
#[cfg(test)]
mod tests;

pub(crate) use nad::flattened;
pub use object::ObjectFacts;
pub(crate) use object::provider_problems;
pub use parsed::ParsedNetwork;

use super::{Error, Network, NetworkBackend, parse};
use crate::Fields;
use crate::objects::NetworkSpec;
use crate::pod::NetworkSelection;
use plexus_types::NetworkName;
use serde_json::{Map, Value};

impl Network {
    /// The network of a NAD: one plugin or a list. Native where every key is understood, else
    /// executed. `name` is the NAD's, used where the configuration has none. What is asked for and
    /// nothing takes (no plugin declares the capability) is an error. `interface` is as asked.
    pub fn from_config(
        name: &NetworkName,
        config: &Map<String, Value>,
        selection: &NetworkSelection,
    ) -> Result<Self, Error> {
        read_config(name, config, selection).map(|parsed| parsed.network)
    }

    /// The network of a `Network` object. Errors: what [`NetworkSpec::problems`] says; an overlay
    /// without a number (try again later); an external provider; a wish that it cannot fulfil.
    pub fn from_spec(
        name: &NetworkName,
        spec: &NetworkSpec,
        facts: &ObjectFacts,
        selection: &NetworkSelection,
    ) -> Result<Self, Error> {
        object::checked(name, spec, facts, selection).map(|parsed| parsed.network)
    }
}

fn read_config(
    name: &NetworkName,
    config: &Map<String, Value>,
    selection: &NetworkSelection,
) -> Result<ParsedNetwork, Error> {
    let version = parse::version_or_newest(config)?;
    nad::read(name, config, version, selection, "")
        .map_err(|problems| parse::invalid(&nad::with_name(config, name), &problems))
}

/// What is wrong with the configuration of a NAD that is found at `path`, whatever pods ask of it.
#[cfg(feature = "manifest")]
pub(crate) fn nad_problems(
    name: &NetworkName,
    config: &Map<String, Value>,
    path: &str,
) -> crate::Problems {
    let version = match parse::version_or_newest(config) {
        Ok(version) => version,
        Err(error) => return crate::problem::fault(format!("{path}.cniVersion"), error.msg),
    };
    let nothing = NetworkSelection::default();
    nad::read(name, config, version, &nothing, path)
        .err()
        .unwrap_or_default()
}

/// Everything that is asked for must be taken by somebody.
fn check_taken(
    fields: &mut Fields<'_>,
    selection: &NetworkSelection,
    backend: &NetworkBackend,
    declared: Option<&[String]>,
) {
    for (key, text) in untaken(selection, backend, declared) {
        fields.unsupported(&key, text);
    }
}

/// What is asked for and nobody takes, and why. `declared` are the capabilities of a native network; none: all
/// that it has, since it is written for us.
fn untaken(
    selection: &NetworkSelection,
    backend: &NetworkBackend,
    declared: Option<&[String]>,
) -> Vec<(String, String)> {
    let mut untaken = Vec::new();
    let declares =
        |key: &str| declared.is_none_or(|declared| declared.iter().any(|name| name == key));
    for key in selection.runtime_config().keys() {
        let text = match backend {
            NetworkBackend::Native(native) => {
                let capabilities = native.provider.kind().capabilities;
                match capabilities.contains(&key.as_str()) {
                    true if declares(key) => continue,
                    true => "not declared: write it as true there".to_owned(),
                    false => format!("a native network has only {}", capabilities.join(" and ")),
                }
            }
            NetworkBackend::Delegate(chain) if parse::chain::takes(chain, key) => continue,
            NetworkBackend::Delegate(_) => {
                "no plugin declares it: write it as true in the plugin that takes it".to_owned()
            }
        };
        let text = format!("is asked for by the pod, but {text}");
        untaken.push((format!("capabilities.{key}"), text));
    }
    if let (Some(claim), None) = (&selection.ipam_claim, backend.executed()) {
        let text =
            format!("{claim} is asked for by the pod, but native networks take no IPAMClaim");
        untaken.push(("ipam-claim-reference".to_owned(), text));
    }
    for key in selection.others.keys().take(8) {
        let text = "is asked for by the pod, but nobody here knows it".to_owned();
        untaken.push((key.clone(), text));
    }
    untaken
}
