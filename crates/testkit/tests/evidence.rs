//! Nothing is removed without evidence, and nothing is believed without looking: the ways in which
//! a running container could lose an interface, or an address be given out twice.

use plexus_testkit::{
    Agent, Call, CniOutput, NetNs, Node, Start, TIMEOUT, config, eventually, run,
};
use serde_json::json;
use std::time::Duration;

/// Long enough for the background to have looked at its queue.
const BACKGROUND_WAIT: Duration = Duration::from_millis(1500);

fn has(ns: &NetNs, link: &str) -> bool {
    ns.try_sh(&format!("ip link show {link}"))
}

#[test]
fn a_namespace_out_of_sight_is_not_gone() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pod = node.pod("c1");
    let config = config::one_address(&config::macvlan(&node));
    pod.add(&config);
    agent.kill();
    // What an agent sees whose mounts do not propagate: an empty file where the namespace is.
    let empty = node.file("empty");
    std::fs::write(&empty, "").unwrap();
    run("mount", &["--bind", &empty.to_string_lossy(), &pod.netns()]);
    let started = std::panic::catch_unwind(|| drop(Agent::start(&node)));
    run("umount", &[&pod.netns()]);
    started.unwrap();
    assert!(
        has(pod.ns(), "eth0"),
        "a living container lost its interface"
    );
    let _agent = Agent::start(&node);
    pod.cni("CHECK", &config).done();
    let (_, text) = node.pod("c2").cni("ADD", &config).error();
    assert!(text.contains("10.10.0"), "its address was free: {text}");
}

/// No process, no path and no end on the node shows where a macvlan is: its namespace may live all the same.
#[test]
fn a_macvlan_in_a_namespace_that_nothing_shows_keeps_its_address() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let config = config::one_address(&config::macvlan(&node));
    let pod = node.pod("c1");
    pod.add(&config);
    agent.kill();
    let held = std::fs::File::open(pod.netns()).unwrap();
    drop(pod);
    let _agent = Start::on(&node).env("PLEXUS_HASTE", "1").ready();
    let next = node.pod("c2");
    let (_, text) = next.cni("ADD", &config).error();
    assert!(text.contains("10.10.0"), "its address was free: {text}");
    drop(held);
    eventually("its address is free", || next.cni("ADD", &config).success());
}

/// A pod can rename its link, write another mark on it and give it another MAC: nobody gets its address before it is gone.
#[test]
fn the_address_of_a_renamed_link_is_free_when_the_link_is_gone() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    for (number, config) in [config::macvlan(&node), config::bridge(), config::routed()]
        .iter()
        .enumerate()
    {
        let config = config::one_address(config);
        let pod = node.pod(&format!("c{number}"));
        pod.add(&config);
        pod.ns().sh(
            "ip link set eth0 down; ip link set eth0 name own0; ip link set own0 alias mine; \
             ip link set own0 address 02:00:00:00:77:01; ip link set own0 up",
        );
        let next = node.pod(&format!("next{number}"));
        let (_, text) = next.cni("ADD", &config).error();
        assert!(text.contains("10."), "its address was free: {text}");
        let deleted = pod.call("DEL", &config).spawn();
        eventually("somebody else gets the address", || {
            next.cni("ADD", &config).success()
        });
        assert!(
            !has(pod.ns(), "own0"),
            "{config}: the address was given out while the link had it"
        );
        CniOutput::new(&deleted.wait(TIMEOUT)).done();
        next.del(&config);
    }
}

#[test]
fn a_queued_del_that_fails_keeps_the_next_add_out() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let mut pod = node.pod("c1");
    let mut config = config::standalone("all", &[config::fake_entry(&node)]);
    config["networks"][0]["fail"] = json!("DEL");
    pod.add(&config);
    agent.kill();
    pod.call("DEL", &config)
        .timeout(Duration::ZERO)
        .run()
        .done();
    let _agent = Agent::start(&node);
    pod.renew();
    let (code, text) = pod.cni("ADD", &config).error();
    assert!(code == 11 && text.contains("queued"), "{code} {text}");
    // The plugin recovers: its DEL is done first, and only once.
    node.edit_delegate("get fail;", "v=;");
    eventually("the queued DEL is done, then the ADD", || {
        pod.cni("ADD", &config).success()
    });
    std::thread::sleep(BACKGROUND_WAIT);
    assert!(has(pod.ns(), "eth0"), "the old DEL hit the new container");
}

#[test]
fn del_finds_the_namespace_by_whichever_path() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pod = node.pod("c1");
    let config = config::one_address(&config::macvlan(&node));
    let mut sleeper = pod
        .ns()
        .enter(|| std::process::Command::new("sleep").arg("60").spawn())
        .unwrap();
    let path = format!("/proc/{}/ns/net", sleeper.id());
    pod.call("ADD", &config).env("CNI_NETNS", &path).run().ok();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    pod.del(&config);
    assert!(
        !has(pod.ns(), "eth0"),
        "DEL forgot an interface that is still there"
    );
    let other = node.pod("c2");
    other.add(&config);
    // Without any path, by searching.
    other.call("DEL", &config).env("CNI_NETNS", "").run().done();
    assert!(!has(other.ns(), "eth0"));
    drop(agent);
}

#[test]
fn a_full_disk_leaves_no_ghost() {
    let node = Node::new();
    node.small_disk(&node.state_dir(), 1 << 20);
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let config = config::one_address(&config::bridge());
    pod.add(&config);
    let full = node.state_dir().join("full");
    let fill = format!(
        "dd if=/dev/zero of={} bs=1k 2>/dev/null || true",
        full.display()
    );
    run("sh", &["-c", &fill]);
    pod.del(&config);
    assert!(!has(pod.ns(), "eth0"));
    std::fs::remove_file(&full).unwrap();
    pod.add(&config);
    assert!(
        has(pod.ns(), "eth0"),
        "ADD answered with an interface that is not there"
    );
    pod.cni("CHECK", &config).done();
}

#[test]
fn a_row_that_cannot_be_removed_is_tried_again_and_nothing_else_is_said() {
    let node = Node::new();
    node.small_disk(&node.state_dir(), 1 << 20);
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let config = config::one_address(&config::bridge());
    pod.add(&config);
    let full = node.state_dir().join("full");
    let fill = format!(
        "dd if=/dev/zero of={} bs=1k 2>/dev/null || true",
        full.display()
    );
    run("sh", &["-c", &fill]);
    pod.del(&config);
    let log = || std::fs::read_to_string(node.log()).unwrap();
    eventually("it is tried again", || {
        log().contains("is done, but for the journal")
    });
    assert_eq!(node.journal().records().len(), 1);
    assert!(
        !log().contains("a removal that was left is done\n"),
        "{}",
        log()
    );
    std::fs::remove_file(&full).unwrap();
    eventually("the row is gone", || node.journal().records().is_empty());
    eventually("and that is said", || {
        log().contains("a removal that was left is done\n")
    });
    node.pod("c2").add(&config);
}

#[test]
fn a_namespace_that_goes_without_a_del_is_noticed() {
    let node = Node::new();
    let _agent = Start::on(&node).env("PLEXUS_HASTE", "1").ready();
    let config = config::one_address(&config::bridge());
    let (gone, stays) = (node.pod("c1"), node.pod("c2"));
    gone.add(&config);
    stays.add(&config::routed());
    drop(gone);
    eventually("the record of the one is gone", || {
        node.journal().records().len() == 1
    });
    node.pod("c3").add(&config);
    assert!(has(stays.ns(), "eth0"));
    stays.cni("CHECK", &config::routed()).done();
}

#[test]
fn two_calls_that_want_one_name_do_not_share_an_address() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let config = config::standalone("all", &[config::routed_entry(), config::routed_entry()]);
    let pod = node.pod("c1");
    pod.add(&config);
    let inside = || {
        pod.ns()
            .run("ip", &["-brief", "address", "show", "dev", "net1"])
    };
    let before = inside();
    let (_, text) = pod.call("ADD", &config).ifname("eth9").run().error();
    assert!(text.contains("net1"), "{text}");
    assert_eq!(inside(), before);
    let taken = before
        .split_whitespace()
        .nth(2)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    for container in ["c2", "c3", "c4"] {
        let other = node.pod(container);
        other.add(&config);
        let addresses = other.ns().run("ip", &["-brief", "address"]);
        assert!(
            !addresses.contains(&format!("{taken}/")),
            "{taken} is given out twice:\n{addresses}"
        );
    }
}

#[test]
fn adoption_is_never_an_intent() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pod = node.pod("c1");
    let config = config::macvlan(&node);
    pod.add(&config);
    agent.kill();
    let lose = || {
        run(
            "sh",
            &[
                "-c",
                &format!("rm -f {}/journal.db*", node.state_dir().display()),
            ],
        )
    };
    lose();
    Start::on(&node).logging_effects().ready().kill();
    let effects = Agent::effects(&node);
    let at = effects
        .iter()
        .position(|effect| effect.contains("journal.begin>"))
        .unwrap()
        + 1;
    lose();
    let mut dying = Start::on(&node).die_at(at).spawn();
    assert!(dying.wait_exit(TIMEOUT).is_some(), "it should die at {at}");
    drop(dying);
    // The container may do what it likes with its interface.
    pod.ns().sh("ip link set eth0 down");
    let _agent = Agent::start(&node);
    assert!(has(pod.ns(), "eth0"), "an adopted interface was removed");
    pod.del(&config);
    assert!(!has(pod.ns(), "eth0"));
}

#[test]
fn a_refused_add_does_not_change_what_a_network_keeps() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let (pod, config) = (node.pod("c1"), config::bridge());
    pod.add(&config);
    let mut other = config.clone();
    other["ipam"]["subnets"] = json!(["10.7.0.0/24"]);
    let (_, text) = node.pod("c2").cni("ADD", &other).error();
    assert!(text.contains("px0"), "{text}");
    agent.stop();
    node.ns().sh("ip link del px0");
    let _agent = Agent::start(&node);
    let bridge = node.ns().run("ip", &["address", "show", "dev", "px0"]);
    assert!(
        bridge.contains("10.244.1.1/24") && !bridge.contains("10.7.0.1"),
        "{bridge}"
    );
}

#[test]
fn rules_go_with_an_adopted_interface() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pod = node.pod("c1");
    let entries = [config::bridge_entry(), config::static_entry("10.20.0.9/24")];
    let config = config::standalone("all", &entries);
    let rules = || pod.ns().run("ip", &["rule"]);
    let before = rules();
    pod.add(&config);
    assert!(rules().contains("10.20.0.9"), "{}", rules());
    agent.kill();
    run(
        "sh",
        &[
            "-c",
            &format!("rm -f {}/journal.db*", node.state_dir().display()),
        ],
    );
    let agent = Agent::start(&node);
    pod.del(&config);
    assert_eq!(rules(), before);
    // The same with a journal that cannot be read.
    pod.add(&config);
    agent.kill();
    std::fs::write(node.state_dir().join("journal.db"), "x".repeat(8192)).unwrap();
    run(
        "sh",
        &[
            "-c",
            &format!("rm -f {}/journal.db-*", node.state_dir().display()),
        ],
    );
    let _agent = Start::on(&node).spawn();
    eventually("the agent answers", || pod.cni("DEL", &config).success());
    assert_eq!(rules(), before);
}

#[test]
fn an_address_rests_across_a_restart() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let config = config::routed();
    let (one, two) = (node.pod("c1"), node.pod("c2"));
    one.add(&config);
    let freed = two.call("ADD", &config).run().addresses()[0].clone();
    agent.kill();
    two.call("DEL", &config)
        .timeout(Duration::ZERO)
        .run()
        .done();
    let _agent = Agent::start(&node);
    let next = node.pod("c3").call("ADD", &config).run().addresses()[0].clone();
    assert_ne!(
        next, freed,
        "an address was given out right after it was freed"
    );
}

#[test]
fn gc_removes_an_adopted_list_like_any_other() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pod = node.pod("c1");
    let config = config::standalone(
        "all",
        &[config::bridge_entry(), config::macvlan_entry(&node)],
    );
    pod.add(&config);
    agent.kill();
    run(
        "sh",
        &[
            "-c",
            &format!("rm -f {}/journal.db*", node.state_dir().display()),
        ],
    );
    let _agent = Agent::start(&node);
    let with = |valid: serde_json::Value| {
        let mut config = config.clone();
        config["cni.dev/valid-attachments"] = valid;
        Call::new(&node, "GC", &config).run().done();
    };
    with(json!([{"containerID": "c1", "ifname": "eth0"}]));
    assert!(
        has(pod.ns(), "eth0") && has(pod.ns(), "net1"),
        "a valid container lost an interface"
    );
    with(json!([]));
    assert!(
        !has(pod.ns(), "eth0") && !has(pod.ns(), "net1"),
        "GC left what nobody knows"
    );
}

#[test]
fn a_mark_that_a_pod_made_up_is_not_believed() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pod = node.pod("c1");
    pod.add(&config::routed());
    let listed = pod.ns().run("ip", &["-j", "link", "show", "eth0"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let mark = listed[0]["ifalias"].as_str().unwrap();
    let forged = mark.replace("c1", "c9").replace("eth0", "evil0");
    assert_ne!(forged, mark);
    pod.ns()
        .run("ip", &["link", "add", "evil0", "type", "veth"]);
    pod.ns()
        .run("ip", &["link", "set", "evil0", "alias", &forged]);
    agent.kill();
    let agent = Agent::start(&node);
    let known = agent.get("/attachments").unwrap().body;
    assert!(
        known.contains("\"c1\"") && !known.contains("\"c9\""),
        "{known}"
    );
}

/// A process is where its first thread is, and whoever removes a lab ends all who are in its namespaces: who
/// searches the namespaces of others does so on another thread.
#[test]
fn nobody_is_seen_in_the_namespaces_that_it_searches() {
    let node = Node::new();
    let _pods: Vec<_> = (0..40)
        .map(|number| node.pod(&format!("c{number}")))
        .collect();
    let look = |path: &str| std::fs::read_link(path).ok();
    let home = node.ns().enter(|| look("/proc/thread-self/ns/net"));
    for _ in 0..5 {
        // Without a journal every namespace is looked into.
        let mut agent = Start::on(&node).spawn();
        let path = format!("/proc/{}/ns/net", agent.pid());
        let (mut ready, mut looks) = (false, 0);
        while !ready && agent.alive() {
            for _ in 0..2_000 {
                assert_eq!(look(&path), home);
            }
            looks += 1;
            assert!(looks < 10_000, "it is not ready");
            ready = agent
                .get("/readyz")
                .is_some_and(|answer| answer.status == 200);
        }
        assert!(ready, "it ended");
        agent.kill();
        std::fs::remove_dir_all(node.state_dir()).unwrap();
    }
}
