//! Which node a pod goes to that names none: of those that are ready, that it may choose, that neither a
//! cordon nor a taint keeps it from and whose ports it wants are free, the one with the fewest pods. Decides;
//! does nothing. Whoever is on a node already stays there, whatever taint comes later.

use crate::name::NodeName;
use k8s_openapi::api::core::v1::{Pod, Taint, Toleration};
use std::collections::BTreeMap;
use std::fmt;

/// What a node that is cordoned is taken to be tainted with: pods that tolerate that do not mind.
const CORDON: &str = "node.kubernetes.io/unschedulable";

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
        let requirements = ports.filter_map(|port| {
            let is_specific = |address: &String| !["", "0.0.0.0", "::"].contains(&address.as_str());
            Some(Self {
                number: port.host_port.filter(|number| *number > 0)?,
                protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
                address: port.host_ip.clone().filter(is_specific),
            })
        });
        requirements.collect()
    }

    fn meets(&self, other: &Self) -> bool {
        let same = (self.number, &self.protocol) == (other.number, &other.protocol);
        let apart = self.address.is_some() && other.address.is_some();
        same && (!apart || self.address == other.address)
    }
}

/// What a pod requires of its node.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeRequirements {
    selector: BTreeMap<String, String>,
    tolerations: Vec<Toleration>,
    pub(super) ports: Vec<Port>,
}

impl NodeRequirements {
    /// What a pod says in its spec.
    pub(super) fn of(pod: &Pod) -> Self {
        let spec = pod.spec.as_ref();
        let selector = spec.and_then(|spec| spec.node_selector.clone());
        let tolerations = spec.and_then(|spec| spec.tolerations.clone());
        Self {
            selector: selector.unwrap_or_default(),
            tolerations: tolerations.unwrap_or_default(),
            ports: Port::of(pod),
        }
    }

    fn tolerates(&self, taint: &Taint) -> bool {
        let mut tolerations = self.tolerations.iter();
        tolerations.any(|toleration| matches(toleration, taint))
    }
}

/// A node as a candidate: what its Node says, and what the keeper sees.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) node: NodeName,
    pub(super) labels: BTreeMap<String, String>,
    /// Whether it is cordoned: `spec.unschedulable`.
    pub(super) unschedulable: bool,
    pub(super) taints: Vec<Taint>,
    pub(super) ready: bool,
    pub(super) pods: usize,
    /// That its pods have.
    pub(super) ports: Vec<Port>,
}

impl Candidate {
    /// The first thing that keeps a pod from it, if any does.
    fn obstacle(&self, requirements: &NodeRequirements) -> Option<Obstacle> {
        let mut labels = requirements.selector.iter();
        if !labels.all(|(key, value)| self.labels.get(key) == Some(value)) {
            return Some(Obstacle::Labels);
        }
        if self.unschedulable && !requirements.tolerates(&cordon()) {
            return Some(Obstacle::Cordon);
        }
        let mut taints = self.taints.iter().filter(|taint| repels_pods(taint));
        if let Some(taint) = taints.find(|taint| !requirements.tolerates(taint)) {
            return Some(Obstacle::Taint(listed(taint)));
        }
        if !self.ready {
            return Some(Obstacle::NotReady);
        }
        let mut taken = self.ports.iter();
        let meets = taken.any(|taken| requirements.ports.iter().any(|port| port.meets(taken)));
        meets.then_some(Obstacle::Ports)
    }
}

/// What keeps a pod from a node, in the order in which it is looked at and said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Obstacle {
    Labels,
    Cordon,
    Taint(String),
    NotReady,
    Ports,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Labels => f.write_str("without the labels of the pod's nodeSelector"),
            Self::Cordon => f.write_str("cordoned"),
            Self::Taint(taint) => write!(f, "with taint {taint} that the pod does not tolerate"),
            Self::NotReady => f.write_str("not ready"),
            Self::Ports => f.write_str("without free ports for those that the pod wants"),
        }
    }
}

/// The node, or why there is none.
pub(super) fn choose(
    candidates: &[Candidate],
    requirements: &NodeRequirements,
) -> Result<NodeName, String> {
    let mut obstacles: BTreeMap<Obstacle, usize> = BTreeMap::new();
    let mut open = Vec::new();
    for candidate in candidates {
        match candidate.obstacle(requirements) {
            Some(obstacle) => *obstacles.entry(obstacle).or_default() += 1,
            None => open.push(candidate),
        }
    }
    let chosen = open.iter().min_by_key(|one| (one.pods, one.node));
    chosen
        .map(|one| one.node)
        .ok_or_else(|| why_none(candidates.len(), &obstacles))
}

fn why_none(nodes: usize, obstacles: &BTreeMap<Obstacle, usize>) -> String {
    let why = if nodes == 0 {
        "no Node of the lab is in the API".to_owned()
    } else if obstacles.get(&Obstacle::Labels) == Some(&nodes) {
        "none has the labels of the pod's nodeSelector".to_owned()
    } else {
        let counted = obstacles.iter();
        let counted: Vec<String> = counted
            .map(|(what, count)| format!("{count} {what}"))
            .collect();
        counted.join(", ")
    };
    format!("0/{nodes} nodes are available: {why}")
}

fn cordon() -> Taint {
    Taint {
        key: CORDON.to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    }
}

/// `PreferNoSchedule` is a wish only.
fn repels_pods(taint: &Taint) -> bool {
    ["NoSchedule", "NoExecute"].contains(&taint.effect.as_str())
}

/// As Kubernetes compares them: what a toleration leaves empty fits all, but for a value that is to be equal.
fn matches(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let (key, effect) = (text(&toleration.key), text(&toleration.effect));
    let fits = match text(&toleration.operator).as_str() {
        "Exists" => key.is_empty() || key == taint.key,
        "" | "Equal" => key == taint.key && text(&toleration.value) == text(&taint.value),
        _ => false,
    };
    fits && (effect.is_empty() || effect == taint.effect)
}

/// As `kubectl taint` writes it.
fn listed(taint: &Taint) -> String {
    match taint.value.as_deref() {
        None | Some("") => format!("{}:{}", taint.key, taint.effect),
        Some(value) => format!("{}={value}:{}", taint.key, taint.effect),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

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
            unschedulable: false,
            taints: Vec::new(),
            ready,
            pods,
            ports: Vec::new(),
        })
        .into()
    }

    /// What a pod with this spec asks for.
    fn requirements(mut spec: Value) -> NodeRequirements {
        if spec.get("containers").is_none() {
            spec["containers"] = json!([]);
        }
        NodeRequirements::of(&serde_json::from_value(json!({"spec": spec})).unwrap())
    }

    fn on(name: &str) -> NodeRequirements {
        requirements(json!({"nodeSelector": {"host": name}}))
    }

    fn taint(value: Value) -> Taint {
        serde_json::from_value(value).unwrap()
    }

    #[track_caller]
    fn chosen(candidates: &[Candidate], requirements: &NodeRequirements) -> String {
        choose(candidates, requirements).unwrap().to_string()
    }

    #[test]
    fn the_ready_one_with_the_fewest_pods() {
        assert_eq!(chosen(&candidates(), &NodeRequirements::default()), "n2");
        let why = choose(&[], &NodeRequirements::default()).unwrap_err();
        assert!(why.starts_with("0/0 nodes are available: no Node"), "{why}");
    }

    #[test]
    fn what_the_pod_selects_counts() {
        assert_eq!(chosen(&candidates(), &on("n4")), "n4");
        let why = choose(&candidates(), &on("n3")).unwrap_err();
        assert_eq!(
            why,
            "0/4 nodes are available: 3 without the labels of the pod's nodeSelector, 1 not ready"
        );
        let why = choose(&candidates(), &on("n9")).unwrap_err();
        assert_eq!(
            why,
            "0/4 nodes are available: none has the labels of the pod's nodeSelector"
        );
        // A label that a Node gets later is a label like the others; all that are selected must be there.
        let mut candidates = candidates();
        let ssd = requirements(json!({"nodeSelector": {"disk": "ssd", "host": "n1"}}));
        for candidate in &mut candidates[..2] {
            let label = ("disk".to_owned(), "ssd".to_owned());
            assert!(choose(std::slice::from_ref(candidate), &ssd).is_err());
            candidate.labels.extend([label]);
        }
        assert_eq!(chosen(&candidates, &ssd), "n1");
    }

    #[test]
    fn a_node_that_is_cordoned_gets_nobody() {
        let mut candidates = candidates();
        candidates[1].unschedulable = true;
        assert_eq!(chosen(&candidates, &NodeRequirements::default()), "n4");
        let why = choose(&candidates, &on("n2")).unwrap_err();
        assert!(why.ends_with("nodeSelector, 1 cordoned"), "{why}");
        for candidate in &mut candidates {
            candidate.unschedulable = true;
        }
        let why = choose(&candidates, &NodeRequirements::default()).unwrap_err();
        assert_eq!(why, "0/4 nodes are available: 4 cordoned");
        // As on Kubernetes, where a DaemonSet's pods do.
        let tolerant = json!({"tolerations": [{"key": CORDON, "operator": "Exists"}]});
        assert_eq!(chosen(&candidates, &requirements(tolerant)), "n2");
    }

    #[test]
    fn a_taint_keeps_away_who_does_not_tolerate_it() {
        let mut candidates = candidates();
        candidates[1].taints = vec![taint(
            json!({"key": "a", "value": "b", "effect": "NoSchedule"}),
        )];
        candidates[3].taints = vec![taint(json!({"key": "c", "effect": "NoExecute"}))];
        assert_eq!(chosen(&candidates, &NodeRequirements::default()), "n1");
        candidates[0].taints = vec![taint(json!({"key": "d", "effect": "PreferNoSchedule"}))];
        assert_eq!(
            chosen(&candidates, &NodeRequirements::default()),
            "n1",
            "a wish only"
        );
        candidates[0].unschedulable = true;
        let why = choose(&candidates, &NodeRequirements::default()).unwrap_err();
        assert_eq!(
            why,
            "0/4 nodes are available: 1 cordoned, 1 with taint a=b:NoSchedule that the pod does not tolerate, \
             1 with taint c:NoExecute that the pod does not tolerate, 1 not ready"
        );
        let tolerant = json!({"tolerations": [{"key": "c", "operator": "Exists"}]});
        assert_eq!(chosen(&candidates, &requirements(tolerant)), "n4");
        let of_two = json!({"tolerations": [{"key": "c"}, {"key": "a", "value": "b"}]});
        assert_eq!(chosen(&candidates, &requirements(of_two)), "n2");
    }

    #[test]
    fn tolerations_fit_as_on_kubernetes() {
        let taint = taint(json!({"key": "a", "value": "b", "effect": "NoSchedule"}));
        for (toleration, fits) in [
            (json!({"key": "a", "operator": "Equal", "value": "b"}), true),
            (json!({"key": "a", "value": "b"}), true),
            (json!({"key": "a", "operator": "Exists"}), true),
            (json!({"operator": "Exists"}), true),
            (json!({"operator": "Exists", "effect": "NoSchedule"}), true),
            (json!({"operator": "Exists", "effect": "NoExecute"}), false),
            (
                json!({"key": "a", "value": "b", "effect": "NoExecute"}),
                false,
            ),
            (
                json!({"key": "a", "operator": "Equal", "value": "c"}),
                false,
            ),
            (json!({"key": "a"}), false),
            (json!({"key": "b", "operator": "Exists"}), false),
            (json!({"value": "b"}), false),
            (json!({"key": "a", "operator": "Like", "value": "b"}), false),
        ] {
            let requirements = requirements(json!({"tolerations": [toleration]}));
            assert_eq!(requirements.tolerates(&taint), fits, "{toleration}");
        }
    }

    #[test]
    fn a_port_of_a_node_is_one_pods() {
        let ports =
            |ports: Value| requirements(json!({"containers": [{"name": "c", "ports": ports}]}));
        let port = |address: &str| {
            let port = json!({"containerPort": 80, "hostPort": 8080, "hostIP": address});
            ports(json!([port, {"containerPort": 81}]))
        };
        let (all, one, another) = (port(""), port("10.0.0.1"), port("10.0.0.2"));
        assert_eq!(
            all.ports.len(),
            1,
            "without a port of the node it wants none"
        );
        let mut candidates = candidates();
        candidates[1].ports = one.ports.clone();
        assert_eq!(chosen(&candidates, &all), "n4");
        assert_eq!(chosen(&candidates, &another), "n2");
        for candidate in &mut candidates {
            candidate.ports = all.ports.clone();
        }
        let why = choose(&candidates, &one).unwrap_err();
        assert!(why.contains("1 not ready, 3 without free ports"), "{why}");
        let udp = json!([{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}]);
        assert!(choose(&candidates, &ports(udp)).is_ok());
    }
}
