//! Events: written once, told again by counting, found by whom they are about, seen in both groups.

use crate::test_namespace::{TestNamespace, test};
use k8s_openapi::api::core::v1::Event as CoreEvent;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Resource, ResourceExt};
use serde_json::json;

#[test]
fn an_event_is_made_counted_and_found() {
    test("core", |ns| async move {
        let about = ns.map("a").await;
        let event = json!({
            "metadata": {"generateName": "a.", "namespace": ns.namespace},
            "involvedObject": {
                "apiVersion": "v1", "kind": "ConfigMap", "name": "a",
                "namespace": ns.namespace, "uid": about.uid(),
            },
            "reason": "FailedAttach", "message": "no such network", "type": "Warning", "count": 1,
            "source": {"component": "plexus-agent"},
        });
        let event: CoreEvent = serde_json::from_value(event).unwrap();
        let made = events(&ns)
            .create(&PostParams::default(), &event)
            .await
            .unwrap();
        let again = Patch::Merge(json!({"count": 2}));
        let counted = events(&ns)
            .patch(&made.name_any(), &PatchParams::default(), &again)
            .await
            .unwrap();
        assert_eq!(counted.count, Some(2));
        let uid = about.uid().unwrap();
        for (selector, count) in [
            (format!("involvedObject.uid={uid}"), 1),
            (
                "involvedObject.kind=ConfigMap,involvedObject.name=a".to_owned(),
                1,
            ),
            ("reason=FailedAttach,type=Warning".to_owned(), 1),
            ("involvedObject.name=b".to_owned(), 0),
        ] {
            let list = events(&ns)
                .list(&ListParams::default().fields(&selector))
                .await
                .unwrap();
            assert_eq!(list.items.len(), count, "{selector}");
        }
    });
}

#[test]
fn what_the_recorder_of_kube_says_is_seen_in_the_core() {
    test("recorder", |ns| async move {
        let about = ns.map("a").await;
        let reporter = Reporter {
            controller: "conformance".to_owned(),
            instance: Some("n1".to_owned()),
        };
        let recorder = Recorder::new(ns.client.clone(), reporter);
        let event = Event {
            type_: EventType::Warning,
            reason: "Changed".to_owned(),
            note: Some("for whoever reads it".to_owned()),
            action: "Look".to_owned(),
            secondary: None,
        };
        recorder
            .publish(&event, &about.object_ref(&()))
            .await
            .unwrap();
        recorder
            .publish(&event, &about.object_ref(&()))
            .await
            .unwrap();
        let seen = events(&ns)
            .list(&ListParams::default().fields("reason=Changed"))
            .await
            .unwrap();
        assert_eq!(seen.items.len(), 1, "the second one is counted");
        assert_eq!(
            seen.items[0].message.as_deref(),
            Some("for whoever reads it")
        );
        assert_eq!(seen.items[0].involved_object.uid, about.uid());
        assert_eq!(
            seen.items[0].reporting_component.as_deref(),
            Some("conformance")
        );
    });
}

fn events(ns: &TestNamespace) -> Api<CoreEvent> {
    Api::namespaced(ns.client.clone(), &ns.namespace)
}
