//! `plexus doctor`: what is wrong with this machine as a node. Owns the checks: each looks at one
//! thing, says what it found, and what to do next. Changes nothing.
//!
//! A check is in two parts: one reads (a file, a socket, a namespace), the other judges what was
//! read, so that a fault can be given to it.

mod agent;
mod api;
mod check;
mod cni;
mod kernel;
mod labs;
mod leaks;
mod mounts;
mod rights;
mod state;
mod subject;
#[cfg(test)]
mod tests;

pub use api::ApiFacts;
pub use check::{Check, Report, Verdict};
pub use subject::Subject;

use std::path::PathBuf;

/// Where the parts of a node are.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The agent's socket.
    pub socket: PathBuf,
    /// The agent's state directory.
    pub state_dir: PathBuf,
    /// The runtime's plugin directory.
    pub cni_bin_dir: PathBuf,
    /// The plugins that are executed, if they are elsewhere.
    pub delegate_bin_dir: Option<PathBuf>,
    /// The runtime's configuration directory.
    pub cni_conf_dir: PathBuf,
    /// host-local's directory.
    pub pools: PathBuf,
    /// Where network namespaces have names.
    pub netns: PathBuf,
    /// The directory that has a directory for every lab.
    pub labs: PathBuf,
}

/// Looks at everything. `api` is what could be learnt of an API server; none: there is none, and
/// the node serves inline configurations only.
pub fn examine(machine: &Machine, api: Option<&ApiFacts>) -> Report {
    let mut report = Report::default();
    report.extend(rights::check());
    report.extend(kernel::check());
    report.extend(mounts::check(machine));
    report.extend(state::check(&machine.state_dir));
    let agent = agent::look(&machine.socket);
    report.extend(agent::judge(&agent, &machine.socket));
    report.extend(cni::check(machine));
    report.extend(api::judge(api));
    report.extend(leaks::check(machine, &agent, api));
    report.extend([labs::check(machine)]);
    report
}
