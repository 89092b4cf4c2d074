//! `00-plexus.conflist`: what makes the runtime call us for every pod. Owns that one file: it is
//! written when the agent is ready, put back if it vanishes or is changed, and never removed here,
//! since a pod cannot be deleted by a runtime that has no configuration.
//!
//! Others' files are never touched. One that sorts before ours is used instead of ours, and pods
//! then get nothing from us: all we can do is say so.

use crate::host::atomic_file;
use crate::host::cluster_network::{Stamp, configurations};
use crate::options::{ClusterNetwork, Options};
use crate::sync::lock;
use plexus_api::cni::{Chain, POD_ANNOTATIONS, Version};
use plexus_api::go_folds;
use plexus_cni::delegate::seen_from_here;
use plexus_cni::shim::DEFAULT_SOCKET;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// The file's name: first among those that people give such files.
pub(crate) const NAME: &str = "00-plexus.conflist";

/// What the runtime is asked to tell us about every pod.
const CAPABILITIES: [&str; 4] = ["portMappings", POD_ANNOTATIONS, "bandwidth", "dns"];
/// What the other CNI's plugins may ask for besides, where they make the first interface.
const PASSED_ON: [&str; 8] = [
    "ips",
    "mac",
    "cgroupPath",
    "ipRanges",
    "aliases",
    "infinibandGUID",
    "deviceID",
    "CNIDeviceInfoFile",
];

/// Why the file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write {path:?}, which makes the runtime call Plexus: is --cni-conf-dir right, and mounted writable if the agent is in a container?"
)]
pub(crate) struct ConflistError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Our configuration in the runtime's directory.
#[derive(Debug)]
pub(crate) struct Conflist {
    directory: PathBuf,
    root: Option<PathBuf>,
    socket: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// As it was when it had our text, and the text.
    file: Option<(Stamp, String)>,
    directory: Option<Stamp>,
    /// Whose configuration is used instead of ours.
    preceded_by: Option<String>,
}

impl Conflist {
    /// None where somebody else is called by the runtime.
    pub(crate) fn of(options: &Options) -> Option<Self> {
        let kubernetes = options.kubernetes.as_ref()?;
        (kubernetes.cluster_network != ClusterNetwork::None).then(|| {
            let (directory, root) = (&options.cni_conf_dir, options.host_root.as_deref());
            Self::new(directory, root, &options.socket)
        })
    }

    fn new(directory: &Path, root: Option<&Path>, socket: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            root: root.map(Path::to_owned),
            socket: socket.to_owned(),
            state: Mutex::default(),
        }
    }

    /// Writes the file, if it is not as it should be. Call it when ADDs can be served, and when the directory
    /// changes: where nothing has changed it is two `stat`s. `first` is who makes pods' first
    /// interface, if not we: its plugins' capabilities are ours, since we pass them on.
    pub(crate) fn write_when_ready(&self, first: Option<&Chain>) -> Result<(), ConflistError> {
        let failed = |source| ConflistError {
            path: self.directory.join(NAME),
            source,
        };
        let directory = seen_or_made(&self.directory, self.root.as_deref()).map_err(failed)?;
        let file = directory.join(NAME);
        let text = text(&self.socket, &capabilities(first));
        let mut state = self.lock();
        let there = Stamp::of(&file).ok().map(|stamp| (stamp, text.clone()));
        if there.is_none() || state.file != there {
            let before = state.file.take();
            let spoiled = before.is_some_and(|(_, before)| before == text);
            restore(&file, &text, spoiled).map_err(failed)?;
            state.file = Stamp::of(&file).ok().map(|stamp| (stamp, text));
        }
        // After our own change to it.
        let stamp = Stamp::of(&directory).map_err(failed)?;
        if state.directory != Some(stamp) {
            self.look_around(&directory, &mut state).map_err(failed)?;
            state.directory = Some(stamp);
        }
        Ok(())
    }

    /// The file that the runtime uses instead of ours, if so.
    pub(crate) fn preceded_by(&self) -> Option<String> {
        self.lock().preceded_by.clone()
    }

    fn look_around(&self, directory: &Path, state: &mut State) -> io::Result<()> {
        let first = configurations(directory)?.into_iter().next();
        let before = first.filter(|name| name.as_str() < NAME);
        if before != state.preceded_by {
            match &before {
                Some(file) => tracing::error!(
                    file,
                    directory = %self.directory.display(),
                    "this configuration sorts before {NAME}, so the runtime uses it instead: new pods get no interface from Plexus; rename or remove it"
                ),
                None => tracing::info!("{NAME} is the first configuration again"),
            }
            state.preceded_by = before;
        }
        Ok(())
    }

    /// Whether it is there, as far as we know.
    pub(crate) fn is_written(&self) -> bool {
        self.lock().file.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// A directory of the host as it is seen from here; made if it is not there.
pub(crate) fn seen_or_made(directory: &Path, root: Option<&Path>) -> io::Result<PathBuf> {
    match seen_from_here(root, directory) {
        Ok(seen) if seen.is_dir() => Ok(seen),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => {
            let inside = directory.strip_prefix("/").unwrap_or(directory);
            let seen = root.map_or_else(|| directory.to_owned(), |root| root.join(inside));
            fs::create_dir_all(&seen)?;
            Ok(seen)
        }
    }
}

fn restore(file: &Path, text: &str, spoiled: bool) -> io::Result<()> {
    if fs::read_to_string(file).ok().as_deref() == Some(text) {
        return Ok(());
    }
    atomic_file::put(file, text.as_bytes(), 0o644)?;
    let file = file.display();
    if spoiled {
        tracing::warn!(%file, "somebody removed or changed the configuration that makes the runtime call Plexus: it is back");
    } else {
        tracing::info!(%file, "the runtime calls Plexus for every pod from now on");
    }
    Ok(())
}

/// What the runtime is to tell us: what we take ourselves, and what the first network's plugins do.
fn capabilities(first: Option<&Chain>) -> BTreeSet<&'static str> {
    let mut all = BTreeSet::from(CAPABILITIES);
    let plugins = first.into_iter().flat_map(|chain| &chain.plugins);
    for declared in plugins.filter_map(|plugin| plugin.get("capabilities")?.as_object()) {
        let wanted = |name: &&&str| {
            let mut declared = declared.iter();
            declared.any(|(key, on)| go_folds(name, key) && *on == Value::Bool(true))
        };
        all.extend(PASSED_ON.iter().filter(wanted));
    }
    all
}

fn text(socket: &Path, capabilities: &BTreeSet<&'static str>) -> String {
    let plugin = json!({"networks": "pod"});
    configuration(json!({"name": "plexus"}), plugin, capabilities, socket)
}

/// A configuration that makes a runtime call us, with the keys that only this one has. `cniVersion` is one that older
/// runtimes take; the list says that we speak more.
pub(super) fn configuration<'c>(
    mut list: Value,
    mut plugin: Value,
    capabilities: impl IntoIterator<Item = &'c &'static str>,
    socket: &Path,
) -> String {
    let capabilities = capabilities.into_iter();
    let capabilities = capabilities.map(|name| ((*name).to_owned(), Value::Bool(true)));
    plugin["type"] = "plexus-cni".into();
    plugin["capabilities"] = Value::Object(capabilities.collect());
    if socket != Path::new(DEFAULT_SOCKET) {
        plugin["agentSocket"] = socket.to_string_lossy().into();
    }
    list["cniVersion"] = Version::V1_0_0.as_str().into();
    list["cniVersions"] = json!(Version::ALL.map(Version::as_str));
    list["plugins"] = json!([plugin]);
    format!("{list:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::atomic_file::tests::Scratch;
    use plexus_api::cni::{Args, Body, Executable, NetConf};

    fn conflist(scratch: &Scratch) -> Conflist {
        Conflist::new(&scratch.0, None, Path::new(DEFAULT_SOCKET))
    }

    fn chain(capabilities: Value) -> Chain {
        let plugin = json!({"type": "x", "capabilities": capabilities});
        Chain {
            executable: Executable::Type,
            version: Version::V1_0_0,
            plugins: vec![plugin.as_object().unwrap().clone()],
            unsupported_key: None,
        }
    }

    /// As a runtime makes it of the file.
    fn parsed(text: &str) -> (Value, NetConf) {
        let list: Value = serde_json::from_str(text).unwrap();
        let mut plugin = list["plugins"][0].clone();
        plugin["cniVersion"] = "1.1.0".into();
        plugin["name"] = list["name"].clone();
        let conf = NetConf::parse(plugin.to_string().as_bytes(), &Args::default()).unwrap();
        (list, conf)
    }

    #[test]
    fn is_what_the_agent_itself_reads() {
        let other =
            chain(json!({"ipRanges": true, "MAC": true, "aliases": false, "unheard": true}));
        let text = text(Path::new("/run/x/a.sock"), &capabilities(Some(&other)));
        let (list, conf) = parsed(&text);
        assert_eq!(conf.body, Body::Pod);
        assert_eq!(list["cniVersion"], "1.0.0");
        let versions = list["cniVersions"].as_array().unwrap();
        assert_eq!(versions.last().unwrap(), "1.1.0");
        let plugin = &list["plugins"][0];
        assert_eq!(plugin["agentSocket"], "/run/x/a.sock");
        let declared = plugin["capabilities"].as_object().unwrap().keys();
        let expected = [
            "bandwidth",
            "dns",
            POD_ANNOTATIONS,
            "ipRanges",
            "mac",
            "portMappings",
        ];
        assert_eq!(declared.collect::<Vec<_>>(), expected);
        let usual = super::text(Path::new(DEFAULT_SOCKET), &capabilities(None));
        let (list, conf) = parsed(&usual);
        assert_eq!(conf.body, Body::Pod);
        assert_eq!(list["plugins"][0].get("agentSocket"), None);
    }

    #[test]
    fn follows_the_other_cni() {
        let scratch = Scratch::new("conflist");
        let ours = conflist(&scratch);
        let read = || fs::read_to_string(scratch.join(NAME)).unwrap();
        ours.write_when_ready(Some(&chain(json!({})))).unwrap();
        assert!(!read().contains("ipRanges"));
        let other = chain(json!({"ipRanges": true}));
        ours.write_when_ready(Some(&other)).unwrap();
        assert!(read().contains("ipRanges"));
    }

    #[test]
    fn is_written_once_and_put_back() {
        let scratch = Scratch::new("conflist");
        let ours = conflist(&scratch);
        let path = scratch.join(NAME);
        ours.write_when_ready(None).unwrap();
        let first = Stamp::of(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        ours.write_when_ready(None).unwrap();
        conflist(&scratch).write_when_ready(None).unwrap();
        assert_eq!(
            Stamp::of(&path).unwrap(),
            first,
            "written though nothing had changed"
        );
        for spoil in [
            |path: &Path| fs::remove_file(path).unwrap(),
            |path: &Path| fs::write(path, "{}").unwrap(),
            |path: &Path| fs::write(path, "").unwrap(),
        ] {
            spoil(&path);
            ours.write_when_ready(None).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(scratch.names(), [NAME]);
    }

    #[test]
    fn one_that_sorts_before_ours_is_named_and_left() {
        let scratch = Scratch::new("conflist");
        let ours = conflist(&scratch);
        fs::write(scratch.join("10-calico.conflist"), "{}").unwrap();
        fs::write(scratch.join("00-a.txt"), "{}").unwrap();
        ours.write_when_ready(None).unwrap();
        assert_eq!(ours.preceded_by(), None);
        fs::write(scratch.join("00-multus.conf"), "{}").unwrap();
        ours.write_when_ready(None).unwrap();
        assert_eq!(ours.preceded_by().as_deref(), Some("00-multus.conf"));
        assert!(scratch.join(NAME).exists());
        fs::remove_file(scratch.join("00-multus.conf")).unwrap();
        ours.write_when_ready(None).unwrap();
        assert_eq!(ours.preceded_by(), None);
    }

    #[test]
    fn through_the_hosts_root() {
        let root = Scratch::new("root");
        fs::create_dir_all(root.join("var/etc-cni")).unwrap();
        fs::create_dir_all(root.join("etc")).unwrap();
        std::os::unix::fs::symlink("/var/etc-cni", root.join("etc/cni")).unwrap();
        let socket = Path::new(DEFAULT_SOCKET);
        let linked = Conflist::new(Path::new("/etc/cni"), Some(&root.0), socket);
        linked.write_when_ready(None).unwrap();
        assert!(root.join("var/etc-cni").join(NAME).exists());
        let absent = Conflist::new(Path::new("/absent/net.d"), Some(&root.0), socket);
        absent.write_when_ready(None).unwrap();
        assert!(root.join("absent/net.d").join(NAME).exists());
    }
}
