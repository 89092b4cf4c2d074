//! Hard cases with a living kernel: agents that are away, callers that leave, namespaces that
//! change under their path, machines that reboot.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use plexus_testkit::{
    Agent, Call, CniOutput, Node, PLEXUS, Pod, Start, TIMEOUT, bin, config, eventually, run,
};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

const SHORT_WAIT: Duration = Duration::from_millis(300);

fn has(pod: &Pod<'_>, link: &str) -> bool {
    pod.ns().try_sh(&format!("ip link show dev {link}"))
}

fn slow(node: &Node, seconds: &str) -> Value {
    let mut entry = config::fake_entry(node);
    entry["sleep"] = json!(seconds);
    config::standalone("slow", &[config::routed_entry(), entry])
}

#[test]
fn without_an_agent_add_waits_and_says_so() {
    let node = Node::new();
    let pod = node.pod("c1");
    let start = Instant::now();
    let (code, text) = pod
        .call("ADD", &config::routed())
        .timeout(SHORT_WAIT)
        .run()
        .error();
    assert_eq!(code, 11, "{text}");
    assert!(
        text.contains("agent.sock") && text.contains("agent"),
        "{text}"
    );
    // Unless it is told otherwise, it waits longer than this.
    assert!(
        (SHORT_WAIT..SHORT_WAIT * 30).contains(&start.elapsed()),
        "{:?}",
        start.elapsed()
    );
    let start = Instant::now();
    let (code, text) = Call::new(&node, "STATUS", &config::routed()).run().error();
    assert_eq!(code, 50, "{text}");
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "STATUS never waits"
    );
}

#[test]
fn add_outlasts_a_restart() {
    let node = Node::new();
    let pod = node.pod("c1");
    let adding = pod.call("ADD", &config::routed()).spawn();
    assert!(adding.ended_within(SHORT_WAIT).is_none());
    let _agent = Agent::start(&node);
    CniOutput::new(&adding.wait(TIMEOUT)).ok();
    assert!(has(&pod, "eth0"));
}

#[test]
fn del_without_an_agent_is_queued_and_drained() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pod = node.pod("c1");
    pod.add(&config::bridge());
    agent.kill();
    pod.call("DEL", &config::bridge())
        .timeout(Duration::ZERO)
        .run()
        .done();
    assert!(has(&pod, "eth0"), "nobody is there to do it");
    assert_eq!(std::fs::read_dir(node.queue()).unwrap().count(), 1);
    let _agent = Agent::start(&node);
    eventually("the queue is drained", || {
        !has(&pod, "eth0") && std::fs::read_dir(node.queue()).unwrap().count() == 0
    });
    eventually("and the record is gone", || {
        node.journal().records().is_empty()
    });
}

#[test]
fn a_queued_del_never_hits_the_next_container_of_that_id() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let mut pod = node.pod("c1");
    let config = config::one_address(&config::bridge());
    pod.add(&config);
    agent.kill();
    pod.call("DEL", &config)
        .timeout(Duration::ZERO)
        .run()
        .done();
    let aside = node.file("aside");
    std::fs::rename(node.queue(), &aside).unwrap();
    let _agent = Agent::start(&node);
    assert!(has(&pod, "eth0"));
    pod.renew();
    std::fs::create_dir_all(node.queue()).unwrap();
    for file in std::fs::read_dir(&aside).unwrap().flatten() {
        std::fs::rename(file.path(), node.queue().join(file.file_name())).unwrap();
    }
    pod.add(&config);
    eventually("the queue is drained", || {
        std::fs::read_dir(node.queue()).unwrap().count() == 0
    });
    std::thread::sleep(SHORT_WAIT);
    assert!(has(&pod, "eth0"), "the old DEL hit the new container");
    pod.cni("CHECK", &config).done();
}

#[test]
fn a_new_sandbox_replaces_the_old_one() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let config = config::one_address(&config::four(&node));
    let args = "IgnoreUnknown=1;K8S_POD_UID=u-1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=p";
    let (old, new) = (node.pod("old"), node.pod("new"));
    let first = old.call("ADD", &config).args(args).run();
    let second = new.call("ADD", &config).args(args).run();
    assert_eq!(
        first.addresses(),
        second.addresses(),
        "the only address moves on"
    );
    assert!(
        !has(&old, "eth0") && !has(&old, "storage0"),
        "the old sandbox is undone"
    );
    let dump = node.dump(Some(&new));
    old.call("DEL", &config).args(args).run().done();
    dump.assert_same(&node.dump(Some(&new)), "a late DEL of the old sandbox");
    new.call("DEL", &config).args(args).run().done();
    let (_, text) = {
        new.call("ADD", &config).args(args).run().ok();
        node.pod("other")
            .call("ADD", &config)
            .args(&args.replace("u-1", "u-2"))
            .run()
            .error()
    };
    assert!(
        text.contains("10.244.1."),
        "another pod does not get it: {text}"
    );
}

#[test]
fn a_caller_that_leaves_the_line_is_dropped() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let first = pod.call("ADD", &slow(&node, "4")).spawn();
    eventually("the first is at work", || node.file("fake.log").exists());
    let second = pod
        .call("ADD", &config::macvlan(&node))
        .ifname("net9")
        .spawn();
    std::thread::sleep(SHORT_WAIT);
    second.kill();
    CniOutput::new(&first.wait(TIMEOUT)).ok();
    std::thread::sleep(SHORT_WAIT);
    assert!(!has(&pod, "net9"));
    assert_eq!(node.journal().records().len(), 1);
}

#[test]
fn an_answer_that_nobody_hears_is_undone() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    pod.ns().ip("link set lo up\n");
    let config = slow(&node, "0.5");
    pod.add(&config);
    pod.del(&config);
    std::fs::remove_file(node.file("fake.log")).unwrap();
    let before = node.dump(Some(&pod));
    let adding = pod.call("ADD", &config).spawn();
    eventually("it is at work", || node.file("fake.log").exists());
    adding.kill();
    eventually("all of it is undone", || {
        let log = std::fs::read_to_string(node.file("fake.log")).unwrap_or_default();
        log.contains("DEL c1") && before.diff(&node.dump(Some(&pod))).is_empty()
    });
}

#[test]
fn a_reused_path_is_another_namespace() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let mut pod = node.pod("c1");
    for config in [config::macvlan(&node), config::routed()] {
        pod.add(&config);
        pod.renew();
        pod.ns().sh("ip link add eth0 type veth peer name other");
        assert!(
            !pod.cni("CHECK", &config).success(),
            "CHECK takes the stranger for ours"
        );
        pod.del(&config);
        assert!(
            has(&pod, "eth0"),
            "DEL removed what belongs to another namespace"
        );
        assert_eq!(node.journal().records(), Vec::new());
        pod.ns().sh("ip link del eth0");
        pod.add(&config);
        pod.renew();
        let again = pod.add(&config);
        let address = again["ips"][0]["address"].as_str().unwrap();
        let inside = pod.ns().run("ip", &["address", "show", "dev", "eth0"]);
        assert!(
            inside.contains(address),
            "the answer of another namespace: {inside}"
        );
        pod.del(&config);
    }
}

#[test]
fn a_reboot_voids_what_the_kernel_forgot() {
    let node = Node::new();
    let agent = Start::on(&node).env("PLEXUS_BOOT_ID", "boot-1").ready();
    let config = config::one_address(&config::four_with_delegate(&node));
    let pod = node.pod("c1");
    pod.add(&config);
    assert!(node.dump(None).has("pools blue/10.10.0.5"));
    agent.kill();
    drop(pod);
    node.ns().sh("ip link del px0; nft flush ruleset");
    let agent = Start::on(&node).env("PLEXUS_BOOT_ID", "boot-2").ready();
    eventually("files and records of the other boot are gone", || {
        let dump = node.dump(None);
        !dump.has("pools ") && !dump.has("fake ") && node.journal().records().is_empty()
    });
    let log = std::fs::read_to_string(node.file("fake.log")).unwrap();
    assert!(
        log.contains("DEL c1 net2"),
        "the delegate gets its DEL: {log}"
    );
    let pod = node.pod("c2");
    pod.add(&config);
    assert!(has(&pod, "storage0"), "every address is free again");
    drop(agent);
}

/// As long as the file `hang` is there, the plugin's DEL does not end.
fn hanging_del(node: &Node) {
    let hang = node.file("hang");
    std::fs::write(&hang, "").unwrap();
    let wait = format!(
        "[ \"$CNI_COMMAND\" = DEL ] && while [ -e {} ]; do sleep 0.1; done; get fail;",
        hang.display()
    );
    node.edit_delegate("get fail;", &wait);
}

fn of_plugin(node: &Node) -> Value {
    config::standalone("plugin", &[config::fake_entry(node)])
}

#[test]
fn after_a_reboot_plugins_that_hang_keep_nobody_waiting() {
    let node = Node::new();
    let agent = Start::on(&node).env("PLEXUS_BOOT_ID", "boot-1").ready();
    let native = config::one_address(&config::bridge());
    for container in ["c1", "c2"] {
        node.pod(container).add(&of_plugin(&node));
    }
    node.pod("c3").add(&native);
    agent.kill();
    hanging_del(&node);
    node.ns().sh("ip link del px0; nft flush ruleset");
    let agent = Start::on(&node).env("PLEXUS_BOOT_ID", "boot-2").ready();
    node.pod("c4").add(&native);
    let open = node.journal().open_intents();
    assert_eq!(open.get("deleting"), Some(&2), "{open:?}");
    // Whoever comes under the same id waits for the DEL, and for nothing else.
    let (again, config) = (node.pod("c1"), of_plugin(&node));
    let adding = again.call("ADD", &config).spawn();
    assert!(adding.ended_within(SHORT_WAIT).is_none());
    std::fs::remove_file(node.file("hang")).unwrap();
    CniOutput::new(&adding.wait(TIMEOUT)).ok();
    eventually("the others' DELs are done", || {
        node.journal().open_intents().is_empty()
    });
    assert_eq!(node.journal().records().len(), 2);
    drop(agent);
}

#[test]
fn queued_dels_that_hang_keep_nobody_waiting() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pods = ["c1", "c2"].map(|container| node.pod(container));
    for pod in &pods {
        pod.add(&of_plugin(&node));
    }
    agent.kill();
    for pod in &pods {
        let del = pod.call("DEL", &of_plugin(&node));
        del.timeout(Duration::ZERO).run().done();
    }
    hanging_del(&node);
    let _agent = Agent::start(&node);
    node.pod("c3").add(&config::routed());
    assert_eq!(std::fs::read_dir(node.queue()).unwrap().count(), 2);
    std::fs::remove_file(node.file("hang")).unwrap();
    eventually("the queue is drained", || {
        std::fs::read_dir(node.queue()).unwrap().count() == 0
    });
    assert_eq!(node.journal().records().len(), 1);
}

#[test]
fn a_queued_del_that_fails_is_tried_less_and_less_often() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let mut config = of_plugin(&node);
    config["networks"][0]["fail"] = json!("DEL");
    let pods = ["c1", "c2"].map(|container| node.pod(container));
    pods[0].add(&config);
    pods[1].add(&config::routed());
    agent.kill();
    pods[0]
        .call("DEL", &config)
        .timeout(Duration::ZERO)
        .run()
        .done();
    let later = pods[1].call("DEL", &config::routed());
    later.timeout(Duration::ZERO).run().done();
    let _agent = Agent::start(&node);
    eventually("the one behind it is done", || !has(&pods[1], "eth0"));
    std::thread::sleep(Duration::from_secs(6));
    let tries = || {
        let log = std::fs::read_to_string(node.file("fake.log")).unwrap();
        log.matches("DEL c1").count()
    };
    let so_far = tries();
    assert!(so_far <= 7, "{so_far} tries");
    eventually("it is tried again", || tries() >= 2);
}

#[test]
fn what_cannot_be_read_leaves_the_queue() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pod = node.pod("c1");
    pod.add(&config::routed());
    agent.kill();
    pod.call("DEL", &config::routed())
        .timeout(Duration::ZERO)
        .run()
        .done();
    // More than are kept.
    for number in 0..40 {
        let name = format!("{number:020}-c9-eth0.json");
        std::fs::write(node.queue().join(name), "not a request").unwrap();
    }
    let _agent = Agent::start(&node);
    eventually("the readable one is done", || !has(&pod, "eth0"));
    let names = || {
        let all = std::fs::read_dir(node.queue()).unwrap().flatten();
        let mut names: Vec<String> = all
            .map(|file| file.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    eventually("the others are put aside", || {
        names().iter().all(|name| name.ends_with(".json.bad"))
    });
    assert!((1..=32).contains(&names().len()), "{:?}", names());
    let log = std::fs::read_to_string(node.log()).unwrap();
    let printed = log.matches("00000000000000000039-c9-eth0.json").count();
    assert_eq!(printed, 1, "{log}");
    // Nobody's ADD waits for such a file.
    node.pod("c9").add(&config::routed());
}

#[test]
fn a_second_agent_is_refused() {
    let node = Node::new();
    let mut agent = Agent::start(&node);
    for _ in 0..2 {
        let mut second = Start::on(&node).spawn();
        let status = second.wait_exit(TIMEOUT).expect("it ends");
        assert!(!status.success());
    }
    let log = std::fs::read_to_string(node.log()).unwrap();
    let refusal = format!(
        "another agent (process {}) uses the state directory {}; stop it first",
        agent.pid(),
        node.state_dir().display()
    );
    assert_eq!(log.matches(&refusal).count(), 2, "{log}");
    assert!(agent.alive());
    assert_eq!(agent.get("/readyz").unwrap().status, 200);
    node.pod("c1").add(&config::routed());
}

#[test]
fn a_second_agent_with_a_state_directory_of_its_own_is_refused_the_socket() {
    let node = Node::new();
    let mut agent = Agent::start(&node);
    let pod = node.pod("c1");
    // A plugin at work: the second agent must not take it for a stray.
    let adding = pod.call("ADD", &slow(&node, "2")).spawn();
    eventually("it is at work", || node.file("fake.log").exists());
    let directory = node.file("other-state").to_string_lossy().into_owned();
    let mut second = Command::new("timeout");
    second
        .arg("30")
        .arg(bin(PLEXUS))
        .args(["agent", "--state-dir", &directory, "--socket"])
        .arg(node.socket());
    let refused = node.ns().enter(|| second.output()).unwrap();
    let refused = (
        refused.status.success(),
        String::from_utf8_lossy(&refused.stderr),
    );
    let text = format!(
        "another agent (process {}) serves the socket {}; stop it first",
        agent.pid(),
        node.socket().display()
    );
    assert!(!refused.0 && refused.1.contains(&text), "{refused:?}");
    CniOutput::new(&adding.wait(TIMEOUT)).ok();
    assert!(agent.alive());
    assert_eq!(agent.get("/readyz").unwrap().status, 200);
    assert_eq!(agent.stop().code(), Some(0));
    let _agent = Agent::start(&node);
}

#[test]
fn a_restart_leaves_what_is_done_alone() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let pod = node.pod("c1");
    let config = config::four_with_delegate(&node);
    pod.add(&config);
    pod.ns()
        .sh("ip link set net1 down; ip address add 10.55.0.1/24 dev eth0; ip link set net1 up");
    agent.kill();
    let agent = Agent::start(&node);
    for link in ["eth0", "net1", "net2", "storage0"] {
        assert!(has(&pod, link), "{link} was undone");
    }
    let addresses = pod.ns().run("ip", &["address", "show", "dev", "eth0"]);
    assert!(
        addresses.contains("10.55.0.1"),
        "the pod's own address: {addresses}"
    );
    assert_eq!(agent.stop().code(), Some(0));
    let _agent = Agent::start(&node);
    pod.del(&config);
    assert!(!has(&pod, "eth0") && !has(&pod, "net2"));
}

#[test]
fn a_restart_repairs_the_node() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let (pod, routed) = (node.pod("c1"), node.pod("c2"));
    pod.add(&config::bridge());
    routed.add(&config::routed());
    let before = node.dump_kernel(None);
    agent.kill();
    let host = routes(&node);
    node.ns().sh(&format!(
        "nft flush ruleset; ip address flush dev px0; sysctl -qw net.ipv4.ip_forward=0; \
         ip route del {}",
        host.split_whitespace().next().unwrap()
    ));
    assert!(!before.diff(&node.dump_kernel(None)).is_empty());
    let _agent = Agent::start(&node);
    eventually("the node is as before", || {
        before.diff(&node.dump_kernel(None)).is_empty()
    });
    assert!(pod.ns().pings("192.0.2.1"));
}

#[test]
fn an_agent_puts_back_what_somebody_flushes() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    pod.add(&config::bridge());
    let before = node.dump_kernel(None);
    let flushes = [
        "nft flush ruleset",
        "nft flush chain inet plexus postrouting",
    ];
    for (earlier, flush) in flushes.iter().enumerate() {
        node.ns().sh(flush);
        eventually("the rules are back, without a call", || {
            let log = std::fs::read_to_string(node.log()).unwrap();
            log.matches("they are back").count() > earlier
                && before.diff(&node.dump_kernel(None)).is_empty()
        });
    }
    assert!(pod.ns().pings("192.0.2.1"));
}

fn routes(node: &Node) -> String {
    node.ns().sh("ip -4 route show | grep '^10.245.1.'")
}

#[test]
fn a_namespace_that_is_gone_frees_its_address() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let config = config::one_address(&config::bridge());
    let pod = node.pod("c1");
    pod.add(&config);
    agent.kill();
    drop(pod);
    let _agent = Agent::start(&node);
    let next = node.pod("c2");
    eventually("the only address is free", || {
        next.cni("ADD", &config).success()
    });
}

#[test]
fn only_root_from_the_same_namespace() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let config = config::macvlan(&node);
    let before = node.dump(Some(&pod));
    let answer = pod
        .call("ADD", &config)
        .timeout(Duration::ZERO)
        .run_in(node.outside());
    let (_, text) = answer.error();
    assert!(text.contains("namespace"), "{text}");
    let inode = |ns: &plexus_testkit::NetNs| {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(ns.path()).unwrap().ino().to_string()
    };
    assert!(
        text.contains(&inode(node.ns())) && text.contains(&inode(node.outside())),
        "{text}"
    );
    let socket = node.socket().to_string_lossy().into_owned();
    let ask = format!("curl -s --max-time 5 --unix-socket {socket} http://x/readyz");
    assert!(node.ns().try_sh(&ask));
    let nobody = format!("setpriv --reuid=65534 --regid=65534 --clear-groups {ask}");
    assert!(
        !node.ns().try_sh(&nobody),
        "the socket's mode lets others in"
    );
    run("chmod", &["0777", &socket]);
    let answer = node.ns().sh(&nobody);
    assert!(
        answer.contains("root") && answer.contains("65534"),
        "{answer}"
    );
    before.assert_same(&node.dump(Some(&pod)), "a caller that was refused");
}
