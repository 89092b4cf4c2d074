//! One store, several forms: events in both groups, networks under both names.

use crate::common::{TestServer, read, version};
use serde_json::json;
use std::io::{BufReader, Write};

const CORE: &str = "/api/v1/namespaces/default/events";
const NEW: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const ALIAS: &str = "/api/v1/namespaces/default/networks";
const OURS: &str = "/apis/plexus.dev/v1alpha1/namespaces/default/networks";

#[test]
fn an_event_is_seen_in_both_groups_and_watched_in_both() {
    let test = TestServer::new("events");
    let _server = test.start();
    let mut client = test.client();
    let from = version(&client.get(CORE).ok());
    let mut core = client.lines(&format!("{CORE}?watch=true&resourceVersion={from}"));
    let selector = "fieldSelector=regarding.name%3Dp";
    let mut new = client.lines(&format!(
        "{NEW}?watch=true&resourceVersion={from}&{selector}"
    ));
    let event = json!({
        "metadata": {"name": "e"}, "eventTime": "2025-11-16T03:49:30.000000Z",
        "reportingController": "c", "reportingInstance": "i", "action": "Look",
        "reason": "Because", "type": "Normal", "note": "read me",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    });
    let made = client.post(NEW, &event).ok();
    assert_eq!(made["apiVersion"], "events.k8s.io/v1");
    let seen = client.get(&format!("{CORE}/e")).ok();
    assert_eq!(
        (&seen["message"], &seen["kind"]),
        (&json!("read me"), &json!("Event"))
    );
    assert_eq!(seen["involvedObject"]["name"], "p");
    assert_eq!(version(&seen), version(&made));
    let patch = json!({"series": {"count": 2, "lastObservedTime": "2025-11-16T03:50:30.000000Z"}});
    client.merge(&format!("{NEW}/e"), &patch).ok();
    let watched = core.next().unwrap();
    assert_eq!(
        (&watched["type"], &watched["object"]["message"]),
        (&json!("ADDED"), &json!("read me"))
    );
    let watched = new.next().unwrap();
    assert_eq!(
        (&watched["type"], &watched["object"]["note"]),
        (&json!("ADDED"), &json!("read me"))
    );
    assert_eq!(core.next().unwrap()["object"]["series"]["count"], 2);
    assert_eq!(new.next().unwrap()["object"]["series"]["count"], 2);
    let by_field = client
        .get(&format!("{CORE}?fieldSelector=involvedObject.name%3Dp"))
        .ok();
    assert_eq!(by_field["items"].as_array().unwrap().len(), 1);
    let by_field = client
        .get(&format!("{CORE}?fieldSelector=involvedObject.name%3Dq"))
        .ok();
    assert_eq!(by_field["items"].as_array().unwrap().len(), 0);
    let mut incomplete = event;
    incomplete["metadata"]["name"] = "f".into();
    incomplete.as_object_mut().unwrap().remove("eventTime");
    client.post(NEW, &incomplete).refused(422);
}

#[test]
fn the_networks_of_seed_004_are_ours_under_another_name() {
    let test = TestServer::new("alias");
    let _server = test.start();
    let mut client = test.client();
    let network = json!({
        "apiVersion": "v1", "kind": "Network", "metadata": {"name": "net1"},
        "spec": {
            "provider": "mycorp/fancy-network-provider",
            "uuid": "2a9aafcc-6041-4fb8-9006-1f6095102850",
            "subnets": {
                "subnet1": {"cidr": "192.168.0.0/24", "gateway": "192.168.0.1"},
                "subnet2": {"cidr": "192.168.1.0/24", "gateway": "192.168.1.1"},
            },
        },
    });
    let made = client
        .post(&format!("{ALIAS}?fieldValidation=Strict"), &network)
        .ok();
    assert_eq!(
        (&made["apiVersion"], &made["kind"]),
        (&json!("v1"), &json!("Network"))
    );
    let ours = client.get(&format!("{OURS}/net1")).ok();
    assert_eq!(ours["apiVersion"], "plexus.dev/v1alpha1");
    assert_eq!(ours["spec"], made["spec"]);
    assert_eq!(ours["metadata"]["uid"], made["metadata"]["uid"]);
    client
        .merge(&format!("{OURS}/net1"), &json!({"spec": {"mtu": 1400}}))
        .ok();
    let again = client.get(&format!("{ALIAS}/net1")).ok();
    assert_eq!(again["spec"]["mtu"], 1400);
    let list = client.get(ALIAS).ok();
    assert_eq!(list["kind"], "NetworkList");
    assert_eq!(list["items"][0]["apiVersion"], "v1");
    let bad = json!({"metadata": {"name": "net2"}, "spec": {"subnets": {"a": {}}}});
    let message = client.post(ALIAS, &bad).refused(422);
    assert!(message.contains("spec.subnets.a.cidr"), "{message}");
    client.delete(&format!("{ALIAS}/net1")).ok();
    client.get(&format!("{OURS}/net1")).refused(404);
}

#[test]
fn a_list_in_another_form_comes_a_few_objects_at_a_time() {
    let test = TestServer::new("forms");
    let _server = test.start();
    let mut client = test.client();
    for count in 0..120 {
        let name = format!("n-{count:03}");
        let filler = json!({"a": "x".repeat(2000)});
        let network = json!({"metadata": {"name": name}, "spec": {"config": filler}});
        client.post(OURS, &network).ok();
    }
    for (path, form, field, name) in [
        (ALIAS, "", "items", "/metadata/name"),
        (
            OURS,
            ";as=Table;v=v1;g=meta.k8s.io",
            "rows",
            "/object/metadata/name",
        ),
        (
            OURS,
            ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            "items",
            "/metadata/name",
        ),
    ] {
        let mut wire = BufReader::new(client.connect().unwrap());
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: x\r\naccept: application/json{form}\r\n\r\n");
        wire.get_mut().write_all(request.as_bytes()).unwrap();
        let answer = read(&mut wire).unwrap();
        assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
        let items = answer.body[field].as_array().unwrap();
        assert_eq!(items.len(), 120, "{form}");
        let last = items[119].pointer(name);
        assert_eq!(last, Some(&json!("n-119")), "{form}");
        assert!(answer.body["metadata"]["resourceVersion"].is_string());
    }
}
