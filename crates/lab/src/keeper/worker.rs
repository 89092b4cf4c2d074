//! One pod on its node, from its sandbox to its end. One step at a time; what fails is tried again after a
//! pause, or as soon as something else is wanted of it.
//!
//! ```text
//!   wanted: sandbox ── ADD ──► Running        failed: DEL, sandbox gone, Event, again       with claims: waits
//!   deleted: DEL ──► sandbox gone ──► removed from the API       gone already: DEL ──► sandbox gone
//! ```

use super::shared::Shared;
use super::{claims, status};
use crate::cni::{ANNOTATIONS, Caller, PORT_MAPPINGS};
use crate::error::{LabError, chain};
use crate::name::NodeName;
use crate::sandbox::Sandbox;
use crate::{address, files};
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt};
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The pod as the API has it; none once it is gone there.
pub(super) type Desired = Option<Arc<Pod>>;

const FIRST_RETRY_DELAY: Duration = Duration::from_millis(250);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(4);
/// How often the worker checks whether a sandbox is still there.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What comes after a step.
enum Next {
    /// Until something else is wanted.
    Wait,
    /// After a pause.
    Again,
    /// Nothing is left.
    End,
}

struct Work {
    shared: Arc<Shared>,
    client: Client,
    node: NodeName,
    sandbox: Option<Sandbox>,
}

/// Works for one pod until it is gone, or the keeper is.
pub(super) async fn work(
    shared: Arc<Shared>,
    client: Client,
    uid: String,
    node: NodeName,
    mut desires: watch::Receiver<Desired>,
) {
    let record = shared.layout.sandbox(node, &uid);
    let sandbox = files::get_json(&record).unwrap_or_else(|error| {
        tracing::error!(error = chain(&error), "begun anew");
        None
    });
    let mut work = Work {
        shared,
        client,
        node,
        sandbox,
    };
    let mut pause = FIRST_RETRY_DELAY;
    let mut specs = work.shared.specs();
    loop {
        let desired = desires.borrow_and_update().clone();
        specs.mark_unchanged();
        match work.step(desired.as_deref()).await {
            Next::End => return,
            Next::Wait => {
                pause = FIRST_RETRY_DELAY;
                tokio::select! {
                    changed = desires.changed() => if changed.is_err() {
                        // The keeper ends.
                        return;
                    },
                    // The pod's node may have come.
                    _ = specs.changed() => {}
                    () = work.sandbox_vanished() => {}
                }
            }
            Next::Again => {
                sleep_unless_changed(&mut desires, desired.as_deref(), pause).await;
                pause = (pause * 2).min(MAX_RETRY_DELAY);
            }
        }
    }
}

/// Sleeps until something else is wanted, but no longer than that. What we say of a pod ourselves is nothing
/// else: one that cannot start would be tried without a pause.
async fn sleep_unless_changed(
    desires: &mut watch::Receiver<Desired>,
    now: Option<&Pod>,
    pause: Duration,
) {
    let end = tokio::time::Instant::now() + pause;
    loop {
        match tokio::time::timeout_at(end, desires.changed()).await {
            Ok(Ok(())) if relevant_state(desires.borrow().as_deref()) == relevant_state(now) => {}
            Ok(Ok(())) | Err(_) => return,
            // Nobody will want anything else once the pod is gone: what was wanted last counts.
            Ok(Err(_)) => return tokio::time::sleep_until(end).await,
        }
    }
}

/// What of a pod decides what is done: none if it is gone, else whether it is to go and what plugins are
/// told.
fn relevant_state(pod: Option<&Pod>) -> Option<(bool, Map<String, Value>)> {
    let pod = pod?;
    let goes = pod.metadata.deletion_timestamp.is_some() || has_ended(pod);
    Some((goes, runtime_config(pod)))
}

impl Work {
    async fn step(&mut self, desired: Option<&Pod>) -> Next {
        let (done, next) = match desired {
            None => (self.tear_down().await, Next::End),
            Some(pod) if pod.metadata.deletion_timestamp.is_some() => {
                let gone = self.tear_down().await;
                let removed = match gone {
                    Ok(()) => status::delete(&self.client, pod)
                        .await
                        .map_err(|e| chain(&e)),
                    Err(why) => Err(why),
                };
                (removed, Next::Wait)
            }
            Some(pod) if has_ended(pod) => (self.tear_down().await, Next::Wait),
            Some(_) if !self.shared.has_node(self.node) => (Ok(()), Next::Wait),
            Some(pod) => match claims::waits(pod) {
                Some(why) => (self.report_waiting_claims(pod, &why).await, Next::Wait),
                None => (self.set_up(pod).await, Next::Wait),
            },
        };
        match done {
            Ok(()) => next,
            Err(why) => {
                tracing::warn!(node = %self.node, pod = desired.map(|p| p.name_any()), why, "trying again");
                Next::Again
            }
        }
    }

    /// As a kubelet says it. Once: our own word comes back as a change of the pod.
    async fn report_waiting_claims(&self, pod: &Pod, why: &str) -> Result<(), String> {
        if status::has_waiting_status(pod, why) {
            return Ok(());
        }
        let reason = "FailedPrepareDynamicResources";
        let warned = status::warn(&self.client, pod, reason, why).await;
        warned.map_err(|error| chain(&error))?;
        let waits = status::waiting(&self.client, pod, why).await;
        waits.map_err(|error| chain(&error))
    }

    /// Comes when the sandbox of a running pod is no more: the kubelet would make another one, whether the
    /// API is there or not.
    async fn sandbox_vanished(&self) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            if let Some(sandbox) = self.sandbox.clone()
                && let Ok(false) = self.blocking(move |_, _| Ok(sandbox.is_ready())).await
            {
                return;
            }
        }
    }

    async fn set_up(&mut self, pod: &Pod) -> Result<(), String> {
        let host = address::of_node(self.node).map(|net| net.addr());
        if on_host(pod) {
            return self.report_running(pod, "", &host, &host).await;
        }
        if let Some(sandbox) = self.sandbox.clone() {
            if self.blocking(move |_, _| Ok(sandbox.is_ready())).await? {
                return self.report_sandbox_running(pod, &host).await;
            }
            // Begun by a keeper that is no more, or robbed of its namespace.
            self.tear_down().await?;
        }
        match self.attach(pod).await {
            Ok(()) => self.report_sandbox_running(pod, &host).await,
            Err(why) => {
                let message = format!("Failed to create pod sandbox: {why}");
                let reason = "FailedCreatePodSandBox";
                let warned = status::warn(&self.client, pod, reason, &message).await;
                let waits = status::waiting(&self.client, pod, &why).await;
                for error in [warned.err(), waits.err()].into_iter().flatten() {
                    tracing::debug!(error = chain(&error), "not said");
                }
                self.tear_down().await?;
                Err(why)
            }
        }
    }

    /// A new sandbox, set up by the node's plugins.
    async fn attach(&mut self, pod: &Pod) -> Result<(), String> {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        let layout = &self.shared.layout;
        let sandbox = Sandbox::new(layout, &uid, (&namespace, &name), runtime_config(pod));
        let sandbox = sandbox.map_err(|error| chain(&error))?;
        self.sandbox = Some(sandbox.clone());
        let permit = self.shared.calls.acquire().await;
        let done = self.blocking(move |shared, node| {
            sandbox.make(&shared.layout, node)?;
            let added = Caller::new(&shared.layout, node, &sandbox).add();
            let result = added.map_err(|error| LabError::Refused(chain(&error)))?;
            let done = Sandbox {
                result: Some(result),
                ..sandbox
            };
            done.write(&shared.layout, node)?;
            Ok(done)
        });
        let done = done.await;
        drop(permit);
        self.sandbox = Some(done?);
        Ok(())
    }

    /// DEL, then the namespace and the record. On a node that is no more there is nobody to ask.
    async fn tear_down(&mut self) -> Result<(), String> {
        let Some(sandbox) = self.sandbox.clone() else {
            return Ok(());
        };
        let permit = self.shared.calls.acquire().await;
        let removed = self.blocking(move |shared, node| {
            if shared.has_node(node) {
                let deleted = Caller::new(&shared.layout, node, &sandbox).del();
                deleted.map_err(|error| LabError::Refused(chain(&error)))?;
            }
            sandbox.remove(&shared.layout, node)
        });
        let removed = removed.await;
        drop(permit);
        removed?;
        self.sandbox = None;
        Ok(())
    }

    async fn report_sandbox_running(&self, pod: &Pod, host: &[IpAddr]) -> Result<(), String> {
        let Some(sandbox) = &self.sandbox else {
            return Ok(());
        };
        let addresses = sandbox.addresses();
        self.report_running(pod, &sandbox.container, host, &addresses)
            .await
    }

    async fn report_running(
        &self,
        pod: &Pod,
        container: &str,
        host: &[IpAddr],
        addresses: &[IpAddr],
    ) -> Result<(), String> {
        status::running(&self.client, pod, container, host, addresses)
            .await
            .map_err(|error| chain(&error))
    }

    /// Work that waits, on a thread of its own.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared, NodeName) -> Result<T, LabError> + Send + 'static,
    ) -> Result<T, String> {
        let (shared, node) = (Arc::clone(&self.shared), self.node);
        let done = tokio::task::spawn_blocking(move || work(&shared, node));
        done.await
            .map_err(|error| error.to_string())?
            .map_err(|error| chain(&error))
    }
}

fn on_host(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.host_network).unwrap_or_default()
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// What containerd tells plugins that ask: the annotations always, host ports if there are any, with Go's
/// names of the fields.
fn runtime_config(pod: &Pod) -> Map<String, Value> {
    let mut config = Map::new();
    config.insert(ANNOTATIONS.to_owned(), json!(pod.annotations()));
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let ports = containers.flat_map(|container| container.ports.iter().flatten());
    let mapped: Vec<Value> = ports
        .filter(|port| port.host_port.is_some_and(|port| port > 0))
        .map(|port| {
            let protocol = port.protocol.as_deref().unwrap_or("TCP").to_lowercase();
            json!({
                "HostPort": port.host_port, "ContainerPort": port.container_port,
                "Protocol": protocol, "HostIP": port.host_ip.clone().unwrap_or_default(),
            })
        })
        .collect();
    if !mapped.is_empty() {
        config.insert(PORT_MAPPINGS.to_owned(), mapped.into());
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_plugins_are_told() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "web", "annotations": {"plexus.dev/networks": "blue"}},
            "spec": {"containers": [
                {"name": "a", "ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]},
                {"name": "b"}]}}))
        .unwrap();
        let expected = json!({
            ANNOTATIONS: {"plexus.dev/networks": "blue"},
            PORT_MAPPINGS: [{"HostPort": 8080, "ContainerPort": 80, "Protocol": "tcp", "HostIP": ""}]});
        assert_eq!(Value::Object(runtime_config(&pod)), expected);
        assert!(!runtime_config(&Pod::default()).contains_key(PORT_MAPPINGS));
    }

    #[tokio::test]
    async fn what_is_said_of_a_pod_does_not_cut_a_pause_short() {
        let pod = |value: Value| Some(Arc::new(serde_json::from_value::<Pod>(value).unwrap()));
        let first = pod(json!({"metadata": {"name": "web"}}));
        let (send, mut desires) = watch::channel(first.clone());
        let pause = Duration::from_millis(300);
        let begun = tokio::time::Instant::now();
        send.send(pod(
            json!({"metadata": {"name": "web"}, "status": {"phase": "Pending"}}),
        ))
        .unwrap();
        sleep_unless_changed(&mut desires, first.as_deref(), pause).await;
        assert!(begun.elapsed() >= pause);
        let going =
            json!({"metadata": {"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        send.send(pod(going)).unwrap();
        let long = Duration::from_secs(600);
        let heard = sleep_unless_changed(&mut desires, first.as_deref(), long);
        tokio::time::timeout(long / 10, heard).await.unwrap();
    }
}
