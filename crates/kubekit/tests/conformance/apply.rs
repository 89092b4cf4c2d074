//! Server-side apply: who owns which field, conflicts, force, and what goes when it is no longer said.

use crate::test_namespace::{TestNamespace, refusal, refused, test, version};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

#[test]
fn it_creates_and_repeating_it_changes_nothing() {
    test("create", |ns| async move {
        let one = map(&ns, "one", json!({"a": "1"})).await.unwrap();
        let again = map(&ns, "one", json!({"a": "1"})).await.unwrap();
        assert_eq!(again.resource_version(), one.resource_version());
        assert_eq!(again.uid(), one.uid());
    });
}

#[test]
fn a_field_of_another_is_a_conflict_that_names_both() {
    test("conflict", |ns| async move {
        map(&ns, "one", json!({"a": "1", "b": "1"})).await.unwrap();
        let status = refusal(map(&ns, "two", json!({"a": "2"})).await);
        assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
        let causes = status.details.unwrap().causes;
        assert_eq!(causes.len(), 1);
        assert_eq!(causes[0].reason, "FieldManagerConflict");
        assert_eq!(causes[0].field, ".data.a");
        assert!(
            causes[0].message.contains("\"one\""),
            "{}",
            causes[0].message
        );
        let same = map(&ns, "two", json!({"a": "1"})).await.unwrap();
        assert_eq!(same.data.unwrap()["b"], "1", "what both say is no conflict");
    });
}

#[test]
fn force_takes_the_field_over() {
    test("force", |ns| async move {
        map(&ns, "one", json!({"a": "1"})).await.unwrap();
        let forced = PatchParams::apply("two").force();
        let body = Patch::Apply(body(json!({"a": "2"})));
        let taken = ns.maps().patch("m", &forced, &body).await.unwrap();
        assert_eq!(taken.data.unwrap()["a"], "2");
        refused(map(&ns, "one", json!({"a": "1"})).await, 409, "Conflict");
    });
}

#[test]
fn what_is_no_longer_said_goes_unless_another_says_it() {
    test("drop", |ns| async move {
        map(&ns, "one", json!({"a": "1", "b": "1", "c": "1"}))
            .await
            .unwrap();
        map(&ns, "two", json!({"b": "1", "d": "2"})).await.unwrap();
        let left = map(&ns, "one", json!({"c": "1"})).await.unwrap();
        let keys: Vec<String> = left.data.unwrap().into_keys().collect();
        assert_eq!(keys, ["b", "c", "d"]);
    });
}

#[test]
fn a_plain_update_owns_what_it_changes() {
    test("update", |ns| async move {
        map(&ns, "one", json!({"a": "1"})).await.unwrap();
        let change = Patch::Merge(json!({"data": {"a": "3"}}));
        let by = PatchParams {
            field_manager: Some("someone".into()),
            ..PatchParams::default()
        };
        ns.maps().patch("m", &by, &change).await.unwrap();
        let status = refusal(map(&ns, "one", json!({"a": "1"})).await);
        assert_eq!(status.code, 409);
        assert!(
            status.details.unwrap().causes[0]
                .message
                .contains("\"someone\"")
        );
    });
}

#[test]
fn a_manager_must_be_named() {
    test("nobody", |ns| async move {
        let nobody = PatchParams {
            force: true,
            ..PatchParams::default()
        };
        let answer = ns
            .maps()
            .patch("m", &nobody, &Patch::Apply(body(json!({"a": "1"}))))
            .await;
        assert!(answer.is_err());
        assert!(ns.maps().get_opt("m").await.unwrap().is_none());
    });
}

#[test]
fn a_dry_run_says_what_would_be() {
    test("would", |ns| async move {
        let made = map(&ns, "one", json!({"a": "1"})).await.unwrap();
        let dry = PatchParams::apply("one").dry_run();
        let would = ns
            .maps()
            .patch("m", &dry, &Patch::Apply(body(json!({"a": "9"}))))
            .await
            .unwrap();
        assert_eq!(would.data.unwrap()["a"], "9");
        let is = ns.maps().get("m").await.unwrap();
        assert_eq!(version(&is), version(&made));
    });
}

#[test]
fn metadata_is_shared_by_key() {
    test("metadata", |ns| async move {
        let message = |key: &str| {
            let mut message = body(json!({key: "1"}));
            message["metadata"]["labels"] = json!({key: "1"});
            message["metadata"]["finalizers"] = json!([format!("conformance.example/{key}")]);
            message
        };
        for who in ["one", "two"] {
            let apply = Patch::Apply(message(who));
            ns.maps()
                .patch("m", &PatchParams::apply(who), &apply)
                .await
                .unwrap();
        }
        let both = ns.maps().get("m").await.unwrap();
        assert_eq!((both.labels().len(), both.finalizers().len()), (2, 2));
        for who in ["one", "two"] {
            map(&ns, who, json!({who: "1"})).await.unwrap();
        }
        let none = ns.maps().get("m").await.unwrap();
        assert!(none.labels().is_empty() && none.finalizers().is_empty());
    });
}

#[test]
fn custom_objects_and_their_maps_too() {
    test("custom", |ns| async move {
        let message = |key: &str, cidr: &str| {
            let mut network = ns.network("n");
            network["spec"] = json!({"subnets": {key: {"cidr": cidr}}});
            network
        };
        network(&ns, "one", &message("a", "192.0.2.0/25"))
            .await
            .unwrap();
        network(&ns, "two", &message("b", "192.0.2.128/25"))
            .await
            .unwrap();
        let status = refusal(network(&ns, "two", &message("a", "198.51.100.0/24")).await);
        assert_eq!(
            status.details.unwrap().causes[0].field,
            ".spec.subnets.a.cidr"
        );
        let mut less = message("a", "x");
        less["spec"] = json!({});
        let left = network(&ns, "one", &less).await.unwrap();
        let subnets = left.data["spec"]["subnets"].as_object().unwrap().clone();
        assert_eq!(subnets.keys().collect::<Vec<_>>(), ["b"]);
    });
}

fn body(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data})
}

async fn map(ns: &TestNamespace, who: &str, data: Value) -> Result<ConfigMap, kube::Error> {
    let apply = Patch::Apply(body(data));
    ns.maps().patch("m", &PatchParams::apply(who), &apply).await
}

async fn network(
    ns: &TestNamespace,
    who: &str,
    message: &Value,
) -> Result<DynamicObject, kube::Error> {
    ns.networks()
        .patch("n", &PatchParams::apply(who), &Patch::Apply(message))
        .await
}
