//! What a lab was asked to be: `lab.json`. Written by whoever makes or changes the lab, read by its keeper,
//! which makes it so.

use crate::address::{self, MAX_NICS, POD_SUBNETS};
use crate::error::LabError;
use crate::files;
use crate::layout::Layout;
use crate::name::{MAX_NODES, NodeName};
use crate::nic::{self, Nic};
use crate::topology::{Topology, TopologyNodes};
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
    /// NICs of each node besides `eth0`: `eth1`, `eth2`, …; of a lab with a topology, as many as that lists.
    pub nics: u8,
    /// Those of a topology, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Vec<Nic>>,
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
    /// Nodes and NICs, instead of the two above.
    pub topology: Option<Topology>,
    /// Subnets of the default network.
    pub subnets: Vec<IpNet>,
    /// The ranges that the subnets of `routed` Networks must be in.
    pub allowed_subnets: Option<Vec<IpNet>>,
    /// Seconds that a Node must have been gone before its blocks return.
    pub node_grace: Option<u16>,
}

pub(crate) const USUAL_NODES: u8 = 3;
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
            topology: None,
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
        spec.set_nics(options.topology.as_ref());
        match &options.topology {
            Some(topology) => spec.add(&topology.nodes)?,
            None => spec.grow(options.nodes.unwrap_or(USUAL_NODES))?,
        }
        spec.check()?;
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
            (
                "--nics",
                options
                    .nics
                    .is_some_and(|nics| nics != self.nics || self.topology.is_some()),
            ),
            (
                "the nodes' NICs",
                options.topology.as_ref().is_some_and(|topology| {
                    let mut wanted = self.clone();
                    wanted.set_nics(Some(topology));
                    !self.nodes_have_the_same(&wanted)
                }),
            ),
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
        match &options.topology {
            Some(topology) => {
                spec.set_nics(Some(topology));
                spec.add(&topology.nodes)?;
            }
            None => spec.grow(options.nodes.unwrap_or(0))?,
        }
        spec.check()?;
        if spec != *self {
            spec.generation += 1;
        }
        Ok(spec)
    }

    /// All NICs of its nodes, in order of their wires: `eth0` is the first.
    pub(crate) fn all_nics(&self) -> Vec<Nic> {
        let by_number = |numbers: std::ops::RangeInclusive<u8>| numbers.filter_map(Nic::numbered);
        match &self.topology {
            Some(nics) => by_number(0..=0).chain(nics.iter().cloned()).collect(),
            None => by_number(0..=self.nics).collect(),
        }
    }

    /// How many NICs its nodes have together.
    pub(crate) fn wires(&self) -> usize {
        self.nodes.iter().map(|node| self.nics_of(*node)).sum()
    }

    /// How many NICs its nodes have besides `eth0`, at least and at most.
    pub fn further_nics(&self) -> (usize, usize) {
        let counts = self.nodes.iter();
        let counts: Vec<usize> = counts.map(|node| self.nics_of(*node) - 1).collect();
        let (least, most) = (counts.iter().min(), counts.iter().max());
        (least.copied().unwrap_or(0), most.copied().unwrap_or(0))
    }

    /// The names of a node's NICs, as its agent is told.
    pub(crate) fn nic_names(&self, node: NodeName) -> String {
        let mut patterns = vec!["eth*".to_owned()];
        let own = self.topology.iter().flatten().filter(|nic| nic.is_of(node));
        let names = own.map(|nic| nic.name.to_string());
        patterns.extend(names.filter(|name| !name.starts_with("eth")));
        patterns.join(",")
    }

    /// Refuses NICs that do not go with the nodes, or with the default network.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        let Some(nics) = &self.topology else {
            return Ok(());
        };
        let mut problems = nic::conflicts(nics, &self.nodes);
        for (index, nic) in nics.iter().enumerate() {
            for (number, subnet) in nic.subnets.iter().enumerate() {
                let mut pods = self.subnets.iter();
                if let Some(of_pods) = pods.find(|net| address::overlap(**net, *subnet)) {
                    problems.add(
                        format!("nics[{index}].subnets[{number}]"),
                        format!(
                            "{subnet} overlaps {of_pods}, where pods are: choose another, or other `--subnets`"
                        ),
                    );
                }
            }
        }
        match problems.0.is_empty() {
            true => Ok(()),
            false => Err(LabError::Topology {
                file: "the list of NICs".to_owned(),
                problems: problems.0.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    fn nics_of(&self, node: NodeName) -> usize {
        let nics = self.all_nics();
        nics.iter().filter(|nic| nic.is_of(node)).count()
    }

    fn set_nics(&mut self, topology: Option<&Topology>) {
        if let Some(Topology { nics, .. }) = topology {
            self.nics = u8::try_from(nics.len()).unwrap_or(u8::MAX);
            self.topology = Some(nics.clone());
        }
    }

    /// Whether the nodes that are there have the same NICs, on the same wires.
    fn nodes_have_the_same(&self, other: &Self) -> bool {
        let of = |nics: &[Nic], node: NodeName| -> Vec<_> {
            let mut all: Vec<_> = nics.iter().map(|nic| nic.of(node)).collect();
            while all.last().is_some_and(Option::is_none) {
                all.pop();
            }
            all
        };
        let (ours, others) = (self.all_nics(), other.all_nics());
        let mut nodes = self.nodes.iter();
        nodes.all(|node| of(&ours, *node) == of(&others, *node))
    }

    /// Adds the nodes that it lacks.
    fn add(&mut self, nodes: &TopologyNodes) -> Result<(), LabError> {
        match nodes {
            TopologyNodes::Count(count) => self.grow(*count),
            TopologyNodes::Named(names) => {
                self.nodes.extend(names);
                Ok(())
            }
        }
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

    fn with(topology: &str) -> UpOptions {
        UpOptions {
            topology: Some(Topology::parse("t.yaml", topology).unwrap()),
            ..UpOptions::default()
        }
    }

    const RAILS: &str = "\
nodes: 2
nics:
- {name: eth1, subnets: [10.0.1.0/24]}
- {name: rail2, subnets: [10.0.2.0/29], nodes: [n2], offset: 2}
";

    #[test]
    fn a_topology_gives_nodes_and_nics() {
        let spec = Spec::new(&with(RAILS), 1, programs()).unwrap();
        assert_eq!(nodes(&spec), ["n1", "n2"]);
        assert_eq!((spec.wires(), spec.further_nics()), (5, (1, 2)));
        let names = |node: &str| spec.nic_names(node.parse().unwrap());
        assert_eq!([names("n1"), names("n2")], ["eth*", "eth*,rail2"]);
        let first = spec.all_nics().into_iter().next().unwrap();
        assert_eq!(Some(first), Nic::numbered(0));
        let written = serde_json::to_vec(&spec).unwrap();
        assert_eq!(serde_json::from_slice::<Spec>(&written).unwrap(), spec);
        let named = RAILS.replace("nodes: 2", "nodes: [n2, n4]");
        let spec = spec.changed(&with(&named), programs()).unwrap();
        assert_eq!(nodes(&spec), ["n1", "n2", "n4"]);
    }

    #[test]
    fn a_lab_by_flags_is_recorded_as_before() {
        let spec = Spec::new(&UpOptions::default(), 1, programs()).unwrap();
        let written = serde_json::to_value(&spec).unwrap();
        let keys: Vec<&String> = written.as_object().unwrap().keys().collect();
        assert!(!keys.iter().any(|key| *key == "topology"), "{keys:?}");
        assert_eq!(spec.wires(), 9);
        assert_eq!(spec.further_nics(), (2, 2));
        assert_eq!(spec.nic_names("n1".parse().unwrap()), "eth*");
    }

    #[test]
    fn nodes_keep_the_nics_of_their_topology() {
        let spec = Spec::new(&with(RAILS), 1, programs()).unwrap();
        let again = spec.changed(&with(RAILS), programs()).unwrap();
        assert_eq!(again, spec);
        let three = RAILS.replace("nodes: 2", "nodes: 3");
        let more = three + "- {name: eth3, subnets: [10.0.3.0/24], nodes: [n3]}\n";
        let more = spec.changed(&with(&more), programs()).unwrap();
        assert_eq!((more.wires(), more.further_nics()), (8, (1, 2)));
        for (from, to) in [
            ("10.0.1.0", "10.0.9.0"),
            ("eth1", "eth9"),
            ("offset: 2", "offset: 1"),
            ("nodes: [n2]", "nodes: [n1]"),
            ("offset: 2", "offset: 2, mtu: 9000"),
        ] {
            let changed = RAILS.replace(from, to);
            let error = spec.changed(&with(&changed), programs()).unwrap_err();
            let text = error.to_string();
            assert!(
                text.starts_with("the nodes' NICs cannot be changed"),
                "{text}"
            );
        }
        let options = UpOptions {
            nics: Some(2),
            ..UpOptions::default()
        };
        let error = spec.changed(&options, programs()).unwrap_err();
        assert!(error.to_string().contains("--nics"), "{error}");
    }

    #[test]
    fn nics_go_with_the_nodes_and_the_pods() {
        let small = RAILS.replace(", nodes: [n2]", "");
        let spec = Spec::new(&with(&small), 1, programs()).unwrap();
        let options = UpOptions {
            nodes: Some(5),
            ..UpOptions::default()
        };
        let error = spec.changed(&options, programs()).unwrap_err().to_string();
        assert!(
            error.contains("nics[1].subnets[0]: 10.0.2.0/29 has no address for node n5"),
            "{error}"
        );
        let pods = RAILS.replace("10.0.1.0/24", "10.244.7.0/24");
        let error = Spec::new(&with(&pods), 1, programs()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("nics[0].subnets[0]: 10.244.7.0/24 overlaps 10.244.0.0/16"),
            "{text}"
        );
    }
}
