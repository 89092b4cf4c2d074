//! A namespace of its own for each test, a controller on a thread, and waiting for things.

use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, NamespaceResourceScope};
use kube::{Client, Resource, ResourceExt};
use plexus_api::objects::{
    Block, BlockRequest, BlockRequestSpec, BlockSpec, Network, NetworkStatus, Phase,
    PodAttachments, crds,
};
use plexus_client::Server;
use plexus_controller::{ClusterNetwork, Error, Options, run_until};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long anything may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// One test at a time: each has a controller, and every controller acts on the whole cluster.
static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Where a test happens.
pub(crate) struct Environment {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    kubeconfig: PathBuf,
}

/// A controller that runs.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<Result<(), Error>>>,
}

impl Running {
    /// Asks it to stop; what it says of that.
    pub(crate) fn stop(mut self) -> Result<(), Error> {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Runs a test in a namespace of its own, and removes everything of it afterwards.
pub(crate) fn with_environment<F: Future<Output = ()>>(
    name: &str,
    test: impl FnOnce(Environment) -> F,
) {
    let kubeconfig = std::env::var_os("PLEXUS_TEST_KUBECONFIG")
        .map(PathBuf::from)
        .expect("PLEXUS_TEST_KUBECONFIG must name an API server; `make test-kube` does");
    let _turn = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let environment = Environment::new(name, kubeconfig).await;
        let (client, namespace) = (environment.client.clone(), environment.namespace.clone());
        let result =
            futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(test(environment))).await;
        clean(&client, &namespace).await;
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

impl Environment {
    async fn new(name: &str, kubeconfig: PathBuf) -> Self {
        let client = Client::try_from(config(&kubeconfig).await).unwrap();
        let namespace = format!("test-{name}-{:x}", std::process::id());
        let environment = Environment {
            client,
            namespace,
            kubeconfig,
        };
        let api: Api<CustomResourceDefinition> = Api::all(environment.client.clone());
        for crd in crds().iter().filter(|crd| {
            let name = crd.name_any();
            name.ends_with(".plexus.dev") || name == "hostinterfaces.net.cogadvisor.io"
        }) {
            let params = PatchParams::apply("plexus-test").force();
            api.patch(&crd.name_any(), &params, &Patch::Apply(crd))
                .await
                .unwrap();
        }
        let space: Namespace = from(json!({"metadata": {"name": environment.namespace}}));
        let api: Api<Namespace> = Api::all(environment.client.clone());
        api.create(&PostParams::default(), &space).await.unwrap();
        environment
    }

    /// How the API server is reached, with every right.
    pub(crate) async fn config(&self) -> kube::Config {
        config(&self.kubeconfig).await
    }

    /// As the controller of this namespace.
    pub(crate) fn options(&self, identity: &str) -> Options {
        Options {
            server: Server::Kubeconfig(self.kubeconfig.clone()),
            namespace: self.namespace.clone(),
            cluster_network: ClusterNetwork::Own,
            node_grace: Duration::from_secs(2),
            ..Options::new(identity)
        }
    }

    /// A kubeconfig in that place, for whoever has the token.
    pub(crate) fn kubeconfig_of(&self, token: &str, path: &Path) {
        let text = std::fs::read(&self.kubeconfig).unwrap();
        let mut config: Value = serde_yaml_ng::from_slice(&text).unwrap();
        config["users"][0]["user"] = json!({"token": token});
        std::fs::write(path, config.to_string()).unwrap();
    }

    pub(crate) fn start(&self, options: Options) -> Running {
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            run_until(options, async {
                let _ = stopped.await;
            })
        });
        Running {
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn controller(&self) -> Running {
        self.start(self.options("one"))
    }

    /// The NAD's kind is served: the controller has made it.
    pub(crate) async fn until_ready(&self) {
        until("NADs are served", async || {
            self.nads().list(&ListParams::default()).await.is_ok()
        })
        .await;
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Makes an object of the test's namespace.
    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Serialize
            + DeserializeOwned
            + Clone
            + Debug,
    {
        self.api()
            .create(&PostParams::default(), &from(object))
            .await
            .unwrap()
    }

    pub(crate) async fn network(&self, name: &str, spec: Value) -> Network {
        self.create(json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Network", "metadata": {"name": name}, "spec": spec})).await
    }

    pub(crate) async fn nad(
        &self,
        name: &str,
        annotations: Value,
        config: &str,
    ) -> kube::api::DynamicObject {
        let object = json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": name, "annotations": annotations}, "spec": {"config": config}
        });
        self.nads()
            .create(&PostParams::default(), &from(object))
            .await
            .unwrap()
    }

    pub(crate) fn nads(&self) -> Api<kube::api::DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &nad_resource())
    }

    /// A Node that is only an object; gone when the test is.
    pub(crate) async fn node(&self, name: &str, pod_cidr: Option<&str>) -> Node {
        let name = format!("{}-{name}", self.namespace);
        let cidrs: Vec<&str> = pod_cidr.into_iter().collect();
        let object = json!({
            "metadata": {"name": name, "labels": {"plexus-test": self.namespace}},
            "spec": {"podCIDR": pod_cidr, "podCIDRs": cidrs}
        });
        let api: Api<Node> = Api::all(self.client.clone());
        api.create(&PostParams::default(), &from(object))
            .await
            .unwrap()
    }

    pub(crate) async fn delete_node(&self, node: &Node) {
        let api: Api<Node> = Api::all(self.client.clone());
        api.delete(&node.name_any(), &DeleteParams::default())
            .await
            .unwrap();
    }

    /// A pod that is bound to a node.
    pub(crate) async fn pod(&self, name: &str, node: &Node) -> Pod {
        self.create(json!({
            "metadata": {"name": name},
            "spec": {"nodeName": node.name_any(), "containers": [{"name": "c", "image": "c"}]}
        }))
        .await
    }

    /// One in the host's own network, as many DaemonSets have them.
    pub(crate) async fn host_pod(&self, name: &str, node: &Node) -> Pod {
        self.create(json!({
            "metadata": {"name": name},
            "spec": {"nodeName": node.name_any(), "hostNetwork": true, "containers": [{"name": "c", "image": "c"}]}
        }))
        .await
    }

    pub(crate) async fn kill_pod(&self, pod: &Pod) {
        let now = DeleteParams::default().grace_period(0);
        self.api::<Pod>()
            .delete(&pod.name_any(), &now)
            .await
            .unwrap();
    }

    /// The record of a pod, as its agent would write it.
    pub(crate) async fn record(&self, pod: &Pod, node: &Node, network: &Network) -> PodAttachments {
        let uid = pod.uid().unwrap();
        let record: PodAttachments = self
            .create(json!({
                "apiVersion": "plexus.dev/v1alpha1", "kind": "PodAttachments",
                "metadata": {"name": uid, "finalizers": ["plexus.dev/agent"]},
                "spec": {"pod": {"name": pod.name_any(), "uid": uid}, "node": node.name_any()}
            }))
            .await;
        let network = json!({
            "namespace": self.namespace, "name": network.name_any(),
            "uuid": network.spec.uuid.clone().unwrap_or_else(|| network.uid().unwrap())
        });
        let status = json!({"status": {"sandbox": "s", "attachments": [{
            "index": 1, "total": 2, "ordinal": 0, "id": "i", "network": network, "interface": "net1", "state": "Attached"
        }]}});
        let api = self.api::<PodAttachments>();
        api.patch_status(&uid, &PatchParams::default(), &Patch::Merge(&status))
            .await
            .unwrap();
        record
    }

    /// What an agent does when its pod is gone.
    pub(crate) async fn release(&self, record: &PodAttachments) {
        let api = self.api::<PodAttachments>();
        let none = json!({"metadata": {"finalizers": null}});
        api.patch(
            &record.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&none),
        )
        .await
        .unwrap();
        let _ = api
            .delete(&record.name_any(), &DeleteParams::default())
            .await;
    }

    /// A block that a node claimed.
    pub(crate) async fn block(
        &self,
        network: &Network,
        node: &Node,
        cidr: &str,
        allocated: u64,
    ) -> Block {
        let uid = network.uid().unwrap();
        let object = json!({
            "apiVersion": "plexus.dev/v1alpha1", "kind": "Block",
            "metadata": {
                "name": BlockSpec::name(&uid, &cidr.parse().unwrap()),
                "labels": {"plexus.dev/node": node.name_any(), "plexus.dev/network": uid, "plexus-test": self.namespace}
            },
            "spec": {
                "network": {"namespace": self.namespace, "name": network.name_any(), "uid": uid},
                "cidr": cidr, "node": node.name_any(), "nodeUID": node.uid()
            }
        });
        let api: Api<Block> = Api::all(self.client.clone());
        let block = api
            .create(&PostParams::default(), &from(object))
            .await
            .unwrap();
        self.set_allocated(&block, allocated).await
    }

    /// What a block's owner says of it.
    pub(crate) async fn set_allocated(&self, block: &Block, allocated: u64) -> Block {
        self.say(block, json!({"allocated": allocated})).await
    }

    /// Its owner says that nothing more is issued from it.
    pub(crate) async fn close(&self, block: &Block) {
        self.say(block, json!({"closed": true})).await;
    }

    async fn say(&self, block: &Block, what: Value) -> Block {
        let api: Api<Block> = Api::all(self.client.clone());
        let status = json!({"status": what});
        api.patch_status(
            &block.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&status),
        )
        .await
        .unwrap()
    }

    /// What a block's owner says that it gave away.
    pub(crate) async fn set_donations(&self, block: &Block, given: &[(&str, &Node)]) {
        let api: Api<Block> = Api::all(self.client.clone());
        let donation =
            |(cidr, node): &(&str, &Node)| json!({"cidr": cidr, "node": node.name_any()});
        let given: Vec<Value> = given.iter().map(donation).collect();
        let status = json!({"status": {"given": given}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&status));
        let patched = api.patch_status(&block.name_any(), &params, &patch).await;
        patched.unwrap();
    }

    /// What an agent asks for.
    pub(crate) async fn request(&self, network: &Network, node: &Node) -> BlockRequest {
        let uid = network.uid().unwrap();
        let object = json!({
            "apiVersion": "plexus.dev/v1alpha1", "kind": "BlockRequest",
            "metadata": {
                "name": BlockRequestSpec::name(&uid, &node.name_any()),
                "labels": {"plexus-test": self.namespace}
            },
            "spec": {
                "network": {"namespace": self.namespace, "name": network.name_any(), "uid": uid},
                "node": node.name_any(), "family": "ipv4", "addresses": 8
            }
        });
        let api: Api<BlockRequest> = Api::all(self.client.clone());
        api.create(&PostParams::default(), &from(object))
            .await
            .unwrap()
    }

    pub(crate) async fn has_request(&self, request: &BlockRequest) -> bool {
        let api: Api<BlockRequest> = Api::all(self.client.clone());
        api.get_opt(&request.name_any()).await.unwrap().is_some()
    }

    /// The first subnet of a network; empty if there is none.
    pub(crate) async fn first_subnet(&self, network: &str) -> String {
        let found = self.api::<Network>().get_opt(network).await.unwrap();
        let first = found.and_then(|network| network.spec.subnets.into_values().next());
        first
            .map(|subnet| subnet.cidr.to_string())
            .unwrap_or_default()
    }

    pub(crate) async fn has_block(&self, block: &Block) -> bool {
        let api: Api<Block> = Api::all(self.client.clone());
        api.get_opt(&block.name_any()).await.unwrap().is_some()
    }

    pub(crate) async fn status(&self, network: &str) -> NetworkStatus {
        let found = self.api::<Network>().get_opt(network).await.unwrap();
        found.and_then(|network| network.status).unwrap_or_default()
    }

    /// Waits for a network's status to be as wished.
    pub(crate) async fn until_status(
        &self,
        network: &str,
        condition: impl Fn(&NetworkStatus) -> bool,
    ) -> NetworkStatus {
        let begun = Instant::now();
        loop {
            let status = self.status(network).await;
            if condition(&status) {
                return status;
            }
            assert!(begun.elapsed() < TIMEOUT, "{network} stays {status:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits for a network's phase.
    pub(crate) async fn until_phase(&self, network: &str, phase: Phase) -> NetworkStatus {
        self.until_status(network, |status| status.phase == Some(phase))
            .await
    }

    /// Sets an annotation of a NAD.
    pub(crate) async fn annotate(&self, nad: &str, key: &str, value: &str) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        self.nads().patch(nad, &params, &patch).await.unwrap();
    }

    /// Waits for an Event of this reason on an object; its message.
    pub(crate) async fn until_event(&self, object: &str, reason: &str) -> String {
        let mut message = String::new();
        until(&format!("Event {reason} on {object}"), async || {
            let events = self.events(object, reason).await;
            message = events
                .first()
                .and_then(|event| event.message.clone())
                .unwrap_or_default();
            !events.is_empty()
        })
        .await;
        message
    }

    pub(crate) async fn events(&self, object: &str, reason: &str) -> Vec<Event> {
        let fields = format!("involvedObject.name={object},reason={reason}");
        self.api::<Event>()
            .list(&ListParams::default().fields(&fields))
            .await
            .unwrap()
            .items
    }
}

async fn config(kubeconfig: &Path) -> kube::Config {
    let read = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    kube::Config::from_custom_kubeconfig(read, &Default::default())
        .await
        .unwrap()
}

/// Waits for something to be so.
pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !so().await {
        assert!(begun.elapsed() < TIMEOUT, "{what}: not within {TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Message of a condition that holds or does not.
pub(crate) fn condition<'a>(
    status: &'a NetworkStatus,
    kind: &str,
) -> Option<(&'a str, &'a str, &'a str)> {
    let found = status
        .conditions
        .iter()
        .find(|condition| condition.kind == kind)?;
    Some((&found.status, &found.reason, &found.message))
}

pub(crate) fn from<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// No controller of namespaces runs here, so what is in it is removed one by one.
async fn clean(client: &Client, namespace: &str) {
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let (delete, list, patch) = (
        DeleteParams::default(),
        ListParams::default(),
        PatchParams::default(),
    );
    let networks: Api<Network> = Api::namespaced(client.clone(), namespace);
    for network in networks
        .list(&list)
        .await
        .map(|list| list.items)
        .unwrap_or_default()
    {
        let _ = networks.patch(&network.name_any(), &patch, &none).await;
        let _ = networks.delete(&network.name_any(), &delete).await;
    }
    let records: Api<PodAttachments> = Api::namespaced(client.clone(), namespace);
    for record in records
        .list(&list)
        .await
        .map(|list| list.items)
        .unwrap_or_default()
    {
        let _ = records.patch(&record.name_any(), &patch, &none).await;
        let _ = records.delete(&record.name_any(), &delete).await;
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    for pod in pods
        .list(&list)
        .await
        .map(|list| list.items)
        .unwrap_or_default()
    {
        let _ = pods
            .delete(&pod.name_any(), &delete.clone().grace_period(0))
            .await;
    }
    let nads: Api<kube::api::DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &nad_resource());
    let _ = nads.delete_collection(&delete, &list).await;
    let policies: Api<k8s_openapi::api::networking::v1::NetworkPolicy> =
        Api::namespaced(client.clone(), namespace);
    let _ = policies.delete_collection(&delete, &list).await;
    let ours = ListParams::default().labels(&format!("plexus-test={namespace}"));
    let _ = Api::<Block>::all(client.clone())
        .delete_collection(&delete, &ours)
        .await;
    let _ = Api::<BlockRequest>::all(client.clone())
        .delete_collection(&delete, &ours)
        .await;
    let _ = Api::<Node>::all(client.clone())
        .delete_collection(&delete, &ours)
        .await;
    let _ = Api::<Namespace>::all(client.clone())
        .delete(namespace, &delete)
        .await;
}

fn nad_resource() -> kube::api::ApiResource {
    let kind = GroupVersionKind::gvk("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition");
    kube::api::ApiResource::from_gvk_with_plural(&kind, "network-attachment-definitions")
}
