//! What a test may break on a cluster of either kind, and how it is mended: agents, the controller, the API
//! server, single sandboxes. What can die on Kubernetes only is asked of that ([`crate::Kube::lab`]).

use crate::cluster::{Cluster, Object, TIMEOUT};
use crate::consistency::Observer;
use crate::wait;
use anyhow::Result;
use std::collections::BTreeSet;

/// A cluster whose parts can be killed.
pub trait Breakable: Cluster {
    /// The observer that the consistency check uses.
    fn observer(&self) -> &dyn Observer;

    /// Waits until pods can be made in a namespace.
    fn wait_usable(&self, namespace: &str) -> Result<()>;

    /// Kills a node's agent, which comes back by itself. Whether there was one.
    fn kill_agent(&self, node: &str) -> Result<bool>;

    /// Kills the controller, which comes back by itself. Whether there was one.
    fn kill_controller(&self) -> Result<bool>;

    /// Takes a node's agent away until [`Breakable::return_agent`].
    fn take_agent(&self, node: &str) -> Result<()>;

    /// Gives it back, and waits until it answers.
    fn return_agent(&self, node: &str) -> Result<()>;

    /// Until [`Breakable::rejoin`] nobody on this node can say that a pod has ended, and none begins there; other
    /// nodes go on. On Kubernetes its pods run on, whatever the API says; on a lab their sandboxes end, unseen by
    /// Plexus.
    fn cut_off(&self, node: &str) -> Result<()>;

    /// Ends that; does not wait until all is done.
    fn rejoin(&self, node: &str) -> Result<()>;

    /// Kills the API server, until [`Breakable::start_api`].
    fn kill_api(&self) -> Result<()>;

    /// Starts it again, and waits until it answers.
    fn start_api(&self) -> Result<()>;

    /// Deletes a Node whose machine is there, and waits until that has registered itself again.
    fn register_again(&self, node: &str) -> Result<()>;

    /// The sandboxes of a namespace that run on a node, by id.
    fn sandboxes(&self, node: &str, namespace: &str) -> Result<BTreeSet<String>>;

    /// Ends a sandbox though its pod is wanted: it gets another one.
    fn stop_sandbox(&self, node: &str, id: &str) -> Result<()>;

    /// Starts what a test that failed may have left dead.
    fn revive(&self) -> Result<()>;

    /// Waits until a node's agent says that it is ready.
    fn wait_agent(&self, node: &str) -> Result<()> {
        let asked = ["curl", "-sf", "-m", "2", "http://127.0.0.1:9091/readyz"];
        wait::until(&format!("the agent of {node}"), TIMEOUT, || {
            Ok(self.on_node(node, &asked)?.ok().then_some(()))
        })
    }
}

/// The Node of that name.
pub fn node(name: &str) -> Object {
    Object::new("v1", "Node", "", name)
}
