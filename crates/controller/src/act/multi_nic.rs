//! A MultiNicNetwork: its blocks, its NetworkAttachmentDefinitions, its CIDR, its status; and its end, when no block of it is left.

use crate::act::network::CONCURRENT_REQUESTS;
use crate::act::now;
use crate::api::Failure;
use crate::api_multi_nic::{API_VERSION, KIND};
use crate::cache::{MultiNicView, Name, Update};
use crate::decide::multi_nic::{self, Definition, MultiNicFacts};
use crate::engine::Engine;
use crate::events::EventSubject;
use crate::queue::Key;
use futures::StreamExt;
use ipnet::IpNet;
use kube::runtime::watcher::Event;
use plexus_api::objects::{BlockBits, BlockSpec, CidrSpec, IN_USE_FINALIZER, MultiNic, NetworkRef};
use plexus_core::multinic::{Assignment, BlockChange, MultiNicTarget, assign, cidr};
use plexus_types::chain;
use std::time::Duration;
use tokio::time::Instant;

/// A CIDR is written at most once in this time: it names every host.
const CIDR_INTERVAL: Duration = Duration::from_secs(5);

/// A CIDR as it was written last.
#[derive(Debug, Clone)]
pub(crate) struct WrittenCidr {
    spec: CidrSpec,
    /// None: as it was found.
    at: Option<Instant>,
}

/// What could not be written.
#[derive(Default)]
struct Unmade {
    /// What users must know of it, sorted.
    said: Vec<String>,
    /// The first one, so that all is tried again.
    failure: Option<Failure>,
}

impl Unmade {
    /// With what is known of the reason. Of news that the watch brings, and of a server that is away, there is nothing
    /// to be said.
    fn add(&mut self, reason: Option<String>, failure: Failure) {
        let refused = matches!(&failure, Failure::Refused { .. })
            || matches!(&failure, Failure::Request { source, .. } if matches!(**source, kube::Error::Api(_)));
        let text = reason.or_else(|| refused.then(|| chain(&failure)));
        self.said.extend(text);
        self.said.sort();
        self.failure.get_or_insert(failure);
    }

    fn note(&mut self, result: Result<(), Failure>) {
        if let Err(failure) = result {
            self.add(None, failure);
        }
    }
}

/// What is known of a network's definitions after they were written.
#[derive(Default)]
struct Definitions {
    /// Those of its name that somebody else made, as `namespace/name`.
    foreign: Vec<String>,
    unmade: Unmade,
}

impl Engine {
    /// Makes a MultiNicNetwork's blocks, definitions and status true.
    pub(crate) async fn multi_nic(&mut self, name: &Name) -> Result<(), Failure> {
        let Some(mut net) = self.cache.multi_nics.get(name).cloned() else {
            return Ok(());
        };
        let kept = net.id.finalizers.iter().any(|one| one == IN_USE_FINALIZER);
        if net.id.deleting && !kept {
            return Ok(());
        }
        if !kept {
            let mut finalizers = net.id.finalizers.clone();
            finalizers.push(IN_USE_FINALIZER.to_owned());
            let sent = self
                .cluster
                .set_multi_nic_finalizers(&name.name, &net.id, &finalizers);
            net = sent.await?;
            self.cache_multi_nic(name, &net);
        }
        let meaning = meaning(&net);
        let rivals = match &meaning {
            Ok(meaning) => self.cache.multi_nic_rivals(name, &net, meaning),
            Err(_) => Vec::new(),
        };
        let assignment = self.assignment(name, &net, meaning.as_ref().ok(), rivals.is_empty());
        // Whatever cannot be written, the rest is, and the status says so.
        let unmade = self.make(&net, &assignment).await;
        let definitions = self.definitions(name, &net, meaning.is_ok()).await;
        let facts = MultiNicFacts {
            generation: net.id.generation,
            deleting: net.id.deleting,
            meaning: meaning.as_ref().map_err(String::as_str),
            rivals: &rivals,
            assignment: &assignment,
            hosts: self.cache.count_hosts(),
            unmade: &unmade.said,
            foreign: &definitions.foreign,
            undefined: &definitions.unmade.said,
        };
        let status = multi_nic::status(&facts, &net.status, &now());
        if status != net.status {
            let sent = self
                .cluster
                .set_multi_nic_status(&name.name, &net.id, &status);
            net = sent.await?;
            self.cache_multi_nic(name, &net);
        }
        for (reason, message) in multi_nic::complaints(&facts) {
            let about = EventSubject {
                api_version: API_VERSION,
                kind: KIND,
                name,
                id: &net.id,
            };
            self.events
                .warn_of_generation(&self.cluster, about, reason, &message)
                .await?;
        }
        let failure = unmade.failure.or(definitions.unmade.failure);
        if net.id.deleting {
            return match failure {
                Some(failure) => Err(failure),
                None => self.end_multi_nic(name, &net).await,
            };
        }
        if meaning.is_ok_and(|meaning| meaning.bits().is_some()) {
            self.retry_after(Key::MultiNicCidr(name.clone()), Duration::ZERO);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Who has which block. Of a network that is wrong, or overlaps another one, all stays as it is; of one that is
    /// deleted nobody wants any.
    fn assignment(
        &self,
        name: &Name,
        net: &MultiNicView,
        meaning: Option<&MultiNic>,
        free: bool,
    ) -> Assignment {
        let going = net.id.deleting;
        let none = BlockBits::default();
        let (subnets, master_nets, bits): (&[IpNet], &[IpNet], _) = match meaning {
            // Without a subnet no block has a place.
            _ if going => (&[], &[], Some(&none)),
            Some(meaning) if free => (&meaning.subnets, &meaning.master_nets, meaning.bits()),
            _ => (&[], &[], None),
        };
        let Some(bits) = bits else {
            return Assignment::default();
        };
        let network = reference(name, net);
        let target = MultiNicTarget {
            network: &network,
            subnets,
            master_nets,
            bits,
        };
        let blocks = self.cache.nic_blocks(&name.name, &net.id.uid);
        let mut assignment = assign(target, &self.cache.hosts(going), &blocks);
        if going {
            assignment.left_out.clear();
        }
        assignment
    }

    /// Makes, changes and deletes blocks.
    async fn make(&mut self, net: &MultiNicView, assignment: &Assignment) -> Unmade {
        let mut unmade = Unmade::default();
        if assignment.changes.is_empty() {
            return unmade;
        }
        let uid = &net.id.uid;
        tracing::info!(
            uid,
            changes = assignment.changes.len(),
            "blocks of a multi-NIC network"
        );
        let cluster = self.cluster.clone();
        let cache = &self.cache;
        let each = assignment.changes.iter().map(|change| {
            let id = |name: &str| {
                let block = cache.blocks.get(&Name::new("", name));
                block.map(|block| block.id.clone()).unwrap_or_default()
            };
            let cluster = &cluster;
            async move {
                let done = match change {
                    BlockChange::Create(spec) => cluster.create_block(spec).await,
                    BlockChange::Update { name, nic } => {
                        cluster.patch_block_nic(name, &id(name), nic).await
                    }
                    BlockChange::Delete { name } => {
                        let at = Name::new("", name);
                        cluster.delete_block(&at, &id(name)).await
                    }
                };
                (change, done)
            }
        });
        let results: Vec<_> = futures::stream::iter(each)
            .buffer_unordered(CONCURRENT_REQUESTS)
            .collect()
            .await;
        for (change, result) in results {
            if let Err(failure) = result {
                let stranger = match change {
                    BlockChange::Create(spec) => self.stranger(spec),
                    _ => None,
                };
                unmade.add(stranger, failure);
            }
        }
        unmade
    }

    /// What is said of a Block that is there under the name of one of ours, and is none.
    fn stranger(&self, spec: &BlockSpec) -> Option<String> {
        let name = BlockSpec::name(&spec.network.uuid, &spec.cidr);
        let there = self.cache.blocks.get(&Name::new("", &name))?;
        let ours = there.network == spec.network.uuid && there.cidr == Some(spec.cidr);
        (!ours || there.nic.is_none()).then(|| {
            format!(
                "Block {name} is there and is not of this network's making, so that node {} has none of {}: delete it",
                spec.node, spec.cidr
            )
        })
    }

    /// Makes the definitions of a network; gives those of its name that somebody else made.
    async fn definitions(&mut self, name: &Name, net: &MultiNicView, sound: bool) -> Definitions {
        let config = match &net.spec {
            Ok(spec) if sound || net.id.deleting => spec.nad_config(&name.name),
            // What there is stays as it is until the network can be read.
            _ => return Definitions::default(),
        };
        let wanted = match net.id.deleting {
            true => Vec::new(),
            // Not one, not even default: we may not see them.
            false if self.cache.namespaces.len() == 0 => return Definitions::default(),
            false => self.cache.namespaces_of(net),
        };
        let mut ids = Vec::new();
        let mut there = Vec::new();
        for (at, nad) in self
            .cache
            .nads
            .iter()
            .filter(|(at, _)| at.name == name.name)
        {
            let owner = nad.owner.as_ref();
            ids.push((at.namespace.clone(), nad.id.clone()));
            there.push(Definition {
                namespace: &at.namespace,
                ours: owner.is_some_and(|(kind, uid)| kind == KIND && *uid == net.id.uid),
                config: nad.config.as_ref().ok().and_then(Option::as_deref),
            });
        }
        let changes = multi_nic::definitions(&wanted, &config, &there);
        let id = |namespace: &str| {
            let found = ids.iter().find(|(one, _)| one == namespace);
            found.map(|(_, id)| id.clone()).unwrap_or_default()
        };
        let cluster = self.cluster.clone();
        let at = |namespace: &String| Name::new(namespace.clone(), name.name.clone());
        let mut unmade = Unmade::default();
        for namespace in &changes.delete {
            let (at, id) = (at(namespace), id(namespace));
            unmade.note(cluster.delete_definition(&at, &id.uid).await);
        }
        for namespace in &changes.update {
            let (at, id) = (at(namespace), id(namespace));
            unmade.note(cluster.set_definition(&at, &id, &config).await);
        }
        let (cluster, config, uid) = (&cluster, &config, &net.id.uid);
        let creates = changes.create.iter().map(|namespace| {
            let at = at(namespace);
            async move { cluster.create_definition(&at, uid, config).await }
        });
        let results: Vec<_> = futures::stream::iter(creates)
            .buffer_unordered(CONCURRENT_REQUESTS)
            .collect()
            .await;
        // The watch brings what is there by now.
        let results = results.into_iter();
        for result in results.filter(|result| !matches!(result, Err(Failure::Changed { .. }))) {
            unmade.note(result);
        }
        let foreign = changes.foreign.iter();
        Definitions {
            foreign: foreign
                .map(|namespace| format!("{namespace}/{}", name.name))
                .collect(),
            unmade,
        }
    }

    /// Writes the CIDR of a network, if it is another one, and the last was written long enough ago.
    pub(crate) async fn multi_nic_cidr(&mut self, name: &Name) -> Result<(), Failure> {
        let Some(net) = self.cache.multi_nics.get(name).cloned() else {
            return Ok(());
        };
        let Some(meaning) = meaning(&net).ok().filter(|_| !net.id.deleting) else {
            return Ok(());
        };
        let Some(bits) = meaning.bits() else {
            return Ok(());
        };
        let uid = &net.id.uid;
        if !self.cidrs.contains_key(uid) {
            let spec = self.cluster.cidr(&name.name).await?.unwrap_or_default();
            self.cidrs
                .insert(uid.clone(), WrittenCidr { spec, at: None });
        }
        let network = reference(name, &net);
        let target = MultiNicTarget {
            network: &network,
            subnets: &meaning.subnets,
            master_nets: &meaning.master_nets,
            bits,
        };
        let blocks = self.cache.nic_blocks(&name.name, uid);
        let spec = cidr(&target, blocks.iter().map(|block| &block.spec));
        let last = self.cidrs.get(uid);
        if last.is_some_and(|last| last.spec == spec) {
            return Ok(());
        }
        let due = last.and_then(|last| last.at).map(|at| at + CIDR_INTERVAL);
        if let Some(rest) = due.and_then(|due| due.checked_duration_since(Instant::now())) {
            self.retry_after(Key::MultiNicCidr(name.clone()), rest);
            return Ok(());
        }
        self.cluster.apply_cidr(&name.name, uid, &spec).await?;
        let at = Some(Instant::now());
        self.cidrs.insert(uid.clone(), WrittenCidr { spec, at });
        Ok(())
    }

    /// Deletes the blocks of a network that is gone without having been ended.
    pub(crate) async fn multi_nic_orphans(&mut self, uid: &str) -> Result<(), Failure> {
        self.cidrs.remove(uid);
        if uid.is_empty()
            || self
                .cache
                .multi_nics
                .iter()
                .any(|(_, net)| net.id.uid == uid)
        {
            return Ok(());
        }
        let blocks = self.cache.blocks_of(uid);
        let blocks: Vec<_> = blocks
            .filter(|(_, block)| block.nic.is_some() && block.allocated == 0)
            .map(|(name, block)| (name.clone(), block.clone()))
            .collect();
        let Some((_, first)) = blocks.first() else {
            return Ok(());
        };
        let there = self.cluster.multi_nic_uid(&first.of.name).await?;
        if there.as_deref() == Some(uid) {
            return Ok(());
        }
        tracing::info!(
            uid,
            blocks = blocks.len(),
            "deleting the blocks of a multi-NIC network that is gone"
        );
        for (name, block) in &blocks {
            self.cluster.delete_block(name, &block.id).await?;
        }
        Ok(())
    }

    /// Lets a deleted network go once no block of it is left.
    async fn end_multi_nic(&mut self, name: &Name, net: &MultiNicView) -> Result<(), Failure> {
        let blocks = |engine: &Self| {
            let mut all = engine.cache.blocks_of(&net.id.uid);
            all.any(|(_, block)| block.nic.is_some())
        };
        if blocks(self) {
            return Ok(());
        }
        self.cluster.delete_cidr(&name.name, &net.id.uid).await?;
        let mut finalizers = net.id.finalizers.clone();
        finalizers.retain(|one| one != IN_USE_FINALIZER);
        let sent = self
            .cluster
            .set_multi_nic_finalizers(&name.name, &net.id, &finalizers);
        let patched = sent.await?;
        tracing::info!(network = %name, uid = net.id.uid, "nobody uses it: gone");
        self.cache_multi_nic(name, &patched);
        Ok(())
    }

    fn cache_multi_nic(&mut self, name: &Name, net: &MultiNicView) {
        self.feed(Update::MultiNic(Event::Apply((name.clone(), net.clone()))));
    }
}

fn meaning(net: &MultiNicView) -> Result<MultiNic, String> {
    let spec = net.spec.as_ref().map_err(Clone::clone)?;
    spec.meaning().map_err(|problems| problems.to_string())
}

fn reference(name: &Name, net: &MultiNicView) -> NetworkRef {
    NetworkRef {
        namespace: String::new(),
        name: name.name.clone(),
        uuid: net.id.uid.clone(),
    }
}

#[cfg(test)]
#[path = "multi_nic_tests.rs"]
mod tests;
