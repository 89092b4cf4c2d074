//! Who may talk to the server.

use crate::common::{Client, TestServer};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn config(test: &TestServer) -> Value {
    let text = std::fs::read_to_string(test.path().join("kubeconfig")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn without_a_certificate_only_the_version_is_told() {
    let test = TestServer::new("stranger");
    let _server = test.start();
    let mut config = config(&test);
    config["users"][0]["user"] = json!({});
    let mut unauthenticated = Client::of_config(&config);
    for open in ["/version", "/readyz", "/livez", "/healthz"] {
        unauthenticated.get(open).ok();
    }
    for closed in [
        "/api",
        "/apis",
        "/api/v1/namespaces",
        "/openapi/v3",
        "/nothing",
    ] {
        let answer = unauthenticated.get(closed);
        assert_eq!(answer.body["reason"], "Unauthorized", "{closed}");
        answer.refused(401);
    }
    unauthenticated
        .post("/api/v1/namespaces", &json!({"metadata": {"name": "x"}}))
        .refused(401);
}

#[test]
fn a_certificate_of_another_authority_is_none() {
    let (test, other) = (TestServer::new("ours"), TestServer::new("theirs"));
    let (_server, _other) = (test.start(), other.start());
    let mut mixed = config(&test);
    mixed["users"] = config(&other)["users"].clone();
    let answer = Client::of_config(&mixed).send("GET", "/api/v1/namespaces", "", None);
    assert!(answer.is_err(), "{answer:?}");
    let mut mixed = config(&test);
    let cluster = &config(&other)["clusters"][0]["cluster"];
    mixed["clusters"][0]["cluster"]["certificate-authority-data"] =
        cluster["certificate-authority-data"].clone();
    let answer = Client::of_config(&mixed).send("GET", "/version", "", None);
    assert!(
        answer.is_err(),
        "a server that the client does not know: {answer:?}"
    );
}

#[test]
fn whoever_has_one_is_known_by_its_name() {
    let test = TestServer::new("named");
    let server = test.start();
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let text = server.kubeconfig_for("agent-n1", "plexus:agents").unwrap();
    let mut agent = Client::of_config(&serde_json::from_str(&text).unwrap());
    let who = agent.post(path, &review).ok();
    let user = &who["status"]["userInfo"];
    assert_eq!(user["username"], "agent-n1");
    assert_eq!(
        user["groups"],
        json!(["plexus:agents", "system:authenticated"])
    );
    let who = test.client().post(path, &review).ok();
    assert!(
        who["status"]["userInfo"]["username"]
            .as_str()
            .unwrap()
            .starts_with("unix:")
    );
}

#[test]
fn keys_are_readable_by_their_owner_alone() {
    let test = TestServer::new("modes");
    let _server = test.start();
    for file in [
        "kubeconfig",
        "ca.key",
        "store.db",
        "store.db-wal",
        "api.sock",
    ] {
        let mode = std::fs::metadata(test.path().join(file)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

/// Needs root, to become somebody else.
#[test]
fn somebody_else_on_the_socket_is_nobody() {
    let test = TestServer::new("somebody");
    let _server = test.start();
    let socket = test.path().join("api.sock");
    let ask = |socket: &std::path::Path| {
        std::process::Command::new("setpriv")
            .args([
                "--reuid=65534",
                "--clear-groups",
                "curl",
                "-s",
                "--max-time",
                "10",
            ])
            .arg("--unix-socket")
            .arg(socket)
            .arg("http://x/api/v1/namespaces")
            .output()
            .unwrap()
    };
    assert!(
        !ask(&socket).status.success(),
        "the file itself keeps others out"
    );
    let open = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(&socket, open).unwrap();
    let answer = ask(&socket);
    let body: Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(body["code"], 401, "{body}");
}
