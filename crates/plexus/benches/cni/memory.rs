//! The agent's memory: fresh, and at the end of the run with 2,000 attachments standing.

use crate::config::Shape;
use crate::contest::Who;
use crate::crew::{add_all, del_all};
use crate::lab::Lab;
use anyhow::Result;
use plexus_testkit::Agent;
use plexus_testkit::bench::{Report, Row};

/// Pods with four attachments each, in a full run.
const PODS: usize = 500;
const FULL_RUN: usize = 200;

pub(crate) fn fresh(agent: &Agent<'_>, report: &mut Report) {
    let size = megabytes(agent);
    let row = Row::new("agent RSS, fresh")
        .unit("MB")
        .value("ours", size)
        .value("peer", 39.2);
    report.push(row.aim("<= 10 MB", size <= 10.0));
}

/// The peer's figures are those of multus-daemon 4.3.0: fresh, and after 1,052 ADDs.
pub(crate) fn full(lab: &Lab<'_>, rounds: usize, report: &mut Report) -> Result<()> {
    let pods = (PODS * rounds.min(FULL_RUN)).div_ceil(FULL_RUN);
    let bench_pods = lab.bench_pods(pods)?;
    let what = (Who::Ours, Shape::Four);
    let (_, added) = add_all(lab, 4, what, &bench_pods)?;
    let size = megabytes(lab.agent());
    del_all(lab, 16, what, &bench_pods, added)?;
    lab.release(bench_pods)?;
    let name = format!("agent RSS, {} attachments", pods * 4);
    let row = Row::new(name)
        .unit("MB")
        .value("ours", size)
        .value("peer", 51.7);
    report.push(row.aim("<= 16 MB", size <= 16.0));
    Ok(())
}

fn megabytes(agent: &Agent<'_>) -> f64 {
    agent.memory("VmRSS") as f64 / 1024.0
}
