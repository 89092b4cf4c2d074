//! The pods that have a sandbox, and what the API's records say they are attached to.

use super::expect::{Attachment, Kind, Member};
use crate::error::LabError;
use crate::layout::Layout;
use crate::sandbox;
use ipnet::IpNet;
use kube::api::{Api, ListParams};
use kube::core::DeserializeGuard;
use kube::{Client, ResourceExt};
use plexus_api::objects::{AttachmentState, Network, NetworkSpec, PodAttachments};
use serde_json::Value;
use std::collections::BTreeMap;

/// By identity: what it does, and its subnets. A network may have several names: a NAD may stand for one.
type Known = BTreeMap<String, (Kind, Vec<IpNet>)>;

/// Every pod with a sandbox that is attached to something, in order.
pub(super) async fn members(layout: &Layout, client: Client) -> Result<Vec<Member>, LabError> {
    let known = networks(client.clone()).await?;
    let records: Api<DeserializeGuard<PodAttachments>> = Api::all(client);
    let records = records.list(&ListParams::default()).await;
    let records = records.map_err(LabError::api("list the pods' attachments"))?;
    let mut by_uid: BTreeMap<String, PodAttachments> = records
        .items
        .into_iter()
        .filter_map(|record| record.0.ok())
        .map(|record| (record.name_any(), record))
        .collect();
    let sandboxes = sandbox::all(layout).into_iter();
    let ready = sandboxes.filter(|(_, sandbox)| sandbox.is_ready());
    let members = ready.filter_map(|(node, sandbox)| {
        let record = by_uid.remove(&sandbox.uid)?;
        Some(Member {
            pod: short(&sandbox.namespace, &sandbox.name),
            node: node.to_string(),
            netns: sandbox.netns,
            attachments: attachments(&record, &known),
        })
    });
    Ok(members.collect())
}

async fn networks(client: Client) -> Result<Known, LabError> {
    let networks: Api<DeserializeGuard<Network>> = Api::all(client);
    let networks = networks.list(&ListParams::default()).await;
    let networks = networks.map_err(LabError::api("list networks"))?;
    let readable = networks
        .items
        .into_iter()
        .filter_map(|network| network.0.ok());
    let known = readable.filter_map(|network| {
        let identity = network.spec.uuid.clone().or_else(|| network.uid())?;
        let subnets = network.spec.subnets.values().map(|subnet| subnet.cidr);
        Some((identity, (kind(&network.spec), subnets.collect())))
    });
    Ok(known.collect())
}

fn kind(spec: &NetworkSpec) -> Kind {
    match spec.provider.as_deref().unwrap_or("overlay") {
        "overlay" => Kind::Overlay,
        "routed" => Kind::Routed,
        "bridge" => Kind::OnNode,
        "macvlan" => match spec.config.get("mode").and_then(Value::as_str) {
            None | Some("bridge") => Kind::Shared,
            _ => Kind::Other,
        },
        _ => Kind::Other,
    }
}

fn attachments(record: &PodAttachments, known: &Known) -> Vec<Attachment> {
    let status = record.status.iter().flat_map(|status| &status.attachments);
    let attached = status.filter(|one| one.state == AttachmentState::Attached);
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
    use serde_json::json;

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
    fn records_become_attachments() {
        let one = |interface: &str, namespace: &str, name: &str, state: &str| {
            json!({"index": 0, "total": 1, "ordinal": 0, "id": "x", "interface": interface, "state": state,
                   "network": {"namespace": namespace, "name": name, "uuid": format!("uid-{name}")}, "ips": ["10.0.0.1/32", "fd00::1/128"]})
        };
        let record: PodAttachments = serde_json::from_value(json!({
            "apiVersion": "plexus.dev/v1alpha1", "kind": "PodAttachments", "metadata": {"name": "u"},
            "spec": {"pod": {"name": "web", "uid": "u"}, "node": "n1"},
            "status": {"attachments": [
                one("eth0", "", "plexus", "Attached"), one("net1", "a", "blue", "Attached"),
                one("net2", "default", "x", "Failed")]}}))
        .unwrap();
        let known = Known::from([("uid-blue".to_owned(), (Kind::Overlay, vec![]))]);
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
