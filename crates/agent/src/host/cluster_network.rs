//! Another CNI's configuration on this node: the one that gives pods their first interface
//! (`--cluster-network=delegate`), and those that NetworkAttachmentDefinitions without a
//! configuration mean. Owns reading the configuration directory; never writes, never guesses.
//!
//! The directory and the chosen file are looked at by every ADD (two `stat`s) and read again if they
//! have changed, so that a new version of the other CNI counts for the next pod.

use crate::sync::lock;
use plexus_api::cni::{Chain, Code, Error, Executable, OWN_TYPES, Version};
use plexus_cni::delegate::seen_from_here;
use plexus_types::{NetworkName, PluginType};
use serde_json::{Map, Value};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// More than any configuration in use.
const MAX_FILE: u64 = 1 << 20;
/// More than any directory in use.
const MAX_FILES: usize = 1000;
/// The endings that runtimes read.
const ENDINGS: [&str; 3] = ["conflist", "conf", "json"];
/// Those that call others in turn: one of them behind us could call us again.
const DELEGATING: [&str; 3] = ["multus", "multus-shim", "genie"];

/// The other CNI on this node, as it is configured now.
#[derive(Debug)]
pub(crate) struct OtherCni {
    directory: PathBuf,
    root: Option<PathBuf>,
    /// The name of our own configuration's file.
    ours: String,
    read: Mutex<Option<CachedConfiguration>>,
}

/// What was read, and what of the disk it was read from.
#[derive(Debug, Clone)]
struct CachedConfiguration {
    directory: Stamp,
    file: PathBuf,
    content: Stamp,
    network: (NetworkName, Chain),
}

/// Changes when a file or a directory does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    dev: u64,
    ino: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Of what is there now.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            dev: metadata.dev(),
            ino: metadata.ino(),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl OtherCni {
    /// Looks at nothing yet. `root` is the host's root, if that is not ours; `ours` is the name of
    /// the file that the agent writes into the directory.
    pub(crate) fn new(directory: &Path, root: Option<&Path>, ours: &str) -> Self {
        Self {
            directory: directory.to_owned(),
            root: root.map(Path::to_owned),
            ours: ours.to_owned(),
            read: Mutex::default(),
        }
    }

    /// Its name and its plugins; code 50 with the reason while there is none that can be used.
    pub(crate) fn chain(&self) -> Result<(NetworkName, Chain), Error> {
        let failed = |error: io::Error| unreadable(&self.directory, &error);
        let directory = seen_from_here(self.root.as_deref(), &self.directory).map_err(failed)?;
        let stamp = Stamp::of(&directory).map_err(failed)?;
        let mut read = lock(&self.read);
        if let Some(seen) = &*read
            && seen.directory == stamp
            && Stamp::of(&seen.file).is_ok_and(|content| content == seen.content)
        {
            return Ok(seen.network.clone());
        }
        *read = None;
        let seen = self.first(&directory, stamp)?;
        let (file, network) = (seen.file.display(), &seen.network.0);
        tracing::info!(%file, %network, "pods get their first interface from this configuration");
        let network = seen.network.clone();
        *read = Some(seen);
        Ok(network)
    }

    /// The first that is not ours, in the order in which runtimes read. One that cannot be used
    /// is an error, not a reason to take the next.
    fn first(&self, seen: &Path, directory: Stamp) -> Result<CachedConfiguration, Error> {
        let names = configurations(seen).map_err(|e| unreadable(&self.directory, &e))?;
        for name in names.iter().filter(|name| **name != self.ours) {
            let shown = self.directory.join(name);
            let read = seen_from_here(self.root.as_deref(), &shown).and_then(load);
            let (file, content, map) = read.map_err(|e| unreadable(&shown, &e))?;
            if is_ours(&map) {
                continue;
            }
            let network = network(&map).map_err(|problem| {
                let file = shown.display();
                unavailable(
                    format!("the cluster network's configuration {file}: {problem}"),
                    "correct it, or remove it if it is left over from another CNI",
                )
            })?;
            return Ok(CachedConfiguration {
                directory,
                file,
                content,
                network,
            });
        }
        let directory = self.directory.display();
        Err(unavailable(
            format!("no other CNI has put its configuration into {directory} yet"),
            "install the CNI that gives pods their first interface, or start the agent with --cluster-network=own",
        ))
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let path = path.display();
    unavailable(
        format!("the cluster network's configuration cannot be read: {path}: {error}"),
        "is the directory right (--cni-conf-dir), and mounted if the agent is in a container?",
    )
}

/// The text of the configuration that has this `name`: of `.conflist` files first, as Multus looks.
/// None if there is no such file, or none that can be read.
pub(crate) fn on_disk(directory: &Path, root: Option<&Path>, name: &str) -> Option<String> {
    let seen = seen_from_here(root, directory).ok()?;
    let mut files = configurations(&seen).ok()?;
    files.sort_by_key(|file| !file.ends_with(".conflist"));
    files.into_iter().find_map(|file| {
        let path = seen_from_here(root, &directory.join(file)).ok()?;
        let text = read_bounded(&path).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        (value.get("name")?.as_str()? == name).then_some(text)
    })
}

/// The names of the files that a runtime would read, in its order; it looks at no more files than any directory has.
pub(crate) fn configurations(directory: &Path) -> io::Result<Vec<String>> {
    configurations_among(directory, MAX_FILES)
}

/// The same, of the first `most` files.
pub(crate) fn configurations_among(directory: &Path, most: usize) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)?.take(most) {
        let Ok(name) = entry?.file_name().into_string() else {
            continue;
        };
        let ending = Path::new(&name).extension().and_then(|e| e.to_str());
        if ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The stamp is from before the reading: a change in between is seen the next time.
fn load(path: PathBuf) -> io::Result<(PathBuf, Stamp, Map<String, Value>)> {
    let stamp = Stamp::of(&path)?;
    let map = serde_json::from_str(&read_bounded(&path)?).map_err(io::Error::other)?;
    Ok((path, stamp, map))
}

fn read_bounded(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let mut text = String::new();
    let read = file.take(MAX_FILE + 1).read_to_string(&mut text)?;
    match read as u64 > MAX_FILE {
        true => Err(io::Error::other(format!(
            "it has more than {MAX_FILE} bytes"
        ))),
        false => Ok(text),
    }
}

/// Its plugins; one that is not in a list is a list of one.
fn plugins(map: &Map<String, Value>) -> Vec<&Map<String, Value>> {
    match map.get("plugins") {
        Some(Value::Array(plugins)) => plugins.iter().filter_map(Value::as_object).collect(),
        _ => vec![map],
    }
}

fn type_of<'a>(plugin: &&'a Map<String, Value>) -> Option<&'a str> {
    plugin.get("type").and_then(Value::as_str)
}

fn is_ours(map: &Map<String, Value>) -> bool {
    let mut types = plugins(map).into_iter();
    types.any(|plugin| type_of(&plugin).is_some_and(|name| OWN_TYPES.contains(&name)))
}

/// Reads a configuration that will be executed as it is.
fn network(map: &Map<String, Value>) -> Result<(NetworkName, Chain), String> {
    let name = map.get("name").and_then(Value::as_str);
    let name = name.ok_or("it has no \"name\"")?;
    let name = NetworkName::new(name).map_err(|e| e.to_string())?;
    if map.get("plugins").is_some_and(|list| !list.is_array()) {
        return Err("\"plugins\" is not a list".to_owned());
    }
    let mut chain = Chain {
        executable: Executable::Type,
        version: version(map),
        plugins: Vec::new(),
        unsupported_key: None,
    };
    let all = plugins(map);
    let written = map
        .get("plugins")
        .and_then(Value::as_array)
        .map_or(1, Vec::len);
    if all.is_empty() || all.len() != written {
        return Err("\"plugins\" must be a list of at least one plugin's configuration".to_owned());
    }
    for plugin in all {
        let name = type_of(&plugin).ok_or("a plugin has no \"type\"")?;
        PluginType::new(name).map_err(|e| e.to_string())?;
        if DELEGATING.contains(&name) {
            return Err(format!(
                "plugin {name} calls other plugins, and would call Plexus in turn: let it call Plexus (--cluster-network=none), or remove its configuration"
            ));
        }
        let mut plugin = plugin.clone();
        for inserted in [
            "cniVersion",
            "cniVersions",
            "name",
            "runtimeConfig",
            "prevResult",
        ] {
            plugin.remove(inserted);
        }
        chain.plugins.push(plugin);
    }
    Ok((name, chain))
}

/// The highest version that is written there and that we speak. Older ones than ours, and none at
/// all, are asked for by our oldest: the plugin's own list decides.
fn version(map: &Map<String, Value>) -> Version {
    let more = map.get("cniVersions").and_then(Value::as_array);
    let written = map
        .get("cniVersion")
        .into_iter()
        .chain(more.into_iter().flatten());
    let spoken = written.filter_map(Value::as_str).filter_map(Version::parse);
    spoken.max().unwrap_or(Version::V0_3_0)
}

fn unavailable(text: String, next: &str) -> Error {
    Error::new(Code::NotAvailable, text, next)
}

#[cfg(test)]
#[path = "cluster_network_tests.rs"]
mod tests;
