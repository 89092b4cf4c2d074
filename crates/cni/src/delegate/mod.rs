//! The delegate runner: executes CNI plugins that are not ours, alone or in a chain, and IPAM plugins below links that
//! we make.
//!
//! Owns finding a plugin, agreeing on a version with it, the environment and the configuration that
//! it gets, and bounding what it may use: time, output, and how many run at once. Never decides
//! whether something is delegated, keeps no record of what was done, and never runs ourselves.
//!
//! ```text
//! Chain ──► steps() ──► add_step(0) ──► Outcome, journaled by the caller
//!                       add_step(1) ──► …
//!                       on failure: del_chain(failed + 1), in reverse order, collecting errors
//! ```
//!
//! Blocking: the caller gives it threads of its own.

mod derive;
mod error;
mod exec;
mod find;
#[cfg(test)]
mod fuzz;
mod root;
mod run;
mod slots;
mod spool;
mod steps;
mod tally;
mod version;

pub use error::{Cause, Error};
pub use root::{IN_ROOT, NOT_EXECUTED, Root, complaint, enter_root_and_exec, seen_from_here};
pub use spool::end_strays;
pub use steps::Steps;
pub use tally::Runs;

use plexus_types::{ContainerId, IfName, PluginType};
use slots::Slots;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// How plugins are run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Searched in this order, and given to plugins as CNI_PATH, so that a delegate finds the real
    /// IPAM plugins even where ours are installed under their names elsewhere.
    pub plugin_dirs: Vec<PathBuf>,
    /// In a container: the host's root. All paths in these options but the spool's are the host's.
    pub root: Option<Root>,
    /// The types that may be run; none: whatever is in the directories.
    pub allowed: Option<BTreeSet<PluginType>>,
    /// Our own binary, under every name that it is installed by: never run.
    pub own: Vec<PathBuf>,
    /// A directory of ours for the configurations of running plugins; see [`end_strays`].
    pub spool: PathBuf,
    /// How long one run may take.
    pub timeout: Duration,
    /// How many run at once; as many again for DELs and for STATUS, which never wait for the others.
    pub at_once: usize,
    /// How many bytes a plugin may print.
    pub max_output: usize,
}

impl Options {
    /// The usual limits: 30 s, four at once, 1 MiB.
    pub fn new(plugin_dirs: Vec<PathBuf>, spool: PathBuf) -> Self {
        Self {
            plugin_dirs,
            root: None,
            allowed: None,
            own: Vec::new(),
            spool,
            timeout: Duration::from_secs(30),
            at_once: 4,
            max_output: 1 << 20,
        }
    }
}

/// Runs plugins. One per agent, shared by its threads.
#[derive(Debug)]
pub struct Runner {
    options: Options,
    usual: Slots,
    deleting: Slots,
    asking: Slots,
    known: version::Known,
    tally: tally::Tally,
    started: AtomicU64,
}

impl Runner {
    /// Takes the options; looks at nothing yet.
    pub fn new(options: Options) -> Self {
        let usual = Slots::new(options.at_once);
        let deleting = Slots::new(options.at_once);
        let asking = Slots::new(options.at_once);
        Self {
            options,
            usual,
            deleting,
            asking,
            known: version::Known::default(),
            tally: tally::Tally::default(),
            started: AtomicU64::new(0),
        }
    }

    /// What was run so far.
    pub fn runs(&self) -> Vec<Runs> {
        self.tally.runs()
    }

    /// How many plugins run now.
    pub fn running(&self) -> usize {
        let all = [&self.usual, &self.deleting, &self.asking];
        all.into_iter().map(Slots::taken).sum()
    }
}

/// Which interface of which container: the CNI_… variables that a plugin gets.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// CNI_CONTAINERID
    pub container: &'a ContainerId,
    /// CNI_NETNS; empty if the namespace is gone (DEL).
    pub netns: &'a str,
    /// CNI_IFNAME
    pub ifname: &'a IfName,
    /// CNI_ARGS, as the runtime wrote them.
    pub args: &'a str,
}
