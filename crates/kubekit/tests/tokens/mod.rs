//! What tokens of Plexus may do, tried one request after another on a real API server: whoever has a client for each
//! token calls [`TestClients::check`].

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret, ServiceAccount};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error, ResourceExt};
use serde_json::{Value, json};
use std::path::PathBuf;

const STATUS: &str = "k8s.v1.cni.cncf.io/network-status";

/// Two nodes with their agents' clients, one whose token belongs to no node, and the administrator.
pub(crate) struct TestClients {
    nodes: [String; 2],
    agents: [Client; 2],
    nobody: Client,
    controller: Client,
    admin: Client,
    namespace: String,
}

impl TestClients {
    /// The tokens of accounts in the namespace `home`, the agents' for these pods of theirs.
    pub(crate) async fn new(config: &Config, home: &str, agents: [Pod; 2]) -> Self {
        let admin = Client::try_from(config.clone()).unwrap();
        let nodes = [&agents[0], &agents[1]]
            .map(|pod| pod.spec.as_ref().unwrap().node_name.clone().unwrap());
        let namespace = format!("privilege-{}", std::process::id());
        let object: Namespace =
            serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        let namespaces: Api<Namespace> = Api::all(admin.clone());
        namespaces
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        let token = |account, pod| token(&admin, home, account, pod);
        Self {
            agents: [
                with_token(config, token("plexus-agent", Some(&agents[0])).await),
                with_token(config, token("plexus-agent", Some(&agents[1])).await),
            ],
            nobody: with_token(config, token("plexus-agent", None).await),
            controller: with_token(config, token("plexus-controller", None).await),
            nodes,
            admin: admin.clone(),
            namespace,
        }
    }

    /// Everything; what was made is gone afterwards.
    pub(crate) async fn check(self) {
        let (namespace, admin) = (self.namespace.clone(), self.admin.clone());
        let done = tokio::spawn(async move {
            records(&self).await;
            names_of_others(&self).await;
            blocks(&self).await;
            pods(&self).await;
            events(&self).await;
            roles(&self).await;
        });
        let done = done.await;
        // Who made it no longer cares for it.
        let records = Api::<DynamicObject>::namespaced_with(
            admin.clone(),
            &namespace,
            &kind("PodAttachments"),
        );
        let _ = records
            .delete_collection(&DeleteParams::default(), &ListParams::default())
            .await;
        let namespaces: Api<Namespace> = Api::all(admin);
        let _ = namespaces
            .delete(&namespace, &DeleteParams::background())
            .await;
        if let Err(failed) = done {
            std::panic::resume_unwind(failed.into_panic());
        }
    }
}

/// PodAttachments: only whose node is one's own, before and after.
async fn records(stage: &TestClients) {
    let api = |client: &Client| -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), &stage.namespace, &kind("PodAttachments"))
    };
    let [mine, theirs] = &stage.nodes;
    let record = |node: &str| -> DynamicObject {
        let record = json!({
            "apiVersion": "plexus.dev/v1alpha1", "kind": "PodAttachments",
            "metadata": {"name": "5b0c2b54-0000-4000-8000-00000000000a", "labels": {"plexus.dev/node": node}},
            "spec": {"pod": {"name": "p", "uid": "5b0c2b54-0000-4000-8000-00000000000a"}, "node": node},
        });
        serde_json::from_value(record).unwrap()
    };
    let post = PostParams::default();
    forbidden(
        api(&stage.nobody).create(&post, &record(mine)).await,
        "belongs to no node",
    );
    forbidden(
        api(&stage.agents[0]).create(&post, &record(theirs)).await,
        "only the records of that node",
    );
    let made = api(&stage.agents[0])
        .create(&post, &record(mine))
        .await
        .unwrap();
    let (name, none) = (made.name_any(), PatchParams::default());
    let label = Patch::Merge(json!({"metadata": {"labels": {"x": "1"}}}));
    forbidden(
        api(&stage.agents[1]).patch(&name, &none, &label).await,
        "of that node",
    );
    let status = Patch::Merge(json!({"status": {"sandbox": "x"}}));
    forbidden(
        api(&stage.agents[1])
            .patch_status(&name, &none, &status)
            .await,
        "of that node",
    );
    api(&stage.agents[0])
        .patch_status(&name, &none, &status)
        .await
        .unwrap();
    forbidden(
        api(&stage.agents[1])
            .delete(&name, &DeleteParams::default())
            .await,
        "of that node",
    );
    let away = Patch::Merge(json!({"spec": {"node": theirs}}));
    for agent in &stage.agents {
        forbidden_or_invalid(api(agent).patch(&name, &none, &away).await);
    }
    api(&stage.agents[0])
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
}

/// A node's record can be held up by no other's: not under the name that has its node in it, by no trick.
async fn names_of_others(stage: &TestClients) {
    const POD: &str = "5b0c2b54-0000-4000-8000-00000000000d";
    let [mine, theirs] = &stage.nodes;
    let api = |client: &Client, of: &str| -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), &stage.namespace, &kind(of))
    };
    let record = |name: &str, uid: &str, node: &str| -> DynamicObject {
        let record = json!({
            "apiVersion": "plexus.dev/v1alpha1", "kind": "PodAttachments",
            "metadata": {"name": name, "labels": {"plexus.dev/node": node}},
            "spec": {"pod": {"name": "p", "uid": uid}, "node": node},
        });
        serde_json::from_value(record).unwrap()
    };
    let post = PostParams::default();
    let own = format!("{POD}-{mine}");
    let create = |by: usize, record: DynamicObject| {
        let api = api(&stage.agents[by], "PodAttachments");
        let post = &post;
        async move { api.create(post, &record).await }
    };
    // The other node was first with the plain name …
    create(1, record(POD, POD, theirs)).await.unwrap();
    // … and cannot have the one with the node, whatever it says it is.
    forbidden(
        create(1, record(&own, POD, mine)).await,
        "only the records of that node",
    );
    forbidden(
        create(1, record(&own, POD, theirs)).await,
        "its name must be",
    );
    forbidden(create(1, record(&own, &own, theirs)).await, "must be a UID");
    create(0, record(&own, POD, mine)).await.unwrap();
    // Of requests it is the same: a network that is none, and the name of a node that ends like another's.
    let request = json!({
        "apiVersion": "plexus.dev/v1alpha1", "kind": "BlockRequest",
        "metadata": {"name": format!("{NETWORK}-x-{theirs}"),
            "labels": {"plexus.dev/node": theirs, "plexus.dev/network": format!("{NETWORK}-x")}},
        "spec": {"network": {"namespace": "a", "name": "x", "uid": format!("{NETWORK}-x")},
            "node": theirs, "family": "ipv4", "addresses": 1},
    });
    let requests: Api<DynamicObject> =
        Api::all_with(stage.agents[1].clone(), &kind("BlockRequest"));
    let request = serde_json::from_value(request).unwrap();
    forbidden(requests.create(&post, &request).await, "must be a UID");
}

/// Events: one's own, as who one is.
async fn events(stage: &TestClients) {
    let event = |component: &str, node: &str| -> k8s_openapi::api::core::v1::Event {
        let event = json!({
            "metadata": {"generateName": "e-"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": stage.namespace},
            "reason": "Test", "message": "x", "type": "Normal",
            "source": {"component": component, "host": node},
            "reportingComponent": component, "reportingInstance": node,
        });
        serde_json::from_value(event).unwrap()
    };
    let [mine, theirs] = &stage.nodes;
    let api = Api::namespaced(stage.agents[0].clone(), &stage.namespace);
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    api.create(&dry, &event("plexus-agent", mine))
        .await
        .unwrap();
    for wrong in [event("plexus-agent", theirs), event("kubelet", mine)] {
        forbidden(api.create(&dry, &wrong).await, "may write only Events");
    }
}

const NETWORK: &str = "5b0c2b54-0000-4000-8000-00000000000b";

/// Blocks: claimed for oneself only. Nothing is stored.
async fn blocks(stage: &TestClients) {
    let block = |node: &str| -> DynamicObject {
        let block = json!({
            "apiVersion": "plexus.dev/v1alpha1", "kind": "Block",
            "metadata": {
                "name": format!("{NETWORK}-c0000200-28"),
                "labels": {"plexus.dev/node": node, "plexus.dev/network": NETWORK},
            },
            "spec": {
                "network": {"namespace": stage.namespace, "name": "x", "uid": NETWORK},
                "cidr": "192.0.2.0/28", "node": node, "nodeUID": "5b0c2b54-0000-4000-8000-00000000000c",
            },
        });
        serde_json::from_value(block).unwrap()
    };
    let api =
        |client: &Client| -> Api<DynamicObject> { Api::all_with(client.clone(), &kind("Block")) };
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let [mine, theirs] = &stage.nodes;
    api(&stage.agents[0])
        .create(&dry, &block(mine))
        .await
        .unwrap();
    forbidden(
        api(&stage.agents[0]).create(&dry, &block(theirs)).await,
        "only the records of that node",
    );
    forbidden(
        api(&stage.nobody).create(&dry, &block(mine)).await,
        "belongs to no node",
    );
    forbidden(
        api(&stage.agents[0])
            .delete("none", &DeleteParams::default())
            .await,
        "cannot delete",
    );
}

/// Pods: one annotation, on one's own node.
async fn pods(stage: &TestClients) {
    let pod = json!({
        "metadata": {"name": "p", "annotations": {"x": "1"}, "labels": {"l": "1"}},
        "spec": {
            "nodeName": stage.nodes[0], "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "localhost/busybox:1", "command": ["sleep", "3600"]}],
        },
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let api = |client: &Client| -> Api<Pod> { Api::namespaced(client.clone(), &stage.namespace) };
    let admin = api(&stage.admin);
    // Refused until the namespace has its service account.
    for attempt in 0.. {
        match admin.create(&PostParams::default(), &pod).await {
            Ok(_) => break,
            Err(error) => assert!(attempt < 100, "{error}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let dry = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let patch = |client: &Client, patch: Value| {
        let (api, dry) = (api(client), dry.clone());
        async move { api.patch("p", &dry, &Patch::Merge(patch)).await }
    };
    let annotate = |key: &str, value: Value| json!({"metadata": {"annotations": {key: value}}});
    patch(&stage.agents[0], annotate(STATUS, json!("[]")))
        .await
        .unwrap();
    patch(&stage.agents[0], annotate(STATUS, Value::Null))
        .await
        .unwrap();
    for client in [&stage.agents[1], &stage.nobody] {
        forbidden(
            patch(client, annotate(STATUS, json!("[]"))).await,
            "only the pods of that node",
        );
    }
    for wrong in [
        annotate("x", json!("2")),
        annotate("x", Value::Null),
        annotate("y", json!("1")),
        json!({"metadata": {"annotations": null}}),
        json!({"metadata": {"labels": {"l": "2"}}}),
        json!({"metadata": {"labels": null}}),
        json!({"metadata": {"finalizers": ["a.b/c"]}}),
        json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "1"}]}}),
        json!({"spec": {"activeDeadlineSeconds": 1}}),
    ] {
        forbidden(patch(&stage.agents[0], wrong).await, "network-status");
    }
    forbidden(
        api(&stage.agents[0])
            .delete("p", &DeleteParams::default())
            .await,
        "cannot delete",
    );
    admin.delete("p", &DeleteParams::default()).await.unwrap();
}

/// What nobody has a use for.
async fn roles(stage: &TestClients) {
    for client in [&stage.agents[0], &stage.controller] {
        let secrets: Api<Secret> = Api::all(client.clone());
        forbidden(secrets.list(&ListParams::default()).await, "cannot list");
        let namespaces: Api<Namespace> = Api::all(client.clone());
        forbidden(
            namespaces
                .delete(
                    "default",
                    &DeleteParams {
                        dry_run: true,
                        ..DeleteParams::default()
                    },
                )
                .await,
            "cannot delete",
        );
    }
    let networks: Api<DynamicObject> =
        Api::namespaced_with(stage.agents[0].clone(), &stage.namespace, &kind("Network"));
    forbidden(
        networks.delete("x", &DeleteParams::default()).await,
        "cannot delete",
    );
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> =
        Api::all_with(stage.controller.clone(), &ApiResource::from_gvk(&gvk));
    let foreign = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let foreign = serde_json::from_value(foreign).unwrap();
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    forbidden(
        definitions.create(&dry, &foreign).await,
        "may only create network-attachment-definitions",
    );
}

/// As kubelet asks for one: bound to a pod, and with it to the pod's node; or to nothing.
pub(crate) async fn token(admin: &Client, home: &str, account: &str, pod: Option<&Pod>) -> String {
    let bound = pod.map(
        |pod| json!({"apiVersion": "v1", "kind": "Pod", "name": pod.name_any(), "uid": pod.uid()}),
    );
    let request = json!({"metadata": {}, "spec": {"audiences": [], "boundObjectRef": bound}});
    let request: TokenRequest = serde_json::from_value(request).unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), home);
    let made = accounts
        .create_token_request(account, &PostParams::default(), &request)
        .await
        .unwrap();
    made.status.unwrap().token
}

/// The same server for whoever has the token.
pub(crate) fn with_token(config: &Config, token: String) -> Client {
    let mut config = config.clone();
    config.auth_info = serde_json::from_value(json!({"token": token})).unwrap();
    Client::try_from(config).unwrap()
}

/// How to reach the server as its administrator.
pub(crate) async fn config() -> Config {
    let named = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let file = named("PLEXUS_TEST_KUBECONFIG")
        .or_else(|| named("PLEXUS_CONFORMANCE_KUBECONFIG"))
        .or_else(|| named("PLEXUS_KUBE_STATE").map(|state| state.join("kubeconfig")))
        .or_else(|| named("KUBECONFIG"))
        .expect("name a kubeconfig in KUBECONFIG");
    let options = KubeConfigOptions::default();
    let kubeconfig = Kubeconfig::read_from(file).unwrap();
    Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap()
}

/// A kind of ours.
pub(crate) fn kind(kind: &str) -> ApiResource {
    let plural = match kind {
        "PodAttachments" => "podattachments",
        "Block" => "blocks",
        "BlockRequest" => "blockrequests",
        _ => "networks",
    };
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("plexus.dev", "v1alpha1", kind),
        plural,
    )
}

/// Refused for lack of a right, and said so.
#[track_caller]
pub(crate) fn forbidden<T>(answer: Result<T, Error>, message: &str) {
    match answer {
        Err(Error::Api(status)) => {
            assert_eq!(status.code, 403, "{}", status.message);
            assert!(status.message.contains(message), "{}", status.message);
        }
        Err(other) => panic!("not refused but failed: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

/// A rule of the definition may be the first to refuse.
#[track_caller]
fn forbidden_or_invalid<T>(answer: Result<T, Error>) {
    match answer {
        Err(Error::Api(status)) => assert!([403, 422].contains(&status.code), "{}", status.message),
        Err(other) => panic!("not refused but failed: {other}"),
        Ok(_) => panic!("not refused"),
    }
}
