//! What a lab was asked to be: `lab.json`. Written by whoever makes or changes the lab, read by its keeper,
//! which makes it so.

use crate::address::{MAX_NICS, POD_SUBNETS};
use crate::error::LabError;
use crate::files;
use crate::layout::Layout;
use crate::name::{MAX_NODES, NodeName};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What a lab was asked to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    /// Rises with every change, so that the keeper can say what it has seen.
    pub generation: u64,
    /// Its nodes.
    pub nodes: BTreeSet<NodeName>,
    /// NICs of each node besides `eth0`: `eth1`, `eth2`, …
    pub nics: u8,
    /// Where the server listens on this machine's loopback.
    pub port: u16,
    /// Subnets of the default network.
    pub subnets: Vec<IpNet>,
    /// The ranges that the subnets of `routed` Networks must be in; none: the usual ones.
    #[serde(default)]
    pub allowed_subnets: Option<Vec<IpNet>>,
    /// Seconds that a Node must have been gone before its blocks return.
    pub node_grace: u16,
    /// The programs.
    pub programs: Programs,
}

/// The programs that a lab is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Programs {
    /// `plexus`.
    pub plexus: PathBuf,
    /// `plexus-cni`, which the agents install.
    pub shim: PathBuf,
    /// Where the plugins to execute are.
    pub delegates: Option<PathBuf>,
}

/// The options of `up`. An option that is absent keeps its value, or takes its default.
#[derive(Debug, Clone, Default)]
pub struct UpOptions {
    /// How many nodes there are at least.
    pub nodes: Option<u8>,
    /// NICs of each node besides `eth0`.
    pub nics: Option<u8>,
    /// Subnets of the default network.
    pub subnets: Vec<IpNet>,
    /// The ranges that the subnets of `routed` Networks must be in.
    pub allowed_subnets: Option<Vec<IpNet>>,
    /// Seconds that a Node must have been gone before its blocks return.
    pub node_grace: Option<u16>,
}

const USUAL_NODES: u8 = 3;
const USUAL_NICS: u8 = 2;
/// Shorter than in a cluster: in a lab nodes do not come back by themselves.
const USUAL_GRACE: u16 = 10;

impl Spec {
    /// The lab as it is recorded; none if there is none.
    pub fn read(layout: &Layout) -> Result<Option<Self>, LabError> {
        files::get_json(&layout.spec())
    }

    pub(crate) fn write(&self, layout: &Layout) -> Result<(), LabError> {
        files::put_json(&layout.spec(), self)
    }

    /// A new lab.
    pub(crate) fn new(
        options: &UpOptions,
        port: u16,
        programs: Programs,
    ) -> Result<Self, LabError> {
        let usual = POD_SUBNETS.iter().filter_map(|text| text.parse().ok());
        let mut spec = Self {
            generation: 0,
            nodes: BTreeSet::new(),
            nics: options.nics.unwrap_or(USUAL_NICS),
            port,
            subnets: if options.subnets.is_empty() {
                usual.collect()
            } else {
                options.subnets.clone()
            },
            allowed_subnets: options.allowed_subnets.clone(),
            node_grace: options.node_grace.unwrap_or(USUAL_GRACE),
            programs,
        };
        if spec.nics > MAX_NICS {
            return Err(LabError::Refused(format!(
                "{} NICs are too many: at most {MAX_NICS}",
                spec.nics
            )));
        }
        spec.grow(options.nodes.unwrap_or(USUAL_NODES))?;
        Ok(spec)
    }

    /// The same lab with what is asked for now. Nodes are only added; what cannot be changed is refused.
    pub(crate) fn changed(
        &self,
        options: &UpOptions,
        programs: Programs,
    ) -> Result<Self, LabError> {
        let mut spec = self.clone();
        let fixed = [
            ("--nics", options.nics.is_some_and(|nics| nics != self.nics)),
            (
                "--subnets",
                !options.subnets.is_empty() && options.subnets != self.subnets,
            ),
            (
                "--allowed-subnets",
                options.allowed_subnets.is_some()
                    && options.allowed_subnets != self.allowed_subnets,
            ),
            (
                "--node-grace",
                options
                    .node_grace
                    .is_some_and(|grace| grace != self.node_grace),
            ),
        ];
        if let Some((flag, _)) = fixed.iter().find(|(_, differs)| *differs) {
            return Err(LabError::Refused(format!(
                "{flag} cannot be changed while the lab is up: `plexus lab down` first"
            )));
        }
        spec.programs = programs;
        spec.grow(options.nodes.unwrap_or(0))?;
        if spec != *self {
            spec.generation += 1;
        }
        Ok(spec)
    }

    /// The number for the next node.
    pub(crate) fn next_node(&self) -> Result<NodeName, LabError> {
        let last = self.nodes.last().map_or(0, |node| node.number());
        NodeName::numbered(last.saturating_add(1)).map_err(|_| {
            LabError::Refused(format!(
                "no number is left for another node: n{MAX_NODES} is the last"
            ))
        })
    }

    /// The node, if the lab has it.
    pub(crate) fn has(&self, layout: &Layout, node: NodeName) -> Result<NodeName, LabError> {
        if self.nodes.contains(&node) {
            return Ok(node);
        }
        let has: Vec<String> = self.nodes.iter().map(NodeName::to_string).collect();
        Err(LabError::NoNode {
            lab: layout.name().to_string(),
            node: node.to_string(),
            has: has.join(", "),
        })
    }

    fn grow(&mut self, nodes: u8) -> Result<(), LabError> {
        if nodes > MAX_NODES {
            return Err(LabError::Refused(format!(
                "{nodes} nodes are too many: at most {MAX_NODES}"
            )));
        }
        let wanted = usize::from(nodes);
        for number in 1..=MAX_NODES {
            if self.nodes.len() >= wanted {
                break;
            }
            self.nodes.insert(NodeName::numbered(number)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs() -> Programs {
        Programs {
            plexus: "/p".into(),
            shim: "/s".into(),
            delegates: None,
        }
    }

    fn nodes(spec: &Spec) -> Vec<String> {
        spec.nodes.iter().map(NodeName::to_string).collect()
    }

    #[test]
    fn nodes_are_added_never_taken_away() {
        let options = |nodes| UpOptions {
            nodes: Some(nodes),
            ..UpOptions::default()
        };
        let mut spec = Spec::new(&options(3), 1, programs()).unwrap();
        assert_eq!(nodes(&spec), ["n1", "n2", "n3"]);
        spec.nodes.remove(&"n2".parse().unwrap());
        let same = spec.changed(&UpOptions::default(), programs()).unwrap();
        assert_eq!(same, spec, "nothing is asked for, nothing changes");
        let fewer = spec.changed(&options(1), programs()).unwrap();
        assert_eq!(nodes(&fewer), ["n1", "n3"]);
        let more = spec.changed(&options(4), programs()).unwrap();
        assert_eq!(nodes(&more), ["n1", "n2", "n3", "n4"]);
        assert_eq!(more.generation, spec.generation + 1);
        assert!(spec.changed(&options(201), programs()).is_err());
        assert_eq!(more.next_node().unwrap().to_string(), "n5");
    }

    #[test]
    fn what_cannot_change_is_refused() {
        let spec = Spec::new(&UpOptions::default(), 1, programs()).unwrap();
        let options = UpOptions {
            nics: Some(7),
            ..UpOptions::default()
        };
        let error = spec.changed(&options, programs()).unwrap_err().to_string();
        assert!(
            error.contains("--nics") && error.contains("lab down"),
            "{error}"
        );
        let many = UpOptions {
            nics: Some(9),
            ..UpOptions::default()
        };
        assert!(Spec::new(&many, 1, programs()).is_err());
    }
}
