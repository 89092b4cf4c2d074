//! A Network: its finalizer, its number, its status; and its end, when nobody uses it any more.

use crate::act::{cluster_default, now};
use crate::api::Failure;
use crate::cache::{Name, NetworkView, routed};
use crate::decide::network::{self, NetworkFacts, VniState};
use crate::decide::usage::{self, Users};
use crate::decide::{nad, vni};
use crate::engine::Engine;
use crate::events::EventSubject;
use crate::queue::Key;
use futures::StreamExt;
use kube::Api;
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use plexus_api::cni::ProviderKind;
use plexus_api::objects::{IN_USE_FINALIZER, Network, NetworkStatus, Phase};
use std::time::Duration;
use tokio::time::Instant;

/// How long a deleted network must have been without users before it goes: a record is written
/// just after its pod has started.
const UNUSED_PERIOD: Duration = Duration::from_secs(1);
/// … and if owners of its blocks that are gone counted addresses in use.
const UNUSED_PERIOD_AFTER_USE: Duration = Duration::from_secs(10);
/// How many requests are under way at a time.
pub(super) const CONCURRENT_REQUESTS: usize = 8;

impl Engine {
    /// Makes a Network's status true.
    pub(crate) async fn network(&mut self, name: &Name) -> Result<(), Failure> {
        let Some(mut net) = self.cache.networks.get(name).cloned() else {
            return Ok(());
        };
        let ours = net.id.finalizers.iter().any(|one| one == IN_USE_FINALIZER);
        if net.id.deleting && !ours {
            return Ok(());
        }
        if !ours && net.spec.is_ok() {
            let mut finalizers = net.id.finalizers.clone();
            finalizers.push(IN_USE_FINALIZER.to_owned());
            net = self
                .cluster
                .patch_network(name, &net.id, Some(&finalizers), None)
                .await?;
            self.cache_network(name, net.clone());
        }
        if net.status.phase.is_none() && !net.id.deleting {
            let first = NetworkStatus {
                phase: Some(Phase::Initializing),
                ..net.status.clone()
            };
            net = self.write_status(name, &net, first).await?;
        }
        let facts = self.facts(name, &net);
        let in_use = facts.users.count > 0 || facts.in_use_addresses.any();
        let status = network::status(&facts, &net.status, &now());
        if status != net.status {
            net = self.write_status(name, &net, status).await?;
        }
        self.warn_of_problems(name, &net).await?;
        if net.id.deleting {
            return self.end(name, &net, in_use).await;
        }
        self.idle.forget(&net.id.uid);
        self.remove_undonated_parts(name, &net).await
    }

    /// Repeats the problems in the status as Events, for users who do not read the status.
    async fn warn_of_problems(&mut self, name: &Name, net: &NetworkView) -> Result<(), Failure> {
        for (reason, message) in network::complaints(&net.status) {
            let about = about(name, net);
            self.events
                .warn_of_generation(&self.cluster, about, &reason, &message)
                .await?;
        }
        Ok(())
    }

    /// A block inside another node's block is legal only if that node donated it. Agents route nothing to one
    /// that is not, and issue nothing from it. An Event reports it, and the controller removes an unused one
    /// after a while: its donor may not have written the donation yet.
    async fn remove_undonated_parts(
        &mut self,
        name: &Name,
        net: &NetworkView,
    ) -> Result<(), Failure> {
        let wrong = self.cache.undonated_parts(net);
        let right = self.cache.blocks_of(&net.id.uid).map(|(_, block)| block);
        let right = right.filter(|block| !wrong.iter().any(|(_, one)| one.id.uid == block.id.uid));
        for block in right {
            self.undonated.forget(&block.id.uid);
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let (now, grace) = (Instant::now(), self.options.node_grace);
        let mut waits: Vec<Duration> = Vec::new();
        for (block, owned) in wrong.iter().filter(|(_, owned)| owned.allocated == 0) {
            let left = grace.saturating_sub(self.undonated.known_for(&owned.id.uid, now));
            if !left.is_zero() {
                waits.push(left);
                continue;
            }
            let node = &owned.node;
            tracing::info!(%block, node, "removing a part of a block that nobody gave or uses");
            self.cluster.delete_block(block, &owned.id).await?;
            self.undonated.forget(&owned.id.uid);
        }
        if let Some(first) = waits.into_iter().min() {
            self.retry_after(Key::Network(name.clone()), first);
        }
        let each = wrong.iter().filter_map(|(_, block)| {
            let cidr = block.cidr?;
            Some(format!("{cidr} of node {}", block.node))
        });
        let message = format!(
            "blocks inside another node's block, which did not give them: {}; nothing leads there, and \
             those that nobody uses are removed. Was the API server restored from a backup? Restart the \
             pods that use them",
            each.collect::<Vec<_>>().join(", ")
        );
        self.events
            .warn(&self.cluster, about(name, net), "BlockNotGiven", &message)
            .await
    }

    /// Deletes the Blocks of a network that is gone, and the requests for them.
    pub(crate) async fn orphans(&mut self, uid: &str) -> Result<(), Failure> {
        if uid.is_empty()
            || self.cache.network_by_uid(uid).is_some()
            || self.cache.users(uid).count > 0
        {
            return Ok(());
        }
        let blocks: Vec<_> = self
            .cache
            .blocks_of(uid)
            // Those of NICs are a MultiNicNetwork's.
            .filter(|(_, block)| block.nic.is_none())
            .map(|(name, block)| (name.clone(), block.clone()))
            .collect();
        let requests: Vec<_> = self
            .cache
            .requests
            .iter()
            .filter(|(_, request)| request.network == uid)
            .map(|(name, request)| (name.clone(), request.clone()))
            .collect();
        let of_block = blocks.first().map(|(_, block)| &block.of);
        let network = of_block.or(requests.first().map(|(_, request)| &request.of));
        let Some(network) = network.filter(|network| !network.name.is_empty()).cloned() else {
            return Ok(());
        };
        let api: Api<PartialObjectMeta<Network>> =
            Api::namespaced(self.cluster.client.clone(), &network.namespace);
        let there = self.cluster.uid_of(api, "Network", &network.name).await?;
        if there.and_then(|network| network.uid()).as_deref() == Some(uid) {
            return Ok(());
        }
        tracing::info!(%network, uid, blocks = blocks.len(), "deleting the blocks of a network that is gone");
        let cluster = self.cluster.clone();
        for (name, request) in requests {
            cluster.delete_request(&name, &request.id.uid).await?;
        }
        let deletes = blocks
            .iter()
            .map(|(name, block)| cluster.delete_block(name, &block.id));
        let results: Vec<_> = futures::stream::iter(deletes)
            .buffer_unordered(CONCURRENT_REQUESTS)
            .collect()
            .await;
        results.into_iter().collect()
    }

    async fn write_status(
        &mut self,
        name: &Name,
        net: &NetworkView,
        status: NetworkStatus,
    ) -> Result<NetworkView, Failure> {
        let written = self.cluster.set_status(name, &net.id, &status).await?;
        if status.phase != net.status.phase {
            let ready = status
                .conditions
                .iter()
                .find(|condition| condition.kind == "Ready");
            let reason = ready.map_or("", |ready| ready.reason.as_str());
            tracing::info!(network = %name, phase = ?status.phase, vni = status.vni, reason, "network");
        }
        self.cache_network(name, written.clone());
        Ok(written)
    }

    /// Lets a deleted network go once nobody uses it.
    async fn end(&mut self, name: &Name, net: &NetworkView, in_use: bool) -> Result<(), Failure> {
        if in_use {
            self.idle.forget(&net.id.uid);
            return Ok(());
        }
        let counted = self
            .cache
            .blocks_of(&net.id.uid)
            .any(|(_, block)| block.allocated > 0);
        let wait = if counted {
            UNUSED_PERIOD_AFTER_USE
        } else {
            UNUSED_PERIOD
        };
        let idle = self.idle.known_for(&net.id.uid, Instant::now());
        if idle < wait {
            self.retry_after(Key::Network(name.clone()), wait - idle);
            return Ok(());
        }
        let mut finalizers = net.id.finalizers.clone();
        finalizers.retain(|one| one != IN_USE_FINALIZER);
        let patched = self
            .cluster
            .patch_network(name, &net.id, Some(&finalizers), None)
            .await?;
        self.idle.forget(&net.id.uid);
        tracing::info!(network = %name, uid = net.id.uid, "nobody uses it: gone");
        self.cache_network(name, patched);
        Ok(())
    }

    fn facts<'a>(&self, name: &Name, net: &'a NetworkView) -> NetworkFacts<'a> {
        let same_uuid = self.cache.older_with_same_uuid(net).map(Name::to_string);
        let spec = net.spec.as_ref().map_err(String::as_str);
        let valid = spec.ok().filter(|_| network::problems(spec).is_none());
        let ignore_pods = self.options.cluster_cidrs().is_some()
            && *name == cluster_default(&self.options.namespace);
        NetworkFacts {
            generation: net.id.generation,
            deleting: net.id.deleting,
            spec,
            number: match valid {
                Some(spec) if spec.provider_kind().is_some_and(ProviderKind::has_vni) => {
                    self.number(net)
                }
                _ => VniState::None,
            },
            rivals: self.cache.rivals(name, net, ignore_pods),
            not_allowed: self.not_allowed(name, net),
            // A record with an identity that an older network has is that network's.
            users: if same_uuid.is_some() {
                Users::default()
            } else {
                self.cache.users(net.uuid())
            },
            in_use_addresses: self.cache.in_use_addresses(&net.id.uid),
            usage: valid.map(|spec| {
                let blocks = self.cache.blocks_of(&net.id.uid);
                let blocks = blocks.map(|(_, block)| (block.cidr, block.allocated));
                usage::usage(spec, &net.status.subnets, blocks)
            }),
            blocks: self
                .cache
                .blocks_of(&net.id.uid)
                .filter_map(|(_, block)| block.cidr)
                .collect(),
            same_uuid,
            nad: self.nad_of(name, net),
        }
    }

    /// Why a network may not have its subnets, if they would be in the nodes' routing tables. The cluster's own network has
    /// what the administrator gave it.
    fn not_allowed(&self, name: &Name, net: &NetworkView) -> Option<String> {
        let allowed = self.options.allowed_subnets.clone();
        let own = cluster_default(&self.options.namespace);
        let allowed = match self.options.has_own_blocks() {
            true => allowed.with_own_network(&own.namespace, &own.name),
            false => allowed,
        };
        allowed.refusal(&name.namespace, &name.name, routed(net))
    }

    fn number(&self, net: &NetworkView) -> VniState {
        let Some(number) = net.status.vni.filter(|number| vni::is_ours(*number)) else {
            if net.id.deleting {
                return VniState::None;
            }
            let chosen = vni::choose(&net.id.uid, |number| self.cache.claims(number).is_some());
            return chosen.map_or(VniState::Exhausted, VniState::Own);
        };
        match self.cache.claims(number).and_then(vni::holder) {
            Some(uid) if uid != net.id.uid => {
                let holder = self
                    .cache
                    .name_by_uid(uid)
                    .map_or_else(|| uid.to_owned(), Name::to_string);
                VniState::Shared(number, holder)
            }
            _ => VniState::Own(number),
        }
    }

    /// Whether a network is as the NAD that it was made from says.
    fn nad_of(&self, name: &Name, net: &NetworkView) -> network::NadAgreement {
        let Some((now, wanted)) = self.nad_spec(name, net) else {
            return network::NadAgreement::None;
        };
        let stays = nad::follow(&now, &wanted, self.is_in_use(net)).stays;
        if stays.is_empty() {
            network::NadAgreement::Same
        } else {
            network::NadAgreement::Differs(nad::describe(&stays))
        }
    }
}

fn about<'a>(name: &'a Name, net: &'a NetworkView) -> EventSubject<'a> {
    EventSubject {
        api_version: "plexus.dev/v1alpha1",
        kind: "Network",
        name,
        id: &net.id,
    }
}
