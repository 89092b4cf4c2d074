//! The embedded API and the real one, in turn.

use crate::AHEAD;
use crate::load::Load;
use crate::megabytes;
use crate::ours::Ours;
use crate::real::Real;
use anyhow::Result;
use plexus_testkit::bench::{Report, Row, Samples};

const OBJECTS: usize = 10_000;
const WATCHERS: usize = 100;
/// Changes that every watcher sees, in a round.
const CHANGES: usize = 100;
/// In a round.
const CREATES: [(usize, usize); 2] = [(1, 200), (16, 1000)];

#[derive(Default)]
struct Side {
    creates: [Samples; 2],
    list: Samples,
    pages: Samples,
    one_change: Samples,
    events: Samples,
}

pub(crate) fn run(rounds: usize, report: &mut Report) -> Result<()> {
    let (ours, real) = (Ours::start()?, Real::start()?);
    let fresh = (megabytes(&[ours.pid()])?, megabytes(&real.pids())?);
    let loads = [Load::new(ours.kubeconfig()), Load::new(real.kubeconfig())];
    for load in &loads {
        load.fill(OBJECTS);
    }
    let filled = (megabytes(&[ours.pid()])?, megabytes(&real.pids())?);
    let mut sides = [Side::default(), Side::default()];
    for round in 0..rounds {
        // Another one first in each round.
        for turn in 0..2 {
            let which = (round + turn) % 2;
            sides[which].round(&loads[which], round);
        }
    }
    let end = (megabytes(&[ours.pid()])?, megabytes(&real.pids())?);
    let [ours, real] = &sides;
    let row = |name: &str, ours: &Samples, real: &Samples| {
        Row::new(name).of("ours", ours).of("other", real)
    };
    for (number, (clients, _)) in CREATES.iter().enumerate() {
        let name = format!("creates, {clients} clients");
        let row = row(&name, &ours.creates[number], &real.creates[number]);
        report.push(row.unit("per second").more_is_better().at_least(AHEAD, 1.0));
    }
    let name = format!("list of {OBJECTS} objects");
    report.push(row(&name, &ours.list, &real.list).at_least(AHEAD, 1.0));
    report.push(row("the same in pages of 500", &ours.pages, &real.pages).at_least(AHEAD, 1.0));
    let name = format!("one change to {WATCHERS} watchers");
    report.push(row(&name, &ours.one_change, &real.one_change).at_least(AHEAD, 1.0));
    let row = row(
        &format!("events to {WATCHERS} watchers"),
        &ours.events,
        &real.events,
    );
    report.push(row.unit("per second").more_is_better().at_least(AHEAD, 1.0));
    for (name, (ours, real)) in [
        ("memory, fresh".to_owned(), fresh),
        (format!("memory, {OBJECTS} objects"), filled),
        ("memory, at the end".to_owned(), end),
    ] {
        let row = Row::new(name)
            .value("ours", ours)
            .value("other", real)
            .unit("MB");
        report.push(row.at_least(AHEAD, 10.0));
    }
    Ok(())
}

impl Side {
    fn round(&mut self, load: &Load, round: usize) {
        for (samples, (clients, objects)) in self.creates.iter_mut().zip(CREATES) {
            let namespace = format!("create-{round}-{clients}");
            samples.value(load.creates(&namespace, objects, clients));
            load.clear(&namespace);
        }
        for _ in 0..3 {
            self.list.push(load.list(OBJECTS));
        }
        self.pages.push(load.pages());
        let namespace = format!("watch-{round}");
        let (one, events) = load.fan_out(&namespace, WATCHERS, CHANGES);
        load.clear(&namespace);
        self.one_change.extend(one);
        self.events.value(events);
    }
}
