//! `plexus-<network>.conflist`: one CNI configuration per Network, so that runtimes that know nothing
//! of pods (Podman) find Plexus's networks by name. Owns the files with our mark: written
//! when a Network comes, put back if they vanish, removed when the API says that it is gone.
//!
//! A file without the mark is somebody else's, whatever its name, and is left alone. So is a name that
//! a file of somebody else's gives to its own network: a runtime would take either.

use crate::cluster::Cluster;
use crate::host::atomic_file;
use crate::host::conflist::{self, seen_or_made};
use crate::options::Options;
use plexus_api::cni::Version;
use plexus_cni::shim::DEFAULT_SOCKET;
use plexus_core::resolve::{CLUSTER_DEFAULT, NetworkObject, runtime_name};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Our mark, with the Network that the file is for.
const MARK: &str = "plexus.dev/network";
/// What the runtime may ask for one container.
const CAPABILITIES: [&str; 3] = ["ips", "mac", "portMappings"];

/// The files.
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
        let wanted = self.desired_files(networks);
        let mut foreign = Vec::new();
        let theirs = names_of_others(&directory)?;
        for (name, network) in &wanted {
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
            let keep = wanted.keys().filter(|name| !theirs.contains(*name));
            let keep: BTreeSet<String> = keep.map(|name| file_name(name)).collect();
            for (file, network) in ours(&directory)? {
                if !keep.contains(&file) {
                    fs::remove_file(directory.join(&file))?;
                    tracing::info!(network, file, "the Network is gone: its configuration too");
                }
            }
        }
        let mut logged = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
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
        let first = |network: &NetworkObject| {
            network.namespace == self.own_namespace && network.name == CLUSTER_DEFAULT
        };
        let named = networks.iter().filter(|network| !first(network));
        let named = named.filter_map(|network| {
            let name = runtime_name(network).ok()?.to_string();
            Some((name, format!("{}/{}", network.namespace, network.name)))
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
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let kind = path.extension().and_then(|kind| kind.to_str());
        let is_first = path.file_name() == Some(conflist::NAME.as_ref());
        if is_first || !matches!(kind, Some("conf" | "conflist" | "json")) {
            continue;
        }
        let text = fs::read(&path).unwrap_or_default();
        let value: Value = serde_json::from_slice(&text).unwrap_or_default();
        if value.get(MARK).is_none()
            && let Some(name) = value.get("name").and_then(Value::as_str)
        {
            found.insert(name.to_owned());
        }
    }
    Ok(found)
}

/// The files with our mark, and the Networks that they are for.
fn ours(directory: &Path) -> io::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let Ok(name) = entry?.file_name().into_string() else {
            continue;
        };
        if !name.starts_with("plexus-") || !name.ends_with(".conflist") {
            continue;
        }
        let text = fs::read_to_string(directory.join(&name)).unwrap_or_default();
        if let Some(network) = marked(&text) {
            found.push((name, network));
        }
    }
    found.sort();
    Ok(found)
}

fn marked(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    Some(value.get(MARK)?.as_str()?.to_owned())
}

/// `cniVersion` is one that older runtimes take; the list says that we speak more.
fn text(name: &str, network: &str, socket: &Path) -> String {
    let (namespace, object) = network.split_once('/').unwrap_or(("", network));
    let capabilities = CAPABILITIES.iter();
    let capabilities: serde_json::Map<String, Value> = capabilities
        .map(|name| ((*name).to_owned(), Value::Bool(true)))
        .collect();
    let mut plugin = json!({
        "type": "plexus-cni",
        "network": {"domain": "default-domain", "project": namespace, "name": object},
        "capabilities": capabilities,
    });
    if socket != Path::new(DEFAULT_SOCKET)
        && let Some(plugin) = plugin.as_object_mut()
    {
        plugin.insert("agentSocket".to_owned(), socket.to_string_lossy().into());
    }
    let conflist = json!({
        "cniVersion": Version::V1_0_0.as_str(),
        "cniVersions": Version::ALL.map(Version::as_str),
        "name": name,
        MARK: network,
        "plugins": [plugin],
    });
    format!("{conflist:#}\n")
}

#[cfg(test)]
#[path = "conflists_tests.rs"]
mod tests;
