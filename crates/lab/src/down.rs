//! `down`: takes a lab apart, whatever is left of it. Needs its name only, not its records. Tries everything, reports
//! every error; a second time finds nothing to do.

use crate::error::{LabError, chain};
use crate::layout::Layout;
use crate::leases;
use crate::lock::Lock;
use crate::process::Process;
use crate::up::need_root;
use crate::{settings, underlay};
use plexus_kernel::{mount, named};
use rustix::process::Signal;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// Removes processes, namespaces, mounts and files; says whether there was anything.
pub fn down(layout: &Layout) -> Result<bool, LabError> {
    need_root()?;
    let lock = Lock::take(layout)?;
    let there = layout.dir().exists() || !underlay::namespaces(layout)?.is_empty();
    let mut errors = Vec::new();
    let mut attempt = |result: Result<(), LabError>| {
        if let Err(error) = result {
            errors.push(chain(&error));
        }
    };
    attempt(end_processes(layout));
    attempt(leases::remove(layout));
    attempt(remove_namespaces(layout));
    attempt(remove_files(layout));
    attempt(settings::restore(layout));
    attempt(lock.dissolve());
    // Other labs may be there, or other things of ours.
    let _ = fs::remove_dir(layout.root());
    let _ = layout.root().parent().map(fs::remove_dir);
    if errors.is_empty() {
        Ok(there)
    } else {
        Err(LabError::Left(errors))
    }
}

/// The keeper first, so that it starts nothing again; then whoever carries the lab's mark or is in its namespaces, until
/// nobody is left: one that was being started shows up in the next look.
fn end_processes(layout: &Layout) -> Result<(), LabError> {
    let start = Instant::now();
    loop {
        let mut left = Process::of_lab(layout);
        left.extend(Process::in_namespaces(&underlay::namespaces(layout)?));
        if left.is_empty() {
            return Ok(());
        }
        for process in &left {
            process.signal(Signal::KILL);
        }
        if start.elapsed() > PATIENCE {
            let pids: Vec<String> = left.iter().map(|p| p.pid().to_string()).collect();
            return Err(LabError::NotYet {
                what: "every process to end".to_owned(),
                limit: PATIENCE,
                last: format!("still there: {}", pids.join(", ")),
            });
        }
        for process in &left {
            process.has_ended(Duration::from_secs(1));
        }
    }
}

fn remove_namespaces(layout: &Layout) -> Result<(), LabError> {
    let mut first = Ok(());
    for name in underlay::namespaces(layout)? {
        let removed = named::remove(&name).map(drop).map_err(LabError::from);
        first = first.and(removed);
    }
    first
}

/// The directory has a file system of its own, and routers are pinned below the nodes' directories.
fn remove_files(layout: &Layout) -> Result<(), LabError> {
    let dir = layout.dir();
    mount::unmount_all(&dir).map_err(LabError::file("unmount", &dir))?;
    remove_all(&dir).map_err(LabError::file("remove", &dir))
}

fn remove_all(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
