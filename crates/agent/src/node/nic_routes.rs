//! Routes to other nodes' blocks of networks with an interface per NIC, kept true: a task of the background, woken when
//! blocks, networks or nodes change, or when anything changes in the kernel that such routes are made of. Which routes there
//! are is decided in `core`.

use crate::agent::Agent;
use crate::failure;
use plexus_core::nic_routes::{self, Decision};
use plexus_kernel::nic_routes::NicRoutes;
use std::collections::BTreeSet;

/// What was made last.
#[derive(Debug, Default)]
pub(crate) struct KnownNicRoutes {
    routes: NicRoutes,
    /// There is nothing of ours: nobody else makes any.
    none: bool,
    unreachable: BTreeSet<String>,
}

impl Agent {
    /// Makes tables, next hops and rules agree with what the cluster says. `look`: somebody may have changed them.
    pub(crate) fn set_nic_routes(
        &self,
        known: &mut KnownNicRoutes,
        look: bool,
    ) -> Result<(), String> {
        let Some(cluster) = self.cluster.get().filter(|cluster| cluster.synced()) else {
            return Ok(());
        };
        // Not known yet is not none: what is there from before a restart stays.
        let Some((networks, blocks)) = cluster.nic_blocks() else {
            return Ok(());
        };
        let here = &self.options.node;
        let decision = match networks.is_empty() {
            true => Decision::default(),
            false => nic_routes::decide(here, &self.all_nics()?, &networks, &blocks),
        };
        for nic in &decision.shared {
            let set = plexus_kernel::nic_routes::answer_for_own_addresses(&self.node, nic);
            match set {
                Ok(false) => {}
                Ok(true) => tracing::info!(
                    nic,
                    "is in the same subnet as another link: it answers ARP requests for its own addresses only"
                ),
                Err(error) => tracing::error!(
                    nic,
                    error = failure::chain(&error),
                    "answers for another NIC"
                ),
            }
        }
        if decision.tables.is_empty() && known.none {
            return Ok(());
        }
        for what in decision.unreachable.difference(&known.unreachable) {
            tracing::warn!(what, "blocks of other nodes cannot be reached");
        }
        known.unreachable = decision.unreachable;
        if look {
            known.routes.forget();
        }
        let changes = known.routes.set(&self.node, &decision.tables);
        let changes = changes.map_err(|error| failure::chain(&error))?;
        known.none = decision.tables.is_empty();
        if !changes.is_empty() {
            let (routes, hops, rules) = (changes.routes, changes.hops, changes.rules);
            tracing::info!(routes, hops, rules, "routes to other nodes' blocks on NICs");
        }
        Ok(())
    }
}
