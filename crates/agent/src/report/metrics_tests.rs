//! What `/metrics` says, read as a scraper would read it.

use super::*;
use crate::background::task::Reason;
use std::collections::BTreeMap;

/// Samples by name and labels; fails on what is not OpenMetrics text.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.pop(), Some("# EOF"));
    let (mut types, mut helps) = (BTreeMap::new(), BTreeMap::new());
    let mut samples = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "TYPE", name, kind] => assert_eq!(types.insert(name, kind), None, "{line}"),
            ["#", "HELP", name, help] => assert_eq!(helps.insert(name, help), None, "{line}"),
            _ => {
                let (key, value) = line.rsplit_once(' ').unwrap();
                let name = key.split('{').next().unwrap();
                let family = types.keys().find(|family| {
                    let rest = name.strip_prefix(**family);
                    rest.is_some_and(|r| ["", "_total", "_bucket", "_sum", "_count"].contains(&r))
                });
                assert!(family.is_some(), "{name} has no type");
                let old = samples.insert(key.to_owned(), value.parse().unwrap());
                assert_eq!(old, None, "{key} is there twice");
            }
        }
    }
    assert_eq!(
        types.keys().collect::<Vec<_>>(),
        helps.keys().collect::<Vec<_>>()
    );
    assert!(types.keys().all(|name| name.starts_with("plexus_")));
    samples
}

#[test]
fn counts_by_verb_and_outcome() {
    let metrics = Metrics::default();
    metrics.served(Command::Add, true, Duration::from_micros(1500));
    metrics.served(Command::Add, false, Duration::from_micros(500));
    metrics.served(Command::Del, true, Duration::ZERO);
    let all = samples(&metrics.render(&Moment::default()));
    let requests = |verb, outcome| {
        all[&format!("plexus_cni_requests_total{{verb=\"{verb}\",outcome=\"{outcome}\"}}")]
    };
    assert_eq!(requests("add", "success"), 1.0);
    assert_eq!(requests("add", "error"), 1.0);
    assert_eq!(requests("del", "success"), 1.0);
    assert_eq!(requests("gc", "success"), 0.0, "known before it happens");
    assert_eq!(all["plexus_cni_seconds_total{verb=\"add\"}"], 0.002);
}

#[test]
fn latencies_by_provider_and_outcome() {
    let metrics = Metrics::default();
    metrics.attached("routed", true, Duration::from_micros(700));
    metrics.attached("routed", true, Duration::from_secs(3600));
    metrics.attached("mixed", false, Duration::from_millis(30));
    metrics.detached("overlay", true, Duration::from_millis(20));
    let all = samples(&metrics.render(&Moment::default()));
    let routed = "provider=\"routed\",outcome=\"success\"";
    let bucket = |le: &str| all[&format!("plexus_attach_seconds_bucket{{le=\"{le}\",{routed}}}")];
    assert_eq!(bucket("0.0005"), 0.0);
    assert_eq!(bucket("0.001"), 1.0);
    assert_eq!(bucket("120.0"), 1.0);
    assert_eq!(bucket("+Inf"), 2.0);
    assert_eq!(
        all[&format!("plexus_attach_seconds_count{{{routed}}}")],
        2.0
    );
    let mixed = "provider=\"mixed\",outcome=\"error\"";
    assert_eq!(all[&format!("plexus_attach_seconds_sum{{{mixed}}}")], 0.03);
    let overlay = "provider=\"overlay\",outcome=\"success\"";
    assert_eq!(
        all[&format!("plexus_detach_seconds_count{{{overlay}}}")],
        1.0
    );
}

#[test]
fn the_moment_is_shown_and_what_is_gone_is_not() {
    let metrics = Metrics::default();
    let run = Runs {
        plugin: "bridge".to_owned(),
        verb: "ADD",
        success: true,
        count: 3,
        took: Duration::from_millis(1500),
    };
    let hostile = "b\"l\\u\ne".to_owned();
    let moment = Moment {
        adds: 4,
        running: 2,
        waiting: 1,
        pools: vec![(hostile, "fd00::/64".to_owned(), 7, 1 << 64)],
        journal: (4096, 8192),
        delegates_running: 1,
        delegates: vec![run],
        ready: true,
        tasks: vec![Counts {
            name: "queue",
            runs: vec![(Reason::Event, true, 5), (Reason::Retry, false, 2)],
            last_duration: Duration::from_millis(250),
            stuck: true,
        }],
    };
    for _ in 0..2 {
        let all = samples(&metrics.render(&moment));
        assert_eq!(all["plexus_adds_in_flight"], 4.0);
        assert_eq!(all["plexus_operations_waiting"], 1.0);
        assert_eq!(all["plexus_ready"], 1.0);
        assert_eq!(all["plexus_journal_bytes{file=\"log\"}"], 8192.0);
        let pool = "network=\"b\\\"l\\\\u\\ne\",subnet=\"fd00::/64\"";
        assert_eq!(
            all[&format!("plexus_pool_addresses{{{pool},state=\"used\"}}")],
            7.0
        );
        let run = "plugin=\"bridge\",verb=\"add\",outcome=\"success\"";
        assert_eq!(
            all[&format!("plexus_delegate_runs_total{{{run}}}")],
            3.0,
            "twice the same"
        );
        assert_eq!(all[&format!("plexus_delegate_seconds_total{{{run}}}")], 1.5);
        let run = "task=\"queue\",reason=\"event\",outcome=\"success\"";
        assert_eq!(all[&format!("plexus_task_runs_total{{{run}}}")], 5.0);
        assert_eq!(all["plexus_task_last_seconds{task=\"queue\"}"], 0.25);
        assert_eq!(all["plexus_task_stuck{task=\"queue\"}"], 1.0);
    }
    let none = samples(&metrics.render(&Moment::default()));
    assert!(
        !none
            .keys()
            .any(|key| key.starts_with("plexus_pool_addresses"))
    );
}
