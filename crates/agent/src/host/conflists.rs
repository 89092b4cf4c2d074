//! `plexus-<network>.conflist`: one CNI configuration per Network, so that runtimes that know nothing
//! of pods (Podman) find Plexus's networks by name. Owns the files with our mark: written
//! when a Network comes, put back if they vanish, removed when the API says that it is gone.
//!
//! A file without the mark is somebody else's, whatever its name, and is left alone. So is a name that
//! a file of somebody else's gives to its own network: a runtime would take either.

use crate::cluster::Cluster;
use crate::host::atomic_file;
use crate::host::cluster_network::configurations_among;
use crate::host::conflist::{self, seen_or_made};
use crate::options::Options;
use crate::sync::lock;
use plexus_core::resolve::{CLUSTER_DEFAULT, NetworkObject, runtime_name};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Our mark, with the Network that the file is for.
const MARK: &str = "plexus.dev/network";
/// What the runtime may ask for one container.
const CAPABILITIES: [&str; 3] = ["ips", "mac", "portMappings"];

#[derive(Debug)]
pub(crate) struct Conflists {
    directory: PathBuf,
    root: Option<PathBuf>,
    socket: PathBuf,
    /// The namespace of the network that is nobody's by name.
    own_namespace: String,
    /// The networks whose names others have, as was said last.
    foreign: Mutex<Vec<String>>,
}

impl Conflists {
    /// None unless containers are served that are no pods.
    pub(crate) fn of(options: &Options) -> Option<Self> {
        let kubernetes = options.kubernetes.as_ref()?;
        kubernetes.containers.then(|| Self {
            directory: options.cni_conf_dir.clone(),
            root: options.host_root.clone(),
            socket: options.socket.clone(),
            own_namespace: kubernetes.namespace.clone(),
            foreign: Mutex::default(),
        })
    }

    /// Keeps the files as the cluster's Networks are: whether nothing is left for later.
    pub(crate) fn write(&self, cluster: &Cluster) -> Result<bool, String> {
        if !cluster.synced() {
            return Ok(false);
        }
        let complete = cluster.is_live();
        let written = self.write_files(&cluster.networks(), complete);
        written.map_err(|error| {
            let directory = self.directory.display();
            format!(
                "cannot write the networks' configurations to {directory}, so that runtimes do not find them: {error}"
            )
        })?;
        Ok(complete)
    }

    /// Makes the files what the Networks are. Those of Networks that are not there go only if the
    /// list is `complete`.
    fn write_files(&self, networks: &[Arc<NetworkObject>], complete: bool) -> io::Result<()> {
        let directory = seen_or_made(&self.directory, self.root.as_deref())?;
        let desired = self.desired_files(networks);
        let mut foreign = Vec::new();
        let theirs = names_of_others(&directory)?;
        for (name, network) in &desired {
            let path = directory.join(file_name(name));
            let text = text(name, network, &self.socket);
            if theirs.contains(name) {
                foreign.push(name.clone());
                continue;
            }
            match fs::read_to_string(&path) {
                Ok(there) if there == text => {}
                Ok(there) if marked(&there).is_none() => foreign.push(name.clone()),
                _ => {
                    atomic_file::put(&path, text.as_bytes(), 0o644)?;
                    tracing::info!(network, file = %path.display(), "runtimes find it as {name}");
                }
            }
        }
        if complete {
            let names = desired.keys().filter(|name| !theirs.contains(*name));
            let files: BTreeSet<String> = names.map(|name| file_name(name)).collect();
            for (file, network) in ours(&directory)? {
                if !files.contains(&file) {
                    fs::remove_file(directory.join(&file))?;
                    tracing::info!(network, file, "the Network is gone: its configuration too");
                }
            }
        }
        let mut logged = lock(&self.foreign);
        if foreign != *logged && !foreign.is_empty() {
            tracing::warn!(
                networks = foreign.join(", "),
                directory = %self.directory.display(),
                "somebody else's files have these networks' names and are left as they are: \
                 rename those, so that runtimes find the networks"
            );
        }
        *logged = foreign;
        Ok(())
    }

    /// The Networks that runtimes may use, by the name that they have for them.
    fn desired_files(&self, networks: &[Arc<NetworkObject>]) -> BTreeMap<String, String> {
        let named = networks.iter().filter_map(|network| {
            let NetworkObject {
                namespace, name, ..
            } = &**network;
            if *namespace == self.own_namespace && name == CLUSTER_DEFAULT {
                return None;
            }
            let runtime_name = runtime_name(network).ok()?.to_string();
            Some((runtime_name, format!("{namespace}/{name}")))
        });
        named.collect()
    }
}

/// Every file with our mark; none where there is no directory.
pub(crate) fn written(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let files = ours(directory)?.into_iter();
    Ok(files.map(|(file, _)| directory.join(file)).collect())
}

fn file_name(name: &str) -> String {
    format!("plexus-{name}.conflist")
}

/// What the files of others call their networks. Our first one has a name that no Network has.
fn names_of_others(directory: &Path) -> io::Result<BTreeSet<String>> {
    let files = configurations_among(directory, usize::MAX)?.into_iter();
    let name_of = |file: String| {
        let text = fs::read(directory.join(file)).unwrap_or_default();
        let value: Value = serde_json::from_slice(&text).unwrap_or_default();
        let name = value.get("name").filter(|_| value.get(MARK).is_none())?;
        Some(name.as_str()?.to_owned())
    };
    let others = files.filter(|file| file != conflist::NAME);
    Ok(others.filter_map(name_of).collect())
}

/// The files with our mark, and the Networks that they are for.
fn ours(directory: &Path) -> io::Result<Vec<(String, String)>> {
    let files = match configurations_among(directory, usize::MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        files => files?,
    };
    let named = files
        .into_iter()
        .filter(|name| name.starts_with("plexus-") && name.ends_with(".conflist"));
    let marked = named.filter_map(|name| {
        let text = fs::read_to_string(directory.join(&name)).ok()?;
        let network = marked(&text)?;
        Some((name, network))
    });
    Ok(marked.collect())
}

fn marked(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    Some(value.get(MARK)?.as_str()?.to_owned())
}

fn text(name: &str, network: &str, socket: &Path) -> String {
    let (namespace, object) = network.split_once('/').unwrap_or(("", network));
    let list = json!({"name": name, MARK: network});
    let plugin = json!({
        "network": {"domain": "default-domain", "project": namespace, "name": object},
    });
    conflist::configuration(list, plugin, &CAPABILITIES, socket)
}

#[cfg(test)]
#[path = "conflists_tests.rs"]
mod tests;
