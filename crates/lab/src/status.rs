//! The lab as it is now: who runs, who is ready, which pods there are. Looks; changes nothing.

use crate::control;
use crate::error::LabError;
use crate::layout::Layout;
use crate::name::NodeName;
use crate::part::Part;
use crate::process::Process;
use crate::report::{PartReport, Report};
use crate::{address, sandbox, underlay};
use serde::Serialize;
use std::net::IpAddr;
use std::path::PathBuf;

/// The lab as it is now.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Its name.
    pub lab: String,
    /// Its files.
    pub directory: PathBuf,
    /// For `kubectl`.
    pub kubeconfig: PathBuf,
    /// The keeper's process.
    pub keeper: Option<i32>,
    /// The API.
    pub server: PartReport,
    /// The controller.
    pub controller: PartReport,
    /// The nodes, in order.
    pub nodes: Vec<NodeStatus>,
    /// The pods that have a sandbox.
    pub pods: Vec<PodStatus>,
}

/// A node as it is now.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Its name.
    pub name: NodeName,
    /// Its network namespace.
    pub netns: String,
    /// Its addresses on the underlay.
    pub addresses: Vec<IpAddr>,
    /// Its agent.
    pub agent: PartReport,
    /// Whether its wires are joined.
    pub joined: bool,
}

/// A pod's sandbox as it is now.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus {
    /// Its namespace in the API.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its node.
    pub node: NodeName,
    /// Its network namespace.
    pub netns: String,
    /// Its first addresses.
    pub addresses: Vec<IpAddr>,
    /// Whether its interfaces are there.
    pub attached: bool,
}

impl Status {
    /// What is not as it should be, in words; empty if everything is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.keeper.is_none() {
            problems.push("the keeper does not run: `plexus lab up` starts it".to_owned());
        }
        let agents = self
            .nodes
            .iter()
            .map(|node| (format!("{}-agent", node.name), &node.agent));
        let parts = [
            ("server".to_owned(), &self.server),
            ("controller".to_owned(), &self.controller),
        ];
        for (name, part) in parts.into_iter().chain(agents) {
            if !part.ready {
                problems.push(format!("{name}: {}", part.message));
            }
        }
        let cut = self.nodes.iter().filter(|node| !node.joined);
        problems
            .extend(cut.map(|node| format!("{0} is cut off: `plexus lab heal {0}`", node.name)));
        problems
    }
}

/// Looks at the lab.
pub fn status(layout: &Layout) -> Result<Status, LabError> {
    let spec = control::of(layout)?;
    let keeper = Process::of_part(layout, Part::Keeper).map(|process| process.pid());
    let mut report = Report::read(layout)?.unwrap_or_default();
    if keeper.is_none() {
        // Nobody has looked since.
        report = unseen(layout, spec.nodes.iter().copied());
    }
    let joined = underlay::joined(layout.name(), spec.nodes.iter().copied(), &spec.all_nics());
    let joined = joined.unwrap_or_default();
    let nodes = spec.nodes.iter().map(|node| NodeStatus {
        name: *node,
        netns: layout.name().node(*node),
        addresses: address::of_node(*node).map(|net| net.addr()).into(),
        agent: report.nodes.get(node).cloned().unwrap_or_default(),
        joined: joined.get(node).copied().unwrap_or_default(),
    });
    let pods = sandbox::all(layout).into_iter().map(|(node, sandbox)| {
        let addresses = sandbox.addresses();
        PodStatus {
            attached: sandbox.is_ready(),
            namespace: sandbox.namespace,
            name: sandbox.name,
            uid: sandbox.uid,
            node,
            netns: sandbox.netns,
            addresses,
        }
    });
    Ok(Status {
        lab: layout.name().to_string(),
        directory: layout.dir(),
        kubeconfig: layout.kubeconfig(),
        keeper,
        server: report.server.clone(),
        controller: report.controller.clone(),
        nodes: nodes.collect(),
        pods: pods.collect(),
    })
}

/// Who runs, without a keeper to ask.
fn unseen(layout: &Layout, nodes: impl Iterator<Item = NodeName>) -> Report {
    let report_of = |part| PartReport {
        pid: Process::of_part(layout, part).map(|process| process.pid()),
        message: "nobody has asked it: there is no keeper".to_owned(),
        ..PartReport::default()
    };
    Report {
        server: report_of(Part::Server),
        controller: report_of(Part::Controller),
        nodes: nodes
            .map(|node| (node, report_of(Part::Agent(node))))
            .collect(),
        ..Report::default()
    }
}
