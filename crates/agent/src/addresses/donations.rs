//! Donations: parts of this node's blocks that other nodes get. The agent chooses, journals and deletes
//! them here, where it has the pools and the journal. The cluster module publishes them.
//!
//! ```text
//!   pools: nothing is handed out from it ──► journal, flushed ──► the API side says it
//!        └── the journal cannot be written: as if it had never been
//! ```

use crate::agent::Agent;
use crate::cluster::{PartRequest, RecordOutcome};
use crate::failure;
use ipnet::IpNet;
use plexus_api::cni::BlockIpam;
use plexus_core::ipam::{Donation, NodeBlocks};
use std::sync::atomic::Ordering::SeqCst;

impl Agent {
    /// Gives up a part of this node's blocks. When this returns it is on disk that the part is
    /// another's, and nothing was or will be handed out from it. None: there is nothing to give, or
    /// what is in use is not known yet.
    pub(crate) fn donate_part(
        &self,
        config: &BlockIpam,
        own: &NodeBlocks,
        request: &PartRequest<'_>,
    ) -> Option<Donation> {
        if !self.ready.load(SeqCst) {
            return None;
        }
        let journal = self.journal().ok()?;
        let donation = self.addresses.donate(config, own, request)?;
        if let Err(error) = journal.put_donation(&donation) {
            // If it may have been written all the same, nobody has it until the next start.
            if journal.delete_donation(&donation).is_ok() {
                self.addresses.unmark_donated(&donation);
            }
            let error = failure::journal(&error);
            tracing::error!(part = %donation.part, node = donation.node, %error, "a part of a block is not given away");
            return None;
        }
        Some(donation)
    }

    /// All donations of this node; none if the journal cannot be read.
    pub(crate) fn journaled_donations(&self) -> Option<Vec<Donation>> {
        self.journal().ok()?.donations().ok()
    }

    /// Journals a donation that the API knows of, or its new owner. Refuses one whose addresses are in use here,
    /// other than those that its owner gave this node.
    pub(crate) fn journal_donation(
        &self,
        donation: &Donation,
        given_back: &[IpNet],
    ) -> RecordOutcome {
        let Ok(journal) = self.journal() else {
            return RecordOutcome::Failed;
        };
        if !self.ready.load(SeqCst) {
            return RecordOutcome::Failed;
        }
        if !self.addresses.mark_donated_if_free(donation, given_back) {
            return RecordOutcome::InUse;
        }
        match journal.put_donation(donation) {
            Ok(()) => RecordOutcome::OnDisk,
            Err(error) => {
                let error = failure::journal(&error);
                tracing::error!(part = %donation.part, node = donation.node, %error, "cannot journal whose a part of a block is");
                RecordOutcome::Failed
            }
        }
    }

    /// Its block is no longer this node's.
    pub(crate) fn drop_donation(&self, donation: &Donation) {
        let Ok(journal) = self.journal() else {
            return;
        };
        match journal.delete_donation(donation) {
            Ok(()) => self.addresses.unmark_donated(donation),
            Err(error) => {
                let error = failure::journal(&error);
                tracing::error!(part = %donation.part, %error, "cannot forget a gift of a block that is no longer this node's");
            }
        }
    }
}
