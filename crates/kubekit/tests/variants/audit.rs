//! What the API server was asked, by its own audit log: who watched which pods.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

const POLICY: &str = r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived"],
"rules":[{"level":"Metadata","resources":[{"group":"","resources":["pods"]}]},{"level":"None"}]}"#;

/// A directory with the policy and the log, gone when dropped.
pub(crate) struct Audit(PathBuf);

impl Audit {
    pub(crate) fn new() -> Self {
        let dir = std::env::temp_dir().join(format!("plexus-audit-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(dir.join("policy"), POLICY).expect("written");
        Self(dir)
    }

    /// For the API server.
    pub(crate) fn flags(&self) -> Vec<String> {
        let dir = self.0.display();
        vec![
            format!("--audit-policy-file={dir}/policy"),
            format!("--audit-log-path={dir}/log"),
        ]
    }

    /// Whatever an agent listed or watched of pods, it asked for those of its node.
    pub(crate) fn assert_agents_watch_their_own_pods(&self, nodes: &[String]) {
        let text = fs::read_to_string(self.0.join("log")).expect("a log");
        let mut seen = BTreeSet::new();
        for line in text.lines() {
            let entry: Value = serde_json::from_str(line).expect(line);
            let user = &entry["user"];
            let collects = ["list", "watch"].iter().any(|verb| entry["verb"] == *verb);
            if user["username"] != "system:serviceaccount:plexus-system:plexus-agent" || !collects {
                continue;
            }
            let node = user["extra"]["authentication.kubernetes.io/node-name"][0].as_str();
            let node = node.expect("a token of a node").to_owned();
            let asked = entry["requestURI"].as_str().expect("a path");
            let selector = format!("fieldSelector=spec.nodeName%3D{node}");
            let plain = format!("fieldSelector=spec.nodeName={node}");
            let ends = |part: &str| {
                let mut words = asked.split(['?', '&']);
                words.any(|word| word == part)
            };
            assert!(ends(&selector) || ends(&plain), "{asked} of {node}");
            seen.insert(node);
        }
        assert_eq!(seen, nodes.iter().cloned().collect());
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays: {error}", self.0.display());
        }
    }
}
