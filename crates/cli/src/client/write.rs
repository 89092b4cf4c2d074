//! Changes: apply, create, delete. Each says what became of it.

use super::{ClientError, Session};
use crate::snapshot::{name, text};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{ApiCapabilities, Scope};
use serde_json::{Value, json};
use std::time::Duration;

/// Who owns the fields that are applied.
const MANAGER: &str = "plexus";
/// How long a kind may take to be served after its definition was applied: attempts, and the pause.
const MAX_ATTEMPTS: usize = 50;
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// What became of an object that was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It was not there.
    Created,
    /// It was, and is another now.
    Configured,
    /// It was as it should be.
    Unchanged,
}

impl Applied {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Applied::Created => "created",
            Applied::Configured => "configured",
            Applied::Unchanged => "unchanged",
        }
    }
}

/// What became of an object that was deleted.
#[derive(Debug, Clone, PartialEq)]
pub enum Deleted {
    /// It is gone.
    Gone,
    /// It goes when its finalizers are done; as it is now.
    Going(Box<Value>),
    /// It was not there.
    Absent,
}

impl Session {
    /// Makes an object what is written. `namespace` counts where none is written. With `wait_for_kind`
    /// a kind that is not served yet is waited for: its definition was just applied.
    pub fn apply(
        &self,
        object: &Value,
        namespace: &str,
        force: bool,
        dry_run: bool,
        wait_for_kind: bool,
    ) -> Result<Applied, ClientError> {
        let what = format!("apply {}", object_name(object));
        self.wait(async {
            let api = self.api_of(object, namespace, &what, wait_for_kind).await?;
            let failed = |error| self.failed(&*what, error);
            let before = api.get_opt(name(object)).await.map_err(failed)?;
            let mut how = PatchParams::apply(MANAGER);
            how.force = force;
            how.dry_run = dry_run;
            let mut patched = api.patch(name(object), &how, &Patch::Apply(object)).await;
            // What `create` wrote is ours too, though the server counts it as somebody else's.
            if patched.as_ref().is_err_and(conflicts_only_with_ourselves) {
                how.force = true;
                patched = api.patch(name(object), &how, &Patch::Apply(object)).await;
            }
            let after = patched.map_err(failed)?;
            Ok(outcome(object, before, after))
        })
    }

    /// What applying would do, as far as can be told without asking the server to do it: whether the object is there.
    pub fn would_apply(&self, object: &Value, namespace: &str) -> Result<Applied, ClientError> {
        let what = format!("get {}", object_name(object));
        self.wait(async {
            let api = self.api_of(object, namespace, &what, false).await?;
            let before = api.get_opt(name(object)).await;
            match before.map_err(|error| self.failed(&*what, error))? {
                None => Ok(Applied::Created),
                Some(_) => Ok(Applied::Configured),
            }
        })
    }

    /// Makes an object that must not be there.
    pub fn create(
        &self,
        object: &Value,
        namespace: &str,
        dry_run: bool,
    ) -> Result<Value, ClientError> {
        let what = format!("create {}", object_name(object));
        self.wait(async {
            let api = self.api_of(object, namespace, &what, false).await?;
            let typed: DynamicObject = serde_json::from_value(object.clone())
                .map_err(|error| self.failed(&*what, kube::Error::SerdeError(error)))?;
            let how = PostParams {
                dry_run,
                field_manager: Some(MANAGER.to_owned()),
            };
            let made = api.create(&how, &typed).await;
            let made = made.map_err(|error| self.failed(&*what, error))?;
            Ok(serde_json::to_value(&made).unwrap_or_default())
        })
    }

    /// Deletes an object, and waits so long for it to be gone, if at all.
    pub fn delete(
        &self,
        object: &Value,
        namespace: &str,
        wait: Option<Duration>,
    ) -> Result<Deleted, ClientError> {
        let what = format!("delete {}", object_name(object));
        self.wait(async {
            let api = self.api_of(object, namespace, &what, false).await?;
            let failed = |error| self.failed(&*what, error);
            let answer = match api.delete(name(object), &DeleteParams::default()).await {
                Ok(answer) => answer,
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Deleted::Absent),
                Err(error) => return Err(failed(error)),
            };
            let Some(going) = answer.left() else {
                return Ok(Deleted::Gone);
            };
            let uid = going.metadata.uid.clone();
            let mut last = serde_json::to_value(&going).unwrap_or_default();
            let until = tokio::time::Instant::now() + wait.unwrap_or_default();
            loop {
                let found = api.get_opt(name(object)).await.map_err(failed)?;
                match found.filter(|found| found.metadata.uid == uid) {
                    None => return Ok(Deleted::Gone),
                    Some(found) => last = serde_json::to_value(&found).unwrap_or(last),
                }
                if tokio::time::Instant::now() >= until {
                    return Ok(Deleted::Going(Box::new(last)));
                }
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        })
    }

    /// The API of an object's kind, as the server has it.
    async fn api_of(
        &self,
        object: &Value,
        namespace: &str,
        what: &str,
        wait_for_kind: bool,
    ) -> Result<Api<DynamicObject>, ClientError> {
        let (resource, capabilities) = self.kind_of(object, what, wait_for_kind).await?;
        let written = text(object, "/metadata/namespace");
        let namespace = if written.is_empty() {
            namespace
        } else {
            written
        };
        Ok(match capabilities.scope {
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), namespace, &resource),
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
        })
    }

    async fn kind_of(
        &self,
        object: &Value,
        what: &str,
        wait_for_kind: bool,
    ) -> Result<(ApiResource, ApiCapabilities), ClientError> {
        let (api_version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let wanted = GroupVersionKind::gvk(group, version, kind);
        let attempts = if wait_for_kind { MAX_ATTEMPTS } else { 1 };
        for attempt in 0..attempts {
            if attempt > 0 {
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            match kube::discovery::pinned_kind(&self.client, &wanted).await {
                Ok(found) => return Ok(found),
                Err(kube::Error::Discovery(_)) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(self.failed(what, error)),
            }
        }
        Err(ClientError::NoKind {
            what: what.to_owned(),
            kind: kind.to_owned(),
            api_version: api_version.to_owned(),
        })
    }
}

/// Whether an apply conflicts with nobody but an earlier write of ours.
fn conflicts_only_with_ourselves(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let ours = format!("conflict with {MANAGER:?}");
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut messages = causes.map(|cause| cause.message.as_str()).peekable();
    status.code == 409
        && messages.peek().is_some()
        && messages.all(|message| message.starts_with(&ours))
}

/// What became of an object, by what it was just before. Others may have written between: of their fields,
/// those of the status, which nobody applies, do not count.
fn outcome(applied: &Value, before: Option<DynamicObject>, after: DynamicObject) -> Applied {
    let written = |mut object: DynamicObject| {
        object.metadata.managed_fields = None;
        object.metadata.resource_version = None;
        let mut value = serde_json::to_value(&object).unwrap_or_default();
        if applied.get("status").is_none()
            && let Some(map) = value.as_object_mut()
        {
            map.remove("status");
        }
        value
    };
    match before {
        None => Applied::Created,
        Some(before) if written(before.clone()) == written(after.clone()) => Applied::Unchanged,
        Some(_) => Applied::Configured,
    }
}

/// `network.plexus.dev/blue`
pub fn object_name(object: &Value) -> String {
    let api_version = text(object, "/apiVersion");
    let (group, _) = api_version.split_once('/').unwrap_or_default();
    let kind = text(object, "/kind").to_ascii_lowercase();
    match group {
        "" => format!("{kind}/{}", name(object)),
        group => format!("{kind}.{group}/{}", name(object)),
    }
}

/// The same, with its namespace where that is another than the one that commands are about.
pub fn object_name_in(object: &Value, namespace: &str) -> String {
    match text(object, "/metadata/namespace") {
        "" => object_name(object),
        own if own == namespace => object_name(object),
        own => format!("{} in {own}", object_name(object)),
    }
}

/// Objects in the order in which they are applied: namespaces, then definitions, then the rest as
/// written. The numbers are those of the list.
pub fn in_order(objects: &[Value]) -> Vec<usize> {
    let rank = |object: &Value| match text(object, "/kind") {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        _ => 2,
    };
    let mut numbers: Vec<usize> = (0..objects.len()).collect();
    numbers.sort_by_key(|number| objects.get(*number).map(rank));
    numbers
}

/// An object that is only named: for deleting it.
pub fn named(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = namespace.into();
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_with_what_create_wrote_is_none() {
        let conflict = |managers: &[&str]| {
            let causes: Vec<Value> = managers
                .iter()
                .map(|one| json!({"message": format!("conflict with {one:?} using plexus.dev/v1alpha1")}))
                .collect();
            let status = json!({"code": 409, "details": {"causes": causes}});
            kube::Error::Api(serde_json::from_value(status).unwrap())
        };
        assert!(conflicts_only_with_ourselves(&conflict(&[
            "plexus", "plexus"
        ])));
        assert!(!conflicts_only_with_ourselves(&conflict(&[
            "plexus", "kubectl"
        ])));
        assert!(!conflicts_only_with_ourselves(&conflict(&["plexus-agent"])));
        assert!(!conflicts_only_with_ourselves(&conflict(&[])));
    }

    #[test]
    fn namespaces_and_definitions_come_first() {
        let objects = [
            json!({"kind": "Pod"}),
            json!({"kind": "CustomResourceDefinition"}),
            json!({"kind": "Network"}),
            json!({"kind": "Namespace"}),
            json!({"kind": "Pod"}),
        ];
        assert_eq!(in_order(&objects), [3, 1, 0, 2, 4]);
    }

    #[test]
    fn a_status_that_somebody_writes_meanwhile_is_no_change() {
        let object = |phase: &str, image: &str| -> DynamicObject {
            let value = json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "a", "resourceVersion": phase, "managedFields": [{"manager": phase}]},
                "spec": {"image": image}, "status": {"phase": phase}});
            serde_json::from_value(value).unwrap()
        };
        let plain = json!({"kind": "Pod", "spec": {"image": "x"}});
        let (before, after) = (object("Pending", "x"), object("Running", "x"));
        assert_eq!(
            outcome(&plain, Some(before.clone()), after.clone()),
            Applied::Unchanged
        );
        assert_eq!(outcome(&plain, None, after.clone()), Applied::Created);
        assert_eq!(
            outcome(&plain, Some(object("Pending", "y")), after.clone()),
            Applied::Configured
        );
        let status = json!({"kind": "Pod", "status": {"phase": "Running"}});
        assert_eq!(outcome(&status, Some(before), after), Applied::Configured);
    }

    #[test]
    fn objects_are_called_as_kubectl_calls_them() {
        assert_eq!(object_name(&named("v1", "Pod", None, "a")), "pod/a");
        assert_eq!(
            object_name(&named("plexus.dev/v1alpha1", "Network", None, "blue")),
            "network.plexus.dev/blue"
        );
    }
}
