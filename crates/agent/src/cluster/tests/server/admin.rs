//! The hand of the test: makes, looks at, edits and removes objects by their paths.

use super::PodName;
use kube::Client;
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Request;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tokio::runtime::Runtime;

pub(super) const NETWORKS: &str = "networks";
pub(super) const BLOCKS: &str = "/apis/plexus.dev/v1alpha1/blocks";

pub(super) struct Admin {
    pub(super) kubeconfig: PathBuf,
    runtime: Runtime,
    client: Client,
    made: Mutex<Vec<(String, String)>>,
    tag: String,
}

impl Admin {
    pub(super) fn connect(path: &Path) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let read = Kubeconfig::read_from(path).unwrap();
            let options = KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(read, &options).await;
            Client::try_from(config.unwrap()).unwrap()
        });
        let number = NUMBER.fetch_add(1, SeqCst);
        Self {
            kubeconfig: path.to_owned(),
            runtime,
            client,
            made: Mutex::default(),
            tag: format!("t{}-{number}", std::process::id()),
        }
    }

    /// A name that no other test has.
    pub(super) fn name(&self, start: &str) -> String {
        format!("{start}-{}", self.tag)
    }

    pub(super) fn try_create(&self, path: &str, body: &Value) -> kube::Result<Value> {
        let bytes = serde_json::to_vec(body).unwrap();
        let request = Request::new(path).create(&PostParams::default(), bytes);
        let made = self
            .runtime
            .block_on(self.client.request::<Value>(request.unwrap()));
        if let Ok(made) = &made {
            let name = made["metadata"]["name"].as_str().unwrap().to_owned();
            self.made.lock().unwrap().push((path.to_owned(), name));
        }
        made
    }

    pub(super) fn create(&self, path: &str, body: &Value) -> Value {
        self.try_create(path, body).unwrap()
    }

    pub(super) fn get(&self, path: &str, name: &str) -> Option<Value> {
        let request = Request::new(path).get(name, &GetParams::default()).unwrap();
        self.runtime
            .block_on(self.client.request::<Value>(request))
            .ok()
    }

    pub(super) fn list(&self, path: &str) -> Vec<Value> {
        self.try_list(path).unwrap()
    }

    fn try_list(&self, path: &str) -> kube::Result<Vec<Value>> {
        let request = Request::new(path).list(&Default::default()).unwrap();
        let list = self.runtime.block_on(self.client.request::<Value>(request));
        list.map(|list| list["items"].as_array().cloned().unwrap_or_default())
    }

    pub(super) fn edit(&self, path: &str, name: &str, patch: &Value) -> Value {
        let patch = Patch::Merge(patch);
        let request = Request::new(path).patch(name, &PatchParams::default(), &patch);
        self.runtime
            .block_on(self.client.request::<Value>(request.unwrap()))
            .unwrap()
    }

    pub(super) fn edit_status(&self, path: &str, name: &str, patch: &Value) {
        let patch = Patch::Merge(patch);
        let how = PatchParams::default();
        let request = Request::new(path).patch_subresource("status", name, &how, &patch);
        self.runtime
            .block_on(self.client.request::<Value>(request.unwrap()))
            .unwrap();
    }

    pub(super) fn delete(&self, path: &str, name: &str) {
        let now = DeleteParams::default().grace_period(0);
        let request = Request::new(path).delete(name, &now).unwrap();
        let _ = self.runtime.block_on(self.client.request::<Value>(request));
    }

    pub(super) fn namespace(&self, name: &str) {
        let body = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"team": "blue"}}});
        self.create("/api/v1/namespaces", &body);
    }

    pub(super) fn node(&self, name: &str, cidr: &str, address: &str) {
        let body = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "spec": {"podCIDR": cidr, "podCIDRs": [cidr]}});
        self.create("/api/v1/nodes", &body);
        let status = json!({"status": {"addresses": [
            {"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}]}});
        self.edit_status("/api/v1/nodes", name, &status);
    }

    /// An active network; gives its UID.
    pub(super) fn network(&self, namespace: &str, name: &str, spec: &Value) -> String {
        let path = in_namespace(namespace, NETWORKS);
        let body = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Network",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec});
        let made = self.create(&path, &body);
        self.edit_status(
            &path,
            name,
            &json!({"status": {"phase": "Active", "vni": 4097}}),
        );
        made["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    pub(super) fn nad(&self, namespace: &str, name: &str, config: &str) {
        let body = json!({"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": name, "namespace": namespace,
                "annotations": {"opencontrail.org/cidr": "10.5.0.0/24", "other": "x"}},
            "spec": {"config": config}});
        self.create(&nads(namespace), &body);
    }

    /// A pod on a node; gives its name as CNI would.
    pub(super) fn pod(
        &self,
        namespace: &str,
        name: &str,
        node: &str,
        annotations: Value,
    ) -> PodName {
        let body = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}});
        let made = self.create(&pods(namespace), &body);
        PodName {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: made["metadata"]["uid"].as_str().unwrap().to_owned(),
            container: false,
        }
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap());
        for (path, name) in made.into_iter().rev() {
            self.delete(&path, &name);
        }
        for block in self.try_list(BLOCKS).unwrap_or_default() {
            let node = block["spec"]["node"].as_str().unwrap_or_default();
            if node.ends_with(&self.tag) {
                self.delete(BLOCKS, block["metadata"]["name"].as_str().unwrap());
            }
        }
        let tag = &self.tag;
        for entry in std::fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("plexus-cluster-") && name.ends_with(tag) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

pub(super) fn in_namespace(namespace: &str, plural: &str) -> String {
    format!("/apis/plexus.dev/v1alpha1/namespaces/{namespace}/{plural}")
}

pub(super) fn nads(namespace: &str) -> String {
    format!("/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/network-attachment-definitions")
}

pub(super) fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}
