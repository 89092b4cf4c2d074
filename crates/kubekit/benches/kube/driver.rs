//! The driver: this program again, in the namespaces of a node. Takes batches of calls on its
//! standard input, makes a namespace for each, times all contenders alike, and prints what they took.

use crate::call::Call;
use anyhow::{Context, Result, anyhow, ensure};
use plexus_kubekit::Kube;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Before each batch: what the one before has set going is done.
const SETTLE_PAUSE: Duration = Duration::from_millis(30);

/// Calls that are made by so many clients at a time: all ADDs, then all DELs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(crate) clients: usize,
    /// Between the ADDs and the DELs.
    pub(crate) pause: Duration,
    pub(crate) calls: Vec<Call>,
}

/// What a batch took: each call, and from the common start to the last end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Timings {
    pub(crate) add: Vec<Duration>,
    pub(crate) del: Vec<Duration>,
    pub(crate) add_wall: Duration,
    pub(crate) del_wall: Duration,
    /// When the ADDs began and when the pause ended, as the API server writes a time.
    pub(crate) from: String,
    pub(crate) to: String,
}

/// Has a node's driver do the work.
pub(crate) fn on_node(kube: &Kube, node: &str, batches: &[Batch]) -> Result<Vec<Timings>> {
    let job = kube.lab().layout().state().join("bench-job.json");
    std::fs::write(&job, serde_json::to_vec(batches)?)
        .with_context(|| format!("cannot write {}", job.display()))?;
    let program = std::env::current_exe().context("no path to this program")?;
    let argv = [
        &*program.to_string_lossy(),
        "driver",
        &*job.to_string_lossy(),
    ];
    let text = crate::lab::without_haste(kube, node, &argv)?;
    let timings: Vec<Timings> =
        serde_json::from_str(&text).context("the driver printed no JSON")?;
    ensure!(
        timings.len() == batches.len(),
        "the driver left batches out"
    );
    Ok(timings)
}

/// The driver's own main.
pub(crate) fn run(job: &str) -> Result<()> {
    let text = std::fs::read(job).with_context(|| format!("cannot read {job}"))?;
    let batches: Vec<Batch> = serde_json::from_slice(&text).context("no batches")?;
    let namespaces: Vec<String> = batches
        .iter()
        .flat_map(|batch| batch.calls.iter().map(Call::netns))
        .collect();
    let work = || -> Result<Vec<Timings>> {
        namespaces.iter().try_for_each(|path| make(path))?;
        let timings = batches.iter().map(one).collect::<Result<_>>()?;
        namespaces.iter().try_for_each(|path| see_empty(path))?;
        Ok(timings)
    };
    let done = work();
    for path in &namespaces {
        delete(path);
    }
    println!("{}", serde_json::to_string(&done?)?);
    Ok(())
}

fn one(batch: &Batch) -> Result<Timings> {
    std::thread::sleep(SETTLE_PAUSE);
    let from = now()?;
    let (add_wall, added) = in_parallel(batch.clients, &batch.calls, Call::add)?;
    std::thread::sleep(batch.pause);
    let to = now()?;
    let add = added.iter().map(|(took, _)| *took).collect();
    let items: Vec<(&Call, Value)> = batch
        .calls
        .iter()
        .zip(added.into_iter().map(|(_, result)| result))
        .collect();
    let (del_wall, del) = in_parallel(batch.clients, &items, |(call, result)| {
        call.del(result.clone())
    })?;
    Ok(Timings {
        add,
        del,
        add_wall,
        del_wall,
        from,
        to,
    })
}

/// Has `clients` threads do the work, each taking the next item; gives the time from the common start
/// to the last end, and what the work gave in the order of the items.
fn in_parallel<I: Sync, T: Send>(
    clients: usize,
    items: &[I],
    work: impl Fn(&I) -> Result<T> + Sync,
) -> Result<(Duration, Vec<T>)> {
    let start_line = Barrier::new(clients + 1);
    let next = AtomicUsize::new(0);
    let client = || -> Result<Vec<(usize, T)>> {
        start_line.wait();
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::SeqCst);
            let Some(item) = items.get(index) else {
                return Ok(done);
            };
            done.push((index, work(item)?));
        }
    };
    let (took, results) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        start_line.wait();
        let start = Instant::now();
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        (start.elapsed(), results)
    });
    let mut all = Vec::with_capacity(items.len());
    for result in results {
        all.extend(result.map_err(|_| anyhow!("a client panicked"))??);
    }
    all.sort_by_key(|(index, _)| *index);
    Ok((took, all.into_iter().map(|(_, result)| result).collect()))
}

/// A namespace as containerd makes one: a mount on an empty file.
fn make(path: &str) -> Result<()> {
    std::fs::write(path, "").with_context(|| format!("cannot write {path}"))?;
    let status = Command::new("unshare")
        .args([&format!("--net={path}"), "ip", "link", "set", "lo", "up"])
        .status()
        .context("cannot start unshare")?;
    ensure!(status.success(), "no namespace at {path}");
    Ok(())
}

fn see_empty(path: &str) -> Result<()> {
    let output = Command::new("nsenter")
        .args([&format!("--net={path}"), "ip", "-br", "link"])
        .output()
        .context("cannot start nsenter")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let left: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "lo")
        .collect();
    ensure!(left.is_empty(), "{left:?} is left in {path}");
    Ok(())
}

fn delete(path: &str) {
    let _ = Command::new("umount").arg(path).status();
    let _ = std::fs::remove_file(path);
}

fn now() -> Result<String> {
    let output = Command::new("date")
        .args(["-u", "+%Y-%m-%dT%H:%M:%S.%6NZ"])
        .output()
        .context("cannot start date")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
