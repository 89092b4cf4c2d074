//! One call after another, about one pod at a time: rows (a) to (d), their floor (g), and the
//! start of a process by itself.

use crate::FLOOR;
use crate::PEER;
use crate::config::Shape;
use crate::contest::Who;
use crate::lab::Lab;
use anyhow::{Context, Result};
use plexus_testkit::bench::{Report, Row, Samples};
use std::collections::BTreeMap;

/// Rounds that are not counted.
const WARM_UP: usize = 5;
/// How many times the start of a process and the kernel's part an ADD may take.
const NEAR: f64 = 1.4;

/// What was measured; none for what a contender does not do.
#[derive(Default)]
struct Timings {
    add: BTreeMap<(Shape, Who), Samples>,
    del: BTreeMap<(Shape, Who), Samples>,
    start: BTreeMap<Who, Samples>,
}

pub(crate) fn run(lab: &Lab<'_>, rounds: usize, report: &mut Report) -> Result<()> {
    let mut timings = Timings::default();
    for round in 0..rounds + WARM_UP {
        if round == WARM_UP {
            timings = Timings::default();
        }
        one_round(lab, round, &mut timings).with_context(|| format!("round {round}"))?;
    }
    rows(&timings, report);
    Ok(())
}

fn one_round(lab: &Lab<'_>, round: usize, timings: &mut Timings) -> Result<()> {
    for shape in [Shape::Macvlan, Shape::Bridge, Shape::Four] {
        let bench_pods = lab.bench_pods(3)?;
        for (who, bench_pod) in Who::in_turn(round).into_iter().zip(&bench_pods) {
            let (took, results) = lab.add(who, shape, bench_pod)?;
            timings.add.entry((shape, who)).or_default().push(took);
            let took = lab.del(who, shape, bench_pod, results)?;
            timings.del.entry((shape, who)).or_default().push(took);
        }
        lab.release(bench_pods)?;
    }
    let bench_pods = lab.bench_pods(1)?;
    for bench_pod in &bench_pods {
        let key = (Shape::FourPlexus, Who::Ours);
        let (took, results) = lab.add(key.1, key.0, bench_pod)?;
        timings.add.entry(key).or_default().push(took);
        lab.del(key.1, key.0, bench_pod, results)?;
    }
    lab.release(bench_pods)?;
    for who in [Who::Ours, Who::Peer] {
        timings
            .start
            .entry(who)
            .or_default()
            .push(lab.start_only(who)?);
    }
    Ok(())
}

fn rows(timings: &Timings, report: &mut Report) {
    let of = |map: &BTreeMap<(Shape, Who), Samples>, shape, who| {
        map.get(&(shape, who)).cloned().unwrap_or_default()
    };
    let row = |name: &str, map, shape| {
        Row::new(name)
            .of("ours", &of(map, shape, Who::Ours))
            .of("peer", &of(map, shape, Who::Peer))
            .of("floor", &of(map, shape, Who::Floor))
    };
    let start = |who| timings.start.get(&who).cloned().unwrap_or_default();
    // What a runtime cannot have faster: a process, and the kernel's part.
    let least = |shape| start(Who::Ours).median() + of(&timings.add, shape, Who::Floor).median();
    let close = |row: Row, shape, times: f64| {
        let ours = of(&timings.add, shape, Who::Ours).median();
        let met = ours <= NEAR * least(shape) && row.ratio(PEER).is_some_and(|r| r >= times);
        let aim = format!("peer/ours >= {times} and ours/(start + floor) <= {NEAR}");
        let note = format!("ours/(start + floor) = {:.2}", ours / least(shape));
        row.aim(&aim, met).note(note)
    };
    let one = row("(a) ADD 1 macvlan", &timings.add, Shape::Macvlan);
    report.push(close(one, Shape::Macvlan, 10.0));
    report.push(row("(b) ADD 1 bridge", &timings.add, Shape::Bridge));
    let four = row("(c) ADD 4: bridge + 3 macvlan", &timings.add, Shape::Four);
    report.push(close(four, Shape::Four, 25.0));
    report.push(
        row("(c) the same, IPAM plexus", &timings.add, Shape::Four)
            .of("ours", &of(&timings.add, Shape::FourPlexus, Who::Ours)),
    );
    let further = |who| {
        let median = |shape| of(&timings.add, shape, who).median();
        (median(Shape::Four) - median(Shape::Bridge)) / 3.0
    };
    report.push(
        Row::new("(c) each further macvlan")
            .value("ours", further(Who::Ours))
            .value("peer", further(Who::Peer))
            .value("floor", further(Who::Floor))
            .at_most(FLOOR, 1.5),
    );
    report.push(row("(d) DEL 1 macvlan", &timings.del, Shape::Macvlan));
    report.push(row("(d) DEL 1 bridge", &timings.del, Shape::Bridge));
    report.push(row("(d) DEL 4", &timings.del, Shape::Four).at_most(FLOOR, 1.3));
    report.push(
        Row::new("process start only (VERSION)")
            .of("ours", &start(Who::Ours))
            .of("peer", &start(Who::Peer)),
    );
}
