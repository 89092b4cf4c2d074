//! How other nodes' blocks are reached, kept true: routes for `routed` networks, tunnels between
//! routers for `overlay` ones. A task of the background, woken when the cluster's blocks, nodes or
//! networks change; what to make is decided in `core`, how in `kernel`.

use crate::agent::Agent;
use crate::background::task::Run;
use crate::cluster::Cluster;
use crate::failure;
use crate::journal::{AttachmentRecord, Record};
use crate::sync::lock;
use plexus_api::cni::Error;
use plexus_core::fabric;
use plexus_core::plan::{Bridge, NodePlan, Router};
use plexus_core::resolve;
use plexus_core::resolve::CLUSTER_DEFAULT;
use plexus_kernel::nft;
use plexus_types::{IfName, NetworkName, RouterName};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::PoisonError;

impl Agent {
    /// Makes routes and tunnels agree with what the cluster says.
    pub(crate) fn set_fabric(&self, run: &Run<'_>) -> Result<(), String> {
        let Some(cluster) = self.cluster.get().filter(|cluster| cluster.synced()) else {
            return Ok(());
        };
        let known = cluster.fabric();
        let (routes, unreachable) =
            fabric::block_routes(&self.options.node, &known.nodes, &known.routed);
        for what in unreachable {
            tracing::warn!(what, "a block of another node cannot be reached");
        }
        let own = fabric::own(&self.options.node, &known.routed);
        match plexus_kernel::fabric::set_routes(&self.node, &routes, &own) {
            Ok(0) => {}
            Ok(changes) => tracing::info!(changes, "routes to other nodes' blocks"),
            Err(error) => tracing::error!(
                error = failure::chain(&error),
                "cannot set routes to other nodes' blocks"
            ),
        }
        let guarded = self.guard_tunnels();
        for router in self.routers() {
            run.step(format!("connecting router {}", router.name));
            if let Err(error) = self.connect(&router) {
                tracing::error!(router = %router.name, %error, "cannot connect a router");
            }
        }
        run.step("removing what networks had that are gone");
        self.remove_routers_of_the_gone();
        self.remove_node_plans_of_the_gone();
        self.forget_pools_of_the_gone();
        guarded
    }

    /// Keeps pods from the tunnels of other nodes, whether this one has routers or not: at start too, where the disk
    /// tells which nodes there were, and the rules may have gone meanwhile. Says which nodes tunnels lead to.
    pub(crate) fn guard_tunnels(&self) -> Result<(), String> {
        let Some(cluster) = self.cluster.get() else {
            return Ok(());
        };
        let nodes = cluster.fabric().nodes;
        let failed =
            |what: &str, error: &nft::NftError| format!("{what}: {}", failure::chain(error));
        if nodes.iter().any(|node| node.name != self.options.node) {
            let changes = nft::guard::ensure_tunnels(&self.node).map_err(|error| {
                failed("pods of this node may write into overlay networks: the rules that keep them out cannot be made", &error)
            })?;
            if !changes.is_empty() {
                tracing::info!(?changes, "rules that keep pods from nodes' tunnels");
            }
        } else if !cluster.synced() {
            // Which nodes there are is not known, and what an earlier agent was told stays.
            return Ok(());
        }
        let others = nodes.into_iter().flat_map(|node| node.addresses);
        let peers: Vec<_> = others.chain(self.node_addresses()).collect();
        let changes = nft::guard::set_peers(&self.node, &peers)
            .map_err(|error| failed("cannot say which nodes tunnels lead to", &error))?;
        if changes > 0 {
            tracing::info!(changes, "nodes that tunnels lead to");
        }
        Ok(())
    }

    /// Tells a router where its network's other blocks are.
    pub(crate) fn connect(&self, router: &Router) -> Result<(), Error> {
        let Some(cluster) = self.cluster.get() else {
            return Ok(());
        };
        let _alone = lock(&self.fabric_lock);
        let known = cluster.fabric();
        let blocks = known.overlay.get(&router.uid).cloned().unwrap_or_default();
        let here = &self.options.node;
        let (remotes, unreachable) =
            fabric::remotes(&router.uid, here, router.local, &known.nodes, &blocks);
        for what in unreachable {
            tracing::warn!(what, "a block of another node cannot be reached");
        }
        let islands = fabric::islands(here, &blocks);
        plexus_kernel::router::set_remotes(&self.node, router, &remotes, &islands)
            .map(drop)
            .map_err(|error| failure::failed(&error, "repeat the ADD"))
    }

    fn routers(&self) -> Vec<Router> {
        let plans = self.node_state.lock();
        let routers = plans.values().flat_map(|plan| &plan.routers);
        routers.cloned().collect()
    }

    /// A network that the API server no longer has and no pod here uses keeps nothing here.
    fn remove_routers_of_the_gone(&self) {
        let Some(cluster) = self.live_cluster() else {
            return;
        };
        let there = plexus_kernel::router::list(&self.options.routers()).unwrap_or_default();
        if there.is_empty() {
            return;
        }
        let _alone = self.routers.write().unwrap_or_else(PoisonError::into_inner);
        let networks = cluster.networks();
        let Some(mut needed) = self.routers_in_use() else {
            return;
        };
        needed.extend(networks.iter().map(|network| RouterName::of(&network.uid)));
        for name in there.iter().filter(|name| !needed.contains(name)) {
            self.remove_router(name);
        }
    }

    /// As for routers: a network that is gone masquerades nothing, and has no bridge and no gateway. Those that are no
    /// objects of the API may be back any time.
    fn remove_node_plans_of_the_gone(&self) {
        let Some(cluster) = self.live_cluster() else {
            return;
        };
        let networks = cluster.networks();
        let names = networks.iter().filter_map(|n| resolve::name_of(n).ok());
        let there: BTreeSet<NetworkName> = names.collect();
        let _alone = self.node_state.changing();
        let mut over: BTreeSet<NetworkName> = {
            let known_plans = self.node_state.lock();
            let ours = known_plans.iter().filter(|(name, plan)| {
                plan.is_of_object() && plan.routers.is_empty() && name.as_str() != CLUSTER_DEFAULT
            });
            let gone = ours.filter(|(name, _)| !there.contains(*name));
            gone.map(|(name, _)| name.clone()).collect()
        };
        if over.is_empty() {
            return;
        }
        let Ok(Some(stored)) = self.stored_if_readable() else {
            return;
        };
        for (one, native) in stored.iter().flat_map(|one| one.record.natives()) {
            over.remove(&native.node.kept_as(&one.network));
            // What an earlier agent journaled, or was adopted, does not say that it is of an object.
            over.remove(&one.network);
        }
        // The kernel would take the links on a bridge along, also those in pods, which are not seen from here.
        let is_parent = |bridge: &Bridge| {
            stored
                .iter()
                .any(|one| names_link(&one.record, &bridge.name))
        };
        over.retain(|network| {
            let plans = self.node_state.lock();
            !plans
                .get(network)
                .is_some_and(|plan| plan.bridges.iter().any(is_parent))
        });
        for network in over {
            match self.remove_node_plan(&network) {
                Ok((rules, bridges)) => tracing::info!(
                    %network,
                    rules,
                    bridges,
                    "the network is gone: what it had on the node is removed"
                ),
                Err(error) => {
                    tracing::error!(%network, error, "cannot remove what a network had on the node");
                }
            }
        }
    }

    /// Removes rules and bridges of a network, and forgets it; for who holds what is changing. Says how many rules, and
    /// which bridges and addresses.
    fn remove_node_plan(&self, network: &NetworkName) -> Result<(usize, String), String> {
        let journal = self.journal().map_err(|error| error.to_string())?;
        if !journal.quarantined_networks().is_empty() {
            return Err("what another network has on the node cannot be read in the journal: it may share a bridge with this one".to_owned());
        }
        let known_plans = self.node_state.lock().clone();
        let others = known_plans.iter().filter(|(name, _)| *name != network);
        let others: Vec<Bridge> = others.flat_map(|(_, plan)| plan.bridges.clone()).collect();
        let rules = nft::remove(&self.node, network).map_err(|e| failure::chain(&e))?;
        let mut removed = Vec::new();
        let gone = known_plans.get(network);
        for bridge in gone.into_iter().flat_map(|plan| &plan.bridges) {
            let one = plexus_kernel::clear::bridge_of_network(&self.node, bridge, &others);
            removed.extend(one.map_err(|e| failure::chain(&e))?);
        }
        let deleted = journal.delete_node_plan(network);
        deleted.map_err(|error| failure::chain(&error))?;
        self.node_state.lock().remove(network);
        Ok((rules, removed.join(", ")))
    }

    /// The cluster, if its list of networks is complete.
    fn live_cluster(&self) -> Option<&Cluster> {
        self.cluster.get().filter(|cluster| cluster.is_live())
    }

    /// The same for its addresses, which were counted as long as it was there.
    fn forget_pools_of_the_gone(&self) {
        if let Some(cluster) = self.live_cluster() {
            let networks = cluster.networks();
            let there = networks.iter().map(|network| network.uid.clone());
            self.addresses.forget_all_but(&there.collect());
        }
    }

    fn remove_router(&self, name: &RouterName) {
        let Ok(journal) = self.journal() else { return };
        let has = |plan: &NodePlan| plan.routers.iter().any(|router| router.name == *name);
        let _alone = self.node_state.changing();
        let without = |(network, plan): (&NetworkName, &NodePlan)| {
            has(plan).then(|| (network.clone(), plan.without_router(name)))
        };
        let changed: Vec<_> = self.node_state.lock().iter().filter_map(without).collect();
        if let Err(error) = plexus_kernel::router::remove(&self.node, name) {
            tracing::error!(router = %name, error = failure::chain(&error), "cannot remove a router");
            return;
        }
        tracing::info!(router = %name, "the network is gone: its router is removed");
        for (network, plan) in changed {
            let written = match plan.is_empty() {
                true => journal.delete_node_plan(&network),
                false => journal.put_node_plan(&network, &self.boot, &plan),
            };
            if let Err(error) = written {
                let error = failure::chain(&error);
                tracing::error!(error, "cannot journal that a router is removed");
                continue;
            }
            let mut plans = self.node_state.lock();
            match plan.is_empty() {
                true => plans.remove(&network),
                false => plans.insert(network, plan),
            };
        }
    }

    /// None if the journal cannot tell.
    fn routers_in_use(&self) -> Option<BTreeSet<RouterName>> {
        let stored = self.stored_if_readable().ok()??;
        let plans = stored.iter().flat_map(|one| one.record.node_plans());
        let routers = plans.flat_map(|(_, plan)| &plan.routers);
        Some(routers.map(|router| router.name.clone()).collect())
    }
}

/// Whether a record's links are on a link of the node, or a plugin's configuration names it.
fn names_link(record: &Record, name: &IfName) -> bool {
    let mut on_it = record.links().filter_map(|link| link.kind.stacked());
    let mut plugins = record
        .attachments
        .iter()
        .filter_map(AttachmentRecord::plugins);
    let is_named = |plugin: &Map<String, Value>| {
        let mut values = plugin.values().filter_map(Value::as_str);
        values.any(|value| value == name.as_str())
    };
    on_it.any(|stacked| stacked.parent.name == *name)
        || plugins.any(|run| run.plugins.iter().any(is_named))
}
