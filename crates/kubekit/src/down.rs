//! Takes a lab apart, whatever is left of it: needs its name only, not its records. Tries everything,
//! reports every error; a second time finds nothing to do.

use crate::layout::Layout;
use crate::process::Process;
use crate::{node, sysctl, underlay, wait};
use anyhow::{Context, Result, bail};
use plexus_kernel::residents::residents;
use std::fs;
use std::time::Duration;

/// Removes processes, namespaces, cgroups, files, and with the last lab the changed settings.
pub(crate) fn down(layout: &Layout) -> Result<()> {
    let _alone = sysctl::lock()?;
    let mut errors = Vec::new();
    let mut attempt = |result: Result<()>| {
        if let Err(error) = result {
            errors.push(format!("{error:#}"));
        }
    };
    attempt(end_processes(layout));
    for namespace in underlay::namespaces(layout) {
        attempt(crate::command::run(&["ip", "netns", "del", &namespace]).map(drop));
    }
    attempt(node::remove_cgroups(|name| layout.owns(name)));
    attempt(remove_files(layout));
    attempt(sysctl::restore());
    if !errors.is_empty() {
        bail!(
            "lab {} is not gone completely: {}",
            layout.prefix(),
            errors.join("; ")
        );
    }
    Ok(())
}

/// Whoever lives in a namespace or is in a cgroup of the lab, and whoever we remember to have started. With the
/// first process of a node the kernel ends all others of the node.
fn end_processes(layout: &Layout) -> Result<()> {
    let what = format!("processes of lab {}", layout.prefix());
    wait::until(&what, Duration::from_secs(20), || {
        let (left, inside) = (processes(layout), residents(&underlay::namespaces(layout)));
        for process in &left {
            process.signal(rustix::process::Signal::KILL);
        }
        for process in &inside {
            process.kill();
        }
        Ok((left.is_empty() && inside.is_empty()).then_some(()))
    })
}

fn processes(layout: &Layout) -> Vec<Process> {
    let mut found: Vec<Process> = recorded(layout);
    let in_cgroups = node::cgroup_processes(|name| layout.owns(name));
    found.extend(in_cgroups.into_iter().filter_map(Process::find));
    found
}

fn recorded(layout: &Layout) -> Vec<Process> {
    let files = fs::read_dir(layout.state().join("run"))
        .into_iter()
        .flatten()
        .flatten();
    files
        .filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            Process::recorded(layout, name.strip_suffix(".pid")?)
        })
        .collect()
}

/// Mounts inside may take a moment to go after the last process.
fn remove_files(layout: &Layout) -> Result<()> {
    let state = layout.state();
    if !state.exists() {
        return Ok(());
    }
    wait::until(
        "files",
        Duration::from_secs(10),
        || match fs::remove_dir_all(state) {
            Err(error) if state.exists() => Err(error.into()),
            _ => Ok(Some(())),
        },
    )
    .with_context(|| format!("cannot remove {}", state.display()))
}
