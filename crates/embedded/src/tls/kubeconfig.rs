//! The file by which clients find the server and prove who they are.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::Path;

/// What is in one.
pub(crate) struct Kubeconfig<'a> {
    pub(crate) server: &'a str,
    /// Certificates and key as PEM.
    pub(crate) authority: &'a str,
    pub(crate) user: &'a str,
    pub(crate) certificate: &'a str,
    pub(crate) key: &'a str,
    /// That of the server: by it the server is told from all others, whatever its context is called.
    pub(crate) directory: &'a Path,
}

/// The extension of the context that has the directory.
const MARK: &str = "plexus.dev";

impl Kubeconfig<'_> {
    /// As a file has it. JSON is YAML.
    pub(crate) fn text(&self) -> String {
        let encoded = |pem: &str| Value::String(STANDARD.encode(pem));
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "plexus", "cluster": {
                "server": self.server,
                "certificate-authority-data": encoded(self.authority),
            }}],
            "users": [{"name": self.user, "user": {
                "client-certificate-data": encoded(self.certificate),
                "client-key-data": encoded(self.key),
            }}],
            "contexts": [{"name": "plexus", "context": {
                "cluster": "plexus", "user": self.user, "namespace": "default",
                "extensions": [{"name": MARK, "extension": {"directory": self.directory}}],
            }}],
            "current-context": "plexus",
        });
        format!("{config:#}\n")
    }
}
