//! Which node a pod goes to that names none: of those that are ready, that it may choose and whose ports it
//! wants are free, the one with the fewest pods. Decides; does nothing.

use crate::name::NodeName;
use k8s_openapi::api::core::v1::Pod;
use std::collections::BTreeMap;

/// A port of a node that leads to a pod: number, protocol and, if not of all, which of the node's addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Port {
    number: i32,
    protocol: String,
    address: Option<String>,
}

impl Port {
    /// The ports that a pod wants of its node.
    pub(super) fn of(pod: &Pod) -> Vec<Self> {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let ports = containers.flat_map(|container| container.ports.iter().flatten());
        let wanted = ports.filter_map(|port| {
            let is_specific = |address: &String| !["", "0.0.0.0", "::"].contains(&address.as_str());
            Some(Self {
                number: port.host_port.filter(|number| *number > 0)?,
                protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
                address: port.host_ip.clone().filter(is_specific),
            })
        });
        wanted.collect()
    }

    fn meets(&self, other: &Self) -> bool {
        let same = (self.number, &self.protocol) == (other.number, &other.protocol);
        let apart = self.address.is_some() && other.address.is_some();
        same && (!apart || self.address == other.address)
    }
}

/// A node as a candidate.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) node: NodeName,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) ready: bool,
    pub(super) pods: usize,
    /// That its pods have.
    pub(super) ports: Vec<Port>,
}

/// The node, or why there is none.
pub(super) fn choose(
    candidates: &[Candidate],
    selector: &BTreeMap<String, String>,
    ports: &[Port],
) -> Result<NodeName, String> {
    let fits = |candidate: &&Candidate| {
        let mut wanted = selector.iter();
        wanted.all(|(key, value)| candidate.labels.get(key) == Some(value))
    };
    let fitting: Vec<&Candidate> = candidates.iter().filter(fits).collect();
    let ready: Vec<&Candidate> = fitting.iter().copied().filter(|one| one.ready).collect();
    let is_free = |candidate: &&&Candidate| {
        let mut taken = candidate.ports.iter();
        !taken.any(|taken| ports.iter().any(|wanted| wanted.meets(taken)))
    };
    match ready
        .iter()
        .filter(is_free)
        .min_by_key(|candidate| (candidate.pods, candidate.node))
    {
        Some(chosen) => Ok(chosen.node),
        None if fitting.is_empty() => Err(format!(
            "0/{} nodes are available: none has the labels of the pod's nodeSelector",
            candidates.len()
        )),
        None => Err(format!(
            "0/{} nodes are available: {} not ready, {} without free ports for those that the pod wants",
            candidates.len(),
            fitting.len() - ready.len(),
            ready.len()
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
            ports: Vec::new(),
        })
        .into()
    }

    #[test]
    fn the_ready_one_with_the_fewest_pods() {
        let chosen = choose(&candidates(), &BTreeMap::new(), &[]).unwrap();
        assert_eq!(chosen.to_string(), "n2");
    }

    #[test]
    fn what_the_pod_selects_counts() {
        let on = |name: &str| BTreeMap::from([("host".to_owned(), name.to_owned())]);
        assert_eq!(
            choose(&candidates(), &on("n4"), &[]).unwrap().to_string(),
            "n4"
        );
        assert!(
            choose(&candidates(), &on("n3"), &[])
                .unwrap_err()
                .contains("not ready")
        );
        assert!(
            choose(&candidates(), &on("n9"), &[])
                .unwrap_err()
                .contains("nodeSelector")
        );
    }

    #[test]
    fn a_port_of_a_node_is_one_pods() {
        let ports = |ports: serde_json::Value| {
            let container = serde_json::json!({"name": "c", "ports": ports});
            let pod = serde_json::json!({"spec": {"containers": [container]}});
            Port::of(&serde_json::from_value(pod).unwrap())
        };
        let port = |address: &str| {
            let port =
                serde_json::json!({"containerPort": 80, "hostPort": 8080, "hostIP": address});
            ports(serde_json::json!([port, {"containerPort": 81}]))
        };
        let (all, one, another) = (port(""), port("10.0.0.1"), port("10.0.0.2"));
        assert_eq!(all.len(), 1, "without a port of the node it wants none");
        let none = BTreeMap::new();
        let mut candidates = candidates();
        candidates[1].ports = one.clone();
        assert_eq!(choose(&candidates, &none, &all).unwrap().to_string(), "n4");
        assert_eq!(
            choose(&candidates, &none, &another).unwrap().to_string(),
            "n2"
        );
        for candidate in &mut candidates {
            candidate.ports = all.clone();
        }
        let why = choose(&candidates, &none, &one).unwrap_err();
        assert!(why.contains("1 not ready, 3 without free ports"), "{why}");
        let udp = serde_json::json!([{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}]);
        assert!(choose(&candidates, &none, &ports(udp)).is_ok());
    }
}
