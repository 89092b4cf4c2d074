//! Writes: what is checked, what is answered, what is left alone.

use crate::common::{MAPS, TestServer, map, version};
use serde_json::{Value, json};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const NETWORKS: &str = "/apis/plexus.dev/v1alpha1/namespaces/default/networks";

#[test]
fn many_at_once_on_one_object_all_happen() {
    let test = TestServer::new("contended");
    let _server = test.start();
    test.client().post(MAPS, &map("a", "1")).ok();
    let writers: Vec<_> = (0..16)
        .map(|writer| {
            let mut client = test.client();
            std::thread::spawn(move || {
                for count in 0..10 {
                    let patch = json!({"data": {format!("k-{writer}-{count}"): "1"}});
                    client.merge(&format!("{MAPS}/a"), &patch).ok();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    let all = test.client().get(&format!("{MAPS}/a")).ok();
    assert_eq!(all["data"].as_object().unwrap().len(), 161);
}

#[test]
fn of_many_who_read_the_same_one_writes() {
    let test = TestServer::new("optimistic");
    let _server = test.start();
    let made = test.client().post(MAPS, &map("a", "1")).ok();
    let writers: Vec<_> = (0..16)
        .map(|writer| {
            let (mut client, mut mine) = (test.client(), made.clone());
            mine["data"]["who"] = writer.to_string().into();
            std::thread::spawn(move || client.put(&format!("{MAPS}/a"), &mine).code)
        })
        .collect();
    let codes: Vec<u16> = writers
        .into_iter()
        .map(|writer| writer.join().unwrap())
        .collect();
    assert_eq!(
        codes.iter().filter(|code| **code == 200).count(),
        1,
        "{codes:?}"
    );
    assert_eq!(
        codes.iter().filter(|code| **code == 409).count(),
        15,
        "{codes:?}"
    );
}

#[test]
fn unknown_and_repeated_fields_are_warned_of() {
    let test = TestServer::new("warnings");
    let _server = test.start();
    let mut client = test.client();
    let mut network = json!({"metadata": {"name": "n"}, "spec": {"nonsense": 1}});
    let made = client.post(NETWORKS, &network);
    assert_eq!(
        made.header("warning"),
        Some(r#"299 - "unknown field \"spec.nonsense\"""#)
    );
    assert_eq!(made.ok()["spec"].get("nonsense"), None);
    network["metadata"]["name"] = "m".into();
    let strict = client.post(&format!("{NETWORKS}?fieldValidation=Strict"), &network);
    assert!(
        strict
            .refused(400)
            .contains("strict decoding error: unknown field")
    );
    let quiet = client.post(&format!("{NETWORKS}?fieldValidation=Ignore"), &network);
    assert_eq!(quiet.header("warning"), None);
    assert_eq!(quiet.code, 201);
}

#[test]
fn a_lease_is_made_by_a_put() {
    let test = TestServer::new("lease");
    let _server = test.start();
    let mut client = test.client();
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    let path = format!("{LEASES}/l");
    let made = client.put(&path, &lease);
    assert_eq!(made.code, 201);
    let made = made.ok();
    assert_eq!(
        client.put(&path, &made).ok(),
        made,
        "and again changes nothing"
    );
    client
        .put(&format!("{MAPS}/none"), &map("none", "1"))
        .refused(404);
}

#[test]
fn a_dry_run_gives_no_version_and_leaves_nothing() {
    let test = TestServer::new("dry");
    let server = test.start();
    let mut client = test.client();
    let before = server.version();
    let would = client
        .post(&format!("{MAPS}?dryRun=All"), &map("a", "1"))
        .ok();
    assert_eq!(would["metadata"].get("resourceVersion"), None);
    assert!(would["metadata"]["uid"].is_string());
    let made = client.post(MAPS, &map("a", "1")).ok();
    assert_eq!(version(&made), before + 1);
    let patch = json!({"data": {"a": "2"}});
    let would = client.merge(&format!("{MAPS}/a?dryRun=All"), &patch).ok();
    assert_eq!(would["data"]["a"], "2");
    assert_eq!(version(&would), version(&made));
    client.delete(&format!("{MAPS}/a?dryRun=All")).ok();
    assert_eq!(client.get(&format!("{MAPS}/a")).ok(), made);
    client
        .post(&format!("{MAPS}?dryRun=Some"), &map("b", "1"))
        .refused(422);
}

#[test]
fn objects_belong_where_the_path_says() {
    let test = TestServer::new("belong");
    let _server = test.start();
    let mut client = test.client();
    let with = |field: &str, value: Value| {
        let mut object = map("a", "1");
        *object.pointer_mut(field).unwrap() = value;
        object
    };
    client.post(MAPS, &with("/kind", json!("Pod"))).refused(400);
    client
        .post(MAPS, &with("/apiVersion", json!("v2")))
        .refused(400);
    let mut elsewhere = map("a", "1");
    elsewhere["metadata"]["namespace"] = "kube-system".into();
    client.post(MAPS, &elsewhere).refused(400);
    client
        .post("/api/v1/configmaps", &map("a", "1"))
        .refused(405);
    client
        .post("/api/v1/namespaces/none/configmaps", &map("a", "1"))
        .refused(404);
    client
        .post(&format!("{MAPS}/a"), &map("a", "1"))
        .refused(405);
    client.put(MAPS, &map("a", "1")).refused(405);
    client.get(&format!("{MAPS}/a/status")).refused(404);
    client.get("/apis/nothing.example/v1/things").refused(404);
}

#[test]
fn many_are_deleted_at_once_by_selector() {
    let test = TestServer::new("collection");
    let _server = test.start();
    let mut client = test.client();
    for count in 0..10 {
        let mut one = map(&format!("m-{count}"), "1");
        one["metadata"]["labels"] = json!({"odd": (count % 2 == 1).to_string()});
        client.post(MAPS, &one).ok();
    }
    let gone = client
        .delete(&format!("{MAPS}?labelSelector=odd%3Dtrue"))
        .ok();
    assert_eq!(gone["items"].as_array().unwrap().len(), 5);
    let left = client.get(MAPS).ok();
    let names: Vec<&str> = left["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["m-0", "m-2", "m-4", "m-6", "m-8"]);
}

#[test]
fn definitions_of_kinds_that_are_there_are_taken_others_refused() {
    let test = TestServer::new("definitions");
    let _server = test.start();
    let mut client = test.client();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let ours = client.get(&format!("{path}/networks.plexus.dev")).ok();
    let established = &ours["status"]["conditions"];
    assert!(
        established.to_string().contains("Established"),
        "{established}"
    );
    let again = client
        .put(&format!("{path}/networks.plexus.dev"), &ours)
        .ok();
    assert_eq!(version(&again), version(&ours));
    // Neither does one that says it otherwise: it takes nothing from anybody.
    let mut theirs = ours;
    theirs["metadata"] = json!({"name": "networks.plexus.dev"});
    theirs["spec"]["versions"][0]["additionalPrinterColumns"] = json!([]);
    let there = format!("{path}/networks.plexus.dev?fieldManager=somebody");
    let how = "application/apply-patch+yaml";
    let answer = client.send("PATCH", &there, how, Some(&theirs));
    answer.unwrap().ok();
    let other = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing", "singular": "thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    client.post(path, &other).refused(422);
}

#[test]
fn the_validator_is_asked_and_may_translate() {
    use plexus_embedded::kinds::Kind;
    use plexus_embedded::status::Cause;
    struct Picky;
    impl plexus_embedded::Validator for Picky {
        fn received(
            &self,
            _: &Kind,
            _: plexus_embedded::PatchBase<'_>,
            object: &mut Value,
        ) -> Result<Vec<String>, Vec<Cause>> {
            if object["data"]["refuse"].is_string() {
                return Err(vec![Cause::forbidden("data.refuse", "not here")]);
            }
            let moved = object["data"].get("old").cloned();
            let Some(moved) = moved else {
                return Ok(Vec::new());
            };
            object["data"] = json!({"new": moved});
            Ok(vec!["data.old is data.new now".to_owned()])
        }
        fn problems(&self, kind: &Kind, old: Option<&Value>, new: &Value) -> Vec<Cause> {
            let fixed = old.filter(|old| kind.kind == "ConfigMap" && old["data"] != new["data"]);
            let cause = |_| Cause::forbidden("data", "cannot be changed");
            fixed.map(cause).into_iter().collect()
        }
    }
    let test = TestServer::new("picky");
    let mut options = test.options();
    options.validator = std::sync::Arc::new(Picky);
    let _server = plexus_embedded::Server::start(options).unwrap();
    let mut client = test.client();
    let mut old = map("a", "1");
    old["data"] = json!({"old": "1"});
    let made = client.post(MAPS, &old);
    assert_eq!(
        made.header("warning"),
        Some(r#"299 - "data.old is data.new now""#)
    );
    assert_eq!(made.ok()["data"], json!({"new": "1"}));
    let patch = json!({"data": {"new": "2"}});
    let message = client.merge(&format!("{MAPS}/a"), &patch).refused(422);
    assert!(
        message.contains("data: Forbidden: cannot be changed"),
        "{message}"
    );
    let mut bad = map("b", "1");
    bad["data"] = json!({"refuse": "1"});
    assert!(client.post(MAPS, &bad).refused(422).contains("not here"));
}
