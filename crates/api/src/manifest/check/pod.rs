//! A Pod, or the template of one: what its annotations ask for, and the containers that it must have.

use crate::manifest::Level;
use crate::manifest::finding::Findings;
use crate::pod::{
    self, CONTRAIL_NETWORK, DEFAULT_GW, DEFAULT_NETWORK, NETWORKS, PLEXUS_NETWORKS, check_object,
};
use crate::{Problems, later};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// `path` is where the pod is: empty for a Pod itself.
pub(super) fn check(pod: &Map<String, Value>, path: &str, findings: &mut Findings<'_>) {
    let at = |field: &str| match path {
        "" => field.to_owned(),
        path => format!("{path}.{field}"),
    };
    check_annotations(pod, &at("metadata.annotations"), findings);
    let spec = match pod.get("spec") {
        Some(Value::Object(spec)) => spec,
        _ => return findings.problem(&at("spec"), "is missing: write its containers"),
    };
    containers(spec, &at("spec.containers"), findings);
    if spec
        .get("resourceClaims")
        .and_then(Value::as_array)
        .is_some_and(|claims| !claims.is_empty())
    {
        let text = "names claims: those for the driver cni.dra.networking.x-k8s.io wait, and the \
                    pod with them; claims of other drivers are not ours";
        findings.add(Level::Waiting, &at("spec.resourceClaims"), text);
    }
}

/// A pod inside of another object.
pub(super) fn check_template(object: &Value, path: &str, findings: &mut Findings<'_>) {
    let pointer = format!("/{}", path.replace('.', "/"));
    match object.pointer(&pointer) {
        Some(Value::Object(pod)) => check(pod, path, findings),
        _ => findings.problem(path, "is missing: write the pod that is to be made"),
    }
}

/// The annotations that are texts.
pub(super) fn annotations(map: &Map<String, Value>, key: &str) -> BTreeMap<String, String> {
    let annotations = map
        .get(key)
        .and_then(|metadata| metadata.get("annotations"));
    let all = annotations.and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn check_annotations(pod: &Map<String, Value>, within: &str, findings: &mut Findings<'_>) {
    let annotations = annotations(pod, "metadata");
    let metadata = pod.get("metadata");
    let namespace = metadata.and_then(|metadata| metadata.get("namespace")?.as_str());
    let namespace = namespace.unwrap_or("default");
    let mut read = |key: &str, check: &dyn Fn(&str) -> Result<(), Problems>| {
        if let Some(Err(problems)) = annotations.get(key).map(|text| check(text)) {
            findings.problems(within, problems);
        }
    };
    read(NETWORKS, &|text| pod::networks(text, namespace).map(drop));
    read(CONTRAIL_NETWORK, &|text| {
        pod::contrail_networks(text).map(drop)
    });
    read(PLEXUS_NETWORKS, &|text| {
        pod::plexus_networks(text, namespace).map(drop)
    });
    read(DEFAULT_GW, &|text| pod::default_gw(text).map(drop));
    read(DEFAULT_NETWORK, &|text| {
        pod::default_network(text, "kube-system").map(drop)
    });
    if annotations.contains_key(later::PROFILE)
        && let Some(text) = later::plugin_waits("multus-multivpc-cni")
    {
        findings.add(
            Level::Waiting,
            &format!("{within}.{}", later::PROFILE),
            text,
        );
    }
    for key in annotations.keys() {
        if let Some(meant) = pod::misspelt(key) {
            let text = format!("is an annotation that nobody reads: did you mean {meant:?}?");
            findings.add(Level::Warning, &format!("{within}.{key}"), text);
        }
    }
    let host = pod.get("spec").and_then(|spec| spec.get("hostNetwork"));
    let asks = [NETWORKS, CONTRAIL_NETWORK, PLEXUS_NETWORKS]
        .into_iter()
        .find(|key| annotations.contains_key(*key));
    if let (Some(Value::Bool(true)), Some(key)) = (host, asks) {
        let text = "has no effect: a pod with hostNetwork has the node's interfaces and no others";
        findings.add(Level::Warning, &format!("{within}.{key}"), text);
    }
}

fn containers(spec: &Map<String, Value>, path: &str, findings: &mut Findings<'_>) {
    let list = match spec.get("containers") {
        Some(Value::Array(list)) if !list.is_empty() => list,
        None | Some(Value::Null | Value::Array(_)) => {
            return findings.problem(path, "is empty: a pod has at least one container");
        }
        Some(_) => return,
    };
    for (i, container) in list.iter().enumerate() {
        let text = |key: &str| container.get(key).and_then(Value::as_str);
        for key in ["name", "image"] {
            if container.is_object() && text(key).is_none_or(str::is_empty) {
                let text = format!("is missing: write the container's {key}");
                findings.problem(&format!("{path}[{i}].{key}"), text);
            }
        }
        if let Some(Err(text)) = text("name").map(check_object) {
            findings.problem(&format!("{path}[{i}].name"), text);
        }
    }
}
