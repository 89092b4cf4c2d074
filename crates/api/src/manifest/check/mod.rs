//! What is wrong with an object of a manifest: by itself ([`check`]), and beside the others of the
//! same files ([`check_together`]).

mod metadata;
mod nad;
mod network;
mod pod;
mod typed;

#[cfg(test)]
pub(super) use network::read as read_network;

use super::finding::Findings;
use super::kinds::{self, Known, Reading, Scope};
use super::{Finding, Level, Written};
use crate::text::shown;
use crate::{later, translate};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// All that there is to say about an object, in the order of the text. Without a
/// [`Level::Problem`] an API server with Plexus takes it.
pub fn check(written: &Written) -> Vec<Finding> {
    let mut findings = Findings::about(written);
    let mut object = written.object.clone();
    if !object.is_object() {
        findings.problem("", "is not an object: write apiVersion, kind and metadata");
        return findings.finish();
    }
    match translate(&mut object) {
        Ok(said) => {
            for said in said {
                let path = ["apiVersion", "spec.networks"]
                    .into_iter()
                    .find(|path| said.starts_with(*path))
                    .unwrap_or("apiVersion");
                findings.add(Level::Note, path, said);
            }
        }
        Err(text) => {
            findings.problem("spec.networks", text);
            if let Some(Value::Object(spec)) = object.get_mut("spec") {
                spec.remove("networks");
            }
        }
    }
    if let Value::Object(map) = &object {
        check_map(map, &object, &mut findings);
    }
    findings.finish()
}

fn check_map(map: &Map<String, Value>, object: &Value, findings: &mut Findings<'_>) {
    let Some((api_version, kind)) = identity(map, findings) else {
        metadata::check(map, None, findings);
        return;
    };
    match kinds::find(api_version, kind) {
        Known::Kind(known) => {
            metadata::check(map, Some(known.scope), findings);
            match known.reading {
                Reading::Network => network::check(map, findings),
                Reading::Nad => nad::check(map, findings),
                Reading::Pod(round_trip) => {
                    pod::check(map, "", findings);
                    typed::check(object, round_trip, findings);
                }
                Reading::Template(path, round_trip) => {
                    pod::check_template(object, path, findings);
                    typed::check(object, round_trip, findings);
                }
                Reading::Typed(round_trip) => typed::check(object, round_trip, findings),
                Reading::Plain => {}
            }
        }
        Known::Version(text) => {
            findings.problem("apiVersion", format!("{} {text}", shown(api_version)));
            metadata::check(map, kinds::scope_of(api_version, kind), findings);
        }
        Known::No => {
            metadata::check(map, kinds::scope_of(api_version, kind), findings);
            if later::waits(object).is_none() {
                let text = format!(
                    "{api_version} {kind} is unknown here: only its metadata was looked at, the \
                     rest is for the API server"
                );
                findings.add(Level::Note, "kind", text);
            }
        }
    }
    if let Some(text) = later::waits(object) {
        findings.add(Level::Waiting, "kind", text);
    }
}

/// `apiVersion` and `kind`, if both are there.
fn identity<'m>(
    map: &'m Map<String, Value>,
    findings: &mut Findings<'_>,
) -> Option<(&'m str, &'m str)> {
    let mut text = |key: &str| match map.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.as_str()),
        None | Some(Value::Null | Value::String(_)) => None,
        Some(_) => {
            findings.problem(key, "must be a string");
            None
        }
    };
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if map.get("kind").is_none_or(Value::is_null) {
        findings.problem(
            "kind",
            "is missing: write the object's kind, such as Network",
        );
    }
    if map.get("apiVersion").is_none_or(Value::is_null) {
        let text = match kind.and_then(kinds::api_version_of) {
            Some(meant) => format!("is missing: for {} write {meant}", kind.unwrap_or_default()),
            None => "is missing: write the kind's group and version".to_owned(),
        };
        findings.problem("apiVersion", text);
    }
    Some((api_version?, kind?))
}

/// Objects that occur more than once, by their place in the list.
pub fn check_together(all: &[&Written]) -> Vec<(usize, Finding)> {
    let mut seen: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (number, written) in all.iter().enumerate() {
        let text = |path: &str| {
            let text = written.object.pointer(path).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let (group, _) = {
            let version = text("/apiVersion");
            let (group, version) = version.split_once('/').unwrap_or(("", &version));
            (group.to_owned(), version.to_owned())
        };
        let cluster = kinds::scope_of(&text("/apiVersion"), &kind) == Some(Scope::Cluster);
        let namespace = match text("/metadata/namespace") {
            _ if cluster => String::new(),
            empty if empty.is_empty() => "default".to_owned(),
            namespace => namespace,
        };
        if name.is_empty() || kind.is_empty() {
            continue;
        }
        let key = (format!("{kind}.{group}"), namespace, name);
        if seen.insert(key, number).is_some() {
            let finding = Finding {
                level: Level::Problem,
                path: "metadata.name".to_owned(),
                line: written.line("metadata.name"),
                text: format!(
                    "{} is written twice in these files: the later one replaces the earlier",
                    super::describe_kind(&written.object)
                ),
            };
            found.push((number, finding));
        }
    }
    found
}
