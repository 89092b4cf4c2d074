//! What the status of a MultiNicNetwork says, and which definitions it has.

use super::conditions::Conditions;
use plexus_api::objects::{ComputeResult, Discovery, MultiNic, MultiNicNetworkStatus};
use plexus_core::multinic::{Assignment, LeftOut};
use std::collections::{BTreeMap, BTreeSet};

/// Of those that have no block so many are named.
const MAX_NAMED: usize = 20;

/// What is known of a network.
pub(crate) struct MultiNicFacts<'a> {
    pub(crate) generation: Option<i64>,
    pub(crate) deleting: bool,
    /// What it means, or what is wrong with it.
    pub(crate) meaning: Result<&'a MultiNic, &'a str>,
    /// Who had its addresses before it.
    pub(crate) rivals: &'a [String],
    /// Who has which block.
    pub(crate) assignment: &'a Assignment,
    /// Hosts that have a HostInterface, and those of them that have a NIC.
    pub(crate) hosts: (u64, u64),
    /// What of its blocks could not be written, and why.
    pub(crate) unmade: &'a [String],
    /// Definitions of its name that somebody else made, as `namespace/name`.
    pub(crate) foreign: &'a [String],
    /// What of its definitions could not be written, and why.
    pub(crate) undefined: &'a [String],
}

impl MultiNicFacts<'_> {
    fn uses_blocks(&self) -> bool {
        self.meaning.is_ok_and(|meaning| meaning.bits().is_some())
    }

    /// Why nothing is assigned; a reason and a sentence.
    fn obstacle(&self) -> Option<(&'static str, String)> {
        if let Err(why) = self.meaning {
            return Some(("InvalidSpec", why.to_owned()));
        }
        (!self.rivals.is_empty()).then(|| {
            let message = format!(
                "its subnet overlaps {}, which had the addresses before: make another network with another subnet, or delete that",
                self.rivals.join(", ")
            );
            ("SubnetConflict", message)
        })
    }

    /// Who has no block; a reason and a sentence.
    fn not_placed(&self) -> Option<(&'static str, String)> {
        let left_out = self.assignment.left_out.iter().map(LeftOut::to_string);
        let unmade = self.unmade.iter().cloned();
        let reason = match self.unmade.is_empty() {
            true => "NotPlaced",
            false => "NotWritten",
        };
        // What users can put right first.
        Some((reason, named(unmade.chain(left_out).collect())?))
    }

    /// What is wrong with its definitions; a reason and a sentence.
    fn not_defined(&self) -> Option<(&'static str, String)> {
        if let Some(text) = named(self.undefined.to_vec()) {
            return Some(("NotWritten", text));
        }
        (!self.foreign.is_empty()).then(|| {
            let text = format!(
                "NetworkAttachmentDefinitions of its name that others made are left as they are, so that pods there do \
                 not get this network: {}",
                self.foreign.join(", ")
            );
            ("DefinitionExists", text)
        })
    }
}

/// The first of several, and how many more there are.
fn named(all: Vec<String>) -> Option<String> {
    let more = all.len().saturating_sub(MAX_NAMED);
    let text = all.get(..MAX_NAMED).unwrap_or(&all).join("; ");
    match (all.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(text),
        (false, more) => Some(format!("{text}; and {more} more")),
    }
}

/// What must be said of a network to users who do not read the status: reasons and sentences.
pub(crate) fn complaints(facts: &MultiNicFacts<'_>) -> Vec<(&'static str, String)> {
    if facts.deleting {
        return Vec::new();
    }
    let mut complaints: Vec<_> = facts.obstacle().into_iter().collect();
    complaints.extend(facts.not_placed());
    complaints.extend(facts.not_defined());
    complaints
}

/// The status, from what it was.
pub(crate) fn status(
    facts: &MultiNicFacts<'_>,
    before: &MultiNicNetworkStatus,
    now: &str,
) -> MultiNicNetworkStatus {
    let obstacle = facts.obstacle();
    let not_placed = facts.not_placed();
    let waits_for_hosts = facts.uses_blocks() && facts.assignment.blocks.is_empty();
    let (ready, reason, message) = match (&obstacle, &not_placed) {
        _ if facts.deleting => (false, "Terminating", terminating(facts)),
        (Some((reason, message)), _) => (false, *reason, message.clone()),
        (_, Some((reason, message))) => (false, *reason, message.clone()),
        _ if waits_for_hosts => (false, "WaitsForHosts", waits_for(facts)),
        _ if !facts.uses_blocks() => (false, "NotServed", OTHER_IPAM.to_owned()),
        _ => (true, "Ready", String::new()),
    };
    let mut conditions = Conditions::new(&before.conditions, now, facts.generation);
    conditions.set("Ready", ready, reason, message.clone());
    if facts.rivals.is_empty() {
        conditions.over("SubnetConflict", "NoConflict", "");
    } else if let Some((reason, message)) = obstacle.as_ref().filter(|_| facts.meaning.is_ok()) {
        conditions.set("SubnetConflict", true, reason, message.clone());
    }
    match not_placed {
        Some((reason, message)) => conditions.set("Placed", false, reason, message),
        None if facts.uses_blocks() && obstacle.is_none() => {
            conditions.set("Placed", true, "Placed", "");
        }
        None => {}
    }
    match facts.not_defined() {
        Some((reason, message)) => conditions.set("Definitions", false, reason, message),
        None => conditions.over("Definitions", "Made", ""),
    }
    let config_status = match reason {
        "InvalidSpec" | "SubnetConflict" | "NotPlaced" | "NotWritten" | "NotServed" => "Failed",
        _ if waits_for_hosts => "WaitForConfig",
        _ => "Success",
    };
    let mut status = MultiNicNetworkStatus {
        observed_generation: facts.generation,
        compute_results: results(facts.assignment),
        discovery: Some(discovery(facts)),
        config_status: config_status.to_owned(),
        route_status: route_status(facts).to_owned(),
        message,
        last_sync_time: before.last_sync_time.clone(),
        conditions: conditions.into_list(),
    };
    if status != *before {
        status.last_sync_time = Some(now.to_owned());
    }
    status
}

fn terminating(facts: &MultiNicFacts<'_>) -> String {
    match facts.assignment.draining {
        0 => String::new(),
        some => format!("{some} of its blocks are in use, or their nodes have not closed them yet"),
    }
}

const OTHER_IPAM: &str = "spec.ipam: only the IPAM multi-nic-ipam is served: write that, or a NetworkAttachmentDefinition for each NIC";

fn waits_for(facts: &MultiNicFacts<'_>) -> String {
    match facts.hosts.0 {
        0 => "the NICs of no host are known yet: there is no HostInterface".to_owned(),
        _ => "no host has a NIC on its masterNets: compare them with the HostInterfaces".to_owned(),
    }
}

fn results(assignment: &Assignment) -> Vec<ComputeResult> {
    let mut hosts: BTreeMap<(u32, String), BTreeSet<&str>> = BTreeMap::new();
    for block in assignment.blocks.values() {
        if let Some(nic) = &block.nic {
            let key = (nic.interface_index, nic.net_address.to_string());
            hosts.entry(key).or_default().insert(&block.node);
        }
    }
    let result = |((_, net_address), hosts): ((u32, String), BTreeSet<&str>)| ComputeResult {
        net_address,
        num_of_hosts: hosts.len() as u64,
    };
    hosts.into_iter().map(result).collect()
}

fn discovery(facts: &MultiNicFacts<'_>) -> Discovery {
    let blocks = facts.assignment.blocks.values();
    let hosts: BTreeSet<&str> = blocks.map(|block| block.node.as_str()).collect();
    Discovery {
        exist_daemon: facts.hosts.0,
        info_available: facts.hosts.1,
        cidr_processed: hosts.len() as u64,
    }
}

/// What is known of the nodes' routes. Each node makes its own and tells nobody: that all are in place is not known here.
fn route_status(facts: &MultiNicFacts<'_>) -> &'static str {
    let bits = facts.meaning.ok().and_then(MultiNic::bits);
    if facts.deleting || bits.is_none_or(|bits| !bits.mode.is_routed()) {
        return "N/A";
    }
    let no_way = |one: &LeftOut| matches!(one, LeftOut::NoAddress { .. });
    let nodes: BTreeSet<&str> = {
        let blocks = facts.assignment.blocks.values();
        blocks.map(|block| block.node.as_str()).collect()
    };
    match nodes.len() {
        _ if facts.assignment.left_out.iter().any(no_way) => "Failed",
        // What it had before stays.
        0 if facts.obstacle().is_some() => "Unknown",
        0 => "WaitForRoutes",
        // Nobody to route to.
        1 => "Success",
        _ => "Unknown",
    }
}

/// A definition of a network, as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definition<'a> {
    pub(crate) namespace: &'a str,
    /// Whether the network made it.
    pub(crate) ours: bool,
    pub(crate) config: Option<&'a str>,
}

/// What is done about the definitions of a network, by namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DefinitionChanges {
    pub(crate) create: Vec<String>,
    pub(crate) update: Vec<String>,
    pub(crate) delete: Vec<String>,
    /// Somebody else's are there.
    pub(crate) foreign: Vec<String>,
}

/// Compares what is there with what should be: a definition with this configuration in each of these namespaces.
pub(crate) fn definitions(
    wanted: &[String],
    config: &str,
    there: &[Definition<'_>],
) -> DefinitionChanges {
    let mut changes = DefinitionChanges::default();
    for namespace in wanted {
        let found = there.iter().find(|one| one.namespace == namespace);
        match found {
            None => changes.create.push(namespace.clone()),
            Some(one) if !one.ours => changes.foreign.push(namespace.clone()),
            Some(one) if one.config != Some(config) => changes.update.push(namespace.clone()),
            Some(_) => {}
        }
    }
    let gone = there
        .iter()
        .filter(|one| one.ours && !wanted.iter().any(|name| name == one.namespace));
    changes.delete = gone.map(|one| one.namespace.to_owned()).collect();
    changes
}

#[cfg(test)]
#[path = "multi_nic_tests.rs"]
mod tests;
