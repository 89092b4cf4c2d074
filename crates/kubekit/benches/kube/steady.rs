//! One call after another, about one pod at a time, all kinds in every round.

use crate::THICK;
use crate::contest::{Ipam, Kind, Who, calls};
use crate::driver::{self, Batch};
use crate::lab::{BenchLab, NODE};
use anyhow::{Context, Result};
use plexus_testkit::bench::{Report, Row, Samples};
use std::collections::BTreeMap;
use std::time::Duration;

const ROUNDS: usize = 30;
const QUICK_ROUNDS: usize = 5;
/// Rounds that are not counted.
const WARM_UP: usize = 2;
/// Rounds whose pods exist at the same time.
const AT_ONCE: usize = 10;

type Timings = BTreeMap<Kind, (Samples, Samples)>;

pub(crate) fn run(bench: &BenchLab, report: &mut Report) -> Result<()> {
    let rounds = if bench.quick { QUICK_ROUNDS } else { ROUNDS };
    let mut timings = Timings::new();
    one_part(bench, WARM_UP, 0, &mut Timings::new()).context("warming up")?;
    for first in (0..rounds).step_by(AT_ONCE) {
        let count = AT_ONCE.min(rounds - first);
        one_part(bench, count, first, &mut timings)
            .with_context(|| format!("from round {first}"))?;
    }
    rows(&timings, report);
    Ok(())
}

fn one_part(bench: &BenchLab, rounds: usize, first: usize, timings: &mut Timings) -> Result<()> {
    let mut order = Vec::new();
    for round in first..first + rounds {
        let mut kinds = kinds();
        let turn = round % kinds.len();
        kinds.rotate_left(turn);
        order.extend(kinds);
    }
    let batches: Vec<Batch> = calls(bench, &order)?
        .into_iter()
        .map(|call| Batch {
            clients: 1,
            pause: Duration::ZERO,
            calls: vec![call],
        })
        .collect();
    let done = driver::on_node(bench.kube, NODE, &batches)?;
    for (kind, took) in order.into_iter().zip(done) {
        let samples = timings.entry(kind).or_default();
        samples.0.extend(took.add);
        samples.1.extend(took.del);
    }
    bench.remove_pods()
}

fn kinds() -> Vec<Kind> {
    let mut all = Vec::new();
    for who in [Who::Plexus, Who::Thin, Who::Thick] {
        for networks in [0, 1, 3] {
            all.push(Kind::new(who, Ipam::Local, networks));
            if networks > 0 {
                all.push(Kind::new(who, Ipam::Wide, networks));
            }
        }
    }
    all
}

fn rows(timings: &Timings, report: &mut Report) {
    let of = |who, ipam, networks, verb| {
        let (add, del) = timings
            .get(&Kind::new(who, ipam, networks))
            .cloned()
            .unwrap_or_default();
        if verb == "ADD" { add } else { del }
    };
    for verb in ["ADD", "DEL"] {
        for (ipam, networks) in [
            (Ipam::Local, 0),
            (Ipam::Local, 1),
            (Ipam::Local, 3),
            (Ipam::Wide, 1),
            (Ipam::Wide, 3),
        ] {
            let addresses = match (ipam, networks) {
                (_, 0) => "",
                (Ipam::Local, _) => ", host-local",
                (Ipam::Wide, _) => ", blocks | whereabouts",
            };
            let row = Row::new(format!("{verb} {networks} networks{addresses}"))
                .of("ours", &of(Who::Plexus, ipam, networks, verb))
                .of("thin", &of(Who::Thin, ipam, networks, verb))
                .of("thick", &of(Who::Thick, ipam, networks, verb));
            report.push(match (verb, ipam, networks) {
                ("ADD", Ipam::Local, 3) => row.at_least(THICK, 24.0),
                ("ADD", Ipam::Wide, 3) => row.at_least(THICK, 100.0),
                _ => row,
            });
        }
    }
}
