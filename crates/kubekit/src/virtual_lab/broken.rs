//! A lab of virtual nodes, broken by its own verbs.

use super::VirtualLab;
use super::observer::records;
use crate::breakable::{Breakable, node as node_object};
use crate::cluster::{Cluster, Output, TIMEOUT, is_ready};
use crate::consistency::Observer;
use crate::kubernetes::output;
use crate::{command, wait};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeSet;

/// What `plexus lab kill-…` exits with if there is nobody to kill.
const NOBODY: i32 = 3;

impl VirtualLab {
    /// A verb of `plexus lab`, whatever comes of it.
    fn try_lab(&self, words: &[&str]) -> Result<Output> {
        let argv = super::lab_argv(&self.program, &self.name, words);
        Ok(output(command::output(&argv, "")?))
    }

    /// One that must succeed.
    fn lab(&self, words: &[&str]) -> Result<String> {
        let output = self.try_lab(words)?.text();
        output.with_context(|| words.join(" "))
    }

    /// One that kills a part. Whether it ran.
    fn kill(&self, words: &[&str]) -> Result<bool> {
        let output = self.try_lab(words)?;
        match output.status {
            NOBODY => Ok(false),
            _ => output.text().map(|_| true),
        }
    }

    fn uid(&self, node: &str) -> Result<Option<Value>> {
        let found = self.get(&node_object(node))?;
        Ok(found.map(|node| node["metadata"]["uid"].clone()))
    }

    /// The sandboxes on a node whose ADD is done, of the pods of a namespace.
    fn in_namespace(&self, node: &str, namespace: &str) -> Result<Vec<Value>> {
        let mut all = records(&self.directory, node)?;
        all.retain(|one| one["namespace"] == namespace && !one["result"].is_null());
        Ok(all)
    }
}

impl Breakable for VirtualLab {
    fn observer(&self) -> &dyn Observer {
        self
    }

    fn wait_usable(&self, _namespace: &str) -> Result<()> {
        Ok(())
    }

    fn kill_agent(&self, node: &str) -> Result<bool> {
        self.kill(&["kill", node])
    }

    fn kill_controller(&self) -> Result<bool> {
        self.kill(&["kill", "controller"])
    }

    fn take_agent(&self, node: &str) -> Result<()> {
        self.lab(&["kill", node, "--hold"]).map(drop)
    }

    fn return_agent(&self, node: &str) -> Result<()> {
        self.lab(&["start", node]).map(drop)
    }

    fn cut_off(&self, node: &str) -> Result<()> {
        // The keeper ends the pod; what Plexus has to do for that waits for the agent.
        self.take_agent(node)
    }

    fn rejoin(&self, node: &str) -> Result<()> {
        self.return_agent(node)
    }

    fn kill_api(&self) -> Result<()> {
        self.lab(&["kill", "server", "--hold"]).map(drop)
    }

    fn start_api(&self) -> Result<()> {
        self.lab(&["start", "server"]).map(drop)
    }

    fn register_again(&self, node: &str) -> Result<()> {
        let before = self.uid(node)?;
        self.delete(&node_object(node))?;
        wait::until(&format!("{node} is registered again"), TIMEOUT, || {
            let now = self.get(&node_object(node))?.filter(is_ready);
            let uid = now.map(|node| node["metadata"]["uid"].clone());
            Ok((uid.is_some() && uid != before).then_some(()))
        })
    }

    fn sandboxes(&self, node: &str, namespace: &str) -> Result<BTreeSet<String>> {
        let of_namespace = self.in_namespace(node, namespace)?;
        let ids = of_namespace
            .iter()
            .filter_map(|one| one["container"].as_str());
        Ok(ids.map(str::to_owned).collect())
    }

    fn stop_sandbox(&self, node: &str, id: &str) -> Result<()> {
        let all = records(&self.directory, node)?;
        let own = all.iter().find(|one| one["container"] == id);
        let netns = own.and_then(|one| one["netns"].as_str());
        let netns = netns.with_context(|| format!("no sandbox {id} on {node}"))?;
        let removed = command::output(&["ip", "netns", "del", netns], "")?;
        output(removed).text().map(drop)
    }

    fn revive(&self) -> Result<()> {
        let programs = self.spec()?["programs"].take();
        let mut words = vec!["up"];
        for (flag, key) in [("--shim", "shim"), ("--delegate-bin-dir", "delegates")] {
            if let Some(path) = programs[key].as_str() {
                words.extend([flag, path]);
            }
        }
        self.lab(&words).map(drop)
    }
}
