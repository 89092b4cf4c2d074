//! Kubernetes: a call that says "the pod's networks" becomes one that lists them.
//!
//! Annotations come with the call, else from the cache of this node's pods, else from one GET;
//! networks from the cache. Decides nothing: [`core`](plexus_core::resolve) does.

use crate::agent::Agent;
use crate::cluster::Cluster;
use crate::failure;
use crate::options::{ClusterNetwork, Kubernetes};
use crate::serve::call::Call;
use crate::span;
use plexus_api::cni::{Body, Code, Error, NetConf, Network, NetworkBackend};
use plexus_core::resolve::{
    ANNOTATIONS, CLUSTER_DEFAULT, HOME, Objects, PodFacts, PodNetworks, Reference, ResolveError,
    Settings, block_network, container_network, is_first, named_network, pod_cidr_network,
    pod_networks,
};
use std::time::Duration;

/// How long an ADD waits for the caches after a restart; the shim waits a little longer.
const SYNC_TIMEOUT: Duration = Duration::from_secs(8);

/// How long an ADD waits for a network that the controller is about to make: the kubelet would try
/// again, but only after many seconds.
const PENDING_TIMEOUT: Duration = Duration::from_secs(5);

/// A call whose networks the cluster knows.
pub(crate) struct ListedNetworks {
    /// What they are.
    pub(crate) networks: PodNetworks,
    /// Whether ports of the node may lead to the first of them.
    pub(crate) takes_ports: bool,
    /// The pod's UID, as the API has it.
    pub(crate) api_uid: Option<String>,
}

impl Agent {
    /// None if the configuration lists its networks itself.
    pub(crate) fn list_networks(
        &self,
        call: &Call<'_>,
        conf: &NetConf,
    ) -> Result<Option<ListedNetworks>, Error> {
        if !matches!(conf.body, Body::Pod | Body::Named(_)) {
            return Ok(None);
        }
        let (kubernetes, cluster) = self.cluster_of(conf)?;
        if !cluster.wait_synced(SYNC_TIMEOUT) {
            return Err(not_synced());
        }
        let container = is_container(kubernetes, call);
        let (pod, api_uid) = match container {
            true => (no_pod(call)?, None),
            false => self.pod_of(call, conf, cluster)?,
        };
        let mut failed = None;
        let resolve = || self.resolve_networks(call, conf, &pod, kubernetes, cluster, &mut failed);
        let networks = cluster
            .retry_on_change(PENDING_TIMEOUT, resolve)
            .inspect_err(|_| span::failed_reference(failed.as_ref()))?;
        for warning in &networks.warnings {
            tracing::warn!(warning, "a network's configuration");
        }
        Ok(Some(ListedNetworks {
            networks,
            // A runtime asks for them on each of a container's networks.
            takes_ports: !container || is_first(call.ifname()?),
            api_uid,
        }))
    }

    /// What the call means, as far as the cluster is known now; `failed` is the reference that cannot be had.
    fn resolve_networks(
        &self,
        call: &Call<'_>,
        conf: &NetConf,
        pod: &PodFacts,
        kubernetes: &Kubernetes,
        cluster: &Cluster,
        failed: &mut Option<(String, usize)>,
    ) -> Result<PodNetworks, Error> {
        let refused = |error: ResolveError| {
            *failed = error
                .reference()
                .map(|(name, number)| (name.to_owned(), number));
            failure::refusal(&error)
        };
        let settings = Settings {
            cluster_name: kubernetes.cluster_name.clone(),
            cluster_cidrs: kubernetes.cluster_cidrs.clone(),
            allowed_subnets: kubernetes.allowed_subnets(),
            namespaces: kubernetes.namespaces.clone(),
        };
        let runtime = &conf.runtime;
        let Body::Named(fq_name) = &conf.body else {
            let first = self.first_network(conf, kubernetes, cluster)?;
            return pod_networks(pod, first, runtime, &settings, cluster).map_err(refused);
        };
        let (fq_name, name, ifname) = (fq_name.as_ref(), conf.name.as_str(), call.ifname()?);
        let resolved = match is_container(kubernetes, call) {
            true => container_network(name, fq_name, ifname, runtime, &settings, cluster),
            false => named_network(pod, name, fq_name, ifname, runtime, &settings, cluster),
        };
        resolved.map_err(refused)
    }

    /// The cluster, or why there is none.
    fn cluster_of(&self, conf: &NetConf) -> Result<(&Kubernetes, &Cluster), Error> {
        match (&self.options.kubernetes, self.cluster.get()) {
            (Some(kubernetes), Some(cluster)) => Ok((kubernetes, cluster)),
            _ => Err(Error::new(
                Code::InvalidConfig,
                format!(
                    "network configuration {}: it leaves its networks to the cluster, but this agent was not told of one",
                    conf.name
                ),
                "start the agent with --kubeconfig, or as a pod with --cluster-network; or list a provider in the configuration",
            )),
        }
    }

    /// The pod's annotations, and its UID as the API has it where that is known.
    fn pod_of(
        &self,
        call: &Call<'_>,
        conf: &NetConf,
        cluster: &Cluster,
    ) -> Result<(PodFacts, Option<String>), Error> {
        let (Some(namespace), Some(name)) = (&call.args.pod_namespace, &call.args.pod_name) else {
            return Err(Error::new(
                Code::InvalidEnvironment,
                "CNI_ARGS does not say which pod this is for",
                "a Kubernetes runtime sets K8S_POD_NAMESPACE and K8S_POD_NAME; is this one called by hand?",
            ));
        };
        if let Some(all) = &conf.runtime.annotations {
            let entry = |key: &&str| all.get(*key).map(|value| (key.to_string(), value.clone()));
            let facts = PodFacts {
                namespace: namespace.clone(),
                name: name.clone(),
                annotations: ANNOTATIONS.iter().filter_map(entry).collect(),
            };
            return Ok((facts, None));
        }
        let uid = call.args.pod_uid.as_deref();
        let pod = cluster.pod(namespace, name, uid);
        match pod.map_err(|error| unanswered(&error))? {
            Some(meta) => Ok((meta.facts, Some(meta.api_uid))),
            None => {
                let uid = uid.unwrap_or("unknown");
                Err(Error::new(
                    Code::TryAgainLater,
                    format!("the API server knows no pod {namespace}/{name} with UID {uid}"),
                    "it was deleted or made anew meanwhile; the kubelet will try again if it is still wanted",
                ))
            }
        }
    }

    /// Index 0.
    fn first_network(
        &self,
        conf: &NetConf,
        kubernetes: &Kubernetes,
        cluster: &Cluster,
    ) -> Result<(Network, Reference), Error> {
        match kubernetes.cluster_network {
            ClusterNetwork::OwnNodeCidrs => own_network(kubernetes, cluster),
            ClusterNetwork::OwnBlocks => own_blocks(kubernetes, cluster),
            ClusterNetwork::Delegate => {
                let chain = self.other_cni.chain()?;
                let network = Network {
                    name: chain.0,
                    interface: None,
                    source_routing: false,
                    of_object: false,
                    backend: NetworkBackend::Delegate(chain.1),
                    runtime: Some(conf.runtime.raw.clone()),
                };
                let reference = Reference::cluster_default(&network, "");
                Ok((network, reference))
            }
            ClusterNetwork::None => Err(Error::new(
                Code::InvalidConfig,
                "this agent was started with --cluster-network=none: it makes no first interface",
                "let the delegating plugin (Multus) call Plexus for further networks, or choose --cluster-network=own or delegate",
            )),
        }
    }
}

/// Whether the call is for a container that is no pod.
fn is_container(kubernetes: &Kubernetes, call: &Call<'_>) -> bool {
    kubernetes.containers && call.args.pod_namespace.is_none()
}

/// A container that is no pod: it has no annotations, so that `"networks": "pod"` means the
/// cluster-wide default network alone.
fn no_pod(call: &Call<'_>) -> Result<PodFacts, Error> {
    let name = match &call.args.pod_name {
        Some(name) => name.clone(),
        None => call.container()?.to_string(),
    };
    Ok(PodFacts {
        namespace: HOME.to_owned(),
        name,
        ..PodFacts::default()
    })
}

/// The node's podCIDRs, routed.
fn own_network(kubernetes: &Kubernetes, cluster: &Cluster) -> Result<(Network, Reference), Error> {
    let node = cluster.own_node().filter(|node| !node.pod_cidrs.is_empty());
    let node = node.ok_or_else(|| {
        Error::new(
            Code::TryAgainLater,
            "this node has no podCIDRs yet",
            "does the controller manager run with --allocate-node-cidrs? else use --own-cidrs=blocks",
        )
    })?;
    let network = pod_cidr_network(&node.pod_cidrs, &kubernetes.cluster_cidrs);
    network.map_err(|_| not_synced())
}

/// Blocks of the Network `cluster-default`, routed.
fn own_blocks(kubernetes: &Kubernetes, cluster: &Cluster) -> Result<(Network, Reference), Error> {
    let namespace = &kubernetes.namespace;
    let object = cluster.network(namespace, CLUSTER_DEFAULT).ok_or_else(|| {
        Error::new(
            Code::TryAgainLater,
            format!("there is no Network {namespace}/{CLUSTER_DEFAULT} yet"),
            "the controller makes it from its --cluster-cidrs; is the controller running?",
        )
    })?;
    block_network(&object, &kubernetes.cluster_cidrs).map_err(|error| failure::refusal(&error))
}

fn unanswered(error: &crate::cluster::AskError) -> Error {
    Error::new(
        Code::TryAgainLater,
        failure::chain(error),
        "is the API server reachable from this node? the kubelet will try again",
    )
}

pub(crate) fn not_synced() -> Error {
    Error::new(
        Code::TryAgainLater,
        "what the cluster says of its networks is not known yet",
        "the API server was not reached since the agent started, and there is no copy on disk; the agent's log says why",
    )
}
