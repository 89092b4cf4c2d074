//! What the keeper writes about pods: their status, as a kubelet would, and Events.

use crate::api::{self, MANAGER};
use crate::error::LabError;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::net::IpAddr;

/// The time as the API writes it.
pub(super) fn now() -> Value {
    serde_json::to_value(Time(Timestamp::now())).unwrap_or_default()
}

/// Says that a pod runs; nothing if it says so already.
pub(super) async fn running(
    client: &Client,
    pod: &Pod,
    container: &str,
    host: &[IpAddr],
    addresses: &[IpAddr],
) -> Result<(), LabError> {
    if has_running_status(pod, addresses) {
        return Ok(());
    }
    let list = |all: &[IpAddr]| -> Vec<Value> { all.iter().map(|ip| json!({"ip": ip})).collect() };
    let state = |ready: bool| containers(pod, ready, container, "");
    let status = json!({
        "phase": "Running",
        "hostIP": host.first(), "hostIPs": list(host),
        "podIP": addresses.first(), "podIPs": list(addresses),
        "startTime": now(),
        "conditions": conditions("True", "", ""),
        "containerStatuses": state(true),
    });
    write(client, pod, status).await
}

/// Whether a pod's status says that it waits, and this is why.
pub(super) fn has_waiting_status(pod: &Pod, why: &str) -> bool {
    has_false_condition(pod, "Ready", why)
}

/// Says that a pod waits, and why; nothing if it says so already.
pub(super) async fn waiting(client: &Client, pod: &Pod, why: &str) -> Result<(), LabError> {
    if has_waiting_status(pod, why) {
        return Ok(());
    }
    let status = json!({
        "phase": "Pending",
        "conditions": conditions("False", "ContainersNotReady", why),
        "containerStatuses": containers(pod, false, "", why),
    });
    write(client, pod, status).await
}

/// Says that no node was found for a pod, and why; nothing if it says so already.
pub(super) async fn unschedulable(client: &Client, pod: &Pod, why: &str) -> Result<(), LabError> {
    if has_false_condition(pod, "PodScheduled", why) {
        return Ok(());
    }
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why,
        "lastTransitionTime": now(),
    });
    write(
        client,
        pod,
        json!({"phase": "Pending", "conditions": [condition]}),
    )
    .await
}

/// Gives a pod its node.
pub(super) async fn bind(client: &Client, pod: &Pod, node: &str) -> Result<(), LabError> {
    let name = pod.name_any();
    let patch = json!({
        "metadata": {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version},
        "spec": {"nodeName": node},
    });
    let params = PatchParams::apply(MANAGER);
    let patch = Patch::Merge(patch);
    match pods(client, pod).patch(&name, &params, &patch).await {
        // It has changed, or is gone: the next event says what it is now.
        Err(error) if !api::is_absent(&error) && !api::is_conflict(&error) => {
            Err(LabError::api(format!("give pod {name} node {node}"))(error))
        }
        _ => Ok(()),
    }
}

/// Removes a pod that has ended, if it is still this one.
pub(super) async fn delete(client: &Client, pod: &Pod) -> Result<(), LabError> {
    let name = pod.name_any();
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions {
            uid: pod.metadata.uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match pods(client, pod).delete(&name, &params).await {
        Err(error) if !api::is_absent(&error) && !api::is_conflict(&error) => {
            Err(LabError::api(format!("remove pod {name}"))(error))
        }
        _ => Ok(()),
    }
}

/// Writes a warning Event about a pod; counts it if it exists already.
pub(super) async fn warn(
    client: &Client,
    pod: &Pod,
    reason: &str,
    message: &str,
) -> Result<(), LabError> {
    let namespace = pod.namespace().unwrap_or_default();
    let pod_name = pod.name_any();
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let name = event_name(&pod_name, &[&uid, reason, message]);
    let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
    let failed = || LabError::api(format!("write an Event about pod {pod_name}"));
    if let Some(event) = events.get_opt(&name).await.map_err(failed())? {
        let again = json!({"count": event.count.unwrap_or(1) + 1, "lastTimestamp": now()});
        let params = PatchParams::apply(MANAGER);
        let written = events.patch(&name, &params, &Patch::Merge(again)).await;
        return written.map(drop).map_err(failed());
    }
    let event = json!({
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace,
                           "name": pod_name, "uid": uid},
        "reason": reason, "message": message, "type": "Warning", "count": 1,
        "firstTimestamp": now(), "lastTimestamp": now(),
        "source": {"component": "plexus-lab", "host": pod.spec.as_ref().and_then(|s| s.node_name.clone())},
    });
    let event: Event =
        serde_json::from_value(event).map_err(|error| failed()(kube::Error::SerdeError(error)))?;
    match events.create(&PostParams::default(), &event).await {
        Err(error) if !api::is_conflict(&error) => Err(failed()(error)),
        _ => Ok(()),
    }
}

fn pods(client: &Client, pod: &Pod) -> Api<Pod> {
    Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default())
}

async fn write(client: &Client, pod: &Pod, status: Value) -> Result<(), LabError> {
    let name = pod.name_any();
    // Another pod of that name does not get this one's status.
    let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": status});
    let (patch, params) = (Patch::Merge(patch), PatchParams::apply(MANAGER));
    match pods(client, pod).patch_status(&name, &params, &patch).await {
        Err(error) if !api::is_absent(&error) && !api::is_conflict(&error) => Err(LabError::api(
            format!("write the status of pod {name}"),
        )(error)),
        _ => Ok(()),
    }
}

fn has_false_condition(pod: &Pod, condition: &str, why: &str) -> bool {
    let status = pod.status.iter();
    let mut conditions = status.flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|one| {
        one.type_ == condition && one.status == "False" && one.message.as_deref() == Some(why)
    })
}

fn has_running_status(pod: &Pod, addresses: &[IpAddr]) -> bool {
    let Some(status) = &pod.status else {
        return false;
    };
    let has = status.pod_ips.iter().flatten().map(|ip| ip.ip.as_str());
    let expected: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    let ready = status.conditions.iter().flatten();
    let ready = ready.filter(|condition| condition.type_ == "Ready");
    status.phase.as_deref() == Some("Running")
        && has.eq(expected.iter().map(String::as_str))
        && ready
            .into_iter()
            .any(|condition| condition.status == "True")
}

fn conditions(status: &str, reason: &str, message: &str) -> Vec<Value> {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        let mut value = json!({"type": kind, "status": status, "lastTransitionTime": now()});
        if !reason.is_empty() {
            value["reason"] = reason.into();
            value["message"] = message.into();
        }
        value
    };
    vec![
        condition("PodReadyToStartContainers", status, reason, message),
        condition("Initialized", "True", "", ""),
        condition("Ready", status, reason, message),
        condition("ContainersReady", status, reason, message),
        condition("PodScheduled", "True", "", ""),
    ]
}

/// The containers are not run: a pod of a lab is its network namespace.
fn containers(pod: &Pod, ready: bool, container: &str, why: &str) -> Vec<Value> {
    let spec = pod.spec.iter().flat_map(|spec| &spec.containers);
    spec.map(|one| {
        let state = if ready {
            json!({"running": {"startedAt": now()}})
        } else {
            json!({"waiting": {"reason": "ContainerCreating", "message": why}})
        };
        let mut value = json!({
            "name": one.name, "image": one.image.clone().unwrap_or_default(), "imageID": "",
            "ready": ready, "started": ready, "restartCount": 0, "state": state,
        });
        if ready {
            value["containerID"] = format!("lab://{container}").into();
        }
        value
    })
    .collect()
}

/// The same text gives the same name.
fn event_name(pod: &str, parts: &[&str]) -> String {
    let hash = plexus_types::hash64(parts);
    let pod: String = pod.chars().take(230).collect();
    format!("{pod}.{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(status: Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "a", "uid": "1"},
            "spec": {"containers": [{"name": "c", "image": "i"}]}, "status": status}))
        .unwrap()
    }

    #[test]
    fn running_is_said_once() {
        let addresses: Vec<IpAddr> = vec!["10.0.0.2".parse().unwrap(), "fd00::2".parse().unwrap()];
        assert!(!has_running_status(&pod(json!({})), &addresses));
        let status = json!({
            "phase": "Running", "podIPs": [{"ip": "10.0.0.2"}, {"ip": "fd00::2"}],
            "conditions": conditions("True", "", "")});
        assert!(has_running_status(&pod(status.clone()), &addresses));
        assert!(!has_running_status(&pod(status), &addresses[..1]));
    }

    #[test]
    fn a_status_is_one_that_the_api_takes() {
        let one = pod(json!({}));
        for ready in [true, false] {
            let status = json!({
                "conditions": conditions("False", "X", "y"),
                "containerStatuses": containers(&one, ready, "id", "why")});
            let read = pod(status).status.unwrap();
            assert_eq!(read.container_statuses.unwrap()[0].ready, ready);
        }
    }

    #[test]
    fn an_event_is_known_by_what_it_says() {
        let name = event_name("web", &["1", "a", "b"]);
        assert_eq!(name, event_name("web", &["1", "a", "b"]));
        assert_ne!(name, event_name("web", &["1", "ab", ""]));
        assert!(event_name(&"x".repeat(253), &[]).len() <= 253);
    }
}
