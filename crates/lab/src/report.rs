//! What the keeper sees of its lab: `keeper.json`. Written by the keeper, read by everybody else.

use crate::error::LabError;
use crate::files;
use crate::layout::Layout;
use crate::name::NodeName;
use crate::part::Part;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the keeper sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// The keeper's own process.
    pub keeper: i32,
    /// The generation of the specification that it acts on.
    pub generation: u64,
    /// The API.
    pub server: PartReport,
    /// The controller.
    pub controller: PartReport,
    /// The agents.
    pub nodes: BTreeMap<NodeName, PartReport>,
}

/// A process that the keeper looks after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartReport {
    /// Its process; none while it does not run.
    pub pid: Option<i32>,
    /// How often this keeper has started it.
    pub starts: u32,
    /// Whether it does its work.
    pub ready: bool,
    /// What is wrong, if it is not ready.
    pub message: String,
}

impl Report {
    /// The last one; none if there never was a keeper.
    pub(crate) fn read(layout: &Layout) -> Result<Option<Self>, LabError> {
        files::get_json(&layout.report())
    }

    pub(crate) fn write(&self, layout: &Layout) -> Result<(), LabError> {
        files::put_json(&layout.report(), self)
    }

    /// What is seen of a process; none of the keeper itself, and of a node that it does not know.
    pub(crate) fn of(&self, part: Part) -> Option<&PartReport> {
        match part {
            Part::Keeper => None,
            Part::Server => Some(&self.server),
            Part::Controller => Some(&self.controller),
            Part::Agent(node) => self.nodes.get(&node),
        }
    }

    /// What is not ready yet, each with its reason; empty if everything is.
    pub(crate) fn missing(
        &self,
        wanted: impl IntoIterator<Item = NodeName>,
    ) -> Vec<(String, String)> {
        let nodes = wanted.into_iter().map(|node| {
            let name = format!("{node}-agent");
            (name, self.nodes.get(&node))
        });
        let parts = [
            ("server".to_owned(), Some(&self.server)),
            ("controller".to_owned(), Some(&self.controller)),
        ];
        let all = parts.into_iter().chain(nodes);
        all.filter(|(_, part)| !part.is_some_and(|part| part.ready))
            .map(|(name, part)| {
                let why = part.map_or("not started yet", |part| part.message.as_str());
                (name, why.to_owned())
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let ready = PartReport {
            ready: true,
            ..PartReport::default()
        };
        let [n1, n2]: [NodeName; 2] = ["n1", "n2"].map(|name| name.parse().unwrap());
        let mut report = Report {
            server: ready.clone(),
            controller: PartReport {
                message: "it ended".to_owned(),
                ..PartReport::default()
            },
            nodes: BTreeMap::from([(n1, ready.clone())]),
            ..Report::default()
        };
        let missing = report.missing([n1, n2]);
        assert_eq!(missing[0], ("controller".to_owned(), "it ended".to_owned()));
        assert_eq!(missing[1].0, "n2-agent");
        report.controller = ready.clone();
        report.nodes.insert(n2, ready);
        assert!(report.missing([n1, n2]).is_empty());
    }
}
