//! `plexus up` as its administrator meets it: what it refuses, who may ask it, which files it writes
//! for runtimes, what it takes of the documents' examples, and what it says of those that wait.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod common;

use common::{Files, TIMEOUT, eventually, plexus, text};
use plexus_testkit::{
    Agent, FAKE, Node, PLEXUS, SHIM, Up, bin, examples, examples_of_another_version, get, within,
};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

const GROUP: &str = "/apis/plexus.dev/v1alpha1";

#[test]
fn a_port_that_is_anothers_is_said_with_the_way_out() {
    let node = Node::new();
    let theirs = node
        .ns()
        .enter(|| TcpListener::bind("127.0.0.1:7443"))
        .unwrap();
    let mut command = Up::command(&node, "up");
    let refused = node.ns().enter(|| command.output()).unwrap();
    let printed = text(&refused.stderr);
    let (last, code) = (
        printed.lines().last().unwrap_or_default(),
        refused.status.code(),
    );
    assert_eq!(code, Some(1), "{printed}");
    for word in ["another program has 127.0.0.1:7443", "--listen"] {
        assert!(last.contains(word), "no {word:?} in {printed}");
    }
    drop(theirs);
    // What was begun is no hindrance.
    let up = Up::start(&node);
    assert!(up.stop().success());
}

/// Controller and agent of `up` are root on this machine: no port, no certificate, nobody in between.
#[test]
fn its_own_parts_come_by_the_socket() {
    let node = Node::new();
    let up = Up::start(&node);
    let spec = json!({"subnets": {"a": {"cidr": "10.61.0.0/24"}}});
    // The controller has looked at it, and the agent has been told.
    up.network("default/blue", &spec, "blue");
    let connected = node.ns().enter(|| {
        let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
        let tables = tables.map(|table| std::fs::read_to_string(table).unwrap_or_default());
        let rows = tables.iter().flat_map(|table| table.lines().skip(1));
        // The fourth word is the state: 0A listens.
        let states = rows.filter_map(|row| Some(row.split_whitespace().nth(3)?.to_owned()));
        states.collect::<Vec<String>>()
    });
    assert_eq!(connected, ["0A"], "the port of the API, and nobody there");
    assert!(up.interrupt().success(), "Ctrl-C is no failure");
    assert!(!Up::api_socket(&node).exists());
}

/// What an agent does at the API's side is known as its threads' work is.
#[test]
fn what_the_agent_does_at_the_api_is_counted() {
    let node = Node::new();
    let up = Up::start(&node);
    let spec = json!({"subnets": {"a": {"cidr": "10.61.0.0/24"}}});
    up.network("default/blue", &spec, "blue");
    let health = get(&node.socket(), "/healthz").unwrap();
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
    let metrics = get(&node.socket(), "/metrics").unwrap().body;
    let tasks = [
        "cache",
        "blocks",
        "donations",
        "resync",
        "records",
        "events",
    ];
    for task in tasks.into_iter().chain(["watches", "queue"]) {
        let line = format!("plexus_task_stuck{{task=\"{task}\"}} 0");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    let taken = "plexus_task_runs_total{task=\"watches\",reason=\"event\",outcome=\"success\"}";
    assert!(metrics.contains(taken), "{metrics}");
}

/// `up` failed early on a machine on which nobody ever made the directories of runtimes.
#[test]
fn down_needs_none_of_the_directories() {
    let node = Node::new();
    let theirs = node
        .ns()
        .enter(|| TcpListener::bind("127.0.0.1:7443"))
        .unwrap();
    for directory in [node.cni_conf(), node.cni_bin(), node.state_dir()] {
        std::fs::remove_dir(directory).unwrap();
    }
    let mut command = Up::command(&node, "up");
    command.args(["--shim-source"]).arg(bin(SHIM));
    let refused = node.ns().enter(|| command.output()).unwrap();
    assert!(!refused.status.success());
    assert!(node.state_dir().exists() && !node.cni_conf().exists());
    let down = Up::down(&node, &[]);
    assert!(down.status.success(), "{}", text(&down.stderr));
    for directory in [node.cni_conf(), node.cni_bin(), node.state_dir()] {
        assert!(!directory.exists(), "{} is left", directory.display());
    }
    let again = Up::down(&node, &[]);
    assert_eq!(text(&again.stdout), "there is nothing to remove\n");
    drop(theirs);
}

/// Somebody removed the state by hand, or a reboot did: the rest is still found.
#[test]
fn down_finds_what_is_left_without_the_state() {
    let node = Node::new();
    let up = Up::start(&node);
    let spec = json!({"subnets": {"a": {"cidr": "10.61.0.0/24"}}});
    up.network("default/blue", &spec, "blue");
    up.kill();
    std::fs::remove_dir_all(node.state_dir()).unwrap();
    std::fs::remove_file(node.socket()).unwrap();
    let theirs = node.cni_conf().join("10-theirs.conflist");
    std::fs::write(&theirs, "{}").unwrap();
    let down = Up::down(&node, &[]);
    assert!(down.status.success(), "{}", text(&down.stderr));
    assert_eq!(Files::names(&node.cni_conf()), ["10-theirs.conflist"]);
    assert_eq!(Files::names(&node.cni_bin()), [""; 0]);
    assert!(!Up::kubeconfig(&node).exists() && !node.state_dir().exists());
    // What an agent of Kubernetes has too is nothing to be sure by.
    std::fs::write(
        node.cni_conf().join("00-plexus.conflist"),
        r#"{"name": "plexus", "plugins": [{"type": "plexus-cni"}]}"#,
    )
    .unwrap();
    let refused = Up::down(&node, &[]);
    let printed = text(&refused.stderr);
    assert!(!refused.status.success(), "{printed}");
    assert!(
        printed.contains("00-plexus.conflist was not made"),
        "{printed}"
    );
    let forced = Up::down(&node, &["--force"]);
    assert!(forced.status.success(), "{}", text(&forced.stderr));
    assert_eq!(Files::names(&node.cni_conf()), ["10-theirs.conflist"]);
}

/// A server of somebody else at the usual places, and his own files beside ours.
#[test]
fn down_takes_nothing_from_others() {
    let node = Node::new();
    let server = node.state_dir().join("server");
    let mut command = Command::new(bin(PLEXUS));
    command.args(["server", "--listen", "127.0.0.1:0", "--dir"]);
    command
        .arg(&server)
        .arg("--unix")
        .arg(Up::api_socket(&node));
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = node.ns().enter(|| command.spawn()).unwrap();
    let answers = within(TIMEOUT, || {
        UnixStream::connect(Up::api_socket(&node)).is_ok()
    });
    let refused: Vec<_> = [&[][..], &["--force"]]
        .into_iter()
        .map(|flags| Up::down(&node, flags))
        .collect();
    let runs = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(answers && runs, "the server serves");
    for refused in refused {
        let printed = text(&refused.stderr);
        assert!(!refused.status.success(), "{printed}");
        let who = format!("(process {}): stop it first", child.id());
        assert!(printed.contains(&who), "{printed}");
    }
    assert!(server.join("store.db").exists());
    let theirs = server.join("notes.txt");
    std::fs::write(&theirs, "theirs").unwrap();
    let down = Up::down(&node, &[]);
    assert!(down.status.success(), "{}", text(&down.stderr));
    let printed = text(&down.stdout);
    assert!(printed.contains("notes.txt is not ours"), "{printed}");
    assert_eq!(Files::names(&server), ["notes.txt"]);
    // A directory that never was ours.
    let mut command = Up::command(&node, "down");
    let photos = node.file("photos");
    std::fs::create_dir_all(photos.join("2026")).unwrap();
    command.args(["--force", "--server-dir"]).arg(&photos);
    let down = node.ns().enter(|| command.output()).unwrap();
    assert!(down.status.success(), "{}", text(&down.stderr));
    let printed = text(&down.stdout);
    assert!(
        printed.contains("photos is not the directory of our API"),
        "{printed}"
    );
    assert!(photos.join("2026").exists());
}

/// Also of a network that has its addresses from its own configuration.
#[test]
fn a_network_that_is_deleted_takes_its_bridge_along() {
    let node = Node::new();
    let up = Up::start(&node);
    let links = || node.ns().sh("ip -o address show; nft list ruleset");
    let ipam = json!({"type": "plexus", "subnets": ["10.62.0.0/24"]});
    let own = json!({"bridge": "own0", "isGateway": true, "ipMasq": true, "ipam": ipam});
    let blocks = json!({"bridge": "blocks0", "isGateway": true});
    let subnets = json!({"a": {"cidr": "10.63.0.0/24"}});
    for (name, spec) in [
        ("own", json!({"provider": "bridge", "config": own})),
        (
            "blocks",
            json!({"provider": "bridge", "subnets": subnets, "config": blocks}),
        ),
    ] {
        up.network(&format!("default/{name}"), &spec, name);
        let config = Files::config(&node, &format!("plexus-{name}.conflist"));
        let pod = node.pod(name);
        pod.add(&config);
        pod.del(&config);
    }
    let before = links();
    for word in [
        "own0",
        "10.62.0.1/24",
        "10.62.0.0/24",
        "blocks0",
        "10.63.0.254/24",
    ] {
        assert!(before.contains(word), "{word} goes with no pod: {before}");
    }
    for name in ["own", "blocks"] {
        let path = format!("{GROUP}/namespaces/default/networks/{name}");
        let answer = up.api("DELETE", &path, None);
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    eventually("nothing is left of them", || {
        let left = links();
        !["own0", "10.62.0", "blocks0", "10.63.0"]
            .iter()
            .any(|word| left.contains(word))
    });
    assert!(up.stop().success());
}

/// Blocks and records are a Node's by its name.
#[test]
fn a_host_that_gets_another_name_is_still_the_same_node() {
    let node = Node::new();
    let nodes = |up: &Up<'_>| -> Vec<String> {
        let names = up.list("/api/v1/nodes");
        let names = names
            .iter()
            .filter_map(|node| node["metadata"]["name"].as_str());
        names.map(str::to_owned).collect()
    };
    let blocks = |up: &Up<'_>| up.list(&format!("{GROUP}/blocks"));
    let up = Up::start_on_host(&node, "first");
    let spec = json!({"subnets": {"a": {"cidr": "10.61.0.0/24"}}});
    up.network("default/blue", &spec, "blue");
    let (pod, config) = (node.pod("c1"), Files::config(&node, "plexus-blue.conflist"));
    pod.add(&config);
    eventually("it has a record", || up.records().len() == 1);
    let before = blocks(&up);
    assert!(
        before.iter().any(|block| block["spec"]["node"] == "first"),
        "{before:?}"
    );
    // What everything else is in stays.
    let answer = up.api("DELETE", "/api/v1/namespaces/plexus-system", None);
    assert_eq!(answer.status, 403, "{}", answer.body);
    assert!(up.stop().success());
    // kubectl writes it anew, in its own form.
    let kubeconfig = Up::kubeconfig(&node);
    let written = std::fs::read_to_string(&kubeconfig).unwrap();
    let edited = written.replace("namespace: default", "namespace: team-a");
    assert_ne!(edited, written);
    std::fs::write(&kubeconfig, edited).unwrap();
    let up = Up::start_on_host(&node, "second");
    assert_eq!(nodes(&up), ["first"]);
    let uids = |blocks: &[Value]| -> Vec<Value> {
        let uids = blocks.iter().map(|block| block["metadata"]["uid"].clone());
        uids.collect()
    };
    assert_eq!(uids(&blocks(&up)), uids(&before));
    eventually("its record is that of the same node", || {
        up.records() == ["default/c1: 0/1 eth0 blue"]
    });
    let kept = std::fs::read_to_string(&kubeconfig).unwrap();
    assert!(kept.contains("namespace: team-a"), "{kept}");
    assert!(up.stop().success());
    let mut other = Up::command(&node, "up");
    other
        .args(["--node", "third", "--shim-source"])
        .arg(bin(SHIM));
    let refused = node.ns().enter(|| other.output()).unwrap();
    let printed = text(&refused.stderr);
    assert!(!refused.status.success(), "{printed}");
    assert!(
        printed.contains("\"first\"") && printed.contains("plexus down"),
        "{printed}"
    );
    let up = Up::start_on_host(&node, "second");
    pod.del(&config);
    eventually("its record is gone", || up.records().is_empty());
    let down = Up::down(&node, &[]);
    assert!(down.status.success(), "{}", text(&down.stderr));
    assert!(!kubeconfig.exists() && !node.state_dir().exists());
}

/// `plexus down | head -1` ends when head has its line.
#[test]
fn down_goes_on_when_nobody_reads() {
    let node = Node::new();
    let up = Up::start(&node);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Up::command(&node, "down");
    command.stdout(writer);
    let down = node.ns().enter(|| command.output()).unwrap();
    assert!(down.status.success(), "{}", text(&down.stderr));
    assert!(!node.state_dir().exists() && !Up::kubeconfig(&node).exists());
    drop(up);
}

/// An agent that is not ours answers on the socket that `up` was told to use.
#[test]
fn a_start_in_the_background_is_not_taken_for_another_agent() {
    let node = Node::new();
    let _other = Agent::start(&node);
    std::fs::write(node.cni_conf().join("00-plexus.conflist"), "{}").unwrap();
    let mut command = Up::command(&node, "up");
    command.args(["--detach", "--shim-source"]).arg(bin(SHIM));
    let refused = node.ns().enter(|| command.output()).unwrap();
    let printed = text(&refused.stderr);
    assert!(!refused.status.success(), "{}", text(&refused.stdout));
    assert!(printed.contains("it has ended"), "{printed}");
}

/// Nobody looks after a log that a process in the background writes.
#[test]
fn the_log_in_the_background_is_bounded() {
    const FULL: u64 = 10 << 20;
    let node = Node::new();
    let (log, old) = (
        node.state_dir().join("up.log"),
        node.state_dir().join("up.log.1"),
    );
    let filler = std::fs::File::create(&log).unwrap();
    filler.set_len(FULL - 100).unwrap();
    let mut command = Up::command(&node, "up");
    command.args(["--node", node.name(), "--detach", "--shim-source"]);
    let started = node.ns().enter(|| command.arg(bin(SHIM)).output()).unwrap();
    assert!(started.status.success(), "{}", text(&started.stderr));
    let length = |path: &Path| std::fs::metadata(path).unwrap().len();
    assert!(
        (FULL..FULL + 10_000).contains(&length(&old)),
        "{}",
        length(&old)
    );
    // Its lines go to the new file, and so does what it writes by other ways.
    assert!((1..100_000).contains(&length(&log)), "{}", length(&log));
    let process = Command::new("sh")
        .args([
            "-c",
            "for fd in /proc/$0/fd/1 /proc/$0/fd/2; do readlink $fd; done",
        ])
        .arg(text(
            &std::fs::read(node.state_dir().join("up.lock")).unwrap(),
        ))
        .output()
        .unwrap();
    let both = format!("{0}\n{0}\n", log.canonicalize().unwrap().display());
    assert_eq!(text(&process.stdout), both);
    let down = Up::down(&node, &[]);
    assert!(down.status.success(), "{}", text(&down.stderr));
    assert!(!node.state_dir().exists(), "{}", text(&down.stdout));
}

#[test]
fn only_root_and_who_has_the_certificate_may_ask() {
    let node = Node::new();
    let _up = Up::start(&node);
    let server = node.state_dir().join("server");
    for file in [
        Up::kubeconfig(&node),
        Up::api_socket(&node),
        node.socket(),
        server.join("ca.key"),
        server.join("store.db"),
        server.join("kubeconfig"),
    ] {
        let mode = std::fs::metadata(&file).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
    // Opened by mistake: the kernel says who it is.
    for socket in [Up::api_socket(&node), node.socket()] {
        std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o666)).unwrap();
        open_the_way(&socket);
    }
    let ask = |flags: &[&str], url: &str| {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--clear-groups",
            "curl",
            "-s",
            "--max-time",
            "10",
        ]);
        command.args(flags).args(["-w", " %{http_code}", url]);
        text(&node.ns().enter(|| command.output()).unwrap().stdout)
    };
    let at = |socket: &Path| socket.display().to_string();
    let (api, agent) = (at(&Up::api_socket(&node)), at(&node.socket()));
    let answer = ask(&["--unix-socket", &api], "http://x/api/v1/namespaces");
    assert!(answer.ends_with(" 401"), "{answer}");
    let answer = ask(&["--unix-socket", &agent], "http://x/attachments");
    assert!(!answer.ends_with(" 200"), "{answer}");
    let answer = ask(&["-k"], "https://127.0.0.1:7443/api/v1/namespaces");
    assert!(answer.ends_with(" 401"), "{answer}");
    let answer = ask(&[], "http://127.0.0.1:7443/api/v1/namespaces");
    assert!(!answer.ends_with(" 200"), "TLS only: {answer}");
    let listed = plexus(&node, &["get", "networks", "-A"]);
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    assert!(text(&listed.stdout).contains("cluster-default"));
}

/// Lets everybody reach a socket in the test's own directory.
fn open_the_way(socket: &Path) {
    let parents = socket.ancestors().skip(1);
    for parent in parents.take_while(|parent| *parent != std::env::temp_dir()) {
        std::fs::set_permissions(parent, PermissionsExt::from_mode(0o755)).unwrap();
    }
}

#[test]
fn runtimes_find_every_network_under_a_name_that_is_safe() {
    let node = Node::new();
    let up = Up::start(&node);
    let spec = json!({"subnets": {"a": {"cidr": "10.61.0.0/24"}}});
    let team = "n".repeat(63);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}});
    up.create("/api/v1/namespaces", &namespace);
    up.network("default/blue", &spec, "blue");
    up.network(&format!("{team}/blue"), &spec, &format!("{team}.blue"));
    // What `podman run --network host` means must stay what it is.
    up.network("default/host", &spec, "default.host");
    up.network("default/a.b", &spec, "default.a.b");
    // Longer than a file's name may be.
    let long = format!("x{}", ".y".repeat(126));
    let all = format!("{GROUP}/namespaces/{team}/networks");
    let object = |name: &str| {
        json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Network",
            "metadata": {"name": name}, "spec": spec})
    };
    up.create(&all, &object(&long));
    let begins = format!("plexus-{team}.x.y.y");
    let of_long = || {
        let names = Files::names(&node.cni_conf());
        let found = names.into_iter().filter(|name| name.starts_with(&begins));
        found.collect::<Vec<_>>()
    };
    eventually("the long one has a file too", || of_long().len() == 1);
    // Nothing that could lead out of the directory is a name.
    for name in ["..", "../x", "a/b", "a%2fb", "A", "a\nb", ""] {
        let answer = up.api("POST", &all, Some(&object(name)));
        assert_eq!(answer.status, 422, "{name:?}: {}", answer.body);
    }
    let file = node.cni_conf().join("plexus-blue.conflist");
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    let written = read();
    let list: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(
        (&list["name"], &list["cniVersion"]),
        (&json!("blue"), &json!("1.0.0"))
    );
    let versions = list["cniVersions"].as_array().unwrap();
    assert_eq!(versions.last(), Some(&json!("1.1.0")), "{list}");
    // Deleted or spoilt by somebody: put back.
    std::fs::remove_file(&file).unwrap();
    eventually("it is put back", || read() == written);
    std::fs::write(&file, written.replace("1.0.0", "0.3.1")).unwrap();
    eventually("it is corrected", || read() == written);
    // Gone with the Network, also with one that went while nobody looked.
    up.api("DELETE", &format!("{all}/{long}"), None);
    eventually("its file goes", || of_long().is_empty());
    up.api(
        "DELETE",
        &format!("{GROUP}/namespaces/default/networks/host"),
        None,
    );
    up.kill();
    let _up = Up::start(&node);
    let host = node.cni_conf().join("plexus-default.host.conflist");
    eventually("the file of one that is gone goes", || !host.exists());
    assert_eq!(read(), written);
}

/// Routes and rules of a network namespace are one agent's.
#[test]
fn a_second_one_in_the_same_network_namespace_is_refused() {
    let node = Node::new();
    let up = Up::start(&node);
    let mut command = Command::new(bin(PLEXUS));
    let root = node.file("second");
    command.args(["up", "--listen", "127.0.0.1:7444", "--shim-source"]);
    command.arg(bin(SHIM)).arg("--root").arg(&root);
    command.env("KUBECONFIG", Up::kubeconfig(&node));
    let refused = node.ns().enter(|| command.output()).unwrap();
    let printed = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("a network namespace of its own"),
        "{printed}"
    );
    let mut command = Command::new(bin(PLEXUS));
    command.args(["down", "--root"]).arg(&root);
    command.env("KUBECONFIG", Up::kubeconfig(&node));
    let refused = node.ns().enter(|| command.output()).unwrap();
    let printed = text(&refused.stderr);
    assert!(
        !refused.status.success(),
        "it would clear the first one's: {printed}"
    );
    assert!(plexus(&node, &["get", "networks", "-A"]).status.success());
    assert!(up.stop().success());
}

/// The namespace went while nobody served, and a plugin must be executed to undo what it had: that is
/// no container that anybody could stop.
#[test]
fn down_removes_what_the_dead_have_left() {
    let node = Node::new();
    let up = Up::start(&node);
    let plugin = node.cni_bin().join(FAKE);
    std::fs::copy(node.delegate_bin().join(FAKE), &plugin).unwrap();
    let config = json!({"type": FAKE, "dir": node.fake_dir()});
    up.network(
        "default/old",
        &json!({"provider": "delegate", "config": config}),
        "old",
    );
    let config = Files::config(&node, "plexus-old.conflist");
    let (dead, alive) = (node.pod("dead"), node.pod("alive"));
    dead.add(&config);
    alive.add(&config);
    assert_eq!(Files::names(&node.fake_dir()), ["alive-eth0", "dead-eth0"]);
    up.kill();
    drop(dead);
    let refused = Up::down(&node, &[]);
    let printed = text(&refused.stderr);
    assert!(!refused.status.success(), "{printed}");
    assert!(
        printed.contains("alive") && !printed.contains("dead"),
        "{printed}"
    );
    assert!(
        alive.ns().try_sh("ip link show eth0"),
        "a refused down takes nothing away"
    );
    // What fails is not forgotten: the next one does it.
    let works = std::fs::read(&plugin).unwrap();
    std::fs::write(&plugin, "#!/bin/sh\nexit 1\n").unwrap();
    let failed = Up::down(&node, &["--force"]);
    let printed = text(&failed.stderr);
    assert!(!failed.status.success(), "{printed}");
    assert!(
        printed.contains("eth0 of container") && printed.contains("repeat it"),
        "{printed}"
    );
    assert_eq!(Files::names(&node.fake_dir()), ["alive-eth0"]);
    std::fs::write(&plugin, works).unwrap();
    let forced = Up::down(&node, &["--force"]);
    assert!(forced.status.success(), "{}", text(&forced.stderr));
    assert!(!alive.ns().try_sh("ip link show eth0"));
    assert_eq!(Files::names(&node.fake_dir()), [""; 0]);
    assert!(!node.state_dir().exists());
    std::fs::remove_file(plugin).unwrap();
}

/// Seed 004, as its document has it.
#[test]
fn a_network_of_v1_and_networks_of_a_pod_are_taken_as_written() {
    let node = Node::new();
    let up = Up::start(&node);
    let network = json!({"apiVersion": "v1", "kind": "Network", "metadata": {"name": "net1"},
        "spec": {"subnets": {
            "subnet1": {"cidr": "192.168.0.0/24", "gateway": "192.168.0.1"},
            "subnet2": {"cidr": "192.168.1.0/24", "gateway": "192.168.1.1"}}}});
    up.create("/api/v1/namespaces/default/networks", &network);
    let file = node.cni_conf().join("plexus-net1.conflist");
    let ours = || {
        up.api(
            "GET",
            &format!("{GROUP}/namespaces/default/networks/net1"),
            None,
        )
        .json()
    };
    eventually("it is a Network like any other", || {
        ours()["status"]["phase"] == "Active" && file.exists()
    });
    assert_eq!(ours()["spec"]["subnets"], network["spec"]["subnets"]);
    let theirs = up
        .api("GET", "/api/v1/namespaces/default/networks/net1", None)
        .json();
    assert_eq!(
        (&theirs["apiVersion"], &theirs["status"]["phase"]),
        (&json!("v1"), &json!("Active"))
    );
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"networks": ["net1"], "containers": [{"name": "c", "image": "busybox"}]}});
    let made = up.create("/api/v1/namespaces/default/pods", &pod);
    assert_eq!(
        made["metadata"]["annotations"]["plexus.dev/networks"],
        "[\"net1\"]"
    );
    let mut wrong = pod;
    wrong["metadata"]["name"] = "q".into();
    wrong["spec"]["networks"] = json!({"net1": true});
    let answer = up.api("POST", "/api/v1/namespaces/default/pods", Some(&wrong));
    assert_eq!(answer.status, 422, "{}", answer.body);
    assert!(answer.body.contains("spec.networks"), "{}", answer.body);
    // A container on it, by the document's name.
    let container = node.pod("c1");
    let result = container.add(&Files::config(&node, "plexus-net1.conflist"));
    let address = result["ips"][0]["address"].as_str().unwrap();
    assert!(address.starts_with("192.168."), "{result}");
}

#[test]
fn the_documents_examples_are_taken_and_what_waits_says_so() {
    let node = Node::new();
    let up = Up::start(&node);
    let files = examples();
    assert!(files.len() > 25, "{files:?}");
    for file in &files {
        let file = &file.display().to_string();
        let applied = plexus(&node, &["apply", "-f", file]);
        let printed = text(&applied.stderr);
        assert!(applied.status.success(), "{file}: {printed}");
    }
    // These are of a version that no server serves by default; that is said.
    for file in examples_of_another_version() {
        let file = file.display().to_string();
        let refused = plexus(&node, &["apply", "--skip-validation", "-f", &file]);
        let printed = text(&refused.stderr);
        assert!(
            !refused.status.success() && printed.contains("v1beta1"),
            "{file}: {printed}"
        );
    }
    let waiting = [
        "DeviceClass /cni.networking.x-k8s.io",
        "ResourceClaim claims-inline/one-macvlan-attachment",
        "ResourceClaim claims-inline/macvlan-eth0-attachment",
        "ResourceClaim claims-by-name/one-macvlan-attachment",
        "ResourceClaimTemplate claims-by-name/macvlan-template",
        "CNIConfig /macvlan-host-local",
        "NetworkAttachmentDefinition multus/multus-vpc-xxxx-yyyy",
        "NetworkAttachmentDefinition multus/multus-vpc-xxxx-yyyy-static",
    ];
    let said_to_wait = || -> Vec<String> {
        let events = up.list("/api/v1/events");
        let events = events.iter().filter(|event| event["reason"] == "Waiting");
        events.map(common::about).collect()
    };
    eventually("all that waits has an Event", || {
        let printed = said_to_wait();
        waiting
            .iter()
            .all(|one| printed.contains(&(*one).to_owned()))
    });
    let mut printed = said_to_wait();
    printed.sort();
    let count = printed.len();
    printed.dedup();
    assert_eq!(
        (printed.len(), count),
        (waiting.len(), waiting.len()),
        "once each: {printed:?}"
    );

    // By its phase where it has one: no NIC is on its subnets here.
    let network = "/apis/net.cogadvisor.io/v1/multinicnetworks/multi-nic-sample";
    eventually("the MultiNicNetwork says what it waits for", || {
        let status = up.api("GET", network, None).json()["status"].clone();
        status["configStatus"] == "WaitForConfig"
    });
    let pending = format!("{GROUP}/namespaces/default/networks/net1");
    eventually("a Network whose provider is not there is pending", || {
        let status = up.api("GET", &pending, None).json()["status"].clone();
        status["phase"] == "Pending" && status.to_string().contains("WaitingForProvider")
    });
    for (words, expected) in [
        (vec!["get", "resourceclaims", "-A"], "waits"),
        (vec!["get", "resourceclaims", "-A"], "DRA driver"),
        (vec!["get", "multinicnetworks"], "WaitForConfig"),
        (vec!["diagnose", "pod", "multi-nic-pod"], "multi-nic-sample"),
        (
            vec!["diagnose", "pod", "multi-nic-pod"],
            "plexus up runs no Pods",
        ),
        (
            vec!["diagnose", "pod", "-n", "claims-inline", "demo-a"],
            "DRA driver",
        ),
        (vec!["diagnose", "pod", "vpc-pod"], "eni"),
    ] {
        let listed = plexus(&node, &words);
        let all = text(&listed.stdout);
        assert!(
            all.contains(expected),
            "{words:?}: {all}{}",
            text(&listed.stderr)
        );
    }
    let diagnosed = plexus(&node, &["diagnose", "pod", "multi-nic-pod", "-o", "json"]);
    let diagnosed: Value = serde_json::from_slice(&diagnosed.stdout).unwrap();
    for kind in plexus_testkit::answers::ON_UP {
        let answers = diagnosed["answers"].as_array().unwrap();
        let printed = answers.iter().any(|answer| answer["kind"] == *kind);
        assert!(printed, "{kind}: {diagnosed:#}");
    }
    assert!(up.stop().success());
    assert_nothing_is_said_twice(&node, waiting.len());
}

/// A start over what is there says nothing of it again.
fn assert_nothing_is_said_twice(node: &Node, before: usize) {
    let up = Up::start(node);
    let changed = json!({"apiVersion": "cni.networking.x-k8s.io/v1alpha1", "kind": "CNIConfig",
        "metadata": {"name": "another"}, "spec": {}});
    up.create(
        "/apis/cni.networking.x-k8s.io/v1alpha1/cniconfigs",
        &changed,
    );
    let count = || {
        let events = up.list("/api/v1/events");
        events
            .iter()
            .filter(|event| event["reason"] == "Waiting")
            .count()
    };
    eventually("a new one has its Event", || count() > before);
    assert_eq!(count(), before + 1);
}
