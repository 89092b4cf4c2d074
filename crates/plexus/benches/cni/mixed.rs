//! ADDs while eight DELs run, row (f), beside ADDs alone in the same wave: deletions must not hold
//! up new pods. The floor does the same with raw netlink: what the kernel itself makes ADDs wait.

use crate::config::Shape;
use crate::contest::{Results, Who};
use crate::lab::{BenchPod, Lab};
use anyhow::{Result, anyhow};
use plexus_testkit::bench::{Report, Row, Samples};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const DELETERS: usize = 8;
/// ADDs alone, in one wave, and at most this many beside DELs.
const ADDS: usize = 5;
const SHAPE: Shape = Shape::Macvlan;

/// Samples of one contender.
#[derive(Default)]
struct Timings {
    alone: Samples,
    beside: Samples,
}

pub(crate) fn run(lab: &Lab<'_>, rounds: usize, report: &mut Report) -> Result<()> {
    let mut ours = Timings::default();
    let mut floor = Timings::default();
    for wave in 0..rounds.div_ceil(ADDS) {
        let mut order = [(Who::Ours, &mut ours), (Who::Floor, &mut floor)];
        order.rotate_left(wave % 2);
        for (who, timings) in order {
            one_wave(lab, who, timings)?;
        }
    }
    let change = ours.beside.median() / ours.alone.median() - 1.0;
    let p99 = ours.beside.p99();
    report.push(
        Row::new("(f) ADD 1 macvlan alone")
            .of("ours", &ours.alone)
            .of("floor", &floor.alone),
    );
    report.push(
        Row::new(format!("(f) ADD beside 8 DELs: {:+.0} %", change * 100.0))
            .of("ours", &ours.beside)
            .of("floor", &floor.beside)
            .aim(
                "median within 10 % of alone, p99 <= 15 ms",
                change.abs() <= 0.1 && p99 <= 15.0,
            ),
    );
    Ok(())
}

fn one_wave(lab: &Lab<'_>, who: Who, timings: &mut Timings) -> Result<()> {
    let victims = attach_all(lab, who, lab.bench_pods(DELETERS)?)?;
    let mut attached = Vec::new();
    for bench_pod in lab.bench_pods(ADDS)? {
        let (took, results) = lab.add(who, SHAPE, &bench_pod)?;
        timings.alone.push(took);
        attached.push((bench_pod, results));
    }
    let spare = lab.bench_pods(ADDS)?;
    let (gone, beside) = beside_deletions(lab, who, victims, spare)?;
    timings.beside.extend(beside.iter().map(|(took, ..)| *took));
    lab.release(gone)?;
    attached.extend(
        beside
            .into_iter()
            .map(|(_, bench_pod, results)| (bench_pod, results)),
    );
    for (bench_pod, results) in attached {
        lab.del(who, SHAPE, &bench_pod, results)?;
        lab.release(vec![bench_pod])?;
    }
    Ok(())
}

type Added<'n> = Vec<(Duration, BenchPod<'n>, Results)>;

/// Starts the DELs together and makes ADDs for as long as they run. Gives back all pods: those
/// that are empty, and those that got interfaces.
fn beside_deletions<'n>(
    lab: &Lab<'n>,
    who: Who,
    victims: Vec<(BenchPod<'n>, Results)>,
    spare: Vec<BenchPod<'n>>,
) -> Result<(Vec<BenchPod<'n>>, Added<'n>)> {
    let start_line = Barrier::new(DELETERS + 1);
    let running = AtomicUsize::new(DELETERS);
    let delete = |(bench_pod, results): (BenchPod<'n>, Results)| -> Result<BenchPod<'n>> {
        let deleted = lab.node_netns().enter(|| {
            start_line.wait();
            lab.del(who, SHAPE, &bench_pod, results)
        });
        running.fetch_sub(1, Ordering::SeqCst);
        deleted??;
        Ok(bench_pod)
    };
    std::thread::scope(|scope| {
        let delete = &delete;
        let threads: Vec<_> = victims
            .into_iter()
            .map(|victim| scope.spawn(move || delete(victim)))
            .collect();
        start_line.wait();
        let (mut unused, mut added) = (Vec::new(), Vec::new());
        let mut failed = None;
        for bench_pod in spare {
            if running.load(Ordering::SeqCst) == 0 || failed.is_some() {
                unused.push(bench_pod);
                continue;
            }
            match lab.add(who, SHAPE, &bench_pod) {
                Ok((took, results)) => added.push((took, bench_pod, results)),
                Err(error) => failed = Some(error),
            }
        }
        for thread in threads {
            unused.push(thread.join().map_err(|_| anyhow!("a client panicked"))??);
        }
        failed.map_or(Ok((unused, added)), Err)
    })
}

fn attach_all<'n>(
    lab: &Lab<'n>,
    who: Who,
    bench_pods: Vec<BenchPod<'n>>,
) -> Result<Vec<(BenchPod<'n>, Results)>> {
    bench_pods
        .into_iter()
        .map(|bench_pod| {
            let (_, results) = lab.add(who, SHAPE, &bench_pod)?;
            Ok((bench_pod, results))
        })
        .collect()
}
