//! A Pod, or the template of one: what its annotations ask for, and the containers that it must have.

use crate::manifest::Level;
use crate::manifest::finding::{Findings, joined};
use crate::pod::{
    self, CONTRAIL_NETWORK, DEFAULT_GW, DEFAULT_NETWORK, NETWORKS, PLEXUS_NETWORKS, check_object,
};
use crate::{Problems, later};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// `path` is where the pod is: empty for a Pod itself.
pub(super) fn check(pod: &Map<String, Value>, path: &str, findings: &mut Findings<'_>) {
    let at = |field: &str| joined(path, field);
    check_annotations(pod, &at("metadata.annotations"), findings);
    let spec = match pod.get("spec") {
        Some(Value::Object(spec)) => spec,
        _ => return findings.problem(&at("spec"), "is missing: write its containers"),
    };
    containers(spec, &at("spec.containers"), findings);
    let claims = spec.get("resourceClaims").and_then(Value::as_array);
    if claims.is_some_and(|claims| !claims.is_empty()) {
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
        .and_then(|it| it.get("annotations")?.as_object());
    let all = annotations.into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The annotation that asks for a NIC in another VPC waits, on pods and on NADs.
pub(super) fn check_profile(
    annotations: &BTreeMap<String, String>,
    within: &str,
    findings: &mut Findings<'_>,
) {
    if annotations.contains_key(later::PROFILE) {
        let path = format!("{within}.{}", later::PROFILE);
        findings.add(Level::Waiting, &path, later::MULTI_VPC);
    }
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
    let contrail = |text: &str| pod::contrail_networks(text).map(drop);
    read(CONTRAIL_NETWORK, &contrail);
    let plexus = |text: &str| pod::plexus_networks(text, namespace).map(drop);
    read(PLEXUS_NETWORKS, &plexus);
    read(DEFAULT_GW, &|text| pod::default_gw(text).map(drop));
    let default = |text: &str| pod::default_network(text, "kube-system").map(drop);
    read(DEFAULT_NETWORK, &default);
    check_profile(&annotations, within, findings);
    for key in annotations.keys() {
        if let Some(meant) = pod::misspelt(key) {
            let text = format!("is an annotation that nobody reads: did you mean {meant:?}?");
            findings.add(Level::Warning, &format!("{within}.{key}"), text);
        }
    }
    let host = pod.get("spec").and_then(|spec| spec.get("hostNetwork"));
    let mut asks = [NETWORKS, CONTRAIL_NETWORK, PLEXUS_NETWORKS].into_iter();
    let asks = asks.find(|key| annotations.contains_key(*key));
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
