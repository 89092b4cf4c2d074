//! What a disk flush per ADD would add, row (h): a commit of a record-sized row with
//! `synchronous = FULL`, on the disk of the journal, beside an ADD as it is.

use crate::config::Shape;
use crate::contest::Who;
use crate::lab::Lab;
use anyhow::Result;
use plexus_testkit::bench::{Report, Row, Samples};
use rusqlite::Connection;
use std::time::Instant;

/// About what the record of an attachment takes.
const RECORD: usize = 2048;

pub(crate) fn run(lab: &Lab<'_>, rounds: usize, report: &mut Report) -> Result<()> {
    let database = Connection::open(lab.node().state_dir().join("flush.db"))?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.execute_batch("CREATE TABLE record (body TEXT)")?;
    let body = "x".repeat(RECORD);
    let (mut add, mut flush) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        let bench_pods = lab.bench_pods(1)?;
        for bench_pod in &bench_pods {
            let (took, results) = lab.add(Who::Ours, Shape::Macvlan, bench_pod)?;
            add.push(took);
            let start = Instant::now();
            database
                .prepare_cached("INSERT INTO record VALUES (?1)")?
                .execute([&body])?;
            flush.push(start.elapsed());
            lab.del(Who::Ours, Shape::Macvlan, bench_pod, results)?;
        }
        lab.release(bench_pods)?;
    }
    report.push(Row::new("(h) one flushed commit by itself").of("ours", &flush));
    report.push(Row::new("(h) ADD 1 macvlan with a flush").of("ours", &add.plus(&flush)));
    Ok(())
}
