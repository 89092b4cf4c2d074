//! Several clients at once, each a thread on the node.

use crate::config::Shape;
use crate::contest::{Results, Who};
use crate::lab::{BenchPod, Lab};
use anyhow::{Result, anyhow};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What one client's ADD took and answered.
pub(crate) type Added = (Duration, Results);

/// Gives all pods their interfaces; also says how long that took from the common start.
pub(crate) fn add_all(
    lab: &Lab<'_>,
    clients: usize,
    (who, shape): (Who, Shape),
    bench_pods: &[BenchPod<'_>],
) -> Result<(Duration, Vec<Added>)> {
    in_parallel(lab, clients, bench_pods, |bench_pod| {
        lab.add(who, shape, bench_pod)
    })
}

/// Takes them away again; also says how long that took from the common start.
pub(crate) fn del_all(
    lab: &Lab<'_>,
    clients: usize,
    (who, shape): (Who, Shape),
    bench_pods: &[BenchPod<'_>],
    added: Vec<Added>,
) -> Result<(Duration, Vec<Duration>)> {
    let items: Vec<(&BenchPod<'_>, Added)> = bench_pods.iter().zip(added).collect();
    in_parallel(lab, clients, &items, |item| {
        let (bench_pod, (_, results)) = item;
        lab.del(who, shape, bench_pod, results.clone())
    })
}

/// Has `clients` threads do the work for all items, each taking the next; gives the time from
/// the common start to the last end, and what the work gave, in the order of the items.
fn in_parallel<I: Sync, T: Send>(
    lab: &Lab<'_>,
    clients: usize,
    items: &[I],
    work: impl Fn(&I) -> Result<T> + Sync,
) -> Result<(Duration, Vec<T>)> {
    let start_line = Barrier::new(clients + 1);
    let next = AtomicUsize::new(0);
    let client = || -> Result<Vec<(usize, T)>> {
        lab.node_netns().enter(|| {
            start_line.wait();
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::SeqCst);
                let Some(item) = items.get(index) else {
                    return Ok(done);
                };
                done.push((index, work(item)?));
            }
        })?
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
