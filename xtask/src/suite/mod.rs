//! Runs test executables side by side: some at a time, each with its own output, all of them whichever fails.
//!
//! ```text
//!   executables   which there are, and the tier of each
//!   make_test     those of `make test`: what runs beside what, and what is left to other tiers
//!   make_test_kube  those of `make test-kube`, on the cluster that they share or with their own
//!   schedule      who may start now; decides only
//!   report        what is printed of one that ended, and of all
//!   slow          why some tests take long
//! ```

pub(crate) mod executables;
pub(crate) mod make_test;
pub(crate) mod make_test_kube;
mod report;
pub(crate) mod schedule;
mod slow;

use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use report::Done;
use schedule::{Load, Slots};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any test executable takes on a busy machine: one that hangs is killed, and what it printed is shown.
const LIMIT: Duration = Duration::from_secs(20 * 60);
/// How often it is looked who has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// One command of a tier.
pub(crate) struct Job {
    /// What the report calls it; no other job of the tier has this name.
    pub(crate) name: String,
    /// What runs.
    pub(crate) command: Command,
    /// What it does to its neighbours.
    pub(crate) load: Load,
}

struct Running {
    name: String,
    load: Load,
    child: Child,
    begun: Instant,
    output: PathBuf,
}

/// Runs all jobs in the order of the list, as far as their loads let them. What a job printed is shown when it has ended: all if it
/// failed, else how many tests passed. Ends with the slowest jobs and tests, and fails with the names of those that failed.
pub(crate) fn run(workspace: &Workspace, tier: &str, slots: Slots, jobs: Vec<Job>) -> Result<()> {
    let begun = Instant::now();
    let dir = output_dir(workspace, tier)?;
    let mut waiting: VecDeque<Job> = jobs.into();
    let mut running: Vec<Running> = Vec::new();
    let mut done: Vec<Done> = Vec::new();
    while !waiting.is_empty() || !running.is_empty() {
        while let Some(job) = startable(&mut waiting, &running, slots) {
            match start(&dir, job) {
                Ok(started) => running.push(started),
                Err((name, error)) => {
                    println!("{name}: {error:#}");
                    done.push(Done::never_started(name));
                }
            }
        }
        done.extend(running.extract_if(.., has_ended).map(finish));
        std::thread::sleep(LOOK_INTERVAL);
    }
    println!("{}", report::closing(tier, begun.elapsed(), &done));
    let failed: Vec<&str> = done
        .iter()
        .filter(|job| !job.succeeded)
        .map(|job| &*job.name)
        .collect();
    if !failed.is_empty() {
        bail!(
            "{} of {} failed in {tier}: {}",
            failed.len(),
            done.len(),
            failed.join(", ")
        );
    }
    Ok(())
}

fn startable(waiting: &mut VecDeque<Job>, running: &[Running], slots: Slots) -> Option<Job> {
    let loads: Vec<Load> = waiting.iter().map(|job| job.load).collect();
    let beside: Vec<Load> = running.iter().map(|job| job.load).collect();
    waiting.remove(schedule::next(&loads, &beside, slots)?)
}

fn start(dir: &Path, job: Job) -> Result<Running, (String, anyhow::Error)> {
    let Job {
        name,
        mut command,
        load,
    } = job;
    let output = dir.join(format!("{}.log", file_name(&name)));
    let started = File::create(&output)
        .and_then(|file| Ok((file.try_clone()?, file)))
        .and_then(|(out, err)| command.stdin(Stdio::null()).stdout(out).stderr(err).spawn())
        .with_context(|| format!("cannot start {}", command.get_program().display()));
    match started {
        Ok(child) => Ok(Running {
            name,
            load,
            child,
            begun: Instant::now(),
            output,
        }),
        Err(error) => Err((name, error)),
    }
}

/// Whether it has ended; one that takes too long is ended.
fn has_ended(job: &mut Running) -> bool {
    if job.begun.elapsed() > LIMIT {
        let _ = job.child.kill();
    }
    !matches!(job.child.try_wait(), Ok(None))
}

fn finish(mut job: Running) -> Done {
    let took = job.begun.elapsed();
    let status = job.child.wait();
    let text = fs::read(&job.output).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let succeeded = status.as_ref().is_ok_and(|status| status.success());
    let end = match status {
        _ if succeeded => "ok".to_owned(),
        _ if took > LIMIT => format!("FAILED, killed because it took more than {LIMIT:?}"),
        Ok(status) => format!("FAILED with {status}"),
        Err(error) => format!("FAILED, {error}"),
    };
    println!(
        "     Running {} ({end}, {:.1} s; {})",
        job.name,
        took.as_secs_f32(),
        job.output.display()
    );
    print!("{}", report::excerpt(&text, succeeded));
    Done {
        tests: report::times(&text),
        name: job.name,
        took,
        succeeded,
    }
}

/// A directory for what the jobs of a tier print, without what earlier ones did.
fn output_dir(workspace: &Workspace, tier: &str) -> Result<PathBuf> {
    let dir = workspace.target.join("test-output").join(file_name(tier));
    let failed = || format!("cannot make {} anew", dir.display());
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(failed)?;
    }
    fs::create_dir_all(&dir).with_context(failed)?;
    Ok(dir)
}

fn file_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "-_".contains(c) {
            c
        } else {
            '-'
        }
    };
    name.chars().map(plain).collect()
}
