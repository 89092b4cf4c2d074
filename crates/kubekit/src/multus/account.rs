//! What a program on a node needs to speak to the API server as a service account.

use crate::lab::Lab;
use crate::layout::{API_PORT, CONTROL_PLANE_V4, Layout};
use anyhow::{Context, Result};
use serde_json::json;
use std::fs;

/// A token that outlives the lab.
pub(super) fn token(lab: &Lab, account: &str) -> Result<String> {
    let asked = [
        "create",
        "token",
        account,
        "--namespace=kube-system",
        "--duration=24h",
    ];
    Ok(lab.kubectl(&asked)?.trim().to_owned())
}

/// The certificate that the API server's is signed with.
pub(super) fn authority(layout: &Layout) -> Result<String> {
    let path = layout.pki().join("ca.crt");
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// For the account, from a node.
pub(super) fn kubeconfig(layout: &Layout, account: &str, token: &str) -> Result<String> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": account, "namespace": "kube-system"}}],
        "clusters": [{"name": "lab", "cluster": {
            "server": format!("https://{CONTROL_PLANE_V4}:{API_PORT}"),
            "certificate-authority": layout.pki().join("ca.crt"),
        }}],
        "users": [{"name": account, "user": {"token": token}}],
    });
    Ok(serde_json::to_string_pretty(&config)?)
}
