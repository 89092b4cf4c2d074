//! What networks need on the node, what the kernel can do, and whether what was made is there.

use crate::agent::Agent;
use crate::failure;
use crate::sync::lock;
use plexus_api::cni::{Code, Error, Native};
use plexus_core::plan::{self, NodePlan, PodPlan};
use plexus_kernel::{nft, node, pod};
use plexus_types::NetworkName;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What each network needs on the node, as it was journaled last.
#[derive(Debug, Default)]
pub(crate) struct NodeState {
    plans: Mutex<BTreeMap<NetworkName, NodePlan>>,
    changing: Mutex<()>,
}

impl NodeState {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<NetworkName, NodePlan>> {
        lock(&self.plans)
    }

    /// Held while something is journaled, made and remembered.
    pub(crate) fn changing(&self) -> MutexGuard<'_, ()> {
        lock(&self.changing)
    }

    fn has(&self, network: &NetworkName, plan: &NodePlan) -> bool {
        let plans = self.lock();
        let known = plans.get(network);
        known.is_some_and(|known| known.renewed_by(plan) == *known)
    }
}

impl Agent {
    /// Makes what the networks need on the node; cheap when it is there. Journaled when it is
    /// new, so that the next agent restores it.
    pub(crate) fn ensure_node(&self, plans: &[(NetworkName, NodePlan)]) -> Result<(), Error> {
        for (network, plan) in plans {
            // The record's intent is journaled: whoever removes routers sees it, or is done by now.
            let _routers = (!plan.routers.is_empty())
                .then(|| self.routers.read().unwrap_or_else(PoisonError::into_inner));
            let known = self.node_state.has(network, plan);
            // Two pods that bring something new at once must not forget each other's.
            let alone = (!known).then(|| self.node_state.changing());
            let at = |error| failure::at(format!("network {network}"), error);
            let before = self.node_state.lock().get(network).cloned();
            let after = match &before {
                Some(before) => before.renewed_by(plan),
                None => plan.clone(),
            };
            let journal = self.journal()?;
            if !known {
                journal.put_node_plan(network, &self.boot, &after)?;
            }
            let is_over = before
                .as_ref()
                .is_some_and(|before| before.masquerades_more_than(&after));
            if let Err(error) = self.make_on_node(network, plan, is_over) {
                // What the network really has is what the next agent must restore.
                match &before {
                    _ if known => {}
                    Some(before) => journal.put_node_plan(network, &self.boot, before)?,
                    None => journal.delete_node_plan(network)?,
                }
                return Err(at(error));
            }
            if !known {
                for router in &plan.routers {
                    self.connect(router).map_err(at)?;
                }
                self.node_state.lock().insert(network.clone(), after);
            }
            drop(alone);
        }
        Ok(())
    }

    /// Makes what a network needs on the node; without the rules that it has, if they masquerade too much.
    fn make_on_node(
        &self,
        network: &NetworkName,
        plan: &NodePlan,
        is_over: bool,
    ) -> Result<(), Error> {
        let next = "correct the cause and repeat the ADD";
        if is_over {
            nft::remove(&self.node, network).map_err(|error| failure::failed(&error, next))?;
        }
        let made = node::ensure(plan, &self.node);
        made.map(drop)
            .map_err(|error| failure::failed(&error, next))
    }

    /// Compares what was read back with what was planned.
    pub(crate) fn verify(&self, plan: &PodPlan, applied: &pod::Applied) -> Result<(), Error> {
        for warning in &applied.warnings {
            tracing::warn!(warning, "an announcement could not be sent");
        }
        let mut differences = plan::diff_pod(plan, &applied.pod);
        differences.extend(plan::diff_host_ends(plan, &applied.node));
        if differences.is_empty() {
            return Ok(());
        }
        let text: Vec<String> = differences.iter().map(ToString::to_string).collect();
        let text = text.join("; ");
        Err(Error::new(
            Code::Failed,
            format!("what was made is not what the kernel shows: {text}"),
            "is another program changing the container's interfaces? repeat the ADD",
        ))
    }

    /// Refuses a network that this kernel cannot do, with the reason.
    pub(crate) fn require_features(
        &self,
        native: &Native,
        network: &NetworkName,
    ) -> Result<(), Error> {
        for feature in plan::features(native) {
            if let Some(reason) = self.features.missing(feature) {
                return Err(Error::new(
                    Code::UnsupportedField,
                    format!(
                        "network {network}: provider {} needs {feature}, which this kernel lacks: {reason}",
                        native.provider.name()
                    ),
                    "use another provider, or a kernel that has it; `plexus doctor --kernel` lists what this one has",
                ));
            }
        }
        Ok(())
    }
}
