//! What a core kind must have: the few fields without which no reader can use an object. And what it
//! must not: more than fits into a map.

use super::Kind;
use crate::status::{Cause, MAX_PROBLEMS};
use serde_json::Value;

/// Bytes of the values of a map.
const LARGEST_MAP: usize = 1 << 20;

pub(super) fn missing(kind: &Kind, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod(object, &mut causes),
        ("", "ConfigMap") => map(object, &mut causes),
        ("events.k8s.io", "Event") => {
            for field in [
                "eventTime",
                "reportingController",
                "reportingInstance",
                "action",
                "reason",
            ] {
                needs(object, field, field, &mut causes);
            }
        }
        ("resource.k8s.io", "ResourceClaim") => claim(object, "spec", &mut causes),
        ("resource.k8s.io", "ResourceClaimTemplate") => {
            claim(&object["spec"], "spec.spec", &mut causes);
        }
        _ => {}
    }
    causes
}

fn pod(object: &Value, causes: &mut Vec<Cause>) {
    let containers = object.pointer("/spec/containers").and_then(Value::as_array);
    let containers = containers.map(Vec::as_slice).unwrap_or_default();
    if containers.is_empty() {
        causes.push(Cause::required("spec.containers", ""));
    }
    for (index, container) in containers.iter().enumerate() {
        if causes.len() > MAX_PROBLEMS {
            return;
        }
        for field in ["name", "image"] {
            let path = format!("spec.containers[{index}].{field}");
            needs(container, field, &path, causes);
        }
    }
}

fn map(object: &Value, causes: &mut Vec<Cause>) {
    let texts = |field: &str| {
        let members = object.get(field).and_then(Value::as_object);
        let texts = members.into_iter().flatten();
        texts
            .map(|(_, value)| value.as_str().map_or(0, str::len))
            .sum::<usize>()
    };
    // Four characters are three bytes there.
    let size = texts("data") + texts("binaryData") / 4 * 3;
    if size > LARGEST_MAP {
        causes.push(Cause {
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {LARGEST_MAP} bytes"),
            field: String::new(),
        });
    }
}

/// The requests of a claim, in `v1`, stand behind `exactly` or `firstAvailable`.
fn claim(object: &Value, prefix: &str, causes: &mut Vec<Cause>) {
    let requests = object.pointer("/spec/devices/requests");
    let requests = requests.and_then(Value::as_array).into_iter().flatten();
    for (index, request) in requests.enumerate() {
        if causes.len() > MAX_PROBLEMS {
            return;
        }
        let path = format!("{prefix}.devices.requests[{index}]");
        needs(request, "name", &format!("{path}.name"), causes);
        let exactly = request.get("exactly").is_some_and(|one| !one.is_null());
        let first = request["firstAvailable"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        if exactly == first {
            let why = "exactly one of `exactly` or `firstAvailable` is required";
            causes.push(Cause::invalid(path, request, why));
        } else if exactly {
            let class = &request["exactly"];
            needs(
                class,
                "deviceClassName",
                &format!("{path}.exactly.deviceClassName"),
                causes,
            );
        }
    }
}

fn needs(object: &Value, field: &str, path: &str, causes: &mut Vec<Cause>) {
    let absent = match object.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if absent {
        causes.push(Cause::required(path, ""));
    }
}
