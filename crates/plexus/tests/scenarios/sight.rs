//! A lab, looked at: what its nodes, its pods' namespaces and its API have, to be compared with each other.

use crate::machine::Lab;
use crate::objects::{BLOCKS, NETWORKS, RECORDS, REQUESTS};
use anyhow::{Context, Result, bail};
use plexus_kubekit::truth::{self, Sandbox, Script, Seen, Sight};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

/// Longer than anything takes to settle after the last fault.
const SETTLED: Duration = Duration::from_secs(90);

impl Sight for Lab {
    fn nodes(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(self.file(""))?.flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let is_node = |name: &String| {
            let number = name.strip_prefix('n');
            number.is_some_and(|number| number.parse::<u8>().is_ok())
        };
        let mut nodes: Vec<String> = names.filter(is_node).collect();
        nodes.sort();
        Ok(nodes)
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

    fn look(&self, node: &str) -> Result<Seen> {
        let socket = self.file(&format!("{node}/agent.sock"));
        let pins = self.pins();
        let script = Script {
            pins: &pins,
            routers: &self.file(&format!("{node}/routers")),
            agent: &["--unix-socket", &socket, "http://plexus"],
            // No scene has a network with host-local.
            leases: None,
            queue: &format!("{socket}.queue"),
        };
        let command = script.command();
        let mut words = vec!["exec", "--node", node, "--"];
        words.extend(command.iter().map(String::as_str));
        let output = self.run(&words);
        Ok(Seen {
            sandboxes: self.sandboxes(node)?,
            printed: String::from_utf8_lossy(&output.stdout).into_owned(),
        })
    }
}

impl Lab {
    /// Waits until everybody tells the same story, and nothing is asked for any more.
    #[track_caller]
    pub(crate) fn all_is_true(&self) {
        if let Err(error) = truth::check(self, SETTLED) {
            panic!("{error:#}");
        }
        let asked = self.objects(REQUESTS);
        assert!(asked.is_empty(), "requests are left: {asked:#?}");
        let spaces: BTreeSet<String> = self.spaces().into_keys().collect();
        let nodes = Sight::nodes(self).unwrap();
        let known = nodes.iter().flat_map(|node| self.sandboxes(node).unwrap());
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
            .args(["-c", script, "sh", &self.pins()])
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

    /// The sandboxes whose ADD is done, as the keeper has recorded them.
    pub(crate) fn sandboxes(&self, node: &str) -> Result<BTreeMap<String, Sandbox>> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(self.file(&format!("{node}/pods")))?.flatten() {
            // One that vanishes while we look is no more.
            let text = fs::read(entry.path()).unwrap_or_default();
            let record: Value = serde_json::from_slice(&text).unwrap_or_default();
            if record["result"].is_null() {
                continue;
            }
            let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
            let sandbox = Sandbox {
                uid: text("uid"),
                space: text("netns"),
            };
            found.insert(text("container"), sandbox);
        }
        Ok(found)
    }

    fn pins(&self) -> String {
        format!("/run/netns/px-{}-s", self.name())
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
