//! STATUS: could an ADD with this configuration be served? Runtimes ask every few seconds, and a
//! failure makes the node NotReady, so it fails only for a configuration that really cannot be
//! served.
//!
//! Native networks are answered from memory, and from the journal only if it could not be written last
//! time. A configuration that leaves its networks to the cluster can be served if the first one is there:
//! the others are each pod's own. Plugins that know STATUS are executed, also IPAM plugins, apart from those of ADDs
//! and DELs and within [`STATUS_TIMEOUT`] for all of them; one that does not answer in time is logged and counts as
//! able.

use crate::agent::{Agent, not_restored};
use crate::cluster::Cluster;
use crate::options::ClusterNetwork;
use crate::serve::call::Call;
use crate::verb::pod_networks::not_synced;
use plexus_api::cni::{Body, Chain, Code, Error, NetworkBackend};
use plexus_core::resolve::{CLUSTER_DEFAULT, Objects};
use plexus_types::NetworkName;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// The shim gives up after 5 s, and a plugin that is killed takes some time to end.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

impl Agent {
    /// Code 50 with the reason if an ADD would be refused.
    pub(crate) fn status(&self, call: &Call<'_>) -> Result<(), Error> {
        let until = Instant::now() + STATUS_TIMEOUT;
        let journal = self.journal().map_err(unavailable)?;
        if let Some(error) = journal.write_problem() {
            return Err(unavailable(error));
        }
        if !self.ready.load(SeqCst) {
            return Err(not_restored());
        }
        let body = &call.conf()?.body;
        // Whether pods would get their first interface; where another CNI makes it, by its own word.
        if matches!(body, Body::Pod)
            && let Some((name, chain)) = self.first_delegate()?
        {
            self.ask_plugins(&name, &chain, until)?;
        }
        for network in body.networks() {
            if let NetworkBackend::Native(native) = &network.backend {
                self.require_features(native, &network.name)
                    .map_err(unavailable)?;
            }
            if let Some(chain) = network.backend.executed() {
                self.ask_plugins(&network.name, chain, until)?;
            }
        }
        Ok(())
    }

    /// Plugins' own word; those that do not answer in time count as able.
    fn ask_plugins(
        &self,
        network: &NetworkName,
        chain: &Chain,
        until: Instant,
    ) -> Result<(), Error> {
        let asked = self.runner.status(network, chain, until);
        for silent in asked.map_err(|error| unavailable(error.to_cni()))? {
            tracing::warn!(silent, "a plugin did not answer STATUS in time");
        }
        Ok(())
    }

    /// Who makes pods' first interface, if not we; or why they would get none now: for `/readyz`, and the reason to wait
    /// with the configuration that makes the runtime call us.
    pub(crate) fn first_delegate(&self) -> Result<Option<(NetworkName, Chain)>, Error> {
        let Some(kubernetes) = &self.options.kubernetes else {
            return Ok(None);
        };
        let cluster = self.cluster.get();
        if !cluster.is_some_and(Cluster::synced) {
            return Err(unavailable(not_synced()));
        }
        let reason = match kubernetes.cluster_network {
            ClusterNetwork::None => return Ok(None),
            ClusterNetwork::Delegate => return self.other_cni.chain().map(Some),
            ClusterNetwork::OwnNodeCidrs => {
                let node = cluster.and_then(Cluster::own_node);
                let known = node.is_some_and(|node| !node.pod_cidrs.is_empty());
                (!known).then_some("this node has no podCIDRs yet")
            }
            ClusterNetwork::OwnBlocks => {
                let known = |c: &Cluster| c.network(&kubernetes.namespace, CLUSTER_DEFAULT);
                let known = cluster.and_then(known).is_some();
                (!known)
                    .then_some("the Network that describes the cluster network is not there yet")
            }
        };
        let next = "it comes with the API server and the controllers: see the agent's log for the connection to it";
        reason.map_or(Ok(None), |reason| {
            Err(Error::new(Code::NotAvailable, reason, next))
        })
    }
}

fn unavailable(error: Error) -> Error {
    let code = Code::NotAvailable;
    Error { code, ..error }
}
