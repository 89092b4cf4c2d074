//! What is known of the cluster, in memory. Owns the objects and whether they are as the API has
//! them; never waits, never asks.

use super::kept::{BlockSeen, NodeSeen, PodSeen, RecordSeen};
use super::report::{CLUSTER_NETWORK, Fabric, NodeFacts};
use plexus_core::fabric::{FabricNode, OwnedBlock};
use plexus_core::resolve::{NadObject, NetworkObject};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Objects of one kind by `namespace/name`, or by name.
pub(super) struct Store<T> {
    pub(super) objects: BTreeMap<String, Arc<T>>,
    /// They were listed by this process: nothing is missing but what is newer than the list.
    pub(super) listed: bool,
    /// And they are being watched.
    pub(super) live: bool,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            listed: false,
            live: false,
        }
    }
}

impl<T> Store<T> {
    pub(super) fn get(&self, key: &str) -> Option<Arc<T>> {
        self.objects.get(key).cloned()
    }
}

/// Everything.
#[derive(Default)]
pub(super) struct State {
    pub(super) pods: Store<PodSeen>,
    pub(super) networks: Store<NetworkObject>,
    pub(super) nads: Store<NadObject>,
    pub(super) blocks: Store<BlockSeen>,
    pub(super) nodes: Store<NodeSeen>,
    pub(super) namespaces: Store<BTreeMap<String, String>>,
    pub(super) records: Store<RecordSeen>,
}

impl State {
    /// Whether everything that an ADD may need was listed.
    pub(super) fn is_listed(&self, node: &str) -> bool {
        self.networks.listed
            && self.nads.listed
            && self.blocks.listed
            && self.namespaces.listed
            && self.nodes.listed
            && self.nodes.objects.contains_key(node)
    }

    /// Whether anything has come from the API.
    pub(super) fn is_reached(&self) -> bool {
        self.networks.live || self.nodes.live || self.namespaces.live || self.pods.live
    }

    pub(super) fn network_by_uid(&self, uid: &str) -> Option<Arc<NetworkObject>> {
        let mut all = self.networks.objects.values();
        all.find(|network| network.uid == uid).cloned()
    }

    /// A pod by the UID that CNI or the API has.
    pub(super) fn pod(
        &self,
        namespace: &str,
        name: &str,
        uid: Option<&str>,
    ) -> Option<Arc<PodSeen>> {
        let pod = self.pods.get(&key(namespace, name));
        pod.filter(|pod| pod.is(uid))
    }

    /// This node; `given` are its addresses if somebody knows better.
    pub(super) fn node(&self, name: &str, given: &[IpAddr]) -> Option<NodeFacts> {
        let node = self.nodes.get(name)?;
        let addresses = if given.is_empty() {
            node.addresses.clone()
        } else {
            given.to_vec()
        };
        Some(NodeFacts {
            uid: node.uid.clone(),
            pod_cidrs: node.pod_cidrs.clone(),
            addresses,
        })
    }

    /// Who is where. With `pod_cidrs`, those of all nodes count as the cluster network's blocks.
    pub(super) fn fabric(&self, here: &str, given: &[IpAddr], pod_cidrs: bool) -> Fabric {
        let mut fabric = Fabric::default();
        for (name, node) in &self.nodes.objects {
            let addresses = match name == here && !given.is_empty() {
                true => given.to_vec(),
                false => node.addresses.clone(),
            };
            if pod_cidrs {
                let blocks = node.pod_cidrs.iter();
                fabric.routed.extend(blocks.map(|cidr| OwnedBlock {
                    uid: CLUSTER_NETWORK.to_owned(),
                    cidr: *cidr,
                    node: name.clone(),
                }));
            }
            fabric.nodes.push(FabricNode {
                name: name.clone(),
                addresses,
            });
        }
        let networks = self.networks.objects.values();
        let provider: BTreeMap<&str, &str> = networks
            .map(|network| {
                let provider = network.spec.provider.as_deref().unwrap_or("overlay");
                (network.uid.as_str(), provider)
            })
            .collect();
        for block in self.blocks.objects.values() {
            let owned = OwnedBlock {
                uid: block.spec.network.uuid.clone(),
                cidr: block.spec.cidr,
                node: block.spec.node.clone(),
            };
            match provider.get(owned.uid.as_str()) {
                Some(&"routed") => fabric.routed.push(owned),
                Some(&("overlay" | "")) => {
                    let blocks = fabric.overlay.entry(owned.uid.clone());
                    blocks.or_default().push(owned);
                }
                _ => {}
            }
        }
        fabric
    }
}

/// How objects in namespaces are found.
pub(super) fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}
