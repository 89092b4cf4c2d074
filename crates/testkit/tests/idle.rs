//! An agent without work sleeps: its threads are woken by events, not by looking again and again. Counted are
//! voluntary context switches, which is how often a thread went to sleep. What happens wakes it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use plexus_testkit::{Agent, Node, Start, config, eventually};
use std::time::Duration;

/// How long it is watched.
const WATCHED: Duration = Duration::from_secs(10);
/// Until it has done what is to be done after a start and an ADD.
const SETTLES: Duration = Duration::from_secs(5);
/// Every thread that polls twice a second would take twenty of these.
const AT_MOST: u64 = 15;

/// Sleeps of all threads of the agent, with their names.
fn sleeps(agent: &Agent<'_>) -> Vec<(String, u64)> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap();
    let one = |thread: std::io::Result<std::fs::DirEntry>| {
        let status = thread.unwrap().path().join("status");
        let status = std::fs::read_to_string(status).ok()?;
        let field = |name: &str| {
            let mut lines = status.lines();
            lines
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let count = field("voluntary_ctxt_switches:")?.parse().unwrap();
        let name = format!("{} {}", field("Pid:")?, field("Name:")?);
        Some((name, count))
    };
    threads.filter_map(one).collect()
}

#[test]
fn an_agent_without_work_sleeps() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pod = node.pod("c1");
    // With masquerading: there are rules to be looked after.
    pod.add(&config::bridge());
    std::thread::sleep(SETTLES);
    let before = sleeps(&agent);
    std::thread::sleep(WATCHED);
    let after = sleeps(&agent);
    let of = |all: &[(String, u64)], name: &str| {
        let found = all.iter().find(|(one, _)| one == name);
        found.map_or(0, |(_, count)| *count)
    };
    let woken: Vec<(&str, u64)> = after
        .iter()
        .map(|(name, count)| (name.as_str(), count - of(&before, name)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let total: u64 = woken.iter().map(|(_, count)| count).sum();
    println!("woken in {WATCHED:?}: {total}: {woken:?}");
    assert!(total <= AT_MOST, "{total} wakeups without work: {woken:?}");
    pod.del(&config::bridge());
}

#[test]
fn queued_dels_wake_it() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pods = ["c1", "c2"].map(|container| node.pod(container));
    for pod in &pods {
        pod.add(&config::bridge());
    }
    // The shim finds no socket; the agent runs all the time.
    let aside = node.file("aside.sock");
    std::fs::rename(node.socket(), &aside).unwrap();
    for (left, pod) in [1, 0].into_iter().zip(&pods) {
        let del = pod.call("DEL", &config::bridge());
        del.timeout(Duration::ZERO).run().done();
        eventually("the queued DEL is done", || {
            node.journal().records().len() == left
        });
    }
    std::fs::rename(&aside, node.socket()).unwrap();
    let health = agent.get("/healthz").unwrap();
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
    let metrics = agent.get("/metrics").unwrap().body;
    let runs = "plexus_task_runs_total{task=\"queue\",reason=\"event\",outcome=\"success\"}";
    assert!(metrics.contains(runs), "{metrics}");
}

#[test]
fn a_node_that_cannot_be_restored_is_tried_again() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pod = node.pod("c1");
    pod.add(&config::bridge());
    let before = node.dump(Some(&pod));
    agent.kill();
    let start = Start::on(&node).env("PLEXUS_MISTAKE", "restore-fails-once");
    let _agent = start.ready();
    let log = std::fs::read_to_string(node.log()).unwrap();
    assert!(log.contains("cannot be restored: on purpose"), "{log}");
    before.assert_same(&node.dump(Some(&pod)), "a node restored at the second try");
    let other = node.pod("c2");
    other.add(&config::bridge());
    for pod in [pod, other] {
        pod.del(&config::bridge());
    }
    assert!(node.journal().records().is_empty());
}

#[test]
fn what_is_stuck_is_said_until_it_goes_on() {
    let node = Node::new();
    let agent = Start::on(&node).env("PLEXUS_BOOT_ID", "boot-1").ready();
    let config = config::standalone("all", &[config::fake_entry(&node)]);
    node.pod("c1").add(&config);
    agent.kill();
    // As long as the file is there, the plugin's DEL does not end.
    let hang = node.file("hang");
    std::fs::write(&hang, "").unwrap();
    let wait = format!(
        "[ \"$CNI_COMMAND\" = DEL ] && while [ -e {} ]; do sleep 0.1; done; get fail;",
        hang.display()
    );
    node.edit_delegate("get fail;", &wait);
    // After a reboot nobody waits for it but the agent itself; ten minutes are three seconds here.
    let start = Start::on(&node).env("PLEXUS_BOOT_ID", "boot-2");
    let agent = start.env("PLEXUS_HASTE", "1").ready();
    let health = || agent.get("/healthz").unwrap();
    eventually("it is stuck", || health().status == 503);
    let said = health().body;
    assert!(
        said.contains("stuck: removals: removing eth0 of c1 has taken"),
        "{said}"
    );
    let stuck = "plexus_task_stuck{task=\"removals\"} 1";
    assert!(agent.get("/metrics").unwrap().body.contains(stuck));
    assert_eq!(agent.get("/readyz").unwrap().status, 200, "pods are served");
    std::fs::remove_file(&hang).unwrap();
    eventually("it goes on", || health().status == 200);
}
