//! What the table should have, and putting it back: at start, and when somebody has removed it (`nft flush
//! ruleset`, which a reload of Debian's nftables.service does). Without the guard of ports, pods reach what
//! listens on the node's loopback: if it cannot be put back, the ways there are closed.

use super::chain::{self, ListedRule};
use super::host_ports::{self, HostPortError, Ports, loopback};
use super::{NftError, guard, masquerade, with_tables};
use crate::NodeSide;
use crate::node_side::lock;
use ipnet::IpNet;
use plexus_core::plan::{Masquerade, PodPlan};
use plexus_types::NetworkName;
use std::collections::{BTreeMap, BTreeSet};

/// Looks at the table that fail in a row until it counts as gone: one may be torn by others' changes.
const MAX_FAILED_READS: u8 = 5;

/// The table is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Nobody knows.
    #[error("cannot look whether table inet plexus is as it should be")]
    Unseen(#[source] NftError),
    /// Nobody is in danger.
    #[error(
        "table inet plexus is not as it should be, so that ports of the node do not answer on 127.0.0.1 for now"
    )]
    Closed(#[source] HostPortError),
    /// Somebody may be.
    #[error(
        "table inet plexus is not as it should be, so that pods may reach what listens on the node's loopback: route_localnet of their links on the node cannot be set to 0 either ({close})"
    )]
    Open {
        /// Why it cannot be closed.
        close: HostPortError,
        /// Why it cannot be put back.
        #[source]
        source: HostPortError,
    },
}

/// What this process has put into the table, or found there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    sources: bool,
    tunnels: bool,
    masquerades: BTreeMap<(NetworkName, IpNet), Masquerade>,
    /// None: nobody has asked yet.
    pub(super) ports: Option<Ports>,
    /// Stay when the last port is gone: bridges stay open.
    pub(super) port_chains: bool,
    /// The node's loopback leads to no pod, because the table could not be put back.
    closed: bool,
    /// Looks that have failed in a row.
    unseen: u8,
}

/// Puts into the table what these pods, which are all that there are, need: ports, and the check of sources.
/// Says what was changed.
pub fn restore(node: &NodeSide, plans: &[PodPlan]) -> Result<Vec<String>, RestoreError> {
    let _alone = lock(&node.firewall);
    let ports: Ports = plans.iter().flat_map(host_ports::of_plan).collect();
    let wanted = {
        let mut known = node.table();
        known.sources |= plans.iter().any(is_checked);
        known.port_chains |= !ports.is_empty();
        known.ports = Some(ports);
        known.clone()
    };
    or_close(node, put_back(node, &wanted))
}

/// Looks whether every rule is there that this process knows of, with one question, and puts all of it back if
/// not. Says what was changed.
pub fn restore_missing(node: &NodeSide) -> Result<Vec<String>, RestoreError> {
    let _alone = lock(&node.firewall);
    if !node.table().needs_rules() {
        return Ok(Vec::new());
    }
    let looked = missing(node);
    let unseen = node.table().saw(looked.is_ok());
    match looked {
        Ok(None) => Ok(Vec::new()),
        Ok(Some(wanted)) => or_close(node, put_back(node, &wanted)),
        Err(error) if unseen < MAX_FAILED_READS => Err(RestoreError::Unseen(error)),
        Err(error) => or_close(node, Err(error.into())),
    }
}

/// What should be there, if not all of it is.
fn missing(node: &NodeSide) -> Result<Option<Table>, NftError> {
    let found = with_tables(node, |socket| {
        chain::rules(socket, None).map_err(NftError::List)
    })?;
    let known = node.table();
    Ok((known.closed || !known.is_whole(&found)).then(|| known.clone()))
}

/// What guards the node's loopback first, and what leads to it last.
fn put_back(node: &NodeSide, wanted: &Table) -> Result<Vec<String>, HostPortError> {
    let changes = with_tables(node, |socket| -> Result<_, HostPortError> {
        let mut changes = host_ports::put_back(socket, wanted)?;
        if wanted.sources {
            changes.extend(guard::write(node, socket, wanted.tunnels)?);
        }
        changes.extend(guard::write_peers(node, socket)?);
        let masquerades: Vec<_> = wanted.masquerades.values().cloned().collect();
        changes.extend(masquerade::write(socket, &masquerades)?);
        Ok(changes)
    })?;
    host_ports::open_exactly(node, wanted)?;
    node.table().closed = false;
    Ok(changes)
}

fn or_close<T>(node: &NodeSide, done: Result<T, HostPortError>) -> Result<T, RestoreError> {
    done.map_err(|source| {
        node.table().closed = true;
        match loopback::close(node, &BTreeSet::new()) {
            Ok(_) => RestoreError::Closed(source),
            Err(close) => RestoreError::Open { close, source },
        }
    })
}

/// Whether the node's own rules check who sends.
fn is_checked(plan: &PodPlan) -> bool {
    let mut ends = plan.links.iter().filter_map(|link| link.kind.host_end());
    ends.any(|end| end.source_check && end.router.is_none())
}

impl Table {
    pub(super) fn is_guarded(&self, tunnels: bool) -> bool {
        self.sources && (self.tunnels || !tunnels)
    }

    pub(super) fn guard(&mut self, tunnels: bool) {
        self.sources = true;
        self.tunnels |= tunnels;
    }

    /// Whether all of these are known.
    pub(super) fn masquerades(&self, wanted: &[Masquerade]) -> bool {
        let mut wanted = wanted.iter();
        wanted.all(|one| self.masquerades.get(&key(one)) == Some(one))
    }

    pub(super) fn masquerade(&mut self, wanted: &[Masquerade]) {
        let wanted = wanted.iter().map(|one| (key(one), one.clone()));
        self.masquerades.extend(wanted);
    }

    pub(super) fn masquerade_no_more(&mut self, network: &NetworkName) {
        self.masquerades.retain(|(name, _), _| name != network);
    }

    /// Counts the looks that failed in a row.
    fn saw(&mut self, well: bool) -> u8 {
        self.unseen = if well {
            0
        } else {
            self.unseen.saturating_add(1)
        };
        self.unseen
    }

    fn needs_rules(&self) -> bool {
        self.sources || self.port_chains || !self.masquerades.is_empty()
    }

    fn is_whole(&self, found: &[ListedRule]) -> bool {
        let mut chains = Vec::new();
        if self.sources {
            chains.extend(guard::desired_chains(self.tunnels));
        }
        if self.port_chains {
            chains.extend(host_ports::chains());
        }
        let mut masquerades = self.masquerades.values();
        !chains.iter().any(|chain| chain.differs(found))
            && masquerades.all(|one| masquerade::is_there(found, one))
    }
}

/// A network has one rule per source.
fn key(masquerade: &Masquerade) -> (NetworkName, IpNet) {
    (masquerade.network.clone(), masquerade.source.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_looks_that_fail_in_a_row_count() {
        let mut table = Table::default();
        let looks = [false, false, true, false, false, false, false, false];
        let counted = looks.map(|well| table.saw(well));
        assert_eq!(counted, [1, 2, 0, 1, 2, 3, 4, MAX_FAILED_READS]);
    }
}
