//! The two forms of a list of networks: JSON, and names with commas between.

use super::{MAX_NETWORKS, NetworkSelection, name, selection};
use crate::problem::fault;
use crate::text::{FromText, quoted};
use crate::{Fields, Problems, document};
use plexus_types::IfName;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// `names`: whether an element of the JSON list may be just a name.
pub(super) fn read(
    annotation: &'static str,
    text: &str,
    pod_namespace: &str,
    names: bool,
) -> Result<Vec<NetworkSelection>, Problems> {
    super::bounded(annotation, text)?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let (found, mut problems) = match text.contains(['[', '{', '"']) {
        true => json(annotation, text, pod_namespace, names),
        false => short(annotation, text, pod_namespace),
    };
    if problems.0.is_empty() {
        check_repeated(annotation, &found, &mut problems);
    }
    problems.unless_any(found)
}

type ParsedList = (Vec<NetworkSelection>, Problems);

fn json(annotation: &'static str, text: &str, pod_namespace: &str, names: bool) -> ParsedList {
    let list = match document::read(text.as_bytes()) {
        Ok(Value::Array(list)) => list,
        Ok(_) => {
            let text = "is JSON, but not a list: write [{\"name\": \"net-a\"}, …]";
            return (Vec::new(), fault(annotation, text));
        }
        Err(cause) => {
            let text = format!("is not valid JSON: {cause}");
            return (Vec::new(), fault(annotation, text));
        }
    };
    if list.len() > MAX_NETWORKS {
        return (Vec::new(), too_many(annotation, list.len()));
    }
    let (mut found, mut problems) = ParsedList::default();
    for (i, item) in list.iter().enumerate() {
        let at = format!("{annotation}[{i}]");
        match item {
            Value::Object(map) => {
                let (one, wrong) = element(map, at, pod_namespace);
                found.extend(one);
                problems.0.extend(wrong.0);
            }
            Value::String(text) if names => match one(text, pod_namespace) {
                Ok(one) => found.push(one),
                Err(text) => problems.add(at, text),
            },
            _ if names => problems.add(at, "must be a network's name, or an object with one"),
            _ => problems.add(at, "must be an object such as {\"name\": \"net-a\"}"),
        }
    }
    (found, problems)
}

/// Keys with a dot are for those whose domain they have; all others are the Working Group's.
fn element(
    map: &Map<String, Value>,
    at: String,
    pod_namespace: &str,
) -> (Option<NetworkSelection>, Problems) {
    let mut common = map.clone();
    common.retain(|key, _| !key.contains('.'));
    let mut fields = Fields::new(&common, at);
    let mut one = selection::read(&mut fields, pod_namespace);
    if let Some(one) = &mut one {
        let foreign = map.iter().filter(|(key, _)| key.contains('.'));
        one.others = foreign.map(|(k, v)| (k.clone(), v.clone())).collect();
    }
    (one, fields.finish())
}

fn short(annotation: &'static str, text: &str, pod_namespace: &str) -> ParsedList {
    let count = text.split(',').count();
    if count > MAX_NETWORKS {
        return (Vec::new(), too_many(annotation, count));
    }
    let (mut found, mut problems) = ParsedList::default();
    for (i, item) in text.split(',').enumerate() {
        match one(item.trim(), pod_namespace) {
            Ok(one) => found.push(one),
            Err(text) => problems.add(format!("{annotation}[{i}]"), text),
        }
    }
    (found, problems)
}

/// `[namespace/]name[@interface]`
fn one(text: &str, pod_namespace: &str) -> Result<NetworkSelection, String> {
    let (network, interface) = match text.split_once('@') {
        Some((network, interface)) => (network, Some(interface)),
        None => (text, None),
    };
    if interface.is_some_and(|interface| interface.contains('@')) {
        return Err(format!(
            "{} has more than one @: write [namespace/]name[@interface]",
            quoted(text)
        ));
    }
    if network.is_empty() {
        return Err(format!(
            "{} names no network: write [namespace/]name[@interface]",
            quoted(text)
        ));
    }
    let (namespace, name) = name::qualified(network)?;
    Ok(NetworkSelection {
        interface: interface.map(IfName::from_text).transpose()?,
        ..NetworkSelection::named(namespace.unwrap_or(pod_namespace), name)
    })
}

/// What can only be seen of all elements together.
fn check_repeated(annotation: &str, found: &[NetworkSelection], problems: &mut Problems) {
    let mut interfaces = BTreeSet::new();
    let mut default: Option<usize> = None;
    for (i, one) in found.iter().enumerate() {
        if let Some(name) = &one.interface
            && !interfaces.insert(name)
        {
            let text = format!("{name} is asked for twice: write another name");
            problems.add(format!("{annotation}[{i}].interface"), text);
        }
        if one.default_route.is_some() {
            if let Some(earlier) = default {
                let text =
                    format!("is in element {earlier} too: one network has the default route");
                problems.add(format!("{annotation}[{i}].default-route"), text);
            }
            default = Some(i);
        }
    }
}

fn too_many(annotation: &str, count: usize) -> Problems {
    let text = format!("names {count} networks: write at most {MAX_NETWORKS}");
    fault(annotation, text)
}
