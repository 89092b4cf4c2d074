//! Sets of fields: a tree of [`Step`]s in which every node may itself be a member. A parent that is a
//! member says nothing about what is below it, and the other way round.

use super::step::Step;
use crate::patch::shape::Shape;
use crate::path::Path;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A set of fields. Has no branch without a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    nodes: BTreeMap<Step, Branch>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Branch {
    member: bool,
    below: Fields,
}

impl Branch {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl Fields {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a field and a set of fields below it.
    pub(super) fn add(&mut self, step: Step, member: bool, below: Fields) {
        if !member && below.is_empty() {
            return;
        }
        let branch = self.nodes.entry(step).or_default();
        branch.member |= member;
        branch.below.add_all(below);
    }

    /// Adds another set, every node of it once.
    fn add_all(&mut self, other: Fields) {
        if self.is_empty() {
            *self = other;
            return;
        }
        for (step, branch) in other.nodes {
            self.add(step, branch.member, branch.below);
        }
    }

    pub(super) fn has(&self, step: &Step) -> bool {
        self.nodes.get(step).is_some_and(|branch| branch.member)
    }

    /// What is below a field.
    pub(super) fn below(&self, step: &Step) -> Option<&Fields> {
        let below = &self.nodes.get(step)?.below;
        (!below.is_empty()).then_some(below)
    }

    pub(super) fn union(&self, other: &Fields) -> Fields {
        let mut union = self.clone();
        union.add_all(other.clone());
        union
    }

    pub(super) fn intersection(&self, other: &Fields) -> Fields {
        self.filter_branches(|step, branch| {
            let other = other.nodes.get(step)?;
            Some(Branch {
                member: branch.member && other.member,
                below: branch.below.intersection(&other.below),
            })
        })
    }

    /// Without the members of another set; what is below them stays.
    pub(super) fn difference(&self, other: &Fields) -> Fields {
        self.filter_branches(|step, branch| match other.nodes.get(step) {
            None => Some(branch.clone()),
            Some(other) => Some(Branch {
                member: branch.member && !other.member,
                below: branch.below.difference(&other.below),
            }),
        })
    }

    /// Only the top-level fields of these names, with all that is below them; or all others.
    pub(super) fn only(&self, allowed: impl Fn(&str) -> bool) -> Fields {
        self.filter_branches(|step, branch| match step {
            Step::Field(name) if !allowed(name) => None,
            _ => Some(branch.clone()),
        })
    }

    /// With the fields that a type names on the way to each member: nobody owns those as such, but
    /// they come and go with what is in them.
    pub(super) fn with_named(&self, shape: &Shape) -> Fields {
        self.filter_branches(|step, branch| {
            let (inside, named) = match step {
                Step::Field(name) => shape.member(name).unwrap_or((&Shape::Open, false)),
                _ => (
                    shape.items().map_or(&Shape::Open, |items| &items.item),
                    false,
                ),
            };
            Some(Branch {
                member: branch.member || (named && !branch.below.is_empty()),
                below: branch.below.with_named(inside),
            })
        })
    }

    /// The members as people read them, as many as are wanted.
    pub(super) fn paths(&self, most: usize) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect(&mut Path::default(), most, &mut paths);
        paths
    }

    /// As `fieldsV1`.
    pub(super) fn wire(&self) -> Value {
        let mut wire = Map::new();
        for (step, branch) in &self.nodes {
            let mut below = branch.below.wire();
            if let (true, false, Value::Object(below)) =
                (branch.member, branch.below.is_empty(), &mut below)
            {
                let _ = below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            let _ = wire.insert(step.wire(), below);
        }
        Value::Object(wire)
    }

    /// From `fieldsV1`.
    pub(super) fn parse(wire: &Value) -> Option<Self> {
        let mut fields = Self::default();
        for (key, below) in wire.as_object()? {
            if key == "." {
                continue;
            }
            let member = below.as_object()?.is_empty() || below.get(".").is_some();
            fields.add(Step::parse(key)?, member, Self::parse(below)?);
        }
        Some(fields)
    }

    fn filter_branches(&self, mut change: impl FnMut(&Step, &Branch) -> Option<Branch>) -> Fields {
        let nodes = self.nodes.iter().filter_map(|(step, branch)| {
            let branch = change(step, branch)?;
            (!branch.is_empty()).then(|| (step.clone(), branch))
        });
        Fields {
            nodes: nodes.collect(),
        }
    }

    /// The members of a level come before what is below them.
    fn collect(&self, path: &mut Path, most: usize, paths: &mut Vec<String>) {
        for (step, _) in self.nodes.iter().filter(|(_, branch)| branch.member) {
            if paths.len() >= most {
                return;
            }
            path.step(step, |path| paths.push(path.shortened()));
        }
        for (step, branch) in &self.nodes {
            if paths.len() >= most {
                return;
            }
            path.step(step, |path| branch.below.collect(path, most, paths));
        }
    }
}
