//! Which node a pod goes to that names none: of those that are ready and that it may choose, the one with the fewest pods.
//! Decides; does nothing.

use crate::name::NodeName;
use std::collections::BTreeMap;

/// A node as a candidate.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) node: NodeName,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) ready: bool,
    pub(super) pods: usize,
}

/// The node, or why there is none.
pub(super) fn choose(
    candidates: &[Candidate],
    selector: &BTreeMap<String, String>,
) -> Result<NodeName, String> {
    let fits = |candidate: &&Candidate| {
        let mut wanted = selector.iter();
        wanted.all(|(key, value)| candidate.labels.get(key) == Some(value))
    };
    let fitting: Vec<&Candidate> = candidates.iter().filter(fits).collect();
    let ready = fitting.iter().filter(|candidate| candidate.ready);
    match ready.min_by_key(|candidate| (candidate.pods, candidate.node)) {
        Some(chosen) => Ok(chosen.node),
        None if fitting.is_empty() => Err(format!(
            "0/{} nodes are available: none has the labels of the pod's nodeSelector",
            candidates.len()
        )),
        None => Err(format!(
            "0/{} nodes are available: {} not ready",
            candidates.len(),
            fitting.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> Vec<Candidate> {
        [
            ("n1", true, 2),
            ("n2", true, 1),
            ("n3", false, 0),
            ("n4", true, 1),
        ]
        .map(|(name, ready, pods)| Candidate {
            node: name.parse().unwrap(),
            labels: BTreeMap::from([("host".to_owned(), name.to_owned())]),
            ready,
            pods,
        })
        .into()
    }

    #[test]
    fn the_ready_one_with_the_fewest_pods() {
        let chosen = choose(&candidates(), &BTreeMap::new()).unwrap();
        assert_eq!(chosen.to_string(), "n2");
    }

    #[test]
    fn what_the_pod_selects_counts() {
        let on = |name: &str| BTreeMap::from([("host".to_owned(), name.to_owned())]);
        assert_eq!(choose(&candidates(), &on("n4")).unwrap().to_string(), "n4");
        assert!(
            choose(&candidates(), &on("n3"))
                .unwrap_err()
                .contains("not ready")
        );
        assert!(
            choose(&candidates(), &on("n9"))
                .unwrap_err()
                .contains("nodeSelector")
        );
    }
}
