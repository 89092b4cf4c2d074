//! What is wrong with an object of a manifest: by itself ([`check`]), and beside the others of the
//! same files ([`check_all`]).

mod metadata;
mod multi_nic;
mod nad;
mod network;
mod own;
mod pod;
mod typed;

#[cfg(test)]
pub(super) use network::read as read_network;

use super::finding::Findings;
use super::kinds::{self, Kind, Known, Reading, Scope};
use super::{Finding, Level, Written};
use crate::later::{self, Classes};
use crate::text::quoted;
use crate::translate;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// All that there is to say about an object, in the order of the text. Without a
/// [`Level::Problem`] an API server with Plexus takes it. `classes`: those of the same files.
pub fn check(written: &Written, classes: &Classes) -> Vec<Finding> {
    let mut findings = Findings::about(written);
    let mut object = written.object.clone();
    if !object.is_object() {
        findings.problem("", "is not an object: write apiVersion, kind and metadata");
        return findings.finish();
    }
    check_identity(&mut object, &mut findings);
    match translate(&mut object) {
        Ok(said) => {
            for said in said {
                let is_pods = said.starts_with("spec.networks");
                let path = if is_pods {
                    "spec.networks"
                } else {
                    "apiVersion"
                };
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
        check_map(map, &object, classes, &mut findings);
    }
    findings.finish()
}

fn check_map(
    map: &Map<String, Value>,
    object: &Value,
    classes: &Classes,
    findings: &mut Findings<'_>,
) {
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let waits = later::waits(object, classes);
    if api_version.is_empty() || kind.is_empty() {
        metadata::check(map, None, findings);
        return;
    }
    match kinds::find(api_version, kind) {
        Known::Kind(known) => check_kind(known, map, object, findings),
        Known::Version(text, known) => {
            findings.problem("apiVersion", format!("{} {text}", quoted(api_version)));
            // The rest is looked at as what was meant: all problems are said at once.
            let mut object = object.clone();
            if let Some(version) = object.get_mut("apiVersion") {
                *version = known.api_version().into();
            }
            check_kind(known, map, &object, findings);
        }
        Known::No => {
            metadata::check(map, kinds::scope_of(api_version, kind), findings);
            if let Some(text) = kinds::misspelt(api_version, kind) {
                findings.problem("kind", text);
            } else if waits.is_none() {
                let text = format!(
                    "{api_version} {kind} is unknown here: only its metadata was looked at, the \
                     rest is for the API server"
                );
                findings.add(Level::Note, "kind", text);
            }
        }
    }
    if let Some(text) = waits {
        findings.add(Level::Waiting, "kind", text);
    }
}

fn check_kind(known: &Kind, map: &Map<String, Value>, object: &Value, findings: &mut Findings<'_>) {
    metadata::check(map, Some(known.scope), findings);
    match known.reading {
        Reading::Network => network::check(map, findings),
        Reading::Own(round_trip) => own::check(known.kind, object, round_trip, findings),
        Reading::MultiNic(round_trip) => {
            own::check(known.kind, object, round_trip, findings);
            multi_nic::check(object, findings);
        }
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
        Reading::Plain => {
            let text =
                "only its metadata was looked at: its definition, on the API server, has the rest";
            findings.add(Level::Note, "spec", text);
        }
    }
}

/// `apiVersion` and `kind`. A version that is missing is written in where the kind says which, so that the rest
/// can be looked at.
fn check_identity(object: &mut Value, findings: &mut Findings<'_>) {
    for key in ["apiVersion", "kind"] {
        if !matches!(object.get(key), None | Some(Value::Null | Value::String(_))) {
            findings.problem(key, "must be a string");
        }
    }
    let lacks = |key: &str| object.get(key).is_none_or(Value::is_null);
    if lacks("kind") {
        let text = "is missing: write the object's kind, such as Network";
        findings.problem("kind", text);
    }
    if !lacks("apiVersion") {
        return;
    }
    let kind = object.get("kind").and_then(Value::as_str);
    let kind = kind.unwrap_or_default();
    let Some(meant) = kinds::api_version_of(kind) else {
        let text = "is missing: write the kind's group and version";
        return findings.problem("apiVersion", text);
    };
    let text = format!("is missing: for {kind} write {meant}");
    findings.problem("apiVersion", text);
    if let Value::Object(map) = object {
        map.insert("apiVersion".to_owned(), meant.into());
    }
}

/// Objects that occur more than once, by their place in the list. `namespace` is where those go that name none.
pub fn check_all(all: &[&Written], namespace: &str) -> Vec<(usize, Finding)> {
    let mut seen: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (number, written) in all.iter().enumerate() {
        let mut object = written.object.clone();
        // Two ways to write the same object; what is wrong with it was said by `check`.
        let _ = translate(&mut object);
        let text = |path: &str| {
            let text = object.pointer(path).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let cluster = kinds::scope_of(&version, &kind) == Some(Scope::Cluster);
        let namespace = match text("/metadata/namespace") {
            _ if cluster => String::new(),
            empty if empty.is_empty() => namespace.to_owned(),
            written => written,
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
