//! `lab run`: a pod from the command line. Makes the object that a manifest would have; the keeper does the
//! rest.

use crate::api;
use crate::control;
use crate::error::LabError;
use crate::layout::Layout;
use crate::name::NodeName;
use k8s_openapi::api::core::v1::{Event, Namespace, Pod};
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The annotation that names a pod's networks.
const NETWORKS: &str = "plexus.dev/networks";

/// The pod that is asked for.
#[derive(Debug, Clone)]
pub struct PodRequest {
    /// Its name.
    pub name: String,
    /// Its namespace, made if there is none.
    pub namespace: String,
    /// Its node; none: the keeper chooses.
    pub node: Option<NodeName>,
    /// Its networks besides the default one, in order.
    pub networks: Vec<String>,
}

/// A pod that is ready.
#[derive(Debug, Clone)]
pub struct ReadyPod {
    /// Its node.
    pub node: String,
    /// Its addresses on the default network.
    pub addresses: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

/// Makes the pod and waits until it is ready.
pub fn run(layout: &Layout, request: &PodRequest, limit: Duration) -> Result<ReadyPod, LabError> {
    if let Some(node) = request.node {
        control::of(layout)?.has(layout, node)?;
    }
    let start = Instant::now();
    let work = |client: Client| async move {
        ensure_namespace(&client, &request.namespace).await?;
        let pods: Api<Pod> = Api::namespaced(client.clone(), &request.namespace);
        let made = create(&pods, request).await?;
        wait(&client, &pods, &made, start, limit).await
    };
    api::block_on(work, layout)
}

async fn ensure_namespace(client: &Client, name: &str) -> Result<(), LabError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let failed = || LabError::api(format!("make namespace {name}"));
    if namespaces.get_opt(name).await.map_err(failed())?.is_some() {
        return Ok(());
    }
    let object = serde_json::from_value(json!({"metadata": {"name": name}}))
        .map_err(|error| failed()(kube::Error::SerdeError(error)))?;
    match namespaces.create(&PostParams::default(), &object).await {
        Err(error) if !api::is_conflict(&error) => Err(failed()(error)),
        _ => Ok(()),
    }
}

async fn create(pods: &Api<Pod>, request: &PodRequest) -> Result<Pod, LabError> {
    let name = &request.name;
    let failed = || LabError::api(format!("make pod {}/{name}", request.namespace));
    let object: Pod = serde_json::from_value(object(request))
        .map_err(|error| failed()(kube::Error::SerdeError(error)))?;
    match pods.create(&PostParams::default(), &object).await {
        Ok(made) => Ok(made),
        Err(error) if api::is_conflict(&error) => {
            let there = pods.get(name).await.map_err(failed())?;
            if is_the_same(&there, &object) {
                return Ok(there);
            }
            Err(LabError::Refused(format!(
                "pod {0}/{name} exists and is another one: `plexus delete pod {0}/{name}` first, or choose another name",
                request.namespace
            )))
        }
        Err(error) => Err(failed()(error)),
    }
}

fn object(request: &PodRequest) -> serde_json::Value {
    let mut annotations = BTreeMap::new();
    if !request.networks.is_empty() {
        annotations.insert(NETWORKS, request.networks.join(","));
    }
    let mut spec = json!({"containers": [{"name": "pod", "image": "none"}]});
    if let Some(node) = request.node {
        spec["nodeName"] = node.to_string().into();
    }
    json!({
        "metadata": {"name": request.name, "namespace": request.namespace, "annotations": annotations,
                     "labels": {"app": request.name}},
        "spec": spec,
    })
}

/// What was asked for then is what is asked for now.
fn is_the_same(there: &Pod, requested: &Pod) -> bool {
    let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let networks = |pod: &Pod| pod.annotations().get(NETWORKS).cloned();
    let node_fits = node(requested).is_none() || node(there) == node(requested);
    node_fits
        && networks(there) == networks(requested)
        && there.metadata.deletion_timestamp.is_none()
}

async fn wait(
    client: &Client,
    pods: &Api<Pod>,
    made: &Pod,
    start: Instant,
    limit: Duration,
) -> Result<ReadyPod, LabError> {
    let name = made.name_any();
    let mut pause = Duration::from_millis(10);
    loop {
        let seen = pods.get(&name).await;
        let pod = seen.map_err(LabError::api(format!("look at pod {name}")))?;
        if is_ready(&pod) {
            return Ok(ReadyPod {
                node: pod.spec.and_then(|s| s.node_name).unwrap_or_default(),
                addresses: pod
                    .status
                    .and_then(|s| s.pod_ips)
                    .into_iter()
                    .flatten()
                    .map(|ip| ip.ip)
                    .collect(),
                took: start.elapsed(),
            });
        }
        if start.elapsed() > limit {
            return Err(LabError::NotYet {
                what: format!("pod {name} to be ready"),
                limit,
                last: last_event(client, &pod).await,
            });
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Why it is not: what the last Event about it says.
async fn last_event(client: &Client, pod: &Pod) -> String {
    let events: Api<Event> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let all = events.list(&ListParams::default()).await;
    let about = all.into_iter().flat_map(|list| list.items);
    let mut about: Vec<Event> = about
        .filter(|event| event.involved_object.uid.as_deref() == Some(&uid))
        .filter(|event| event.type_.as_deref() == Some("Warning"))
        .collect();
    about.sort_by_key(|event| event.last_timestamp.clone().map(|time| time.0));
    match about.pop() {
        Some(event) => event.message.unwrap_or_default(),
        None => "nothing was said about it: see `plexus lab status`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(node: Option<&str>, networks: &[&str]) -> Pod {
        let request = PodRequest {
            name: "web".to_owned(),
            namespace: "a".to_owned(),
            node: node.map(|node| node.parse().unwrap()),
            networks: networks.iter().map(|name| (*name).to_owned()).collect(),
        };
        serde_json::from_value(object(&request)).unwrap()
    }

    #[test]
    fn the_object_says_what_was_asked_for() {
        let made = pod(Some("n2"), &["blue", "b/green"]);
        assert_eq!(made.annotations()[NETWORKS], "blue,b/green");
        assert_eq!(made.spec.as_ref().unwrap().node_name.as_deref(), Some("n2"));
        assert!(pod(None, &[]).annotations().is_empty());
    }

    #[test]
    fn run_again_is_the_same_pod_or_refused() {
        assert!(is_the_same(&pod(Some("n2"), &["a"]), &pod(None, &["a"])));
        assert!(is_the_same(
            &pod(Some("n2"), &["a"]),
            &pod(Some("n2"), &["a"])
        ));
        assert!(!is_the_same(
            &pod(Some("n2"), &["a"]),
            &pod(Some("n1"), &["a"])
        ));
        assert!(!is_the_same(
            &pod(Some("n2"), &["a"]),
            &pod(Some("n2"), &["b"])
        ));
    }
}
