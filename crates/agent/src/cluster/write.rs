//! Writes records and `network-status`: at most three requests a pod, however many networks it has.
//!
//! A record is applied whole, by its UID, so writing it twice changes nothing; what is known to be
//! as it should is not written.

use super::api::{self, MANAGER, code, error_text};
use super::cached::{self, CachedRecord, NETWORK_STATUS};
use super::kinds::Records;
use super::record_name;
use super::records::{Job, What};
use super::report::{Attached, PodName};
use super::shared::Shared;
use super::state::key;
use super::watch;
use super::wire::{PodWire, RecordWire};
use crate::background::async_task::{Woken, Work};
use crate::background::progress::{Next, Reason};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use plexus_api::objects::{
    FINALIZER, NODE_LABEL, POD_LABEL, PodAttachmentsSpec, PodAttachmentsStatus, PodIdentity,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Pods that are written about at a time.
const AT_ONCE: usize = 8;
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// What the API refuses so often it will refuse again.
const REFUSED: u32 = 8;
/// How often a finalizer is looked for, if others add and remove theirs meanwhile.
const FINALIZER_TRIES: usize = 4;
/// The longest label that the API takes.
const LONGEST_LABEL: usize = 63;

enum WriteError {
    /// The API said so, or nothing.
    Api(kube::Error),
    Late,
    /// A static pod whose mirror is not in the API yet.
    NoMirror,
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        Self::Api(error)
    }
}

pub(super) struct WriteRecords(pub(super) Arc<Shared>);

impl Work for WriteRecords {
    async fn woken(&self) -> Woken {
        Woken::by(&self.0.records.came).await
    }

    async fn pass(&mut self, _: Reason) -> Result<Next, String> {
        let Self(shared) = self;
        let now = Instant::now();
        let (jobs, next) = shared.records.due(AT_ONCE, now);
        if jobs.is_empty() {
            let wait = next.map(|at| at.saturating_duration_since(now));
            return Ok(wait.map_or(Next::WOKEN, Next::After));
        }
        let all = jobs.into_iter().map(|job| one(shared, job));
        futures::future::join_all(all).await;
        Ok(Next::After(Duration::ZERO))
    }
}

async fn one(shared: &Shared, job: Job) {
    let result = timeout(WRITE_TIMEOUT, async {
        match &job.what {
            What::Write(report) => written(shared, report).await,
            What::Release { pod, api_uid } => released(shared, pod, api_uid.as_deref()).await,
        }
    });
    let Err(write_error) = result.await.unwrap_or(Err(WriteError::Late)) else {
        return;
    };
    let pod = match &job.what {
        What::Write(report) => &report.pod,
        What::Release { pod, .. } => pod,
    };
    let pod = key(&pod.namespace, &pod.name);
    if !matches!(write_error, WriteError::NoMirror) {
        shared.tasks.records.failed();
    }
    let (again, error) = judge(&write_error, job.tries);
    match (again, &write_error) {
        (true, WriteError::NoMirror) => {}
        (true, _) if job.tries > 0 => tracing::debug!(pod, error, "a pod's record, again"),
        (true, _) => tracing::warn!(
            pod,
            error,
            "a pod's record is not written yet; trying again"
        ),
        (false, _) => tracing::warn!(pod, error, "a pod's record is not written"),
    }
    if again {
        shared.records.again(job);
    }
}

/// Whether to try again, and what to say.
fn judge(error: &WriteError, tries: u32) -> (bool, String) {
    match error {
        WriteError::Late => (
            true,
            format!("no answer within {} s", WRITE_TIMEOUT.as_secs()),
        ),
        WriteError::NoMirror => (true, "its mirror is not in the API yet".to_owned()),
        WriteError::Api(error) => {
            let again = match code(error) {
                // The namespace is gone or going, and the pod with it.
                Some(404) => false,
                Some(403) if error_text(error).contains("being terminated") => false,
                Some(400 | 401 | 403 | 405..409 | 422) => tries < REFUSED,
                _ => true,
            };
            (again, error_text(error))
        }
    }
}

async fn written(shared: &Shared, report: &Attached) -> Result<(), WriteError> {
    let api_uid = api_uid(shared, &report.pod).ok_or(WriteError::NoMirror)?;
    shared.records.found(&report.pod, &api_uid);
    let (record, annotation) = tokio::join!(
        write_record(shared, report, &api_uid),
        write_network_status(shared, report, &api_uid)
    );
    record.and(annotation).map_err(WriteError::Api)
}

async fn write_record(shared: &Shared, report: &Attached, uid: &str) -> kube::Result<()> {
    let status = PodAttachmentsStatus {
        sandbox: report.sandbox.clone(),
        attachments: report.attachments.clone(),
    };
    let (namespace, node) = (&report.pod.namespace, &shared.options.node);
    let known = record_name::records_of(&shared.state(), namespace, uid, node);
    if known.iter().any(|known| is_as_it_should(known, &status)) {
        return Ok(());
    }
    let records = api::namespaced::<RecordWire>(&shared.client, namespace);
    let apply = PatchParams::apply(MANAGER).force();
    let wanted = |name: &str| Patch::Apply(record(node, &report.pod, uid, name));
    let mut name = known.first().map_or(uid.to_owned(), |one| one.name.clone());
    if let Err(error) = records.patch(&name, &apply, &wanted(&name)).await {
        let Some(other) = record_name::taken_by(&records, &name, node, &error).await? else {
            return Err(error);
        };
        let message = "another node has made the record of a pod that is here: it is written under another name";
        tracing::warn!(namespace, record = name, node = other, "{message}");
        name = record_name::with_node(uid, node);
        records.patch(&name, &apply, &wanted(&name)).await?;
    }
    // Merged, not applied: a server with an older definition drops what it does not know, and
    // keeps the rest.
    let made = api::merge_status(&records, &name, json!({"status": status})).await?;
    watch::take::<Records>(shared, made);
    Ok(())
}

/// Whether a record says what it should.
pub(super) fn is_as_it_should(record: &CachedRecord, status: &PodAttachmentsStatus) -> bool {
    record.finalizer.is_some() && record.status == cached::status_digest(status)
}

/// Merges the annotation into whatever others have written there; the UID in it makes the API
/// refuse it for a pod of the same name that is another one.
async fn write_network_status(shared: &Shared, report: &Attached, uid: &str) -> kube::Result<()> {
    let Some(text) = report.network_status.as_ref().map(Value::to_string) else {
        return Ok(());
    };
    let store_key = key(&report.pod.namespace, &report.pod.name);
    let pod = shared.state().pods.get(&store_key);
    if let Some(pod) = pod {
        let another = pod.meta.api_uid != uid;
        if another || pod.network_status == Some(cached::digest(&text)) {
            return Ok(());
        }
    }
    let pods = api::namespaced::<PodWire>(&shared.client, &report.pod.namespace);
    let patch = json!({"metadata": {"uid": uid, "annotations": {NETWORK_STATUS: text}}});
    match api::merge(&pods, &report.pod.name, patch).await {
        Ok(_) => Ok(()),
        // The pod is gone, or one of its name is there that is not it.
        Err(error) if matches!(code(&error), Some(404 | 422)) => Ok(()),
        Err(error) if code(&error) == Some(409) && is_another(&pods, report, uid).await? => Ok(()),
        Err(error) => Err(error),
    }
}

async fn is_another(pods: &Api<PodWire>, report: &Attached, uid: &str) -> kube::Result<bool> {
    let pod = pods.get_opt(&report.pod.name).await?;
    Ok(pod.is_none_or(|pod| pod.metadata.uid.as_deref() != Some(uid)))
}

async fn released(shared: &Shared, pod: &PodName, known: Option<&str>) -> Result<(), WriteError> {
    let uid = known.map(str::to_owned).or_else(|| api_uid(shared, pod));
    let Some(uid) = uid else {
        // A static pod whose mirror went first: the record is found by having no pod.
        shared.resync.notify_one();
        return Ok(());
    };
    let (namespace, node) = (&pod.namespace, &shared.options.node);
    let seen = record_name::records_of(&shared.state(), namespace, &uid, node);
    if seen.is_empty() {
        return remove(shared, namespace, &uid, Some(0)).await;
    }
    for record in seen {
        remove(shared, namespace, &record.name, record.finalizer).await?;
    }
    Ok(())
}

/// Takes our finalizer off a record, and deletes it.
async fn remove(
    shared: &Shared,
    namespace: &str,
    name: &str,
    finalizer: Option<usize>,
) -> Result<(), WriteError> {
    let records = api::namespaced::<RecordWire>(&shared.client, namespace);
    let mut at = finalizer;
    for _ in 0..FINALIZER_TRIES {
        let Some(index) = at else { break };
        let (params, patch) = (PatchParams::default(), without(index));
        match records.patch(name, &params, &patch).await {
            Ok(_) => break,
            Err(error) if code(&error) == Some(404) => break,
            // Somebody else's finalizer is where ours was.
            Err(error) if code(&error) == Some(422) => {
                let found = records.get_opt(name).await?;
                at = found.and_then(|found| cached::record(&found).finalizer);
            }
            Err(error) => return Err(error.into()),
        }
    }
    if let Err(error) = records.delete(name, &DeleteParams::default()).await
        && code(&error) != Some(404)
    {
        return Err(error.into());
    }
    watch::forget::<Records>(shared, &key(namespace, name));
    Ok(())
}

/// Removes the finalizer at that place, if it is ours.
fn without(index: usize) -> Patch<Value> {
    let path = format!("/metadata/finalizers/{index}");
    let operations = json!([
        {"op": "test", "path": path, "value": FINALIZER},
        {"op": "remove", "path": path},
    ]);
    match serde_json::from_value(operations) {
        Ok(operations) => Patch::Json(operations),
        Err(_) => Patch::Merge(json!({})),
    }
}

fn record(node: &str, pod: &PodName, uid: &str, name: &str) -> Value {
    let spec = PodAttachmentsSpec {
        pod: PodIdentity {
            name: pod.name.clone(),
            uid: uid.to_owned(),
        },
        node: node.to_owned(),
    };
    let mut labels = json!({NODE_LABEL: node});
    if is_label(&pod.name) {
        labels[POD_LABEL] = json!(pod.name);
    }
    let mut metadata = json!({"name": name, "labels": labels, "finalizers": [FINALIZER]});
    if !pod.container {
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": uid});
        metadata["ownerReferences"] = json!([owner]);
    }
    api::object::<RecordWire>(metadata, spec)
}

/// Whether the API takes it as a label's value: containers may be called anything.
fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    let inner = |byte: u8| plain(byte) || matches!(byte, b'-' | b'_' | b'.');
    let ends = text.bytes().next().is_some_and(plain) && text.bytes().last().is_some_and(plain);
    ends && text.len() <= LONGEST_LABEL && text.bytes().all(inner)
}

/// What the API calls a pod: a static pod has another UID there, that of its mirror.
fn api_uid(shared: &Shared, pod: &PodName) -> Option<String> {
    if pod.container {
        return Some(pod.uid.clone());
    }
    let seen = shared
        .state()
        .pod(&pod.namespace, &pod.name, Some(pod.uid.as_str()));
    match seen {
        Some(seen) => Some(seen.meta.api_uid.clone()),
        None => pod.uid.contains('-').then(|| pod.uid.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_helped_by_waiting_is_tried_again() {
        let api = |code: u16, message: &str| {
            let mut status = kube::core::Status::failure(message, "");
            status.code = code;
            WriteError::Api(kube::Error::Api(Box::new(status)))
        };
        assert!(judge(&api(500, ""), 1000).0);
        assert!(judge(&api(409, ""), 1000).0);
        assert!(judge(&WriteError::Late, 1000).0);
        assert!(judge(&api(403, "no"), 0).0);
        assert!(!judge(&api(403, "no"), REFUSED).0);
        assert!(!judge(&api(403, "because it is being terminated"), 0).0);
        assert!(!judge(&api(404, ""), 0).0);
    }

    #[test]
    fn a_pods_long_name_makes_no_label() {
        let pod = PodName {
            namespace: "a".into(),
            name: "p".repeat(64),
            uid: "u-1".into(),
            container: false,
        };
        let long = record("n1", &pod, "u-1", "u-1");
        assert_eq!(long["metadata"]["labels"], json!({NODE_LABEL: "n1"}));
        assert_eq!(
            long["metadata"]["ownerReferences"][0]["name"],
            json!(pod.name)
        );
    }

    #[test]
    fn a_container_has_no_owner_in_the_api() {
        let mut container = PodName {
            namespace: "a".into(),
            name: "web_1".into(),
            uid: "0f3a".into(),
            container: true,
        };
        let plain = record("n1", &container, "0f3a", "0f3a");
        assert_eq!(plain["metadata"].get("ownerReferences"), None);
        assert_eq!(plain["metadata"]["labels"][POD_LABEL], "web_1");
        assert_eq!(plain["spec"]["pod"]["uid"], "0f3a");
        container.name = "my web server".into();
        let odd = record("n1", &container, "0f3a", "0f3a");
        assert_eq!(odd["metadata"]["labels"], json!({NODE_LABEL: "n1"}));
    }
}
