//! What an agent is told when it starts.

use plexus_types::PluginType;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// The agent's settings; the command line fills them in.
#[derive(Debug, Clone)]
pub struct Options {
    /// This node's name, for logs and records.
    pub node: String,
    /// The socket that the shim connects to.
    pub socket: PathBuf,
    /// Journal and lock.
    pub state_dir: PathBuf,
    /// Where runtimes look for plugins; searched for delegates if no other directory is given.
    pub cni_bin_dir: PathBuf,
    /// Where runtimes look for configurations. Not used yet: for the conflist that the agent will
    /// write.
    pub cni_conf_dir: PathBuf,
    /// Where delegates are, if not in the plugin directory.
    pub delegate_bin_dir: Option<PathBuf>,
    /// The plugin types that may be executed; none: whatever is in the directory.
    pub allowed_delegates: Option<BTreeSet<PluginType>>,
    /// How many delegates run at a time.
    pub delegates_at_a_time: usize,
    /// How long one delegate may run.
    pub delegate_timeout: Duration,
    /// How many ADDs may be in the house.
    pub queue: usize,
}

impl Options {
    /// The directories that delegates are looked for in.
    pub fn delegate_dirs(&self) -> Vec<PathBuf> {
        vec![
            self.delegate_bin_dir
                .clone()
                .unwrap_or_else(|| self.cni_bin_dir.clone()),
        ]
    }

    /// Where the configurations of running delegates are: beside the socket, in memory as a rule,
    /// so that a full disk does not keep a pod from being removed.
    pub fn spool(&self) -> PathBuf {
        let mut path = self.socket.as_os_str().to_owned();
        path.push(".delegates");
        path.into()
    }

    /// The journal's file.
    pub fn journal(&self) -> PathBuf {
        self.state_dir.join("journal.db")
    }
}
