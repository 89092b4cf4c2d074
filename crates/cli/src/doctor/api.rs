//! The API server, by what could be learnt of it.

use super::{Check, Subject};
use crate::snapshot::{Snapshot, text};
use crate::text::{age, seconds_since};

/// How old the controller's lease may be.
const LEASE: i64 = 60;

/// What was learnt of an API server.
#[derive(Debug, Clone)]
pub struct ApiFacts {
    /// Where it is; empty if that could not be told.
    pub server: String,
    /// Its version; or why it did not answer.
    pub version: Result<String, String>,
    /// Networks, nodes, leases and blocks, if it answered.
    pub snapshot: Snapshot,
    /// This node's name, if it is known.
    pub node: Option<String>,
}

pub(super) fn judge(api: Option<&ApiFacts>) -> Vec<Check> {
    let Some(facts) = api else {
        return vec![Check::pass(
            Subject::ApiServer,
            "none is known: the node serves inline configurations only",
        )];
    };
    let server = &facts.server;
    let version = match &facts.version {
        Ok(version) => version,
        Err(why) if server.is_empty() => {
            let next = "say which: --kubeconfig, KUBECONFIG, --context";
            return vec![Check::fail(Subject::ApiServer, why.as_str(), next)];
        }
        Err(why) => {
            return vec![Check::fail(
                Subject::ApiServer,
                format!("{server} does not answer: {why}"),
                "is it running, and reachable from here? Pods that run keep their interfaces",
            )];
        }
    };
    let mut checks = vec![Check::pass(
        Subject::ApiServer,
        format!("{server} answers ({version})"),
    )];
    checks.push(match facts.snapshot.unknown.get("networks") {
        None => Check::pass(Subject::Definitions, "it knows Networks"),
        Some(why) => Check::fail(
            Subject::Definitions,
            why.as_str(),
            "kubectl apply -f deploy/install.yaml; the controller makes the definitions",
        ),
    });
    checks.push(controller(&facts.snapshot));
    if let Some(node) = &facts.node {
        let known = facts
            .snapshot
            .nodes
            .iter()
            .any(|one| crate::snapshot::name(one) == node);
        let hidden = facts.snapshot.unknown.get("nodes");
        checks.push(match (known, hidden) {
            (_, Some(why)) => Check::warn(
                Subject::Node,
                why.as_str(),
                "whether this node has its Node cannot be told before that",
            ),
            (true, None) => Check::pass(Subject::Node, format!("there is a Node {node}")),
            (false, None) => Check::fail(
                Subject::Node,
                format!("there is no Node {node}: this node can own no blocks"),
                "is --node (PLEXUS_NODE) the name that the kubelet registered?",
            ),
        });
    }
    checks
}

fn controller(snapshot: &Snapshot) -> Check {
    let name = Subject::Controller;
    let renewed = snapshot
        .leases
        .iter()
        .filter_map(|lease| seconds_since(text(lease, "/spec/renewTime"), snapshot.now))
        .min();
    let next = "start it, or see its log: networks get no phase, and blocks of nodes that are gone \
                do not return";
    match renewed {
        _ if snapshot.unknown.contains_key("leases") => Check::warn(
            name,
            "whether a controller runs cannot be seen from here",
            "use credentials that may read Leases",
        ),
        None => Check::fail(name, "no controller has ever run", next),
        Some(seconds) if seconds > LEASE => Check::fail(
            name,
            format!("the controller was last seen {} ago", age(seconds)),
            next,
        ),
        Some(_) => Check::pass(name, "a controller runs"),
    }
}
