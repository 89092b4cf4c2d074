//! `down`: takes a lab apart, whatever is left of it. Needs its name only, not its records. Tries everything,
//! reports what failed; a second time finds nothing to do.

use crate::cni::Caller;
use crate::error::{LabError, chain};
use crate::layout::Layout;
use crate::lock::Lock;
use crate::part::Part;
use crate::process::{self, Process};
use crate::sandbox::Sandbox;
use crate::up::need_root;
use crate::{sandbox, settings, underlay};
use plexus_kernel::{mount, named};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long plugins may take to let go of all pods.
const DETACH_TIMEOUT: Duration = Duration::from_secs(5);
/// Calls of plugins at a time.
const CONCURRENT_CALLS: usize = 8;

/// Something that was done to remove a lab or a node, for whoever watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is there, and begins to go.
    Begun,
    /// Plugins were told that pods go.
    Pods {
        /// Of how many pods.
        detached: usize,
        /// How many there were.
        of: usize,
    },
    /// So many processes have ended.
    Processes(usize),
    /// So many network namespaces are gone.
    Namespaces(usize),
    /// A node's agent is killed, its Node and its pods are deleted.
    SwitchedOff,
}

/// Removes processes, namespaces, mounts and files; returns whether there was anything. Reports no step of a lab that
/// was not there.
pub fn down(layout: &Layout, tell: &mut dyn FnMut(Removal)) -> Result<bool, LabError> {
    need_root()?;
    let lock = Lock::take(layout)?;
    let there = layout.dir().exists() || !underlay::namespaces(layout)?.is_empty();
    let mut say = |step: Removal| {
        if there {
            tell(step);
        }
    };
    let mut errors = Vec::new();
    let mut attempt = |result: Result<(), LabError>| {
        if let Err(error) = result {
            errors.push(chain(&error));
        }
    };
    say(Removal::Begun);
    let mut ended = BTreeSet::new();
    attempt(end_keeper(layout, &mut ended));
    say(detach_pods(layout));
    let processes = end_processes(layout, &mut ended);
    attempt(processes.map(|()| say(Removal::Processes(ended.len()))));
    let namespaces = remove_namespaces(layout);
    attempt(namespaces.map(|count| say(Removal::Namespaces(count))));
    attempt(remove_files(layout));
    attempt(settings::restore(layout));
    attempt(lock.remove_with_lab());
    // Other labs may be there, or other things of ours.
    let _ = fs::remove_dir(layout.root());
    let _ = layout.root().parent().map(fs::remove_dir);
    if errors.is_empty() {
        Ok(there)
    } else {
        Err(LabError::NotRemoved(errors))
    }
}

/// First, so that it starts nothing again.
fn end_keeper(layout: &Layout, ended: &mut BTreeSet<i32>) -> Result<(), LabError> {
    if let Some(keeper) = Process::of_part(layout, Part::Keeper) {
        keeper.kill()?;
        ended.insert(keeper.pid());
    }
    Ok(())
}

/// DEL for every pod, as far as agents answer: plugins that were executed may keep something elsewhere than
/// in the lab. Nobody insists: the lab goes, whatever they say.
fn detach_pods(layout: &Layout) -> Removal {
    let deadline = Instant::now() + DETACH_TIMEOUT;
    let pods = sandbox::all(layout);
    let (of, detached) = (pods.len(), AtomicUsize::new(0));
    let queue = Mutex::new(pods);
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
            let call = Caller::new(layout, node, &sandbox).within(left);
            if unfinished.write(layout, node).is_ok() && call.del().is_ok() {
                detached.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..CONCURRENT_CALLS {
            scope.spawn(work);
        }
    });
    Removal::Pods {
        detached: detached.into_inner(),
        of,
    }
}

/// Whoever carries the lab's mark or lives in its namespaces.
fn end_processes(layout: &Layout, ended: &mut BTreeSet<i32>) -> Result<(), LabError> {
    let left = || {
        let mut left = Process::of_lab(layout);
        left.extend(Process::in_namespaces(&underlay::namespaces(layout)?));
        Ok(left)
    };
    process::end_all(left, ended)
}

/// Says how many.
fn remove_namespaces(layout: &Layout) -> Result<usize, LabError> {
    let names = underlay::namespaces(layout)?;
    let mut first = Ok(names.len());
    for name in names {
        if let Err(error) = named::remove(&name) {
            first = first.and(Err(error.into()));
        }
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
