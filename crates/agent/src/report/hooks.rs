//! What the API side asks of the agent: which pods the journal has, how full blocks are, and donations: parts of this
//! node's blocks that other nodes get. The agent chooses, journals and deletes them here, where it has the pools and
//! the journal; the API side publishes them.
//!
//! ```text
//!   pools: nothing is handed out from it ──► journal, flushed ──► the API side says it
//!        └── the journal cannot be written: as if it had never been
//! ```

use crate::agent::Agent;
use crate::cluster::{BlockUse, Change, Hooks, Journaled, PartRequest, RecordOutcome};
use crate::failure;
use crate::report::owner::RecordOwners;
use crate::report::records::attached;
use ipnet::IpNet;
use plexus_api::cni::BlockIpam;
use plexus_core::ipam::{Donation, NodeBlocks};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::Ordering::SeqCst;

impl Hooks for Agent {
    fn changed(&self, what: Change) {
        self.tasks.fabric.wake();
        self.tasks.nic_routes.wake();
        if what == Change::Networks {
            self.tasks.conflists.wake();
        }
    }

    fn pods(&self) -> Option<Journaled> {
        let stored = self.journal().ok()?.all().ok()?;
        let owners = self.owners();
        let uids = stored.iter().filter_map(|one| match owners {
            RecordOwners::Pods => one.record.pod_uid.clone(),
            RecordOwners::Containers => owners.of(&one.record).map(|container| container.key()),
        });
        Some(Journaled {
            uids: uids.collect(),
            done: attached(owners, &stored),
            is_partial: !self.is_journal_readable(),
        })
    }

    fn usage(&self) -> Option<Vec<BlockUse>> {
        let (held, own) = self.held_and_own()?;
        let each = own.iter().map(|(network_uid, cidr)| BlockUse {
            allocated: held_in(&held, &own, network_uid, *cidr),
            network_uid: network_uid.clone(),
            cidr: *cidr,
        });
        Some(each.collect())
    }

    fn in_use(&self, network_uid: &str, cidr: IpNet) -> Option<bool> {
        let (held, own) = self.held_and_own()?;
        Some(held_in(&held, &own, network_uid, cidr) > 0)
    }

    fn donate(
        &self,
        config: &BlockIpam,
        own: &NodeBlocks,
        request: &PartRequest<'_>,
    ) -> Option<Donation> {
        if !self.ready.load(SeqCst) {
            return None;
        }
        let journal = self.journal().ok()?;
        let (family, addresses) = (request.family, request.addresses);
        let mut pools = self.addresses.pools();
        let donation = pools.donate(config, own, family, addresses, request.node)?;
        drop(pools);
        if let Err(error) = journal.put_donation(&donation) {
            // If it may have been written all the same, nobody has it until the next start.
            if journal.delete_donation(&donation).is_ok() {
                self.addresses.pools().unmark_donated(&donation);
            }
            let error = failure::journal(&error);
            tracing::error!(part = %donation.part, node = donation.node, %error, "a part of a block is not given away");
            return None;
        }
        Some(donation)
    }

    fn donations(&self) -> Option<Vec<Donation>> {
        self.journal().ok()?.donations().ok()
    }

    fn record_donation(&self, donation: &Donation, given_back: &[IpNet]) -> RecordOutcome {
        let Some(journal) = self.journal().ok().filter(|_| self.ready.load(SeqCst)) else {
            return RecordOutcome::Failed;
        };
        let is_free = self
            .addresses
            .pools()
            .mark_donated_if_free(donation, given_back);
        if !is_free {
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

    fn delete_donation(&self, donation: &Donation) {
        let Ok(journal) = self.journal() else {
            return;
        };
        match journal.delete_donation(donation) {
            Ok(()) => self.addresses.pools().unmark_donated(donation),
            Err(error) => {
                let error = failure::journal(&error);
                tracing::error!(part = %donation.part, %error, "cannot forget a gift of a block that is no longer this node's");
            }
        }
    }
}

type Held = BTreeMap<String, Vec<IpAddr>>;
type OwnBlocks = BTreeSet<(String, IpNet)>;

impl Agent {
    /// Addresses in use by network, and this node's blocks; none until the journal is replayed.
    fn held_and_own(&self) -> Option<(Held, OwnBlocks)> {
        let cluster = self.cluster.get().filter(|_| self.ready.load(SeqCst))?;
        Some((self.addresses.held_of_blocks(), cluster.own_blocks()))
    }
}

/// Each address counts once: in the smallest of the node's blocks that it is in.
fn held_in(held: &Held, own: &OwnBlocks, network_uid: &str, cidr: IpNet) -> u64 {
    let of_network = own.iter().filter(|(uid, _)| uid == network_uid);
    let inside: Vec<&IpNet> = of_network
        .map(|(_, block)| block)
        .filter(|block| cidr.contains(*block) && **block != cidr)
        .collect();
    let of_network = held.get(network_uid).into_iter().flatten();
    let counts = |address: &&IpAddr| {
        cidr.contains(*address) && !inside.iter().any(|block| block.contains(*address))
    };
    of_network.filter(counts).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_as_full_as_the_addresses_that_pods_hold_in_it() {
        let addresses = ["10.1.0.65", "10.1.0.66", "10.1.0.1", "fd00::1"];
        let addresses = addresses.map(|text| text.parse().unwrap()).to_vec();
        let held = BTreeMap::from([("gone-from-the-api".to_owned(), addresses)]);
        let mut own = BTreeSet::new();
        let count = |own: &BTreeSet<_>, uid: &str, cidr: &str| {
            held_in(&held, own, uid, cidr.parse().unwrap())
        };
        assert_eq!(count(&own, "gone-from-the-api", "10.1.0.64/26"), 2);
        assert_eq!(count(&own, "gone-from-the-api", "10.1.0.128/26"), 0);
        assert_eq!(count(&own, "another", "10.1.0.64/26"), 0);
        // A part that is a block of its own is not counted with the whole as well.
        for cidr in ["10.1.0.64/26", "10.1.0.66/31"] {
            own.insert(("gone-from-the-api".to_owned(), cidr.parse().unwrap()));
        }
        assert_eq!(count(&own, "gone-from-the-api", "10.1.0.64/26"), 1);
        assert_eq!(count(&own, "gone-from-the-api", "10.1.0.66/31"), 1);
    }
}
