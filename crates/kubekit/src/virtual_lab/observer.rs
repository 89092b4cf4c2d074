//! A lab of virtual nodes, looked at: its keeper's records say which sandboxes run.

use super::lab_argv;
use crate::cluster::Cluster;
use crate::command;
use crate::consistency::{NodeObservation, Observer, Sandbox, Script};
use crate::virtual_lab::VirtualLab;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A lab by its name and its directory; the API is not needed.
#[derive(Debug, Clone)]
pub struct LabView {
    /// The program whose verb `lab` is.
    pub program: PathBuf,
    /// The lab's name.
    pub name: String,
    /// Where its files are.
    pub directory: PathBuf,
}

impl LabView {
    /// The nodes that have a directory.
    pub fn nodes(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.directory)?.flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let is_node = |name: &String| {
            let number = name.strip_prefix('n');
            number.is_some_and(|number| number.parse::<u8>().is_ok())
        };
        let mut nodes: Vec<String> = names.filter(is_node).collect();
        nodes.sort();
        Ok(nodes)
    }

    /// How the pins of pods' namespaces begin, with the directory.
    pub fn pins(&self) -> String {
        format!("/run/netns/px-{}-s", self.name)
    }

    /// A node, as its kernel, its agent and the keeper show it.
    pub fn observe(&self, node: &str) -> Result<NodeObservation> {
        let file = |name: &str| self.directory.join(node).join(name).display().to_string();
        let socket = file("agent.sock");
        let script = Script {
            pins: &self.pins(),
            routers: &file("routers"),
            agent: &["--unix-socket", &socket, "http://plexus"],
            leases: Some(&file("plugins/networks")),
            queue: &format!("{socket}.queue"),
        };
        let script = script.command();
        let mut words = vec!["exec", "--node", node, "--"];
        words.extend(script.iter().map(String::as_str));
        let output = command::output(&lab_argv(&self.program, &self.name, &words), "")?;
        Ok(NodeObservation {
            sandboxes: self.sandboxes(node)?,
            printed: String::from_utf8_lossy(&output.stdout).into_owned(),
        })
    }

    /// The sandboxes whose ADD is done, by container id.
    pub fn sandboxes(&self, node: &str) -> Result<BTreeMap<String, Sandbox>> {
        let records = records(&self.directory, node)?;
        let done = records.iter().filter(|record| !record["result"].is_null());
        let each = done.map(|record| {
            let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
            let sandbox = Sandbox {
                uid: text("uid"),
                space: text("netns"),
            };
            (text("container"), sandbox)
        });
        Ok(each.collect())
    }
}

/// What the keeper has written down about each sandbox of a node. One that vanishes while we look is no more.
pub(super) fn records(directory: &Path, node: &str) -> Result<Vec<Value>> {
    let path = directory.join(node).join("pods");
    let entries = fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let texts = entries
        .flatten()
        .filter_map(|entry| fs::read(entry.path()).ok());
    let records = texts.filter_map(|text| serde_json::from_slice(&text).ok());
    Ok(records.collect())
}

impl Observer for VirtualLab {
    fn nodes(&self) -> Result<Vec<String>> {
        self.view().nodes()
    }

    fn list(&self, api_version: &str, kind: &str) -> Result<Vec<Value>> {
        Cluster::list(self, api_version, kind, "")
    }

    fn observe(&self, node: &str) -> Result<NodeObservation> {
        self.view().observe(node)
    }
}
