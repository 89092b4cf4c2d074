//! Parts of this node's blocks that other nodes get: chosen, kept and forgotten here, where pools and
//! journal are. Whom to tell, and when, is the API side's.
//!
//! ```text
//!   pools: nothing is handed out from it ──► journal, flushed ──► the API side says it
//!        └── the journal cannot be written: as if it had never been
//! ```

use crate::agent::Agent;
use crate::cluster::{Asked, Keeping};
use crate::failure;
use plexus_api::cni::BlockIpam;
use plexus_core::ipam::Given;
use std::sync::atomic::Ordering::SeqCst;

impl Agent {
    /// Gives up a part of this node's blocks. When this returns it is on disk that the part is
    /// another's, and nothing was or will be handed out from it. None: there is nothing to give, or
    /// what is in use is not known yet.
    pub(crate) fn give_part(&self, config: &BlockIpam, asked: &Asked<'_>) -> Option<Given> {
        if !self.ready.load(SeqCst) {
            return None;
        }
        let journal = self.journal().ok()?;
        let given = self
            .addresses
            .give(config, asked.family, asked.addresses, asked.node)?;
        if let Err(error) = journal.give(&given) {
            // If it may have been written all the same, nobody has it until the next start.
            if journal.forget_gift(&given).is_ok() {
                self.addresses.unmark_given(&given);
            }
            let error = failure::journal(&error);
            tracing::error!(part = %given.part, node = given.node, %error, "a part of a block is not given away");
            return None;
        }
        Some(given)
    }

    /// All that were given; none if the journal cannot tell.
    pub(crate) fn gifts(&self) -> Option<Vec<Given>> {
        self.journal().ok()?.gifts().ok()
    }

    /// Keeps a gift that the API knows of, or whose it is now; not if it is in use here.
    pub(crate) fn keep_gift(&self, given: &Given) -> Keeping {
        let Ok(journal) = self.journal() else {
            return Keeping::Failed;
        };
        if !self.ready.load(SeqCst) {
            return Keeping::Failed;
        }
        if !self.addresses.keep_given(given) {
            return Keeping::InUse;
        }
        match journal.give(given) {
            Ok(()) => Keeping::OnDisk,
            Err(error) => {
                let error = failure::journal(&error);
                tracing::error!(part = %given.part, node = given.node, %error, "cannot journal whose a part of a block is");
                Keeping::Failed
            }
        }
    }

    /// Its block is no longer this node's.
    pub(crate) fn drop_gift(&self, given: &Given) {
        let Ok(journal) = self.journal() else {
            return;
        };
        match journal.forget_gift(given) {
            Ok(()) => self.addresses.unmark_given(given),
            Err(error) => {
                let error = failure::journal(&error);
                tracing::error!(part = %given.part, %error, "cannot forget a gift of a block that is no longer this node's");
            }
        }
    }
}
