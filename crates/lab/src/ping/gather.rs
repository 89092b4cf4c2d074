//! The pods that run on the lab's nodes, as the API says, with their sandboxes and what the API's records say
//! they are attached to. A pod that should be there and is not is named: nobody may take a pod that was not
//! checked for one that is well.

use super::expect::{Attachment, Kind, Member};
use super::matrix::Unseen;
use crate::error::LabError;
use crate::layout::Layout;
use crate::name::NodeName;
use crate::sandbox::{self, Sandbox};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::core::DeserializeGuard;
use kube::{Client, ResourceExt};
use plexus_api::cni::{Routing, Segment};
use plexus_api::objects::{Network, NetworkSpec, PodAttachments};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// By identity: what it does, and its subnets. A network may have several names: a NAD may stand for one.
type NetworkSubnets = BTreeMap<String, (Kind, Vec<IpNet>)>;

/// Records are written a moment after pods run.
const RECORD_TIMEOUT: Duration = Duration::from_secs(4);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Who takes part, and who does not though he should.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) members: Vec<Member>,
    pub(super) unseen: Vec<Unseen>,
}

/// Every pod that runs and is attached to something, in order; waits a little for those that are not there
/// yet.
pub(super) async fn gather(layout: &Layout, client: Client) -> Result<Gathered, LabError> {
    let start = Instant::now();
    loop {
        let gathered = gather_once(layout, &client).await?;
        if gathered.unseen.is_empty() || start.elapsed() > RECORD_TIMEOUT {
            return Ok(gathered);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn gather_once(layout: &Layout, client: &Client) -> Result<Gathered, LabError> {
    let mut gathered = Gathered::default();
    let pods: Api<Pod> = Api::all(client.clone());
    let pods = pods.list(&ListParams::default()).await;
    let pods = pods.map_err(LabError::api("list pods"))?;
    let known = networks(client.clone(), &mut gathered.unseen).await?;
    let records: Api<DeserializeGuard<PodAttachments>> = Api::all(client.clone());
    let records = records.list(&ListParams::default()).await;
    let records = records.map_err(LabError::api("list the pods' attachments"))?;
    let records = records.items.into_iter();
    let records: BTreeMap<String, Result<PodAttachments, String>> = records
        .map(|record| (record.name_any(), record.0.map_err(|error| error.error)))
        .collect();
    let sandboxes: BTreeMap<String, (NodeName, Sandbox)> = sandbox::all(layout)
        .into_iter()
        .map(|(node, sandbox)| (sandbox.uid.clone(), (node, sandbox)))
        .collect();
    let nodes = crate::control::of(layout)?.nodes;
    let on_ours = |pod: &&Pod| {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        node.and_then(|node| node.parse().ok())
            .is_some_and(|node: NodeName| nodes.contains(&node))
    };
    for pod in pods
        .items
        .iter()
        .filter(on_ours)
        .filter(|pod| is_running(pod))
    {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let name = short(&pod.namespace().unwrap_or_default(), &pod.name_any());
        let found = join(&name, sandboxes.get(uid), records.get(uid), &known);
        gathered.unseen.extend(found.unseen);
        gathered.members.extend(found.members);
    }
    Ok(gathered)
}

/// Whether a pod has, or is to have, interfaces of its own.
fn is_running(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let on_host = spec.and_then(|spec| spec.host_network).unwrap_or_default();
    let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
    let ended = matches!(phase, Some("Succeeded" | "Failed"));
    !on_host && !ended && pod.metadata.deletion_timestamp.is_none()
}

/// One pod with what is known of it.
fn join(
    pod: &str,
    sandbox: Option<&(NodeName, Sandbox)>,
    record: Option<&Result<PodAttachments, String>>,
    known: &NetworkSubnets,
) -> Gathered {
    let mut gathered = Gathered::default();
    let mut miss = |why: String| {
        let pod = pod.to_owned();
        gathered.unseen.push(Unseen { pod, why });
    };
    let sandbox = sandbox.filter(|(_, sandbox)| sandbox.is_ready());
    match (sandbox, record) {
        (None, _) => {
            miss("it has no sandbox that is set up: `plexus diagnose pod` says why".into())
        }
        (_, None) => miss("its node's agent has not recorded what it is attached to".into()),
        (_, Some(Err(error))) => miss(format!("its record cannot be read: {error}")),
        (Some((node, sandbox)), Some(Ok(record))) => {
            let attachments = attachments(record, known);
            if attachments.is_empty() {
                miss("its record names no interface".into());
            }
            gathered.members.push(Member {
                pod: pod.to_owned(),
                node: node.to_string(),
                netns: sandbox.netns.clone(),
                attachments,
            });
        }
    }
    gathered
}

async fn networks(client: Client, unseen: &mut Vec<Unseen>) -> Result<NetworkSubnets, LabError> {
    let networks: Api<DeserializeGuard<Network>> = Api::all(client);
    let networks = networks.list(&ListParams::default()).await;
    let networks = networks.map_err(LabError::api("list networks"))?;
    let readable = networks.items.into_iter().filter_map(|network| {
        let name = short(
            &network.namespace().unwrap_or_default(),
            &network.name_any(),
        );
        let unreadable = |error: kube::core::error_boundary::InvalidObject| Unseen {
            pod: format!("Network {name}"),
            why: format!("it cannot be read: {}", error.error),
        };
        let read = network.0.map_err(unreadable);
        read.map_err(|missing| unseen.push(missing)).ok()
    });
    let known = readable.filter_map(|network| {
        let identity = network.spec.uuid.clone().or_else(|| network.uid())?;
        let subnets = network.spec.subnets.values().map(|subnet| subnet.cidr);
        Some((identity, (kind(&network.spec), subnets.collect())))
    });
    Ok(known.collect())
}

fn kind(spec: &NetworkSpec) -> Kind {
    let Some(kind) = spec.provider_kind() else {
        return Kind::Other;
    };
    match (kind.routing, (kind.segment)(&spec.config)) {
        (Routing::Router, _) => Kind::Overlay,
        (Routing::Node, _) => Kind::Routed,
        (Routing::OnLink, Some(Segment::Node)) => Kind::OnNode,
        (Routing::OnLink, Some(Segment::Wire)) => Kind::Shared,
        (Routing::OnLink, None) => Kind::Other,
    }
}

fn attachments(record: &PodAttachments, known: &NetworkSubnets) -> Vec<Attachment> {
    let attached = record.status.iter().flat_map(|status| &status.attachments);
    attached
        .map(|one| {
            // The cluster's own default network may have no object.
            let unknown = if one.network.namespace.is_empty() {
                Kind::Routed
            } else {
                Kind::Other
            };
            let network = short(&one.network.namespace, &one.network.name);
            let known = known.get(&one.network.uuid).cloned();
            let (kind, subnets) = known.unwrap_or((unknown, vec![]));
            let addresses = one.ips.iter().filter_map(|ip| ip.parse::<IpNet>().ok());
            Attachment {
                kind,
                subnets,
                identity: if one.network.uuid.is_empty() {
                    network.clone()
                } else {
                    one.network.uuid.clone()
                },
                network,
                interface: one.interface.clone(),
                addresses: addresses.map(|net| net.addr()).collect(),
            }
        })
        .collect()
}

fn short(namespace: &str, name: &str) -> String {
    if namespace.is_empty() || namespace == "default" {
        return name.to_owned();
    }
    format!("{namespace}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn providers_are_judged_by_what_they_do() {
        let spec = |value: Value| kind(&serde_json::from_value(value).unwrap());
        assert_eq!(spec(json!({})), Kind::Overlay);
        assert_eq!(spec(json!({"provider": "routed"})), Kind::Routed);
        assert_eq!(spec(json!({"provider": "macvlan"})), Kind::Shared);
        let private = json!({"provider": "macvlan", "config": {"mode": "private"}});
        assert_eq!(spec(private), Kind::Other);
        assert_eq!(spec(json!({"provider": "example.com/x"})), Kind::Other);
    }

    #[test]
    fn a_pod_that_cannot_be_judged_is_named() {
        let known = NetworkSubnets::new();
        let why = |sandbox, record| {
            let found = join("web", sandbox, record, &known);
            assert!(found.members.is_empty());
            assert_eq!(found.unseen.len(), 1);
            assert_eq!(found.unseen[0].pod, "web");
            found.unseen[0].why.clone()
        };
        assert!(why(None, None).contains("no sandbox"));
        let pod = |value: Value| is_running(&serde_json::from_value(value).unwrap());
        assert!(pod(json!({"spec": {"containers": []}})));
        assert!(pod(json!({"status": {"phase": "Pending"}})));
        assert!(!pod(json!({"status": {"phase": "Succeeded"}})));
        assert!(!pod(
            json!({"spec": {"containers": [], "hostNetwork": true}})
        ));
        assert!(!pod(
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
        ));
    }

    #[test]
    fn records_become_attachments() {
        let one = |interface: &str, namespace: &str, name: &str| {
            json!({"index": 0, "total": 1, "ordinal": 0, "id": "x", "interface": interface, "state": "Attached",
                   "network": {"namespace": namespace, "name": name, "uuid": format!("uid-{name}")}, "ips": ["10.0.0.1/32", "fd00::1/128"]})
        };
        let record: PodAttachments = serde_json::from_value(json!({
            "apiVersion": "plexus.dev/v1alpha1", "kind": "PodAttachments", "metadata": {"name": "u"},
            "spec": {"pod": {"name": "web", "uid": "u"}, "node": "n1"},
            "status": {"attachments": [one("eth0", "", "plexus"), one("net1", "a", "blue")]}}))
        .unwrap();
        let known = NetworkSubnets::from([("uid-blue".to_owned(), (Kind::Overlay, vec![]))]);
        let found = attachments(&record, &known);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].kind, found[0].network.as_str()),
            (Kind::Routed, "plexus")
        );
        assert_eq!(
            (found[1].kind, found[1].network.as_str()),
            (Kind::Overlay, "a/blue")
        );
        assert_eq!(found[1].addresses.len(), 2);
    }
}
