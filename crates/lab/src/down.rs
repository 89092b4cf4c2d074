//! `down`: takes a lab apart, whatever is left of it. Needs its name only, not its records. Tries everything,
//! reports what failed; a second time finds nothing to do.

use crate::cni::Caller;
use crate::error::{LabError, chain};
use crate::layout::Layout;
use crate::lock::Lock;
use crate::part::Part;
use crate::process::Process;
use crate::sandbox::Sandbox;
use crate::up::need_root;
use crate::{sandbox, settings, underlay};
use plexus_kernel::{mount, named};
use rustix::process::Signal;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
/// How long plugins may take to let go of all pods.
const FAREWELL: Duration = Duration::from_secs(5);
/// Calls of plugins at a time.
const CALLS: usize = 8;

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
    attempt(end_keeper(layout));
    detach_pods(layout);
    attempt(end_processes(layout));
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

/// First, so that it starts nothing again.
fn end_keeper(layout: &Layout) -> Result<(), LabError> {
    let keeper = Process::of_part(layout, Part::Keeper);
    keeper.map_or(Ok(()), |keeper| keeper.kill())
}

/// DEL for every pod, as far as agents answer: plugins that were executed may keep something elsewhere than
/// in the lab. Nobody insists: the lab goes, whatever they say.
fn detach_pods(layout: &Layout) {
    let deadline = Instant::now() + FAREWELL;
    let queue = Mutex::new(sandbox::all(layout));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let work = || {
        while let Some((node, sandbox)) = next() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            // If the lab is wanted after all, its next keeper sees that this one is to be set up anew.
            let unfinished = Sandbox {
                result: None,
                ..sandbox.clone()
            };
            if unfinished.write(layout, node).is_ok() {
                let _ = Caller::new(layout, node, &sandbox).within(left).del();
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..CALLS {
            scope.spawn(work);
        }
    });
}

/// Whoever carries the lab's mark or is in its namespaces, until nobody is left: one that was being started
/// shows up in the next look.
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
