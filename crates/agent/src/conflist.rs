//! `00-plexus.conflist`: what makes the runtime call us for every pod. Owns that one file: it is
//! written when the agent is ready, put back if it vanishes or is changed, and never removed here,
//! since a pod cannot be deleted by a runtime that has no configuration.
//!
//! Others' files are never touched. One that sorts before ours is used instead of ours, and pods
//! then get nothing from us: all we can do is say so.

use crate::cluster_network::{Stamp, configurations};
use crate::options::{ClusterNetwork, Options};
use crate::place;
use crate::verbs::Agent;
use plexus_api::cni::Version;
use plexus_cni::delegate::seen_from_here;
use plexus_cni::shim::DEFAULT_SOCKET;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The file's name: first among those that people give such files.
pub(crate) const NAME: &str = "00-plexus.conflist";

/// What runtimes may tell us about a pod.
const CAPABILITIES: [&str; 8] = [
    "bandwidth",
    "cgroupPath",
    "dns",
    "io.kubernetes.cri.pod-annotations",
    "ipRanges",
    "ips",
    "mac",
    "portMappings",
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
    text: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// As it was when it had our text.
    file: Option<Stamp>,
    directory: Option<Stamp>,
    /// Whose configuration is used instead of ours.
    preceded_by: Option<String>,
    /// Whether a failure was said already.
    complained: bool,
}

impl Conflist {
    /// None where somebody else is called by the runtime.
    pub(crate) fn of(options: &Options) -> Option<Self> {
        let kubernetes = options.kubernetes.as_ref()?;
        (kubernetes.cluster_network != ClusterNetwork::None).then(|| {
            let text = text(&options.socket);
            Self::new(&options.cni_conf_dir, options.host_root.as_deref(), text)
        })
    }

    fn new(directory: &Path, root: Option<&Path>, text: String) -> Self {
        Self {
            directory: directory.to_owned(),
            root: root.map(Path::to_owned),
            text,
            state: Mutex::default(),
        }
    }

    /// Writes the file, if it is not as it should be. Call it when ADDs can be served, and then now
    /// and again: where nothing has changed it is two `stat`s.
    pub(crate) fn write_when_ready(&self) -> Result<(), ConflistError> {
        let failed = |source| ConflistError {
            path: self.directory.join(NAME),
            source,
        };
        let directory = self.seen().map_err(failed)?;
        let file = directory.join(NAME);
        let mut state = self.lock();
        if state.file.is_none() || state.file != Stamp::of(&file).ok() {
            self.restore(&file, state.file.is_some()).map_err(failed)?;
            state.file = Stamp::of(&file).ok();
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

    fn restore(&self, file: &Path, was_there: bool) -> io::Result<()> {
        if fs::read_to_string(file).ok().as_deref() == Some(&self.text) {
            return Ok(());
        }
        place::put(file, self.text.as_bytes(), 0o644)?;
        let file = file.display();
        if was_there {
            tracing::warn!(%file, "somebody removed or changed the configuration that makes the runtime call Plexus: it is back");
        } else {
            tracing::info!(%file, "the runtime calls Plexus for every pod from now on");
        }
        Ok(())
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

    fn seen(&self) -> io::Result<PathBuf> {
        let root = self.root.as_deref();
        match seen_from_here(root, &self.directory) {
            Ok(seen) if seen.is_dir() => Ok(seen),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => {
                let inside = self.directory.strip_prefix("/").unwrap_or(&self.directory);
                let seen = root.map_or_else(|| self.directory.clone(), |root| root.join(inside));
                fs::create_dir_all(&seen)?;
                Ok(seen)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent {
    /// Keeps our configuration in place once pods can be served; for the background's tick. Gives
    /// up nothing: what fails is tried again the next time, and said once.
    pub(crate) fn tend_conflist(&self) {
        let Some(conflist) = &self.conflist else {
            return;
        };
        if !self.ready.load(SeqCst) || self.first_network_is_missing().is_some() {
            return;
        }
        let written = conflist.write_when_ready();
        let mut state = conflist.lock();
        match written {
            Err(error) if !state.complained => {
                tracing::error!(error = crate::failure::chain(&error), "pods are not served");
                state.complained = true;
            }
            Err(_) => {}
            Ok(()) => state.complained = false,
        }
    }
}

/// `cniVersion` is one that older runtimes take; the list says that we speak more.
fn text(socket: &Path) -> String {
    let capabilities: serde_json::Map<String, Value> = CAPABILITIES
        .iter()
        .map(|name| ((*name).to_owned(), Value::Bool(true)))
        .collect();
    let mut plugin = json!({
        "type": "plexus-cni",
        "networks": "pod",
        "capabilities": capabilities,
    });
    if socket != Path::new(DEFAULT_SOCKET) {
        plugin["agentSocket"] = socket.to_string_lossy().into();
    }
    let conflist = json!({
        "cniVersion": Version::V1_0_0.as_str(),
        "cniVersions": Version::ALL.map(Version::as_str),
        "name": "plexus",
        "plugins": [plugin],
    });
    format!("{conflist:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::tests::Scratch;

    fn conflist(scratch: &Scratch) -> Conflist {
        Conflist::new(&scratch.0, None, text(Path::new(DEFAULT_SOCKET)))
    }

    #[test]
    fn is_what_the_agent_itself_reads() {
        let value: Value = serde_json::from_str(&text(Path::new("/run/x/a.sock"))).unwrap();
        assert_eq!(value["cniVersion"], "1.0.0");
        assert_eq!(
            value["cniVersions"].as_array().unwrap().last().unwrap(),
            "1.1.0"
        );
        let plugin = &value["plugins"][0];
        assert_eq!(plugin["agentSocket"], "/run/x/a.sock");
        assert_eq!(plugin["capabilities"]["portMappings"], true);
        let usual: Value = serde_json::from_str(&text(Path::new(DEFAULT_SOCKET))).unwrap();
        assert_eq!(usual["plugins"][0].get("agentSocket"), None);
    }

    #[test]
    fn is_written_once_and_put_back() {
        let scratch = Scratch::new("conflist");
        let ours = conflist(&scratch);
        let path = scratch.join(NAME);
        ours.write_when_ready().unwrap();
        let first = Stamp::of(&path).unwrap();
        ours.write_when_ready().unwrap();
        conflist(&scratch).write_when_ready().unwrap();
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
            ours.write_when_ready().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), ours.text);
        }
        assert_eq!(scratch.names(), [NAME]);
    }

    #[test]
    fn one_that_sorts_before_ours_is_named_and_left() {
        let scratch = Scratch::new("conflist");
        let ours = conflist(&scratch);
        fs::write(scratch.join("10-calico.conflist"), "{}").unwrap();
        fs::write(scratch.join("00-a.txt"), "{}").unwrap();
        ours.write_when_ready().unwrap();
        assert_eq!(ours.preceded_by(), None);
        fs::write(scratch.join("00-multus.conf"), "{}").unwrap();
        ours.write_when_ready().unwrap();
        assert_eq!(ours.preceded_by().as_deref(), Some("00-multus.conf"));
        assert!(scratch.join(NAME).exists());
        fs::remove_file(scratch.join("00-multus.conf")).unwrap();
        ours.write_when_ready().unwrap();
        assert_eq!(ours.preceded_by(), None);
    }

    #[test]
    fn through_the_hosts_root() {
        let root = Scratch::new("root");
        fs::create_dir_all(root.join("var/etc-cni")).unwrap();
        fs::create_dir_all(root.join("etc")).unwrap();
        std::os::unix::fs::symlink("/var/etc-cni", root.join("etc/cni")).unwrap();
        let text = text(Path::new(DEFAULT_SOCKET));
        Conflist::new(Path::new("/etc/cni"), Some(&root.0), text.clone())
            .write_when_ready()
            .unwrap();
        assert!(root.join("var/etc-cni").join(NAME).exists());
        let absent = Conflist::new(Path::new("/absent/net.d"), Some(&root.0), text);
        absent.write_when_ready().unwrap();
        assert!(root.join("absent/net.d").join(NAME).exists());
    }
}
