//! A lab, looked at: what its nodes, its pods' namespaces and its API have, to be compared with each other.

use crate::machine::Lab;
use crate::objects::{BLOCKS, NETWORKS, RECORDS, REQUESTS};
use anyhow::{Context, Result, bail};
use plexus_kubekit::consistency::{self, NodeObservation, Observer};
use plexus_kubekit::virtual_lab::LabView;
use plexus_testkit::{PLEXUS, bin};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

/// Longer than anything takes to settle after the last fault.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(90);

impl Observer for Lab {
    fn nodes(&self) -> Result<Vec<String>> {
        self.view().nodes()
    }

    fn list(&self, api_version: &str, kind: &str) -> Result<Vec<Value>> {
        let path = match (api_version, kind) {
            ("v1", "Node") => "/api/v1/nodes",
            ("v1", "Pod") => "/api/v1/pods",
            (_, "PodAttachments") => RECORDS,
            (_, "Block") => BLOCKS,
            (_, "Network") => NETWORKS,
            other => bail!("nobody lists {other:?} here"),
        };
        let answer = self.ask("GET", path, &Value::Null);
        let answer = answer.context("the server does not answer")?;
        if answer.status != 200 {
            bail!("{path}: {} {}", answer.status, answer.body);
        }
        let list = answer.json();
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    fn observe(&self, node: &str) -> Result<NodeObservation> {
        self.view().observe(node)
    }
}

impl Lab {
    /// Waits until everybody tells the same story, and nothing is asked for any more.
    #[track_caller]
    pub(crate) fn all_is_true(&self) {
        if let Err(error) = consistency::check(self, SETTLE_TIMEOUT) {
            panic!("{error:#}");
        }
        let asked = self.objects(REQUESTS);
        assert!(asked.is_empty(), "requests are left: {asked:#?}");
        let spaces: BTreeSet<String> = self.spaces().into_keys().collect();
        let view = self.view();
        let nodes = view.nodes().unwrap();
        let known = nodes.iter().flat_map(|node| view.sandboxes(node).unwrap());
        let known: BTreeSet<String> = known.map(|(_, sandbox)| sandbox.space).collect();
        assert_eq!(spaces, known, "namespaces of no pod, or pods without one");
    }

    /// Addresses that two of the pods' namespaces have at the same time. They must be of networks that do not overlap.
    pub(crate) fn duplicates(&self) -> Vec<String> {
        let twice = shared(&self.spaces());
        if twice.is_empty() {
            return Vec::new();
        }
        // One may have gone, and the other come, while we went from the one to the other.
        let again = shared(&self.spaces());
        let both = twice.into_iter().filter(|one| again.contains(one));
        both.map(|(ip, owners)| format!("{ip} is on {}", owners.join(" and ")))
            .collect()
    }

    /// What the kernel has in each of the pods' namespaces.
    pub(crate) fn spaces(&self) -> BTreeMap<String, BTreeSet<IpAddr>> {
        let script = r#"for pin in "$1"*; do [ -e "$pin" ] || continue
            echo "@ ${pin##*/}"; nsenter --net="$pin" ip -o addr show scope global 2>/dev/null; done; true"#;
        let output = Command::new("sh")
            .args(["-c", script, "sh", &self.view().pins()])
            .output()
            .unwrap();
        let mut spaces: BTreeMap<String, BTreeSet<IpAddr>> = BTreeMap::new();
        let mut current = String::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            if let Some(name) = line.strip_prefix("@ ") {
                name.clone_into(&mut current);
                spaces.entry(current.clone()).or_default();
            } else if let Some(address) = line.split_whitespace().nth(3) {
                let bare = address.split('/').next().unwrap_or_default();
                let found = spaces.entry(current.clone()).or_default();
                found.extend(bare.parse::<IpAddr>().ok());
            }
        }
        spaces
    }

    pub(crate) fn view(&self) -> LabView {
        LabView {
            program: bin(PLEXUS),
            name: self.name().to_owned(),
            directory: self.file("").into(),
        }
    }
}

/// Addresses with more than one owner.
fn shared(spaces: &BTreeMap<String, BTreeSet<IpAddr>>) -> Vec<(IpAddr, Vec<String>)> {
    let mut owners: BTreeMap<IpAddr, Vec<String>> = BTreeMap::new();
    for (space, addresses) in spaces {
        for address in addresses {
            owners.entry(*address).or_default().push(space.clone());
        }
    }
    let all = owners.into_iter();
    all.filter(|(_, owners)| owners.len() > 1).collect()
}
