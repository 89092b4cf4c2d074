//! The contenders, and the calls that each gets for the same pod.

use crate::call::{Call, Pod};
use crate::lab::BenchLab;
use anyhow::Result;
use plexus_kubekit::multus::{self, Flavour};
use serde_json::{Map, Value, json};

/// Who connects the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    Plexus,
    Thin,
    Thick,
}

/// Who gives addresses on the further networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ipam {
    /// host-local, all with the same NADs.
    Local,
    /// Unique in the cluster: whereabouts, and Plexus's own blocks.
    Wide,
}

/// A kind of pod: so many networks beside the cluster's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub(crate) who: Who,
    pub(crate) ipam: Ipam,
    pub(crate) networks: usize,
}

impl Kind {
    pub(crate) fn new(who: Who, ipam: Ipam, networks: usize) -> Self {
        Self {
            who,
            ipam,
            networks,
        }
    }

    /// What the pod says.
    pub(crate) fn annotations(self) -> Value {
        let (key, base) = match (self.who, self.ipam) {
            (_, Ipam::Local) => ("k8s.v1.cni.cncf.io/networks", "local"),
            (Who::Plexus, Ipam::Wide) => ("plexus.dev/networks", "blocks"),
            (_, Ipam::Wide) => ("k8s.v1.cni.cncf.io/networks", "where"),
        };
        let names: Vec<String> = (1..=self.networks)
            .map(|number| format!("{base}{number}"))
            .collect();
        if names.is_empty() {
            return json!({});
        }
        let mut annotations = Map::new();
        annotations.insert(key.to_owned(), names.join(",").into());
        Value::Object(annotations)
    }

    /// The call for a pod that exists.
    pub(crate) fn call(self, pod: Pod) -> Call {
        let (program, config) = match self.who {
            Who::Plexus => ("plexus-cni", plexus(self.annotations())),
            Who::Thin => ("multus", multus::configuration(Flavour::Thin, &default())),
            Who::Thick => (
                "multus-shim",
                multus::configuration(Flavour::Thick, &default()),
            ),
        };
        Call {
            program: format!("/opt/cni/bin/{program}"),
            container: format!("bench{}", pod.uid.replace('-', "")),
            pod,
            config,
        }
    }
}

/// Pods of these kinds, in this order, and the call for each.
pub(crate) fn calls(bench: &BenchLab, kinds: &[Kind]) -> Result<Vec<Call>> {
    let wanted: Vec<(String, Value)> = kinds
        .iter()
        .map(|kind| (bench.fresh("call"), kind.annotations()))
        .collect();
    let pods = bench.make_pods(&wanted)?;
    Ok(kinds
        .iter()
        .zip(pods)
        .map(|(kind, pod)| kind.call(pod))
        .collect())
}

/// The one plugin of the agent's conflist, with what containerd adds for its capabilities.
fn plexus(annotations: Value) -> Value {
    json!({
        "cniVersion": "1.0.0", "name": "plexus", "type": "plexus-cni", "networks": "pod",
        "capabilities": {
            "bandwidth": true, "dns": true, "io.kubernetes.cri.pod-annotations": true, "portMappings": true,
        },
        "runtimeConfig": {"io.kubernetes.cri.pod-annotations": annotations},
    })
}

/// Multus's cluster network: bridge and host-local, no masquerading.
fn default() -> Value {
    json!({
        "cniVersion": "1.0.0", "name": "bench-default", "type": "bridge", "bridge": "bench0",
        "isGateway": true, "ipMasq": false,
        "ipam": {
            "type": "host-local", "ranges": [[{"subnet": "10.139.0.0/16"}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    })
}
