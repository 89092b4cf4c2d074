//! What an administrator sees: metrics, health, Events and logs, each of a pod's life.
#![cfg(feature = "e2e")]
#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

mod common;

use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::test_cluster::Need;
use plexus_kubekit::{Cluster, Kube, Namespace, Object, test_cluster};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const AGENT: &str = "http://127.0.0.1:9091";
const CONTROLLER: &str = "http://127.0.0.1:9092";
const ADDED: &str = r#"plexus_attach_seconds_count{provider="mixed",outcome="success"}"#;
const REMOVED: &str = r#"plexus_detach_seconds_count{provider="mixed",outcome="success"}"#;

/// Every series by its name and labels.
type Series = BTreeMap<String, f64>;

#[test]
fn a_pods_life_is_counted_and_logged() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "observed").expect("a namespace");
    let nodes = kube.nodes().expect("nodes");
    let (node, ns) = (&nodes[0], namespace.name());
    let blue = json!({"subnets": {"v4": {"cidr": "10.59.1.0/24"}}});
    common::apply(kube, &[common::network(ns, "blue", blue)]);
    let active = |seen: &Value| seen["status"]["phase"] == "Active";
    let network = common::network_object(ns, "blue");
    kube.wait_for(&network, TIMEOUT, &active).expect("active");
    let before = scraped(kube, node);

    let asked = [(common::PLEXUS, "blue")];
    let missing = [(common::PLEXUS, "not-there")];
    common::apply(
        kube,
        &[
            common::pod(ns, "good", node, &asked),
            common::pod(ns, "bad", node, &missing),
        ],
    );
    let (good, bad) = (namespace.pod("good"), namespace.pod("bad"));
    common::ready(kube, &[&good]);
    common::event(kube, &bad, "FailedAttach", &["not-there", "bad"]);
    let during = scraped(kube, node);
    grew(&before, &during, ADDED);
    grew(&before, &during, &ADDED.replace("_count", "_sum"));
    let bucket = ADDED.replace("_count{", r#"_bucket{le="+Inf","#);
    grew(&before, &during, &bucket);
    for outcome in ["success", "error"] {
        let name = format!(r#"plexus_cni_requests_total{{verb="add",outcome="{outcome}"}}"#);
        grew(&before, &during, &name);
    }
    assert_eq!(used(&during, ns), Some(1.0), "{during:?}");

    common::gone(kube, &[&good, &bad]);
    common::holds("detached", TIMEOUT, || {
        let after = scraped(kube, node);
        used(&after, ns).unwrap_or(0.0) == 0.0 && value(&after, REMOVED) > value(&during, REMOVED)
    });
    state_is_shown(&during);
    // Of a network that is gone, nothing is shown any more.
    common::gone(kube, &[&network]);
    common::holds("no pool", TIMEOUT, || {
        used(&scraped(kube, node), ns).is_none()
    });
    if let Some(kube) = test_cluster::kubernetes(Need::Kubelet).expect("a lab") {
        logged(kube, node, ns);
    }
}

#[test]
fn health_and_readiness_are_answered() {
    let kube = test_cluster::shared().expect("a lab");
    for node in kube.nodes().expect("nodes") {
        for path in ["healthz", "readyz"] {
            let url = format!("{AGENT}/{path}");
            let text = fetched(kube, &node, &[&url]).expect("an answer");
            assert!(text.contains("ok") || text.contains("ready"), "{text}");
            let endpoint = [
                "--unix-socket",
                &kube.files(&node).expect("known").socket,
                &format!("http://plexus/{path}"),
            ];
            assert_eq!(fetched(kube, &node, &endpoint), Some(text));
        }
        // Not for the network: on the loopback only.
        let address = Object::new("v1", "Node", "", &node);
        let seen = kube.get(&address).expect("asked").expect("is there");
        let ip = seen["status"]["addresses"][0]["address"]
            .as_str()
            .expect("an address");
        let open = kube.outside(&[
            "curl",
            "-s",
            "-m",
            "2",
            &format!("http://{ip}:9091/healthz"),
        ]);
        assert!(!open.expect("it runs").ok());
    }
    let asked = |path: &str| {
        let url = format!("{CONTROLLER}/{path}");
        let argv = ["curl", "-sf", "-m", "5", &url];
        kube.beside_controller(&argv).expect("it runs").text().ok()
    };
    for path in ["healthz", "readyz", "metrics"] {
        assert!(asked(path).is_some(), "{path}");
    }
    let text = asked("metrics").expect("metrics");
    let series = parsed(&text);
    for name in [
        "plexus_controller_leading",
        "plexus_controller_queue_depth",
        "plexus_controller_handled_total",
    ] {
        assert!(series.contains_key(name), "{name}: {series:?}");
    }
    assert_eq!(value(&series, "plexus_controller_leading"), 1.0);
}

/// What is true at a moment: queue, journal, readiness.
fn state_is_shown(series: &Series) {
    for name in [
        "plexus_adds_in_flight",
        "plexus_operations_running",
        "plexus_operations_waiting",
    ] {
        let depth = series.get(name).copied();
        assert!(
            depth.is_some_and(|depth| depth < 100.0),
            "{name}: {depth:?}"
        );
    }
    let journal: f64 = ["journal", "log"]
        .map(|file| value(series, &format!(r#"plexus_journal_bytes{{file="{file}"}}"#)))
        .iter()
        .sum();
    assert!(journal > 4096.0, "{journal}");
    assert_eq!(value(series, "plexus_ready"), 1.0);
    let capacity = |name: &&String| {
        name.contains(r#"cluster-default",subnet="#) && name.contains(r#"state="capacity""#)
    };
    assert!(series.keys().any(|name| capacity(&name)), "{series:?}");
}

/// Each line is an object, and those about a pod have it in the fields of their span.
fn logged(kube: &Kube, node: &str, namespace: &str) {
    let mut lines: Vec<Value> = Vec::new();
    let about = |lines: &[Value], verb: &str, message: &str, pod: &str| -> Option<Value> {
        let fits = |line: &&Value| {
            let call = &line["spans"][0];
            call["verb"] == verb
                && line["fields"]["message"] == message
                && call["pod"] == format!("{namespace}/{pod}")
        };
        lines.iter().find(fits).cloned()
    };
    common::holds("the log", TIMEOUT, || {
        let text = kube.agent_log(node).expect("a log");
        let each = text
            .lines()
            .map(|line| serde_json::from_str(line).expect(line));
        lines = each.collect();
        about(&lines, "del", "done", "good").is_some()
    });
    let added = about(&lines, "add", "done", "good").expect("a line");
    assert_eq!(
        added["fields"]["networks"],
        format!("cluster-default,{namespace}/blue"),
        "{added}"
    );
    assert_eq!(added["spans"][0]["ifname"], "eth0");
    let refused = about(&lines, "add", "refused", "bad").expect("a line");
    assert!(
        refused["fields"]["error"]
            .as_str()
            .is_some_and(|text| text.contains("not-there")),
        "{refused}"
    );
}

fn scraped(kube: &dyn Cluster, node: &str) -> Series {
    let text = fetched(kube, node, &[&format!("{AGENT}/metrics")]).expect("metrics");
    assert!(text.ends_with("# EOF\n"), "{text}");
    parsed(&text)
}

/// Every line is understood, or it is no metric.
fn parsed(text: &str) -> Series {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let each = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').expect(line);
        (name.to_owned(), value.parse().expect(line))
    });
    each.collect()
}

fn fetched(kube: &dyn Cluster, node: &str, arguments: &[&str]) -> Option<String> {
    let mut argv = vec!["curl", "-sf", "-m", "5"];
    argv.extend(arguments);
    kube.on_node(node, &argv).expect("it runs").text().ok()
}

/// Addresses of the network `blue` of a namespace that are in use.
fn used(series: &Series, namespace: &str) -> Option<f64> {
    let name = format!(r#"network="{namespace}.blue""#);
    let of = |key: &String| {
        key.starts_with("plexus_pool_addresses{")
            && key.contains(&name)
            && key.contains(r#"state="used""#)
    };
    let mut found = series
        .iter()
        .filter(|(key, _)| of(key))
        .map(|(_, value)| *value)
        .peekable();
    found.peek()?;
    Some(found.sum())
}

fn value(series: &Series, name: &str) -> f64 {
    series.get(name).copied().unwrap_or(0.0)
}

#[track_caller]
fn grew(before: &Series, after: &Series, name: &str) {
    assert!(
        value(after, name) > value(before, name),
        "{name}: {after:?}"
    );
}
