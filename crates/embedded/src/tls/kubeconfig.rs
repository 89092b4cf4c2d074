//! The file by which clients find the server and prove who they are.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What is in one.
pub(crate) struct Kubeconfig<'a> {
    pub(crate) server: &'a str,
    /// Certificates and key as PEM.
    pub(crate) authority: &'a str,
    pub(crate) user: &'a str,
    pub(crate) certificate: &'a str,
    pub(crate) key: &'a str,
}

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
            }}],
            "current-context": "plexus",
        });
        format!("{config:#}\n")
    }
}

/// Writes a file that only its owner can read; it is there whole, or not at all.
///
/// # Errors
/// As the disk says.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.new"));
    let _ = std::fs::remove_file(&new);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}
