//! Our definitions at work: defaults, pruning, strictness, types, and rules between fields. Nothing
//! here is stored, so that nobody reacts to it.

use crate::test_namespace::{TestNamespace, refusal, refused, test};
use kube::Error;
use serde_json::{Value, json};

#[test]
fn defaults_are_filled_in() {
    test("default", |ns| async move {
        let made = dry(&ns, json!({"provider": "overlay"}), "").await.unwrap();
        assert_eq!(made["spec"]["sourceCheck"], true);
        assert_eq!(made["spec"]["snat"], false);
    });
}

#[test]
fn unknown_fields_are_dropped_or_refused_as_asked() {
    test("unknown", |ns| async move {
        let spec = json!({"provider": "overlay", "nonsense": 1});
        for how in ["", "fieldValidation=Warn", "fieldValidation=Ignore"] {
            let made = dry(&ns, spec.clone(), how).await.unwrap();
            assert!(made["spec"].get("nonsense").is_none(), "{made}");
        }
        let message = refused(
            dry(&ns, spec, "fieldValidation=Strict").await,
            400,
            "BadRequest",
        );
        assert!(
            message.contains("unknown field \"spec.nonsense\""),
            "{message}"
        );
    });
}

#[test]
fn what_may_be_anything_is_kept() {
    test("open", |ns| async move {
        let config = json!({"type": "x", "deep": {"list": [1, {"a": null}]}});
        let spec = json!({"provider": "delegate", "config": config});
        let made = dry(&ns, spec, "fieldValidation=Strict").await.unwrap();
        assert_eq!(made["spec"]["config"]["type"], "x");
        assert_eq!(made["spec"]["config"]["deep"]["list"][0], 1);
    });
}

#[test]
fn wrong_types_are_refused_with_their_place() {
    test("types", |ns| async move {
        for (spec, field) in [
            (json!({"mtu": "big"}), "spec.mtu"),
            (json!({"subnets": []}), "spec.subnets"),
            (json!({"subnets": {"a": {}}}), "spec.subnets.a.cidr"),
            (json!({"snat": "yes"}), "spec.snat"),
            (
                json!({"allowedNamespaces": {"from": "Nobody"}}),
                "spec.allowedNamespaces.from",
            ),
        ] {
            let status = refusal(dry(&ns, spec.clone(), "").await);
            assert_eq!(
                (status.code, status.reason.as_str()),
                (422, "Invalid"),
                "{spec}"
            );
            let causes = status.details.unwrap().causes;
            assert!(
                causes.iter().any(|cause| cause.field == field),
                "{spec}: {causes:?}"
            );
        }
    });
}

#[test]
fn rules_between_fields_hold() {
    test("rules", |ns| async move {
        let subnet = |subnet: Value| json!({"subnets": {"a": subnet}});
        for (spec, expected) in [
            (json!({"provider": "nonsense"}), "provider is not known"),
            (subnet(json!({"cidr": "10.1.0.1/16"})), "without host bits"),
            (
                subnet(json!({"cidr": "10.1.0.0/16", "gateway": "10.2.0.1"})),
                "gateway must be",
            ),
            (
                json!({"allowedNamespaces": {"from": "Selector"}}),
                "selector must be there",
            ),
            (
                json!({"allowedNamespaces": {"from": "Selector", "selector": {}}}),
                "an empty selector means nobody",
            ),
            (
                json!({"allowedNamespaces": {"from": "Selector", "selector": {"matchExpressions":
                    [{"key": "team", "operator": "In", "values": []}]}}}),
                "values must be there",
            ),
            (
                json!({"allowedNamespaces": {"from": "Selector", "selector": {"matchExpressions":
                    [{"key": "team", "operator": "Exists", "values": ["a"]}]}}}),
                "values must be there",
            ),
        ] {
            let message = refused(dry(&ns, spec.clone(), "").await, 422, "Invalid");
            assert!(message.contains(expected), "{spec}: {message}");
        }
        let fine = subnet(
            json!({"cidr": "10.1.0.0/16", "gateway": "10.1.255.254", "exclude": ["10.1.0.0/28"]}),
        );
        dry(&ns, fine, "fieldValidation=Strict").await.unwrap();
    });
}

#[test]
fn rules_about_change_hold() {
    use kube::api::{Patch, PatchParams, PostParams};
    test("change", |ns| async move {
        let network = serde_json::from_value(ns.network("n")).unwrap();
        ns.networks()
            .create(&PostParams::default(), &network)
            .await
            .unwrap();
        let other = Patch::Merge(json!({"spec": {"provider": "overlay"}}));
        let answer = ns
            .networks()
            .patch("n", &PatchParams::default(), &other)
            .await;
        let message = refused(answer, 422, "Invalid");
        assert!(message.contains("provider cannot be changed"), "{message}");
    });
}

/// What would be stored.
async fn dry(ns: &TestNamespace, spec: Value, how: &str) -> Result<Value, Error> {
    let mut network = ns.network("n");
    network["spec"] = spec;
    ns.post(&ns.networks_path(), &format!("dryRun=All&{how}"), &network)
        .await
}
