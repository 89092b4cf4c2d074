//! Which of a host's NICs a pod gets: those that it names, else those of the network in their order, as many as it asks for.

use std::collections::BTreeSet;

/// What a pod asks for in its `cni-args`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NicChoice {
    /// `nics`: how many at most; 0 and none: all.
    pub count: Option<u32>,
    /// `masters`: these, in this order; empty: as the network has them.
    pub names: Vec<String>,
}

/// Why a pod gets no NIC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The network has no NIC on this host.
    #[error(
        "the host has no NIC of the network: masterNets names the subnets of its NICs, HostInterface those that it has"
    )]
    None,
    /// The pod names one that the host does not have in this network.
    #[error("the host has no NIC {name:?} of the network: there are {}", .there.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        there: Vec<String>,
    },
}

/// The NICs of a pod. `there` are the host's NICs of the network, in the order of their interface indices. `masters` wins
/// over `nics`, which bounds what it names.
pub fn select<'n>(there: &[&'n str], choice: &NicChoice) -> Result<Vec<&'n str>, SelectError> {
    if there.is_empty() {
        return Err(SelectError::None);
    }
    let mut selected: Vec<&'n str> = Vec::new();
    let mut seen = BTreeSet::new();
    for name in &choice.names {
        let Some(nic) = there.iter().find(|nic| **nic == name) else {
            let there = there.iter().map(|nic| (*nic).to_owned()).collect();
            let name = name.clone();
            return Err(SelectError::Unknown { name, there });
        };
        if seen.insert(*nic) {
            selected.push(nic);
        }
    }
    if choice.names.is_empty() {
        selected.extend(there);
    }
    if let Some(count) = choice.count.filter(|count| *count > 0) {
        selected.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    }
    Ok(selected)
}
