//! Eight clients at once, row (e): each its own pod, one macvlan. The figures are those of one
//! client's call, while seven others make theirs.

use crate::config::Shape;
use crate::contest::Who;
use crate::crew::{add_all, del_all};
use crate::lab::Lab;
use anyhow::Result;
use plexus_testkit::bench::{Report, Row, Samples};
use std::collections::BTreeMap;

const CLIENTS: usize = 8;

pub(crate) fn run(lab: &Lab<'_>, rounds: usize, report: &mut Report) -> Result<()> {
    let mut add = BTreeMap::<Who, Samples>::new();
    let mut del = BTreeMap::<Who, Samples>::new();
    for wave in 0..rounds.div_ceil(CLIENTS) {
        for who in Who::in_turn(wave) {
            let bench_pods = lab.bench_pods(CLIENTS)?;
            let what = (who, Shape::Macvlan);
            let (_, added) = add_all(lab, CLIENTS, what, &bench_pods)?;
            let took = added.iter().map(|(took, _)| *took);
            add.entry(who).or_default().extend(took);
            let (_, deleted) = del_all(lab, CLIENTS, what, &bench_pods, added)?;
            del.entry(who).or_default().extend(deleted);
            lab.release(bench_pods)?;
        }
    }
    for (verb, timings) in [("ADD", add), ("DEL", del)] {
        let of = |who| timings.get(&who).cloned().unwrap_or_default();
        report.push(
            Row::new(format!("(e) {verb} 1 macvlan, 8 clients at once"))
                .of("ours", &of(Who::Ours))
                .of("peer", &of(Who::Peer))
                .of("floor", &of(Who::Floor)),
        );
    }
    Ok(())
}
