//! Where a test happens: a client, a namespace of its own, and short words for what tests do often.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams, Request,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Status;
use kube::{Client, Config, Error, ResourceExt};
use serde_json::{Value, json};
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longer than anything healthy takes on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A test's own corner of the server.
#[derive(Clone)]
pub(crate) struct TestNamespace {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

/// Runs a test in a new namespace, which is deleted whatever happens.
pub(crate) fn test<F, T>(name: &str, body: F)
where
    F: FnOnce(TestNamespace) -> T,
    T: Future<Output = ()> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let ns = TestNamespace::new(name).await;
        let done = tokio::spawn(body(ns.clone())).await;
        ns.remove().await;
        if let Err(failed) = done {
            std::panic::resume_unwind(failed.into_panic());
        }
    });
}

impl TestNamespace {
    async fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let ns = Self {
            client: client().await,
            namespace: format!("conf-{name}-{}-{count}", std::process::id()),
        };
        let namespace = json!({"metadata": {"name": ns.namespace}});
        let namespace: Namespace = serde_json::from_value(namespace).unwrap();
        let namespaces: Api<Namespace> = Api::all(ns.client.clone());
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .unwrap();
        ns
    }

    async fn remove(&self) {
        let all = ListParams::default().labels(&format!("conformance={}", self.namespace));
        let _ = self
            .blocks()
            .delete_collection(&DeleteParams::default(), &all)
            .await;
        // A test that failed may have left what keeps the namespace.
        let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let maps = self.maps().list(&ListParams::default()).await;
        for map in maps.into_iter().flat_map(|list| list.items) {
            if !map.finalizers().is_empty() {
                let _ = self
                    .maps()
                    .patch(&map.name_any(), &PatchParams::default(), &none)
                    .await;
            }
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let _ = namespaces
            .delete(&self.namespace, &DeleteParams::background())
            .await;
    }

    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Our namespaced kind with a schema.
    pub(crate) fn networks(&self) -> Api<DynamicObject> {
        Api::namespaced_with(
            self.client.clone(),
            &self.namespace,
            &ours("Network", "networks"),
        )
    }

    /// Our kind of the whole cluster with a status.
    pub(crate) fn blocks(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &ours("Block", "blocks"))
    }

    /// The path of a namespaced kind of the core.
    pub(crate) fn core(&self, plural: &str) -> String {
        format!("/api/v1/namespaces/{}/{plural}", self.namespace)
    }

    /// The path of our networks.
    pub(crate) fn networks_path(&self) -> String {
        format!(
            "/apis/plexus.dev/v1alpha1/namespaces/{}/networks",
            self.namespace
        )
    }

    /// A ConfigMap, made.
    pub(crate) async fn map(&self, name: &str) -> ConfigMap {
        self.map_with(name, json!({})).await
    }

    /// A ConfigMap with further metadata, made.
    pub(crate) async fn map_with(&self, name: &str, metadata: Value) -> ConfigMap {
        let map = a_map(name, metadata);
        self.maps()
            .create(&PostParams::default(), &map)
            .await
            .unwrap()
    }

    /// GET with an `Accept` of our choice.
    pub(crate) async fn get_as(
        &self,
        path: &str,
        query: &str,
        accept: &str,
    ) -> Result<Value, Error> {
        let mut request = Request::new(path).list(&ListParams::default()).unwrap();
        *request.uri_mut() = format!("{path}?{query}").parse().unwrap();
        request
            .headers_mut()
            .insert("accept", accept.parse().unwrap());
        self.client.request(request).await
    }

    /// POST with a query of our choice.
    pub(crate) async fn post(&self, path: &str, query: &str, body: &Value) -> Result<Value, Error> {
        let data = serde_json::to_vec(body).unwrap();
        let mut request = Request::new(path)
            .create(&PostParams::default(), data)
            .unwrap();
        *request.uri_mut() = format!("{path}?{query}").parse().unwrap();
        self.client.request(request).await
    }

    /// A network that nobody makes real: its provider is external and not there.
    pub(crate) fn network(&self, name: &str) -> Value {
        json!({
            "apiVersion": "plexus.dev/v1alpha1", "kind": "Network",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"provider": "conformance.example/none"},
        })
    }

    /// A block of this test's, of a network that is there (else the controller would remove it at
    /// once) and a node that is not.
    pub(crate) async fn block(&self, name: &str) -> DynamicObject {
        let network = serde_json::from_value(self.network("owner")).unwrap();
        let network = self
            .networks()
            .create(&PostParams::default(), &network)
            .await
            .unwrap();
        let block = json!({
            "apiVersion": "plexus.dev/v1alpha1", "kind": "Block",
            "metadata": {
                "name": format!("{}-{name}", self.namespace),
                "labels": {"conformance": self.namespace},
            },
            "spec": {
                "network": {"namespace": self.namespace, "name": "owner", "uid": network.uid()},
                "cidr": "192.0.2.0/28",
                "node": "conformance",
                "nodeUID": "5b0c2b54-0000-4000-8000-000000000001",
            },
        });
        serde_json::from_value(block).unwrap()
    }
}

/// A ConfigMap to be made.
pub(crate) fn a_map(name: &str, metadata: Value) -> ConfigMap {
    let mut map = json!({"metadata": metadata, "data": {"a": "1"}});
    map["metadata"]["name"] = name.into();
    serde_json::from_value(map).unwrap()
}

/// The server's refusal.
#[track_caller]
pub(crate) fn refusal<T>(answer: Result<T, Error>) -> Status {
    match answer {
        Err(Error::Api(status)) => *status,
        Err(other) => panic!("not a refusal: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

/// Refused with this code and reason; gives the message.
#[track_caller]
pub(crate) fn refused<T>(answer: Result<T, Error>, code: u16, reason: &str) -> String {
    let status = refusal(answer);
    assert_eq!(
        (status.code, status.reason.as_str()),
        (code, reason),
        "{}",
        status.message
    );
    status.message
}

/// Asks until it holds.
pub(crate) async fn until<T, F>(what: &str, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(value) = ask().await {
            return value;
        }
        assert!(Instant::now() < end, "{what}: not within {TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Version numbers grow.
pub(crate) fn version(object: &impl kube::ResourceExt) -> u64 {
    object.resource_version().unwrap().parse().unwrap()
}

fn ours(kind: &str, plural: &str) -> ApiResource {
    let gvk = GroupVersionKind::gvk("plexus.dev", "v1alpha1", kind);
    ApiResource::from_gvk_with_plural(&gvk, plural)
}

async fn client() -> Client {
    let named = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let file = named("PLEXUS_CONFORMANCE_KUBECONFIG")
        .or_else(|| named("PLEXUS_KUBE_STATE").map(|state| state.join("kubeconfig")))
        .or_else(|| named("KUBECONFIG"))
        .expect("name a kubeconfig in PLEXUS_CONFORMANCE_KUBECONFIG");
    let kubeconfig = Kubeconfig::read_from(file).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    Client::try_from(config.unwrap()).unwrap()
}
