//! A cluster of kubelets, looked at: containerd says which sandboxes run, and their bundles where their namespaces are.

use super::observed::{list, string};
use super::{NodeObservation, Observer, Sandbox, Script};
use crate::cluster::Cluster;
use crate::kubernetes::Kube;
use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeMap;

const SCRIPT: Script<'_> = Script {
    pins: "/run/netns/cni-",
    routers: "/run/plexus/routers",
    agent: &["http://127.0.0.1:9091"],
    leases: Some("/var/lib/cni/networks"),
    queue: "/run/plexus/agent.sock.queue",
};

/// Prints `<id>/config.json:"type":"network","path":"…"` for each of them.
const PINS: &str = r#"cd /run/containerd/io.containerd.runtime.v2.task/k8s.io 2>/dev/null || exit 0
grep -Ho '"type":"network","path":"[^"]*"' */config.json || true"#;

impl Observer for Kube {
    fn nodes(&self) -> Result<Vec<String>> {
        Cluster::nodes(self)
    }

    fn list(&self, api_version: &str, kind: &str) -> Result<Vec<Value>> {
        Cluster::list(self, api_version, kind, "")
    }

    fn observe(&self, node: &str) -> Result<NodeObservation> {
        let crictl = self.lab().tools().crictl.join("crictl");
        let crictl = crictl.display().to_string();
        let listed = [&crictl, "pods", "-o", "json", "--state", "ready"];
        let listed = self.on_node(node, &listed)?.text()?;
        let pins = self.on_node(node, &["sh", "-c", PINS])?.text()?;
        let command = SCRIPT.command();
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        Ok(NodeObservation {
            sandboxes: sandboxes(&serde_json::from_str(&listed)?, &pins),
            printed: self.on_node(node, &words)?.stdout,
        })
    }
}

fn sandboxes(listed: &Value, pins: &str) -> BTreeMap<String, Sandbox> {
    let pinned: BTreeMap<&str, &str> = pins.lines().filter_map(pin).collect();
    let one = |item: &Value| {
        let id = item["id"].as_str()?;
        let space = pinned.get(id)?;
        let sandbox = Sandbox {
            uid: string(&item["metadata"]["uid"]),
            space: (*space).to_owned(),
        };
        Some((id.to_owned(), sandbox))
    };
    list(&listed["items"]).iter().filter_map(one).collect()
}

/// `<id>/config.json:"type":"network","path":"/var/run/netns/<pin>"`.
fn pin(line: &str) -> Option<(&str, &str)> {
    let (id, rest) = line.split_once("/config.json:")?;
    let path = rest.strip_suffix('"')?.rsplit('"').next()?;
    Some((id, path.strip_prefix("/var/run/netns/")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_read() {
        let line = "ab/config.json:\"type\":\"network\",\"path\":\"/var/run/netns/cni-1\"";
        assert_eq!(pin(line), Some(("ab", "cni-1")));
        let host = "ab/config.json:\"type\":\"network\",\"path\":\"/proc/1/ns/net\"";
        assert_eq!(pin(host), None);
    }
}
