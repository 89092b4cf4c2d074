//! Installs Plexus as a user does: `kubectl apply` of its manifest; then waits for its pods.

use crate::api::{documents, object_of};
use crate::cluster::Object;
use crate::command::feed;
use crate::lab::Lab;
use crate::spec::Spec;
use crate::wait;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(180);

/// Applies the manifest with the lab's edits, and waits until everything that it starts is ready.
pub(crate) fn install(lab: &Lab, spec: &Spec) -> Result<()> {
    let text = manifest(spec)?;
    let program = lab.tools().kubernetes.join("kubectl").display().to_string();
    let config = format!("--kubeconfig={}", lab.layout().kubeconfig().display());
    feed(
        &[program.as_str(), config.as_str(), "apply", "-f", "-"],
        &text,
    )?;
    for object in workloads(&text)? {
        wait_rolled_out(lab, &object)?;
    }
    Ok(())
}

/// Replaces the pods that the manifest starts, and waits for the new ones.
pub(crate) fn restart(lab: &Lab, spec: &Spec) -> Result<()> {
    let workloads = workloads(&manifest(spec)?)?;
    for object in &workloads {
        let kind = format!("{}/{}", object.kind.to_lowercase(), object.name);
        lab.kubectl(&["rollout", "restart", "-n", &object.namespace, &kind])?;
    }
    workloads
        .iter()
        .try_for_each(|object| wait_rolled_out(lab, object))
}

/// Waits until a DaemonSet or a Deployment runs its newest pods, all of them, ready.
pub(crate) fn wait_rolled_out(lab: &Lab, object: &Object) -> Result<()> {
    let waited = wait::until(&format!("{object} rolled out"), TIMEOUT, || {
        let value = lab.api().get(object)?.context("it is gone")?;
        let missing = missing(&value);
        if missing.is_empty() {
            return Ok(Some(()));
        }
        bail!("{}; its status: {}", missing.join(", "), value["status"])
    });
    waited.with_context(|| recent_events(lab, object))
}

/// What its pods said last, for an error message.
fn recent_events(lab: &Lab, object: &Object) -> String {
    let pods = format!("{}/{}", object.kind.to_lowercase(), object.name);
    let logs = [
        "logs",
        "-n",
        &object.namespace,
        &pods,
        "--all-pods",
        "--tail=5",
        "--ignore-errors",
    ];
    lab.kubectl(&logs)
        .unwrap_or_else(|error| format!("no logs: {error:#}"))
}

fn manifest(spec: &Spec) -> Result<String> {
    let path = spec.manifest.as_ref().context("no manifest is named")?;
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    edited(&text, &spec.edits)
}

/// What the manifest starts.
fn workloads(text: &str) -> Result<Vec<Object>> {
    let mut found = Vec::new();
    for value in documents(text)? {
        let object = object_of(&value)?;
        if matches!(object.kind.as_str(), "DaemonSet" | "Deployment") {
            found.push(object);
        }
    }
    Ok(found)
}

fn missing(value: &Value) -> Vec<String> {
    let status = |name: &str| value["status"][name].as_i64().unwrap_or(0);
    let (wanted, ready, updated) = if value["kind"] == "DaemonSet" {
        (
            "desiredNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
        )
    } else {
        ("replicas", "readyReplicas", "updatedReplicas")
    };
    let mut missing = Vec::new();
    if value["metadata"]["generation"].as_i64() != value["status"]["observedGeneration"].as_i64() {
        missing.push("not seen by its controller yet".to_owned());
    }
    if status(wanted) == 0 {
        missing.push("no pod is wanted yet".to_owned());
    }
    for count in [ready, updated] {
        if status(count) != status(wanted) {
            missing.push(format!(
                "{count} is {} of {}",
                status(count),
                status(wanted)
            ));
        }
    }
    missing
}

fn edited(text: &str, edits: &[(String, String)]) -> Result<String> {
    let mut text = text.to_owned();
    for (from, to) in edits {
        if from.is_empty() || !text.contains(from) {
            bail!("{from:?} is not in the manifest, so it cannot become {to:?}");
        }
        text = text.replace(from, to);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_edit_that_hits_nothing_is_an_error() {
        let edits = [(
            "--own-cidrs=node".to_owned(),
            "--own-cidrs=blocks".to_owned(),
        )];
        assert_eq!(
            edited("a --own-cidrs=node b", &edits).unwrap(),
            "a --own-cidrs=blocks b"
        );
        assert!(edited("a", &edits).is_err());
    }

    #[test]
    fn a_rollout_is_complete_only_when_all_new_pods_are_ready() {
        let daemon = |updated: i64, seen: i64| {
            json!({"kind": "DaemonSet", "metadata": {"generation": 2}, "status": {
                "observedGeneration": seen, "desiredNumberScheduled": 2, "numberReady": 2,
                "updatedNumberScheduled": updated}})
        };
        assert_eq!(missing(&daemon(2, 2)), Vec::<String>::new());
        assert_eq!(missing(&daemon(1, 2)).len(), 1);
        assert_eq!(missing(&daemon(2, 1)).len(), 1);
    }
}
