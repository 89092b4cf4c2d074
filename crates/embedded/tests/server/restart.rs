//! A server that is stopped and started again.

use crate::common::{Client, MAPS, TestServer, map, version};
use plexus_embedded::Server;
use plexus_embedded::kinds::Kinds;
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn everything_stays_and_versions_go_on() {
    let test = TestServer::new("restart");
    let server = test.start();
    let mut client = test.client();
    let made = client.post(MAPS, &map("a", "1")).ok();
    let changed = client
        .merge(&format!("{MAPS}/a"), &json!({"data": {"b": "2"}}))
        .ok();
    client.post(MAPS, &map("gone", "1")).ok();
    client.delete(&format!("{MAPS}/gone")).ok();
    let before = client.get("/api/v1/configmaps").ok();
    let newest = server.version();
    server.stop();

    let server = test.start();
    let mut client = test.client();
    assert!(server.version() >= newest, "{} {newest}", server.version());
    let again = client.get(&format!("{MAPS}/a")).ok();
    assert_eq!(again, changed);
    let after = client.get("/api/v1/configmaps").ok();
    assert_eq!(after["items"], before["items"]);
    assert!(version(&after) >= version(&before));
    let next = client.post(MAPS, &map("b", "1")).ok();
    assert!(version(&next) > newest && version(&next) > version(&made));
}

#[test]
fn a_watch_goes_on_where_it_was() {
    let test = TestServer::new("resume");
    let server = test.start();
    let mut client = test.client();
    let from = version(&client.post(MAPS, &map("a", "1")).ok());
    client
        .merge(&format!("{MAPS}/a"), &json!({"data": {"a": "2"}}))
        .ok();
    client.delete(&format!("{MAPS}/a")).ok();
    server.stop();

    let _server = test.start();
    let mut client = test.client();
    let mut events = client.lines(&format!("{MAPS}?watch=true&resourceVersion={from}"));
    assert_eq!(events.what(), ("MODIFIED".to_owned(), "a".to_owned()));
    let end = events.next().unwrap();
    assert_eq!(end["type"], "DELETED");
    assert!(version(&end["object"]) > from + 1, "{end}");
    client.post(MAPS, &map("b", "1")).ok();
    assert_eq!(events.what(), ("ADDED".to_owned(), "b".to_owned()));
}

#[test]
fn who_had_a_certificate_still_has_one() {
    let test = TestServer::new("certificates");
    let server = test.start();
    let port = server.address();
    let kept = test.path().join("kept");
    std::fs::copy(server.kubeconfig(), &kept).unwrap();
    server.stop();
    let mut options = test.options();
    options.listen = port;
    let server = plexus_embedded::Server::start(options).unwrap();
    let namespaces = Client::tls(&kept).get("/api/v1/namespaces").ok();
    assert_eq!(namespaces["items"].as_array().unwrap().len(), 4);
    let user = |path: &Path| -> Value {
        let config: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        config["users"][0].clone()
    };
    assert_eq!(
        user(server.kubeconfig()),
        user(&kept),
        "a certificate that is good for months is not signed anew"
    );
}

#[test]
fn one_server_per_directory() {
    let test = TestServer::new("one");
    let _server = test.start();
    let second = plexus_embedded::Server::start(test.options())
        .err()
        .unwrap();
    assert!(second.to_string().contains("is in use"), "{second}");
    test.client().get("/api/v1/namespaces").ok();
}

#[test]
fn a_server_can_be_started_inside_another_runtime() {
    let test = TestServer::new("inside");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = test.start();
        test.client().get("/api/v1/namespaces").ok();
        drop(server);
    });
    assert!(!test.path().join("api.sock").exists());
}

#[test]
fn another_version_of_a_kind_is_served_after_an_upgrade() {
    const OLD: &str = "v1alpha0";
    let test = TestServer::new("upgrade");
    let mut options = test.options();
    options.kinds = kinds_in(OLD);
    let server = Server::start(options).unwrap();
    let mut client = test.client();
    let blocks = |version: &str| format!("/apis/plexus.dev/{version}/blocks");
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/networks.plexus.dev";
    let networks =
        |version: &str| format!("/apis/plexus.dev/{version}/namespaces/default/networks");
    let network = json!({"metadata": {"name": "n"}, "spec": {}});
    client.post(&networks(OLD), &network).ok();
    let old = client.get(definition).ok();
    assert_eq!(old["spec"]["versions"][0]["name"], OLD);
    server.stop();

    let server = test.start();
    let mut client = test.client();
    let new = client.get(definition).ok();
    assert_eq!(new["spec"]["versions"][0]["name"], "v1alpha1");
    assert_eq!(new["status"]["storedVersions"], json!(["v1alpha1"]));
    assert_eq!(new["metadata"]["uid"], old["metadata"]["uid"]);
    let list = client.get(&networks("v1alpha1")).ok();
    assert_eq!(list["items"][0]["apiVersion"], "plexus.dev/v1alpha1");
    assert_eq!(list["items"][0]["metadata"]["name"], "n");
    client.get(&blocks(OLD)).refused(404);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let path = format!("{}/n", networks("v1alpha1"));
    client.merge(&path, &label).ok();
    server.stop();

    let _server = test.start();
    let again = test.client().get(definition).ok();
    assert_eq!(again, new, "a definition that is right is left alone");
}

/// The project's own definitions, in another version.
fn kinds_in(version: &str) -> Kinds {
    let room = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the room is");
    let crds = Path::new(&room).join("../../deploy/crds");
    let mut kinds = Kinds::builtin().unwrap();
    for entry in std::fs::read_dir(crds).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let text = text.replace("v1alpha1", version);
        let definition: Value = serde_yaml_ng::from_str(&text).unwrap();
        kinds = kinds.with_crd(&definition).unwrap();
    }
    kinds
}
