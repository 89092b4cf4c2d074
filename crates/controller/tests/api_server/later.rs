//! What waits for a later version says so on a real API server: Events on claims and device classes of
//! ours and on no others, also of claims that are ours by an administrator's class, a phase where the kind has one, a kind whose definition comes while the
//! controller runs. The controller has the rights of `deploy/parts` and no others.

use crate::environment::{Environment, Running, from, until};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Event, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams,
};
use kube::{Client, ResourceExt};
use plexus_api::later::{DEVICE_CLASS, DRA_DRIVER, KINDS};
use plexus_client::Server;
use plexus_controller::Options;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const ACCOUNT: &str = "controller";
const RBAC: &str = "rbac.authorization.k8s.io";
/// More than the minute after which the controller looks for kinds that were not there.
const NEW_KIND_TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn claims_and_classes_of_ours_are_said_to_wait() {
    with_waiting("claims", async |environment| {
        let own = environment.namespace.clone();
        let _running = controller(&environment).await;
        let claim = |class: &str| {
            json!({"devices": {"requests": [
            {"name": "nic", "exactly": {"deviceClassName": class}}]}})
        };
        let template = json!({"spec": claim(DEVICE_CLASS)});
        let others = format!("gpu-{own}");
        let selectors = |driver: &str| {
            json!({"selectors": [
            {"cel": {"expression": format!("device.driver == '{driver}'")}}]})
        };
        let by_class = json!({"devices": {"requests": [{"name": "nic", "firstAvailable": [
            {"name": "gpu", "deviceClassName": others}, {"name": "own", "deviceClassName": own}]}]}});
        for (kind, name, spec) in [
            ("ResourceClaim", "before-its-class", by_class.clone()),
            ("ResourceClaim", "of-another-class", claim(&others)),
            ("ResourceClaim", "foreign", claim("gpu.example.com")),
            ("DeviceClass", others.as_str(), selectors("gpu.example.com")),
            ("ResourceClaim", "ours", claim(DEVICE_CLASS)),
            ("ResourceClaimTemplate", "template", template),
            ("DeviceClass", own.as_str(), selectors(DRA_DRIVER)),
            ("ResourceClaim", "after-its-class", by_class),
        ] {
            make(&environment, kind, name, spec).await;
        }
        for (name, kind) in [
            ("ours", "ResourceClaim"),
            ("template", "ResourceClaimTemplate"),
            (own.as_str(), "DeviceClass"),
            ("before-its-class", "ResourceClaim"),
            ("after-its-class", "ResourceClaim"),
        ] {
            let mut seen = Vec::new();
            until(&format!("an Event on {kind} {name}"), async || {
                seen = waiting(&environment, name).await;
                !seen.is_empty()
            })
            .await;
            let event = &seen[0];
            assert_eq!(event.involved_object.kind.as_deref(), Some(kind));
            assert_eq!(event.type_.as_deref(), Some("Warning"));
            let message = event.message.clone().unwrap_or_default();
            assert!(message.contains("it is kept, and waits"), "{message}");
            assert!(message.contains("DRA driver"), "{message}");
            assert_eq!(seen.len(), 1, "said once: {seen:?}");
        }
        // Those of other drivers came first, and are nobody's business here.
        for name in ["foreign", "of-another-class", others.as_str()] {
            assert_eq!(waiting(&environment, name).await, [], "{name}");
        }
        // The class changes its mind: a claim that was not told is, the others are not told twice.
        let patch = json!({"spec": selectors(DRA_DRIVER)});
        let classes = api(&environment, "DeviceClass");
        let params = PatchParams::default();
        classes
            .patch(&others, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
        environment.until_event("of-another-class", "Waiting").await;
        for name in ["before-its-class", "after-its-class", "of-another-class"] {
            assert_eq!(waiting(&environment, name).await.len(), 1, "{name}");
        }
    });
}

#[test]
fn a_kind_that_comes_later_is_noticed() {
    with_waiting("multi-nic", async |environment| {
        let definitions: Api<CustomResourceDefinition> = Api::all(environment.client.clone());
        let text = include_str!("../../../embedded/src/kinds/cniconfigs.json");
        let definition: CustomResourceDefinition = serde_json::from_str(text).unwrap();
        let name = definition.name_any();
        let gone = async || definitions.get_opt(&name).await.unwrap().is_none();
        let _ = definitions.delete(&name, &DeleteParams::default()).await;
        until("no such kind", gone).await;
        let _running = controller(&environment).await;
        // It has looked for the kinds, or it would not have found this one.
        let claim = json!({"devices": {"requests": [
            {"name": "nic", "exactly": {"deviceClassName": DEVICE_CLASS}}]}});
        make(&environment, "ResourceClaim", "first", claim).await;
        environment.until_event("first", "Waiting").await;

        let post = PostParams::default();
        definitions.create(&post, &definition).await.unwrap();
        let own = environment.namespace.clone();
        let spec = json!({});
        until("the kind is served", async || {
            try_make(&environment, "CNIConfig", &own, spec.clone())
                .await
                .is_ok()
        })
        .await;
        let begun = Instant::now();
        while waiting(&environment, &own).await.is_empty() {
            assert!(
                begun.elapsed() < NEW_KIND_TIMEOUT,
                "nobody says that it waits"
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let waiting_events = waiting(&environment, &own).await;
        assert_eq!(waiting_events.len(), 1, "{waiting_events:?}");
        definitions
            .delete(&name, &DeleteParams::default())
            .await
            .unwrap();
        until("the kind is gone", gone).await;
    });
}

/// A test, and the removal of what it makes outside of its namespace or of kinds that others do not.
fn with_waiting<F: Future<Output = ()>>(name: &str, test: impl FnOnce(Environment) -> F) {
    crate::environment::with_environment(name, async |environment| {
        let (client, namespace) = (environment.client.clone(), environment.namespace.clone());
        let result =
            futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(test(environment))).await;
        clean(&client, &namespace).await;
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

async fn clean(client: &Client, namespace: &str) {
    let (delete, list) = (DeleteParams::default(), ListParams::default());
    for kind in ["ResourceClaim", "ResourceClaimTemplate"] {
        let api: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), namespace, &resource(kind));
        let _ = api.delete_collection(&delete, &list).await;
    }
    for (kind, name) in [
        ("DeviceClass", namespace.to_owned()),
        ("DeviceClass", format!("gpu-{namespace}")),
        ("CNIConfig", namespace.to_owned()),
        ("ClusterRoleBinding", namespace.to_owned()),
    ] {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource(kind));
        let _ = api.delete(&name, &delete).await;
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let _ = accounts.delete(ACCOUNT, &delete).await;
    let _ = std::fs::remove_file(kubeconfig(namespace));
    let bindings: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &resource("RoleBinding"));
    let _ = bindings.delete_collection(&delete, &list).await;
    // Events about objects of the whole cluster are in `default`.
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    for name in [namespace.to_owned(), format!("gpu-{namespace}")] {
        let about = list.clone().fields(&format!("involvedObject.name={name}"));
        let _ = events.delete_collection(&delete, &about).await;
    }
}

/// A controller whose account has its ClusterRole, as it is shipped, and every right in its own namespace.
async fn controller(environment: &Environment) -> Running {
    let part = include_str!("../../../../deploy/parts/11-controller-rbac.yaml");
    let params = PatchParams::apply("plexus-test").force();
    for document in serde_yaml_ng::Deserializer::from_str(part) {
        let object = DynamicObject::deserialize(document).unwrap();
        if object
            .types
            .as_ref()
            .is_some_and(|types| types.kind == "ClusterRole")
        {
            let patch = Patch::Apply(&object);
            let roles = api(environment, "ClusterRole");
            roles
                .patch(&object.name_any(), &params, &patch)
                .await
                .unwrap();
        }
    }
    let subjects =
        json!([{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": environment.namespace}]);
    for (kind, role) in [
        ("ClusterRoleBinding", "plexus-controller"),
        ("RoleBinding", "cluster-admin"),
    ] {
        let binding = json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": {"name": environment.namespace},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}, "subjects": subjects,
        });
        let patch = Patch::Apply(&binding);
        api(environment, kind)
            .patch(&environment.namespace, &params, &patch)
            .await
            .unwrap();
    }
    let account: ServiceAccount = environment
        .create(json!({"metadata": {"name": ACCOUNT}}))
        .await;
    let request: TokenRequest = from(json!({"metadata": {}, "spec": {"audiences": []}}));
    let accounts = environment.api::<ServiceAccount>();
    let post = PostParams::default();
    let given = accounts
        .create_token_request(&account.name_any(), &post, &request)
        .await;
    let path = kubeconfig(&environment.namespace);
    environment.kubeconfig_of(&given.unwrap().status.unwrap().token, &path);
    environment.start(Options {
        server: Server::Kubeconfig(path),
        ..environment.options("one")
    })
}

/// Where the account's kubeconfig is, as long as the test runs.
fn kubeconfig(namespace: &str) -> PathBuf {
    std::env::temp_dir().join(format!("plexus-{namespace}"))
}

async fn waiting(environment: &Environment, name: &str) -> Vec<Event> {
    let events: Api<Event> = Api::all(environment.client.clone());
    let fields = format!("involvedObject.name={name},reason=Waiting");
    let listed = events
        .list(&ListParams::default().fields(&fields))
        .await
        .unwrap();
    let own = listed.items.into_iter().filter(|event| {
        let namespace = event
            .involved_object
            .namespace
            .as_deref()
            .unwrap_or_default();
        namespace.is_empty() || namespace == environment.namespace
    });
    own.collect()
}

async fn make(environment: &Environment, kind: &str, name: &str, spec: Value) {
    try_make(environment, kind, name, spec).await.unwrap();
}

async fn try_make(
    environment: &Environment,
    kind: &str,
    name: &str,
    spec: Value,
) -> kube::Result<()> {
    let version = resource(kind).api_version;
    let object =
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    let made = api(environment, kind)
        .create(&PostParams::default(), &from(object))
        .await;
    made.map(drop)
}

fn api(environment: &Environment, kind: &str) -> Api<DynamicObject> {
    let resource = resource(kind);
    match kind {
        "ResourceClaim" | "ResourceClaimTemplate" | "RoleBinding" => Api::namespaced_with(
            environment.client.clone(),
            &environment.namespace,
            &resource,
        ),
        _ => Api::all_with(environment.client.clone(), &resource),
    }
}

fn resource(kind: &str) -> ApiResource {
    let later = KINDS.iter().find(|later| later.kind == kind);
    let (group, version) = later.map_or((RBAC, "v1"), |later| (later.group, later.version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}
