//! A node being drained: 100 pods with one macvlan each are removed, 16 at a time. The figure is
//! the time until the last is gone.

use crate::FLOOR;
use crate::config::Shape;
use crate::contest::Who;
use crate::crew::{add_all, del_all};
use crate::lab::Lab;
use anyhow::Result;
use plexus_testkit::bench::{Report, Row, Samples};
use std::collections::BTreeMap;

const PODS: usize = 100;
const CONCURRENT_CALLS: usize = 16;

pub(crate) fn run(lab: &Lab<'_>, rounds: usize, report: &mut Report) -> Result<()> {
    let mut timings = BTreeMap::<Who, Samples>::new();
    for repetition in 0..rounds.div_ceil(20) {
        let mut order = [Who::Ours, Who::Floor];
        order.rotate_left(repetition % 2);
        for who in order {
            let bench_pods = lab.bench_pods(PODS)?;
            let what = (who, Shape::Macvlan);
            let (_, added) = add_all(lab, 4, what, &bench_pods)?;
            let (took, _) = del_all(lab, CONCURRENT_CALLS, what, &bench_pods, added)?;
            timings.entry(who).or_default().push(took);
            lab.release(bench_pods)?;
        }
    }
    let of = |who| timings.get(&who).cloned().unwrap_or_default();
    report.push(
        Row::new("100 DELs, 16 at a time, until the last")
            .of("ours", &of(Who::Ours))
            .of("floor", &of(Who::Floor))
            .at_most(FLOOR, 1.3),
    );
    Ok(())
}
