//! What is known of the cluster, in memory. Owns the objects and whether they are as the API has
//! them; never waits, never asks.

use super::cached::{self, CachedBlock, CachedPod, CachedRecord, CachedRequest};
use super::multi_nic::CachedMultiNic;
use super::report::{Fabric, NodeFacts};
use ipnet::IpNet;
use kube::api::ObjectMeta;
use plexus_api::cni::Routing;
use plexus_api::objects::{BlockSpec, DonatedPart};
use plexus_core::fabric::{FabricNode, OwnedBlock};
use plexus_core::ipam::{EnclosingBlock, enclosing_block, given_within};
use plexus_core::resolve::{CLUSTER_DEFAULT, NadObject, NetworkObject};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

/// How many of those that went are remembered: more than there can be answers under way.
const MOST_GONE: usize = 1024;

/// Which of all objects that ever had its name one is, and how new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    uid: u64,
    /// Grows with every change, until the server is restored from a backup.
    version: Option<u64>,
}

impl Origin {
    pub(super) fn of(meta: &ObjectMeta) -> Self {
        let version = meta.resource_version.as_deref();
        Self {
            uid: cached::digest(meta.uid.as_deref().unwrap_or_default()),
            version: version.and_then(|version| version.parse().ok()),
        }
    }
}

/// Objects of one kind by `namespace/name`, or by name.
pub(super) struct Store<T> {
    pub(super) objects: BTreeMap<String, Arc<T>>,
    origins: BTreeMap<String, Origin>,
    /// Bytes that users have written, of those that have any.
    sizes: BTreeMap<String, usize>,
    /// UIDs of those that went last.
    gone: VecDeque<u64>,
    /// They were listed by this process: nothing is missing but what is newer than the list.
    pub(super) listed: bool,
    pub(super) live: bool,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            origins: BTreeMap::new(),
            sizes: BTreeMap::new(),
            gone: VecDeque::new(),
            listed: false,
            live: false,
        }
    }
}

impl<T> Store<T> {
    pub(super) fn get(&self, key: &str) -> Option<Arc<T>> {
        self.objects.get(key).cloned()
    }

    pub(super) fn put(&mut self, key: &str, object: Arc<T>) {
        self.objects.insert(key.to_owned(), object);
    }

    /// How many bytes users have written in all objects but one.
    pub(super) fn size_of_others(&self, key: &str) -> usize {
        self.sizes.values().sum::<usize>() - self.size(key)
    }

    /// How many are kept of an object.
    pub(super) fn size(&self, key: &str) -> usize {
        self.sizes.get(key).copied().unwrap_or_default()
    }

    pub(super) fn set_size(&mut self, key: &str, size: usize) {
        match size {
            0 => self.sizes.remove(key),
            size => self.sizes.insert(key.to_owned(), size),
        };
    }

    /// List and watch bring an object as it is now, whatever was known of it.
    pub(super) fn comes(&mut self, key: &str, origin: Origin) {
        let before = self.origins.insert(key.to_owned(), origin);
        if let Some(before) = before.filter(|before| before.uid != origin.uid) {
            self.bury(before);
        }
        self.gone.retain(|uid| *uid != origin.uid);
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.objects.remove(key);
        self.sizes.remove(key);
        if let Some(origin) = self.origins.remove(key) {
            self.bury(origin);
        }
    }

    /// Whether an answer to a request is older than what list and watch have said since: of an
    /// object that is gone, or of one that changed again.
    pub(super) fn is_outdated(&self, key: &str, answer: Origin) -> bool {
        let newer = self.origins.get(key).is_some_and(|known| {
            known.uid == answer.uid && answer.version.is_some() && answer.version < known.version
        });
        newer || self.gone.contains(&answer.uid)
    }

    /// Whether the name is another object's by now.
    pub(super) fn is_another(&self, key: &str, origin: Origin) -> bool {
        let known = self.origins.get(key);
        known.is_some_and(|known| known.uid != origin.uid)
    }

    fn bury(&mut self, origin: Origin) {
        if self.gone.len() >= MOST_GONE {
            self.gone.pop_front();
        }
        self.gone.push_back(origin.uid);
    }
}

#[derive(Default)]
pub(super) struct State {
    pub(super) pods: Store<CachedPod>,
    pub(super) networks: Store<NetworkObject>,
    pub(super) nads: Store<NadObject>,
    pub(super) blocks: Store<CachedBlock>,
    pub(super) requests: Store<CachedRequest>,
    pub(super) nodes: Store<NodeFacts>,
    pub(super) namespaces: Store<BTreeMap<String, String>>,
    pub(super) records: Store<CachedRecord>,
    pub(super) multi_nics: Store<CachedMultiNic>,
    pub(super) multi_nic_successors: Store<CachedMultiNic>,
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

    /// Whether a network is gone, or going.
    pub(super) fn is_closing(&self, network_uid: &str) -> bool {
        let network = self.network_by_uid(network_uid);
        network.is_none_or(|network| network.going)
    }

    /// The block that a node claims to have `cidr`: itself, or the one that it is a part of. None: it is
    /// no block of a network that is known.
    pub(super) fn whole_block(&self, network_uid: &str, cidr: &IpNet) -> Option<IpNet> {
        let network = self.network_by_uid(network_uid)?;
        network.spec.whole_block(&network.earlier_subnets, cidr)
    }

    /// Whether a block is its owner's to use: a whole one is, a part if the block around it says so.
    pub(super) fn is_legal(&self, spec: &BlockSpec) -> bool {
        let uid = &spec.network.uuid;
        let gives = || {
            let around = self.enclosing_block(uid, &spec.cidr);
            around.is_none_or(|around| around.gives(&spec.cidr, &spec.node))
        };
        let whole = self.whole_block(uid, &spec.cidr);
        // Most are whole; what is around a part takes a while to find.
        whole.is_some_and(|whole| whole == spec.cidr || gives())
    }

    /// The smallest legal block around a part.
    pub(super) fn enclosing_block(
        &self,
        network_uid: &str,
        part: &IpNet,
    ) -> Option<EnclosingBlock<'_>> {
        let network = self.network_by_uid(network_uid)?;
        enclosing_block(*part, |prefix| {
            let spec = &network.spec;
            spec.whole_block(&network.earlier_subnets, prefix)?;
            self.owner_and_given(network_uid, prefix)
        })
    }

    /// What a node has of a part by the word of the part's owner, or of whoever has it from there.
    pub(super) fn given_within(&self, network_uid: &str, part: &IpNet, node: &str) -> Vec<IpNet> {
        let inside = self.inside(network_uid, part).map(|block| block.spec.cidr);
        given_within(*part, node, inside.chain([*part]), |prefix| {
            self.owner_and_given(network_uid, prefix)
        })
    }

    fn owner_and_given(&self, network_uid: &str, cidr: &IpNet) -> Option<(&str, &[DonatedPart])> {
        let block = self.block(network_uid, cidr)?;
        Some((&*block.spec.node, &*block.given))
    }

    /// Parts that their blocks say are a node's, and that nobody has made yet; with their blocks.
    pub(super) fn offers(&self, node: &str) -> Vec<(&Arc<CachedBlock>, IpNet)> {
        let mut offers = Vec::new();
        for block in self.blocks.objects.values() {
            let (spec, uid) = (&block.spec, &block.spec.network.uuid);
            for donated in block.given.iter().filter(|donated| donated.node == node) {
                let cidr = donated.cidr.trunc();
                let inside = spec.node != node && spec.cidr.contains(&cidr);
                if inside && self.block(uid, &cidr).is_none() {
                    // Just that block has it to give.
                    let around = self.enclosing_block(uid, &cidr);
                    if around.is_some_and(|around| around.cidr == spec.cidr) {
                        offers.push((block, cidr));
                    }
                }
            }
        }
        offers
    }

    /// The blocks inside one, whoever's. Names have the address in hex: they are beside each other.
    pub(super) fn inside<'a>(
        &'a self,
        network_uid: &str,
        cidr: &'a IpNet,
    ) -> impl Iterator<Item = &'a Arc<CachedBlock>> {
        let single = cidr.max_prefix_len();
        let name = |address: IpAddr| {
            let address = IpNet::new(address, single).unwrap_or_else(|_| address.into());
            let name = BlockSpec::name(network_uid, &address);
            name.trim_end_matches(|c| c != '-').to_owned()
        };
        let first = name(cidr.network());
        let mut last = name(cidr.broadcast());
        last.push('~');
        let named = self.blocks.objects.range(first..last);
        named
            .map(|(_, block)| block)
            .filter(|block| block.spec.cidr != *cidr && cidr.contains(&block.spec.cidr))
    }

    pub(super) fn block(&self, network_uid: &str, cidr: &IpNet) -> Option<&Arc<CachedBlock>> {
        let name = BlockSpec::name(network_uid, cidr);
        self.blocks.objects.get(&name)
    }

    /// A pod by the UID that CNI or the API has.
    pub(super) fn pod(
        &self,
        namespace: &str,
        name: &str,
        uid: Option<&str>,
    ) -> Option<Arc<CachedPod>> {
        let pod = self.pods.get(&key(namespace, name));
        pod.filter(|pod| pod.is(uid))
    }

    /// Who is where. With `pod_cidrs`, those of all nodes count as the cluster network's blocks.
    pub(super) fn fabric(&self, pod_cidrs: bool) -> Fabric {
        let mut fabric = Fabric::default();
        for (name, node) in &self.nodes.objects {
            if pod_cidrs {
                let blocks = node.pod_cidrs.iter();
                fabric.routed.extend(blocks.map(|cidr| OwnedBlock {
                    uid: CLUSTER_DEFAULT.to_owned(),
                    cidr: *cidr,
                    node: name.clone(),
                    whole: true,
                    given: Vec::new(),
                }));
            }
            fabric.nodes.push(FabricNode {
                name: name.clone(),
                addresses: node.addresses.clone(),
            });
        }
        let networks = self.networks.objects.values();
        let networks: BTreeMap<&str, &NetworkObject> = networks
            .map(|network| (network.uid.as_str(), network.as_ref()))
            .collect();
        for block in self.blocks.objects.values() {
            let network = networks.get(block.spec.network.uuid.as_str());
            let Some((network, whole)) = network.and_then(|network| {
                let (spec, earlier) = (&network.spec, &network.earlier_subnets);
                let whole = spec.whole_block(earlier, &block.spec.cidr)?;
                Some((network, whole))
            }) else {
                continue;
            };
            let owned = OwnedBlock {
                uid: block.spec.network.uuid.clone(),
                cidr: block.spec.cidr,
                node: block.spec.node.clone(),
                whole: whole == block.spec.cidr,
                given: block.given.clone(),
            };
            match network.spec.provider_kind().map(|kind| kind.routing) {
                Some(Routing::Node) => fabric.routed.push(owned),
                Some(Routing::Router) => {
                    let blocks = fabric.overlay.entry(owned.uid.clone());
                    blocks.or_default().push(owned);
                }
                Some(Routing::OnLink) | None => {}
            }
        }
        fabric
    }
}

pub(super) fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(uid: &str, version: &str) -> Origin {
        Origin::of(&ObjectMeta {
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        })
    }

    fn store(uid: &str, version: &str) -> Store<u8> {
        let mut store = Store::default();
        store.comes("a", origin(uid, version));
        store.put("a", Arc::new(1));
        store
    }

    #[test]
    fn a_late_answer_does_not_bring_back_what_was_deleted() {
        let mut store = store("u1", "10");
        assert!(!store.is_outdated("a", origin("u1", "11")));
        store.remove("a");
        assert!(store.get("a").is_none());
        assert!(store.is_outdated("a", origin("u1", "11")));
        // Another one of that name is not it, and the watch may always say otherwise.
        assert!(!store.is_outdated("a", origin("u2", "12")));
        store.comes("a", origin("u1", "3"));
        assert!(!store.is_outdated("a", origin("u1", "4")));
    }

    #[test]
    fn a_late_answer_undoes_no_newer_change() {
        let store = store("u1", "100");
        assert!(store.is_outdated("a", origin("u1", "99")));
        assert!(!store.is_outdated("a", origin("u1", "100")));
        assert!(!store.is_outdated("a", origin("u1", "opaque")));
        assert!(store.is_another("a", origin("u2", "1")));
        assert!(!store.is_another("a", origin("u1", "1")));
        assert!(!store.is_another("b", origin("u1", "1")));
    }

    #[test]
    fn one_that_was_replaced_is_gone_and_the_graves_are_bounded() {
        let mut store = store("u1", "1");
        store.comes("a", origin("u2", "2"));
        assert!(store.is_outdated("a", origin("u1", "3")));
        for number in 0..2 * MOST_GONE {
            store.comes("b", origin(&number.to_string(), "1"));
        }
        assert_eq!(store.gone.len(), MOST_GONE);
    }
}
