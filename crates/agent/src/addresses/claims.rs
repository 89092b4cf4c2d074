//! Claims a block when this node's are full; asks other nodes for a part of theirs when none is free.

use crate::addresses::NeedsBlock;
use crate::agent::Agent;
use crate::cluster::{ClaimError, ClaimRequest, network_ref};
use crate::failure;
use plexus_api::cni::Error;
use plexus_core::attachment::NativeSpec;
use plexus_core::ipam::{BlockSource, NodeBlocks};
use plexus_core::resolve::CLUSTER_DEFAULT;
use std::time::Instant;

impl Agent {
    /// Makes another block this node's, from which the attachment may take its address. The subnets are tried in
    /// order of preference; the error is the last one's. Not later than `until`.
    pub(crate) fn claim_for(
        &self,
        specs: &[NativeSpec],
        needs: &NeedsBlock,
        until: Instant,
    ) -> Result<(), Error> {
        let spec = specs.get(needs.number);
        let section = spec.and_then(|one| one.native.block_ipam());
        let (Some(section), Some(cluster)) = (section, self.cluster.get()) else {
            return Err(needs.error.clone());
        };
        let object = cluster.network_by_uid(&section.uid);
        let object = object.ok_or_else(|| needs.error.clone())?;
        let subnets = section.subnets.iter();
        let subnets = subnets.filter(|subnet| needs.subnets.contains(&subnet.cidr));
        let mut failed = needs.error.clone();
        let subnets: Vec<_> = subnets.collect();
        let most = subnets.len();
        for (number, subnet) in (1..).zip(subnets) {
            let request = ClaimRequest {
                network: network_ref(&object),
                subnet: subnet.clone(),
                containing: needs.containing,
                have: needs.have.clone(),
                // Other nodes are asked once nothing is free anywhere.
                ask: number == most,
                until,
            };
            match cluster.claim(&request) {
                Ok(_) => return Ok(()),
                Err(error) => failed = failure::failed(&error, error.remedy()),
            }
        }
        Err(Error {
            msg: format!("{}; {}", needs.error.msg, failed.msg),
            ..failed
        })
    }

    /// Who knows which blocks are this node's; without a cluster it has none.
    pub(crate) fn block_source(&self) -> &dyn BlockSource {
        static NONE: NodeBlocks = NodeBlocks {
            own: Vec::new(),
            donated: Vec::new(),
        };
        match self.cluster.get() {
            Some(cluster) => cluster,
            None => &NONE,
        }
    }

    /// Refuses a pod whose network goes away. To be asked while the addresses are held: from then on the
    /// network waits for them, and before that the asking may have taken a while.
    pub(crate) fn check_open(&self, specs: &[NativeSpec]) -> Result<(), Error> {
        let Some(cluster) = self.cluster.get() else {
            return Ok(());
        };
        for one in specs {
            let Some(section) = one.native.block_ipam() else {
                continue;
            };
            // What the cluster gave each node is no object that could go.
            if section.uid != CLUSTER_DEFAULT && cluster.is_closing(&section.uid) {
                let error = ClaimError::Closing(one.network.to_string());
                return Err(failure::failed(&error, error.remedy()));
            }
        }
        Ok(())
    }
}
