//! Compares plans with what a kernel has.

use super::{Address, Neighbour, NodePlan, Observed, PodPlan, Route, Rule};
use plexus_types::IfName;
use std::fmt;

/// One object that is not as planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Whose.
    pub interface: IfName,
    /// What it is about.
    pub object: Object,
    /// What is wrong with it.
    pub state: State,
}

/// A kind of kernel object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// The link itself.
    Link,
    /// An address.
    Address(Address),
    /// A route.
    Route(Route),
    /// A rule.
    Rule(Rule),
    /// A neighbour.
    Neighbour(Neighbour),
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It is not there.
    Missing,
    /// It is there, but different: in words.
    Altered(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interface {}", self.interface)
    }
}

/// What the pod lacks.
pub fn diff_pod(plan: &PodPlan, observed: &Observed) -> Vec<Difference> {
    let _ = (plan, observed);
    Vec::new()
}

/// What the node lacks for the pod.
pub fn diff_host_ends(plan: &PodPlan, observed: &Observed) -> Vec<Difference> {
    let _ = (plan, observed);
    Vec::new()
}

/// What the node lacks for the networks: bridges and their addresses.
pub fn diff_node(plan: &NodePlan, observed: &Observed) -> Vec<Difference> {
    let _ = (plan, observed);
    Vec::new()
}
