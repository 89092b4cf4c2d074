//! The one thread that writes: takes all jobs that wait, runs them in order, commits once, makes
//! the result known, answers.

use super::changes::Changes;
use super::disk::{self, Disk};
use super::{Shared, Table};
use crate::clock;
use crate::status::Refused;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use tokio::sync::mpsc;

/// Runs on the writer's thread; gives what is to be done once the fate of the commit is known.
pub(super) type Job = Box<dyn FnOnce(&mut Changes) -> Finish + Send>;
type Finish = Box<dyn FnOnce(Result<(), Refused>) + Send>;

/// Where jobs are handed in.
pub(super) type Jobs = mpsc::Sender<Job>;

/// Jobs that share a commit, and jobs that wait, at most.
const MAX_COMMIT_JOBS: usize = 512;
const QUEUE_CAPACITY: usize = 1024;

pub(super) fn start(
    shared: Arc<Shared>,
    disk: Disk,
) -> std::io::Result<(Jobs, std::thread::JoinHandle<()>)> {
    let (send, receive) = mpsc::channel(QUEUE_CAPACITY);
    let thread = std::thread::Builder::new()
        .name("embedded-store".to_owned())
        .spawn(move || run(&shared, disk, receive))?;
    Ok((send, thread))
}

fn run(shared: &Arc<Shared>, mut disk: Disk, mut jobs: mpsc::Receiver<Job>) {
    let mut fails = false;
    while let Some(first) = jobs.blocking_recv() {
        let mut changes = Changes::new(Arc::clone(shared), clock::seconds());
        let mut finish = vec![first(&mut changes)];
        while finish.len() < MAX_COMMIT_JOBS {
            let Ok(job) = jobs.try_recv() else { break };
            finish.push(job(&mut changes));
        }
        let done = if changes.made().is_empty() {
            Ok(())
        } else {
            let done = commit(shared, &mut disk, &changes);
            if done.is_err() != fails {
                fails = !fails;
                log_result(&disk, &done);
                shared.set_problem(done.as_ref().err().map(ToString::to_string));
            }
            done
        };
        for finish in finish {
            finish(done.clone());
        }
    }
    disk.settle();
}

fn commit(shared: &Shared, disk: &mut Disk, changes: &Changes) -> Result<(), Refused> {
    let made = changes.made();
    let known = shared.read().version();
    disk.commit(made, known)
        .map_err(|error| refusal(disk, &error))?;
    let mut memory = shared
        .memory
        .write()
        .unwrap_or_else(PoisonError::into_inner);
    for (table, entry) in made {
        memory.take(*table, Arc::clone(entry), disk.forgotten());
    }
    let version = memory.version();
    drop(memory);
    let touched: BTreeSet<Table> = made.iter().map(|(table, _)| *table).collect();
    for table in touched {
        if let Some(changed) = shared.changed.get(table.index()) {
            let _ = changed.send_replace(version);
        }
    }
    let _ = shared.version.send_replace(version);
    Ok(())
}

fn refusal(disk: &Disk, error: &rusqlite::Error) -> Refused {
    let path = disk.path().display();
    if disk::is_full(error) {
        let message = format!(
            "the disk that holds {path} is full: nothing was written; make room, and try again"
        );
        return Refused::no_space(message);
    }
    Refused::internal(format_args!(
        "cannot write to {path}: {error}; whether it was written is known when the disk can be \
         written again, or the server is started again: ask then"
    ))
}

/// Logs when writes begin to fail and when they succeed again: a log of every refusal would fill the disk.
fn log_result(disk: &Disk, done: &Result<(), Refused>) {
    let path = disk.path().display();
    match done {
        Ok(()) => tracing::info!(%path, "the store can be written again"),
        Err(refused) => tracing::error!(%refused, "writes are refused"),
    }
}
