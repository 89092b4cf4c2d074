//! The command line on a real API server that knows nothing of Plexus, and serves what is not served by default:
//! `PLEXUS_TEST_KUBECONFIG` names it. (Not one of the tests on a cluster: those have Plexus.)
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

use plexus_testkit::{PLEXUS, answers, bin, examples_of_another_version};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Command, Output, Stdio};

/// `plexus`, against that server.
fn plexus(words: &[&str]) -> Output {
    let kubeconfig = std::env::var_os("PLEXUS_TEST_KUBECONFIG");
    let kubeconfig = kubeconfig.expect("PLEXUS_TEST_KUBECONFIG: cargo xtask test-kube gives it");
    let mut command = Command::new(bin(PLEXUS));
    command
        .args(words)
        .env("KUBECONFIG", kubeconfig)
        .env_remove("PLEXUS_LAB")
        .stdin(Stdio::null());
    command.output().expect("plexus runs")
}

fn json(words: &[&str]) -> Value {
    let output = plexus(words);
    let parsed = serde_json::from_slice(&output.stdout);
    parsed.unwrap_or_else(|error| panic!("{words:?}: {error}: {output:?}"))
}

#[test]
fn doctor_says_what_is_not_installed() {
    let report = json(&["doctor", "-o", "json", "--node", "n1"]);
    let checks = report["checks"].as_array().expect("checks");
    let of = |name: &str| {
        let found = checks.iter().find(|check| check["name"] == name);
        let found = found.unwrap_or_else(|| panic!("no {name}: {report:#}"));
        let text = |key: &str| found[key].as_str().expect("text").to_owned();
        (
            text("verdict"),
            format!("{} next: {}", text("found"), text("next")),
        )
    };
    assert_eq!(of("api.server").0, "pass", "{report:#}");
    let mut failed = BTreeSet::new();
    for (name, words) in [
        ("api.definitions", "deploy/install.yaml"),
        ("api.controller", "no controller has ever run"),
    ] {
        let (verdict, message) = of(name);
        assert!(
            verdict == "fail" && message.contains(words),
            "{name}: {verdict}: {message}"
        );
        failed.insert(name);
    }
    let wanted: BTreeSet<&str> = answers::CHECKS_OF_A_BARE_API_SERVER
        .iter()
        .copied()
        .collect();
    assert_eq!(failed, wanted);
    let refused = plexus(&["get", "networks"]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && message.contains("knows no Network"),
        "{message}"
    );
}

/// Both claims of the document, as they are written there, and what the server makes of them.
#[test]
fn claims_as_they_were_first_written() {
    let files = examples_of_another_version();
    assert_eq!(files.len(), 2, "{files:?}");
    for (number, file) in files.iter().enumerate() {
        let namespace = format!("original-{}-{number}", std::process::id());
        let own = Namespace::new(&namespace);
        let file = file.display().to_string();
        let words = ["apply", "--skip-validation", "-n", &own.0, "-f", &file];
        let applied = plexus(&words);
        assert!(applied.status.success(), "{file}: {applied:?}");
        let claims = json(&["get", "resourceclaims", "-n", &own.0, "-o", "json"]);
        let claim = claims.pointer("/items/0").unwrap_or(&claims);
        let class = claim.pointer("/spec/devices/requests/0/exactly/deviceClassName");
        let class = class.and_then(Value::as_str);
        assert_eq!(class, Some("cni.networking.x-k8s.io"), "{claim:#}");
    }
}

/// A namespace, deleted when dropped; nobody waits for that.
struct Namespace(String);

impl Namespace {
    fn new(name: &str) -> Self {
        let file = std::env::temp_dir().join(format!("plexus-{name}.yaml"));
        let text = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}\n");
        std::fs::write(&file, text).expect("written");
        let made = plexus(&["apply", "-f", &file.display().to_string()]);
        std::fs::remove_file(&file).expect("removed");
        assert!(made.status.success(), "{made:?}");
        Self(name.to_owned())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The server goes with the test: what is left is nobody's loss.
        let _ = plexus(&["delete", "namespace", &self.0, "--wait=false"]);
    }
}
