//! The nodes of the lab: for each one an agent that is kept running, and a Node in the API that says whether
//! it is ready. A node that is taken out of the specification is switched off: its agent killed, its
//! sandboxes gone, its Node and its pods deleted. One that an earlier keeper had not switched off when it
//! died is known by its directory, which is removed last.

use super::shared::Shared;
use super::supervise::supervise;
use crate::error::{LabError, chain};
use crate::name::NodeName;
use crate::part::Part;
use crate::process::Process;
use crate::{address, api, sandbox};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often the keeper reads a Node though nothing has changed: somebody may have deleted it.
const RESYNC_INTERVAL: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Makes the nodes what the specification says.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut specs = shared.specs();
    let mut running: BTreeMap<NodeName, [JoinHandle<()>; 2]> = BTreeMap::new();
    let mut found = sandbox::nodes(&shared.layout);
    loop {
        let spec = specs.borrow_and_update().clone();
        for node in &spec.nodes {
            running.entry(*node).or_insert_with(|| {
                let agent = supervise(Arc::clone(&shared), Part::Agent(*node));
                let record = register(Arc::clone(&shared), *node);
                [tokio::spawn(agent), tokio::spawn(record)]
            });
        }
        let known = running.keys().copied().chain(found.drain(..));
        let leaving: BTreeSet<NodeName> = known.filter(|node| !spec.nodes.contains(node)).collect();
        for node in leaving {
            for task in running.remove(&node).into_iter().flatten() {
                task.abort();
            }
            switch_off(&shared, node).await;
        }
        shared.report_all(|report| report.generation = spec.generation);
        if specs.changed().await.is_err() {
            return;
        }
    }
}

/// The labels that a Node is made with; by them, and by what is added later, a pod may choose it.
fn labels(node: NodeName) -> BTreeMap<String, String> {
    let name = node.to_string();
    [
        ("kubernetes.io/hostname", name.as_str()),
        ("kubernetes.io/os", "linux"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}

/// Keeps the Node, and says in it whether its agent is ready.
async fn register(shared: Arc<Shared>, node: NodeName) {
    let client = shared.client().await;
    let mut reported = None;
    let mut since = tokio::time::Instant::now();
    loop {
        let ready = shared.is_ready(node);
        if reported != Some(ready) || since.elapsed() > RESYNC_INTERVAL {
            match write_ready(&client, node, ready).await {
                Ok(()) => (reported, since) = (Some(ready), tokio::time::Instant::now()),
                Err(error) => tracing::debug!(%node, error = chain(&error), "Node not written"),
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn write_ready(client: &Client, node: NodeName, ready: bool) -> Result<(), LabError> {
    let api: Api<Node> = Api::all(client.clone());
    let name = node.to_string();
    let failed = || LabError::api(format!("write Node {node}"));
    let found = api.get_opt(&name).await.map_err(failed())?;
    let found = match found {
        Some(found) => found,
        None => {
            let object = json!({"metadata": {"name": name, "labels": labels(node)}});
            let object = serde_json::from_value(object)
                .map_err(|error| failed()(kube::Error::SerdeError(error)))?;
            let made = api.create(&PostParams::default(), &object).await;
            made.map_err(failed())?
        }
    };
    if has_ready(&found, ready) {
        return Ok(());
    }
    let patch = Patch::Merge(status(node, ready));
    let params = PatchParams::apply(api::MANAGER);
    let written = api.patch_status(&name, &params, &patch).await;
    written.map(drop).map_err(failed())
}

fn has_ready(node: &Node, ready: bool) -> bool {
    let expected = if ready { "True" } else { "False" };
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == expected)
}

fn status(node: NodeName, ready: bool) -> Value {
    let addresses = address::of_node(node).map(|net| net.addr());
    let (status, reason, message) = if ready {
        ("True", "NodeReady", "the agent serves pods")
    } else {
        ("False", "NodeNotReady", "the agent does not serve pods")
    };
    json!({"status": {
        "addresses": [
            {"type": "InternalIP", "address": addresses[0]},
            {"type": "InternalIP", "address": addresses[1]},
            {"type": "Hostname", "address": node.to_string()},
        ],
        "conditions": [{
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": super::status::now(), "lastHeartbeatTime": super::status::now(),
        }],
    }})
}

/// As if its power were cut and an administrator had deleted its Node. Tried until it is done: the server may
/// be away.
async fn switch_off(shared: &Arc<Shared>, node: NodeName) {
    tracing::info!(%node, "switched off");
    loop {
        match try_switch_off(shared, node).await {
            Ok(()) => break,
            Err(error) => {
                tracing::warn!(%node, error = chain(&error), "not gone yet");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
    }
    shared.report_all(|report| {
        report.nodes.remove(&node);
    });
}

async fn try_switch_off(shared: &Arc<Shared>, node: NodeName) -> Result<(), LabError> {
    let layout = shared.layout.clone();
    let ended = tokio::task::spawn_blocking(move || -> Result<(), LabError> {
        if let Some(agent) = Process::of_part(&layout, Part::Agent(node)) {
            agent.kill()?;
        }
        for sandbox in sandbox::of_node(&layout, node) {
            sandbox.remove(&layout, node)?;
        }
        Ok(())
    });
    ended.await.map_err(|error| LabError::Start {
        what: format!("the removal of node {node}'s sandboxes"),
        source: std::io::Error::other(error),
    })??;
    let client = shared.client().await;
    let nodes: Api<Node> = Api::all(client.clone());
    let deleted = nodes
        .delete(&node.to_string(), &DeleteParams::default())
        .await;
    ignore_absent(deleted.map(drop), format!("delete Node {node}"))?;
    let pods: Api<Pod> = Api::all(client.clone());
    let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let found = pods.list(&params).await;
    let found = found.map_err(LabError::api(format!("list the pods of node {node}")))?;
    for pod in found.items {
        super::status::delete(&client, &pod).await?;
    }
    Ok(())
}

fn ignore_absent(done: Result<(), kube::Error>, what: String) -> Result<(), LabError> {
    match done {
        Err(error) if !api::is_absent(&error) => Err(LabError::api(what)(error)),
        _ => Ok(()),
    }
}
