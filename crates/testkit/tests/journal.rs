//! A journal that is damaged, newer, lost, or on a full disk: a clear error, no ADD half done, and
//! DEL still works.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use plexus_testkit::{Agent, Call, Node, Pod, Start, TIMEOUT, config, within};
use serde_json::Value;

fn has(pod: &Pod<'_>, link: &str) -> bool {
    pod.ns().try_sh(&format!("ip link show dev {link}"))
}

/// An agent that answers, ready or not.
fn answering(node: &Node) -> Agent<'_> {
    let agent = Start::on(node).spawn();
    let up = within(TIMEOUT, || agent.get("/healthz").is_some());
    assert!(up, "an agent without a journal must still serve DEL");
    agent
}

/// One pod for each provider, with its configuration.
fn attached(node: &Node) -> Vec<(Pod<'_>, Value)> {
    let configs = [
        ("m", config::macvlan(node)),
        ("b", config::bridge()),
        ("r", config::routed()),
        (
            "f",
            config::standalone("all", &[config::fake_entry(node), config::bridge_entry()]),
        ),
    ];
    let attach = |(id, config): (&str, Value)| {
        let pod = node.pod(id);
        pod.add(&config);
        (pod, config)
    };
    configs.into_iter().map(attach).collect()
}

/// ADD is refused with `named` in its text and changes nothing; DEL removes what is there.
fn refuses_add_and_serves_del(node: &Node, pods: &[(Pod<'_>, Value)], named: &str) {
    let agent = answering(node);
    let new = node.pod("new");
    for config in [config::macvlan(node), config::bridge()] {
        let before = node.dump_kernel(Some(&new));
        let (code, text) = new.cni("ADD", &config).error();
        assert!(
            code > 0 && text.contains(named) && text.contains("journal"),
            "{code} {text}"
        );
        before.assert_same(&node.dump_kernel(Some(&new)), "a refused ADD");
    }
    let (code, text) = Call::new(node, "STATUS", &config::bridge()).run().error();
    assert_eq!(code, 50, "{text}");
    assert!(
        agent
            .get("/readyz")
            .is_some_and(|ready| ready.status == 503)
    );
    for (pod, config) in pods {
        pod.del(config);
        assert!(!has(pod, "eth0"), "{} is still there", config["name"]);
        assert!(!has(pod, "net1"), "{} is still there", config["name"]);
    }
    let dump = node.dump_kernel(None);
    assert!(!dump.has("pools "), "host-local's files are left:\n{dump}");
    assert!(!dump.has("ifalias=\"plexus"), "links are left");
}

#[test]
fn a_damaged_journal() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pods = attached(&node);
    agent.kill();
    let file = node.journal().file().to_owned();
    std::fs::write(
        &file,
        "this is no database, and it is long enough to be read as a header ".repeat(100),
    )
    .unwrap();
    let _ = std::fs::remove_file(file.with_extension("db-wal"));
    let _ = std::fs::remove_file(file.with_extension("db-shm"));
    refuses_add_and_serves_del(&node, &pods, "damaged");
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .starts_with("this is no database"),
        "evidence"
    );
}

#[test]
fn a_newer_journal() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pods = attached(&node);
    agent.kill();
    node.journal().alter("PRAGMA user_version = 4711");
    refuses_add_and_serves_del(&node, &pods, "4711");
}

/// One written before attachments had rows of their own.
#[test]
fn an_older_journal() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pods = attached(&node);
    agent.kill();
    node.journal().alter("PRAGMA user_version = 2");
    refuses_add_and_serves_del(&node, &pods, "format 2");
}

#[test]
fn a_row_that_cannot_be_read() {
    others_are_served_beside_a_row("version = 4711", "4711");
}

/// A newer agent wrote it.
#[test]
fn a_row_with_a_kind_of_link_that_this_agent_does_not_know() {
    let newer = r#"body = replace(body, '{"veth":', '{"tunnel":')"#;
    others_are_served_beside_a_row(newer, "tunnel");
}

/// What a network needs on the node cannot be read: requests are served, and the next ADD writes it anew.
#[test]
fn a_row_of_a_network_that_cannot_be_read() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pod = node.pod("c1");
    pod.add(&config::bridge());
    agent.kill();
    let newer =
        r#"UPDATE network SET plan = replace(plan, '{"settings":', '{"tunnels":[],"settings":')"#;
    node.journal().alter(newer);
    let agent = Agent::start(&node);
    let ready = || agent.get("/readyz").unwrap();
    let warning = "network pods cannot be read";
    assert!(
        ready().status == 200 && ready().body.contains(warning),
        "{:?}",
        ready()
    );
    assert!(pod.cni("CHECK", &config::bridge()).success());
    node.pod("c2").add(&config::bridge());
    assert!(!ready().body.contains(warning), "{:?}", ready());
    pod.del(&config::bridge());
}

/// One container's row cannot be read: it gets a clear error and its DEL; everybody else goes on.
fn others_are_served_beside_a_row(damage: &str, word: &str) {
    let node = Node::new();
    let agent = Agent::start(&node);
    let config = config::one_address(&config::bridge());
    let (strange, fine) = (node.pod("strange"), node.pod("fine"));
    strange.add(&config);
    fine.add(&config::routed());
    agent.kill();
    let damage = format!("UPDATE attachment SET {damage} WHERE container = 'strange'");
    node.journal().alter(&damage);
    let agent = Agent::start(&node);
    let ready = agent.get("/readyz").unwrap();
    assert_eq!(ready.status, 200, "{ready:?}");
    for word in ["strange/eth0", word] {
        assert!(ready.body.contains(word), "{ready:?}");
    }
    let (code, text) = strange.cni("ADD", &config).error();
    assert!(
        code > 0 && text.contains("strange/eth0") && text.contains("DEL"),
        "{code} {text}"
    );
    // Its address is nobody else's.
    let other = node.pod("other");
    let (_, text) = other.cni("ADD", &config).error();
    assert!(text.contains("10.244.1."), "{text}");
    fine.cni("CHECK", &config::routed());
    fine.del(&config::routed());
    strange.del(&config);
    assert!(!has(&strange, "eth0"));
    other.add(&config);
    let ready = agent.get("/readyz").unwrap();
    assert!(!ready.body.contains("strange"), "{ready:?}");
}

#[test]
fn a_full_disk() {
    let node = Node::new();
    node.small_disk(&node.state_dir(), 400 << 10);
    let _agent = Agent::start(&node);
    let pods = attached(&node);
    let filler = node.state_dir().join("filler");
    let full = || {
        use std::io::Write;
        let mut file = std::fs::File::create(&filler).unwrap();
        while file.write_all(&[0; 512]).is_ok() {}
    };
    full();
    let new = node.pod("new");
    new.ns().ip("link set lo up\n");
    let mut refused = 0;
    for number in 0..20 {
        let before = node.dump_kernel(Some(&new));
        let answer = new.cni("ADD", &config::routed());
        if answer.success() {
            // SQLite still had room in pages that it owns.
            new.del(&config::routed());
            continue;
        }
        let (code, text) = answer.error();
        assert!(
            code > 0 && text.contains("journal") && text.contains("space"),
            "{code} {text}"
        );
        before.assert_same(
            &node.dump_kernel(Some(&new)),
            &format!("refused ADD {number}"),
        );
        refused += 1;
    }
    assert!(refused > 0, "the disk was never full");
    for (pod, config) in &pods {
        pod.del(config);
        assert!(!has(pod, "eth0"), "{} is still there", config["name"]);
    }
    std::fs::remove_file(&filler).unwrap();
    new.add(&config::routed());
    new.del(&config::routed());
}

#[test]
fn a_full_disk_at_start() {
    let node = Node::new();
    node.small_disk(&node.state_dir(), 64 << 10);
    std::fs::write(node.state_dir().join("filler"), vec![0; 60 << 10]).unwrap();
    let pod = node.pod("c1");
    let _agent = answering(&node);
    let before = node.dump_kernel(Some(&pod));
    let (code, text) = pod.cni("ADD", &config::macvlan(&node)).error();
    assert!(code > 0 && text.contains("journal"), "{code} {text}");
    before.assert_same(&node.dump_kernel(Some(&pod)), "a refused ADD");
    pod.del(&config::macvlan(&node));
}

#[test]
fn a_lost_journal() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let config = config::one_address(&config::bridge());
    let pod = node.pod("c1");
    pod.add(&config);
    let before = node.dump_kernel(Some(&pod));
    agent.kill();
    for entry in std::fs::read_dir(node.state_dir()).unwrap().flatten() {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with("journal.db")
        {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    let agent = Agent::start(&node);
    before.assert_same(&node.dump_kernel(Some(&pod)), "an agent without a journal");
    let attachments = agent.get("/attachments").unwrap();
    assert!(attachments.body.contains("c1"), "{attachments:?}");
    let (_, text) = node.pod("c2").cni("ADD", &config).error();
    assert!(
        text.contains("10.244.1."),
        "its address is not given away: {text}"
    );
    pod.del(&config);
    assert!(!has(&pod, "eth0"));
    node.pod("c3").add(&config);
}
