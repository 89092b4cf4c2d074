//! The API server, without `async`: objects of any kind as JSON, kinds looked up once. One small
//! runtime drives all calls; callers may be many threads.

use crate::cluster::Object;
use crate::wait;
use anyhow::{Context, Result};
use kube::api::{Api as Resource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope, pinned_kind};
use kube::{Client, Config, Error};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A connection as the user that a kubeconfig names.
pub struct Api {
    runtime: Runtime,
    client: Client,
    kinds: Mutex<BTreeMap<(String, String), (ApiResource, bool)>>,
}

impl Api {
    /// Reads the kubeconfig; connects when first asked something.
    pub fn connect(kubeconfig: &Path) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        let config = Kubeconfig::read_from(kubeconfig)
            .with_context(|| format!("cannot read {}", kubeconfig.display()))?;
        let client = runtime.block_on(async {
            let options = KubeConfigOptions::default();
            let mut config = Config::from_custom_kubeconfig(config, &options).await?;
            config.read_timeout = Some(Duration::from_secs(30));
            anyhow::Ok(Client::try_from(config)?)
        })?;
        Ok(Self {
            runtime,
            client,
            kinds: Mutex::default(),
        })
    }

    /// For tests that want typed objects or watches; drive what it gives with `block_on`.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Runs a future to its end.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Server-side apply of every document, as the owner `kubekit`. A kind that does not exist yet
    /// is waited for a little: its definition may be an earlier document.
    pub fn apply(&self, yaml: &str) -> Result<()> {
        for value in documents(yaml)? {
            let object = object_of(&value)?;
            let resource = wait::until(&format!("the kind of {object}"), KIND_TIMEOUT, || {
                self.resource(&object).map(Some)
            })?;
            let params = PatchParams::apply("kubekit").force();
            self.block_on(resource.patch(&object.name, &params, &Patch::Apply(&value)))
                .with_context(|| format!("cannot apply {object}"))?;
        }
        Ok(())
    }

    /// A JSON merge patch, of the object or (if named) of a subresource's fields.
    pub fn merge(&self, object: &Object, patch: &Value) -> Result<Value> {
        let resource = self.resource(object)?;
        let patch = Patch::Merge(patch);
        let patched = self
            .block_on(resource.patch(&object.name, &PatchParams::default(), &patch))
            .with_context(|| format!("cannot patch {object}"))?;
        Ok(serde_json::to_value(patched)?)
    }

    /// The object as it is now.
    pub fn get(&self, object: &Object) -> Result<Option<Value>> {
        let resource = self.resource(object)?;
        let found = self
            .block_on(resource.get_opt(&object.name))
            .with_context(|| format!("cannot get {object}"))?;
        Ok(found.map(serde_json::to_value).transpose()?)
    }

    /// All objects of the kind, in one namespace or (empty) in all.
    pub fn list(&self, api_version: &str, kind: &str, namespace: &str) -> Result<Vec<Value>> {
        let (resource, namespaced) = self.kind(api_version, kind)?;
        let resource: Resource<DynamicObject> = if namespaced && !namespace.is_empty() {
            Resource::namespaced_with(self.client(), namespace, &resource)
        } else {
            Resource::all_with(self.client(), &resource)
        };
        let listed = self
            .block_on(resource.list(&ListParams::default()))
            .with_context(|| format!("cannot list {kind}"))?;
        let values = listed.items.into_iter().map(serde_json::to_value);
        Ok(values.collect::<Result<_, _>>()?)
    }

    /// Deletes it; one that is not there is fine. `grace` in seconds, or the object's own.
    pub fn delete(&self, object: &Object, grace: Option<u32>) -> Result<()> {
        let resource = self.resource(object)?;
        let params = DeleteParams {
            grace_period_seconds: grace,
            ..DeleteParams::background()
        };
        match self.block_on(resource.delete(&object.name, &params)) {
            Err(Error::Api(status)) if status.code == 404 => Ok(()),
            result => result
                .map(drop)
                .with_context(|| format!("cannot delete {object}")),
        }
    }

    fn resource(&self, object: &Object) -> Result<Resource<DynamicObject>> {
        let (resource, namespaced) = self.kind(&object.api_version, &object.kind)?;
        Ok(if namespaced {
            let namespace = match object.namespace.as_str() {
                "" => "default",
                named => named,
            };
            Resource::namespaced_with(self.client(), namespace, &resource)
        } else {
            Resource::all_with(self.client(), &resource)
        })
    }

    fn kind(&self, api_version: &str, kind: &str) -> Result<(ApiResource, bool)> {
        let key = (api_version.to_owned(), kind.to_owned());
        if let Ok(kinds) = self.kinds.lock()
            && let Some(known) = kinds.get(&key)
        {
            return Ok(known.clone());
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let wanted = GroupVersionKind::gvk(group, version, kind);
        let (resource, capabilities) = self
            .block_on(pinned_kind(&self.client, &wanted))
            .with_context(|| format!("no kind {kind} in {api_version}"))?;
        let found = (resource, capabilities.scope == Scope::Namespaced);
        if let Ok(mut kinds) = self.kinds.lock() {
            kinds.insert(key, found.clone());
        }
        Ok(found)
    }
}

const KIND_TIMEOUT: Duration = Duration::from_secs(10);

/// The documents of a YAML text, empty ones left out.
pub(crate) fn documents(yaml: &str) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for document in serde_yaml_ng::Deserializer::from_str(yaml) {
        let value = Value::deserialize(document).context("cannot read the YAML text")?;
        if !value.is_null() {
            found.push(value);
        }
    }
    Ok(found)
}

/// Which object a document is.
pub(crate) fn object_of(value: &Value) -> Result<Object> {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let wanted = |pointer: &str| text(pointer).with_context(|| format!("no {pointer} in {value}"));
    Ok(Object::new(
        wanted("/apiVersion")?,
        wanted("/kind")?,
        text("/metadata/namespace").unwrap_or_default(),
        wanted("/metadata/name")?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_separated_and_empty_ones_skipped() {
        let text = "---\nkind: A\n---\n# nothing\n---\nkind: B\n";
        let kinds: Vec<Value> = documents(text)
            .unwrap()
            .iter()
            .map(|d| d["kind"].clone())
            .collect();
        assert_eq!(kinds, ["A", "B"]);
        assert!(documents("a: b: c").is_err());
    }

    #[test]
    fn an_object_needs_a_name() {
        let value = serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}});
        let error = object_of(&value).unwrap_err().to_string();
        assert!(error.contains("/metadata/name"), "{error}");
    }
}
