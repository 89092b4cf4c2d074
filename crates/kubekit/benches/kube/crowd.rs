//! 50 pods with three further networks each, eight at a time.

use crate::contest::{Ipam, Kind, Who, calls};
use crate::driver::{self, Batch};
use crate::lab::{BenchLab, NODE};
use anyhow::{Context, Result};
use plexus_testkit::bench::{Report, Row, Samples};
use std::collections::BTreeMap;
use std::time::Duration;

const PODS: usize = 50;
const CLIENTS: usize = 8;
const ROUNDS: usize = 2;

pub(crate) fn run(bench: &BenchLab, report: &mut Report) -> Result<()> {
    let (pods, rounds) = if bench.quick { (16, 1) } else { (PODS, ROUNDS) };
    let mut timings = BTreeMap::<Kind, (Samples, Samples)>::new();
    for round in 0..rounds {
        let mut kinds = Vec::new();
        for ipam in [Ipam::Local, Ipam::Wide] {
            for who in [Who::Plexus, Who::Thin, Who::Thick] {
                kinds.push(Kind::new(who, ipam, 3));
            }
        }
        let turn = round % kinds.len();
        kinds.rotate_left(turn);
        for kind in kinds {
            let (add, del) = wave(bench, kind, pods).with_context(|| format!("{kind:?}"))?;
            let samples = timings.entry(kind).or_default();
            samples.0.push(add);
            samples.1.push(del);
        }
    }
    for (verb, ipam) in [
        ("ADD", Ipam::Local),
        ("ADD", Ipam::Wide),
        ("DEL", Ipam::Local),
        ("DEL", Ipam::Wide),
    ] {
        let of = |who| {
            let (add, del) = timings
                .get(&Kind::new(who, ipam, 3))
                .cloned()
                .unwrap_or_default();
            if verb == "ADD" { add } else { del }
        };
        let addresses = match ipam {
            Ipam::Local => "host-local",
            Ipam::Wide => "blocks | whereabouts",
        };
        let ours = of(Who::Plexus);
        let row = Row::new(format!(
            "{pods} pods x 3, {CLIENTS} at a time: {verb}, {addresses}"
        ))
        .of("ours", &ours)
        .of("thin", &of(Who::Thin))
        .of("thick", &of(Who::Thick));
        report.push(if verb == "ADD" {
            row.aim("<= 150 ms for 50", pods == PODS && ours.median() <= 150.0)
        } else {
            row
        });
    }
    Ok(())
}

fn wave(bench: &BenchLab, kind: Kind, pods: usize) -> Result<(Duration, Duration)> {
    let batch = Batch {
        clients: CLIENTS,
        pause: Duration::from_millis(500),
        calls: calls(bench, &vec![kind; pods])?,
    };
    let mut timings = driver::on_node(bench.kube, NODE, &[batch])?;
    bench.remove_pods()?;
    let took = timings.pop().context("nothing was measured")?;
    Ok((took.add_wall, took.del_wall))
}
