//! Definitions, roles and policies of the manifest on an API server, in a namespace of another name; tenants of it, each
//! with a namespace and a role.

use crate::tokens::{config, kind, token, with_token};
use k8s_openapi::api::core::v1::{Node, Pod, ResourceQuota};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams,
    PostParams, TypeMeta,
};
use kube::{Client, Error};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The namespace that the manifest names.
const NAMED: &str = "plexus-system";
/// How long the API server may take to heed a policy, and the controller-manager to count.
const HEEDED: Duration = Duration::from_secs(120);

/// Runs a test.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test);
}

/// Installs Plexus without its pods, once, and says in which namespace.
pub(crate) fn installed() -> &'static str {
    static HOME: OnceLock<String> = OnceLock::new();
    HOME.get_or_init(|| {
        let home = format!("elsewhere-{}", std::process::id());
        run(install(&home));
        home
    })
}

async fn install(home: &str) {
    let client = Client::try_from(config().await).unwrap();
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs this");
    let deploy = Path::new(&here).join("../../deploy");
    let nads = deploy.join("crds/network-attachment-definitions.k8s.cni.cncf.io.yaml");
    let mut text = std::fs::read_to_string(deploy.join("install.yaml")).unwrap();
    text.push_str("---\n");
    text.push_str(&std::fs::read_to_string(nads).unwrap());
    let mut bounds = Vec::new();
    for document in serde_yaml_ng::Deserializer::from_str(&text) {
        let mut object = Value::deserialize(document).unwrap();
        let pods = ["DaemonSet", "Deployment"];
        if object.is_null() || pods.iter().any(|kind| object["kind"] == *kind) {
            continue;
        }
        move_to(home, &mut object);
        match object["kind"] == "ConfigMap" {
            true => bounds.push(object),
            false => apply(&client, object).await,
        }
    }
    let tenant = Tenant::new("first", "plexus-tenant").await;
    // Without the bounds tenants write nothing.
    until_refused(&tenant, json!({}), "no params found").await;
    for object in bounds {
        apply(&client, object).await;
    }
    until_refused(
        &tenant,
        json!({"provider": "macvlan"}),
        "spec.provider: macvlan",
    )
    .await;
    heeded(&tenant).await;
}

/// As tools do that install a manifest elsewhere: fields that are namespaces change, and no text that has one in it.
fn move_to(home: &str, object: &mut Value) {
    if object["kind"] == "Namespace" {
        object["metadata"]["name"] = json!(home);
    }
    let subjects = object.get("subjects").and_then(Value::as_array);
    let subjects = (0..subjects.map_or(0, Vec::len)).map(|at| format!("/subjects/{at}/namespace"));
    let places = ["/metadata/namespace", "/spec/paramRef/namespace"];
    for place in places.map(str::to_owned).into_iter().chain(subjects) {
        match object.pointer_mut(&place) {
            Some(namespace) if *namespace == NAMED => *namespace = json!(home),
            _ => {}
        }
    }
}

async fn apply(client: &Client, object: Value) {
    let mut object: DynamicObject = serde_json::from_value(object).unwrap();
    let TypeMeta { api_version, kind } = object.types.clone().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let namespace = object.metadata.namespace.clone();
    let api: Api<DynamicObject> = match &namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    object.metadata.managed_fields = None;
    let name = object.metadata.name.clone().unwrap();
    let params = PatchParams::apply("test").force();
    let applied = api.patch(&name, &params, &Patch::Apply(&object)).await;
    applied.unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
}

/// Waits until a tenant's Network is refused for this reason.
async fn until_refused(tenant: &Tenant, spec: Value, reason: &str) {
    let start = Instant::now();
    loop {
        let answer = tenant.dry_network(spec.clone()).await;
        match &answer {
            Err(error) if error.to_string().contains(reason) => return,
            _ => assert!(start.elapsed() < HEEDED, "{reason}: {answer:?}"),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Waits until the other policies are in force.
async fn heeded(tenant: &Tenant) {
    let start = Instant::now();
    loop {
        let good = tenant.dry_network(json!({})).await;
        let nad = tenant.nad("{}", json!({})).await;
        let reason = "spec.config must be";
        if good.is_ok() && nad.is_err_and(|error| error.to_string().contains(reason)) {
            break;
        }
        assert!(start.elapsed() < HEEDED, "{good:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // Those of agents, which the same server reads at the same time.
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// Pods as those of agents, on two nodes that are there in name only.
pub(crate) async fn agents(admin: &Client, home: &str) -> [Pod; 2] {
    let mut made = Vec::new();
    for number in 1..=2 {
        let node = format!("{home}-n{number}");
        let nodes: Api<Node> = Api::all(admin.clone());
        let object = serde_json::from_value(json!({"metadata": {"name": node}})).unwrap();
        nodes.create(&PostParams::default(), &object).await.unwrap();
        let pod = json!({
            "metadata": {"name": format!("agent-{number}")},
            "spec": {"nodeName": node, "serviceAccountName": "plexus-agent",
                "containers": [{"name": "agent", "image": "localhost/none:1"}]},
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let pods: Api<Pod> = Api::namespaced(admin.clone(), home);
        made.push(pods.create(&PostParams::default(), &pod).await.unwrap());
    }
    made.try_into().expect("two")
}

/// Somebody with a role in one namespace and no right besides.
pub(crate) struct Tenant {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    admin: Client,
}

impl Tenant {
    /// In a namespace of its own.
    pub(crate) async fn new(name: &str, role: &str) -> Self {
        let config = config().await;
        let admin = Client::try_from(config.clone()).unwrap();
        let namespace = format!("{name}-{}", std::process::id());
        let group = "rbac.authorization.k8s.io";
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": "tenant", "namespace": namespace}}),
            json!({
                "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
                "metadata": {"name": "tenant", "namespace": namespace},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}],
            }),
        ] {
            apply(&admin, object).await;
        }
        let token = token(&admin, &namespace, "tenant", None).await;
        let tenant = Self {
            client: with_token(&config, token),
            namespace,
            admin,
        };
        tenant.bound().await;
        tenant
    }

    /// Waits until the role counts.
    async fn bound(&self) {
        let start = Instant::now();
        while let Err(error) = self.networks().list(&Default::default()).await {
            assert!(start.elapsed() < HEEDED, "{error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Objects of a kind of ours.
    pub(crate) fn api(&self, of: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let client = self.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &kind(of)),
            None => Api::all_with(client, &kind(of)),
        }
    }

    pub(crate) fn networks(&self) -> Api<DynamicObject> {
        self.networks_in(&self.namespace)
    }

    pub(crate) fn networks_in(&self, namespace: &str) -> Api<DynamicObject> {
        self.api("Network", Some(namespace))
    }

    /// Those of the namespace, for the administrator of the cluster.
    pub(crate) fn networks_of_admin(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.admin.clone(), &self.namespace, &kind("Network"))
    }

    pub(crate) fn nads(&self) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition");
        let plural = "network-attachment-definitions";
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    pub(crate) fn network_object(&self, name: &str, spec: Value) -> DynamicObject {
        let network = json!({
            "apiVersion": "plexus.dev/v1alpha1", "kind": "Network",
            "metadata": {"name": name}, "spec": spec,
        });
        serde_json::from_value(network).unwrap()
    }

    pub(crate) async fn network(&self, name: &str, spec: Value) -> Result<DynamicObject, Error> {
        let network = self.network_object(name, spec);
        self.networks()
            .create(&PostParams::default(), &network)
            .await
    }

    async fn dry_network(&self, spec: Value) -> Result<DynamicObject, Error> {
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let network = self.network_object("dry", spec);
        self.networks().create(&dry, &network).await
    }

    /// One of a new name; without a configuration if it is empty.
    pub(crate) async fn nad(
        &self,
        config: &str,
        annotations: Value,
    ) -> Result<DynamicObject, Error> {
        let mut nad = json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": {"generateName": "nad-", "annotations": annotations}, "spec": {},
        });
        if !config.is_empty() {
            nad["spec"]["config"] = json!(config);
        }
        let nad = serde_json::from_value(nad).unwrap();
        self.nads().create(&PostParams::default(), &nad).await
    }

    /// A ResourceQuota, in force. The controller-manager learns of kinds within half a minute, and counts those that it
    /// knows when a quota is made.
    pub(crate) async fn limit_networks(&self, most: u32) {
        let hard = json!({"count/networks.plexus.dev": most.to_string()});
        let quotas: Api<ResourceQuota> = Api::namespaced(self.admin.clone(), &self.namespace);
        let (post, delete) = (PostParams::default(), DeleteParams::default());
        let counted = |quota: ResourceQuota| {
            let used = quota.status.and_then(|status| status.used);
            used.is_some_and(|used| used.contains_key("count/networks.plexus.dev"))
        };
        let start = Instant::now();
        for number in 0.. {
            let name = format!("networks-{number}");
            let quota = json!({"metadata": {"name": name}, "spec": {"hard": hard}});
            let quota = serde_json::from_value(quota).unwrap();
            quotas.create(&post, &quota).await.unwrap();
            tokio::time::sleep(Duration::from_secs(2)).await;
            if counted(quotas.get(&name).await.unwrap()) {
                return;
            }
            assert!(start.elapsed() < HEEDED, "nobody counts networks");
            quotas.delete(&name, &delete).await.unwrap();
        }
    }
}

/// Refused by the API server, with these words.
#[track_caller]
pub(crate) fn refused<T>(answer: Result<T, Error>, words: &[&str]) {
    match answer {
        Err(Error::Api(status)) => {
            assert!([403, 422].contains(&status.code), "{}", status.message);
            for word in words {
                assert!(status.message.contains(word), "{word}: {}", status.message);
            }
        }
        Err(other) => panic!("not refused but failed: {other}"),
        Ok(_) => panic!("not refused: {words:?}"),
    }
}
