//! Claims a block when this node's are full.

use crate::cluster::ClaimRequest;
use crate::failure;
use crate::ipam::NeedsBlock;
use crate::verbs::Agent;
use plexus_api::cni::{Error, Ipam};
use plexus_core::attachment::Wanted;

impl Agent {
    /// Adds a block to what the attachment may take addresses from. The subnets are tried in order
    /// of preference; the error is the last one's.
    pub(crate) fn claim_for(&self, wanted: &mut [Wanted], needs: NeedsBlock) -> Result<(), Error> {
        let section = wanted
            .get(needs.number)
            .and_then(|one| one.native.ipam.as_ref());
        let (Some(Ipam::Blocks(section)), Some(cluster)) = (section, self.cluster.get()) else {
            return Err(needs.error);
        };
        let uid = section.uid.clone();
        let object = cluster.network_by_uid(&uid).ok_or(needs.error.clone())?;
        let subnets = section.subnets.iter();
        let subnets = subnets.filter(|subnet| needs.subnets.contains(&subnet.cidr));
        let mut failed = needs.error.clone();
        let mut claimed = None;
        for subnet in subnets {
            let request = ClaimRequest {
                network: &object,
                subnet,
                containing: needs.containing,
                have: &section.blocks,
            };
            match cluster.claim(request) {
                Ok(block) => {
                    claimed = Some(block);
                    break;
                }
                Err(error) => {
                    let remedy = "free addresses, or give the network another subnet";
                    failed = failure::failed(&error, remedy);
                }
            }
        }
        let block = claimed.ok_or_else(|| Error {
            msg: format!("{}; {}", needs.error.msg, failed.msg),
            ..failed
        })?;
        for one in wanted {
            if let Some(Ipam::Blocks(section)) = &mut one.native.ipam
                && section.uid == uid
                && !section.blocks.contains(&block)
            {
                section.blocks.push(block);
            }
        }
        Ok(())
    }
}
